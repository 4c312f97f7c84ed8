/* Internals of the SDK that programs use. */
#ifndef FOUNDRY_DPURUNTIME_H
#define FOUNDRY_DPURUNTIME_H

#include <attributes.h>
#include <defs.h>

#define __STR(x) __STR_AGAIN(x)
#define __STR_AGAIN(x) #x
#define __CONCAT(x, y) __CONCAT_AGAIN(x, y)
#define __CONCAT_AGAIN(x, y) x##y

#define unreachable() __builtin_unreachable()
#ifndef likely
#define likely(x) __builtin_expect((x) != 0, 1)
#define unlikely(x) __builtin_expect((x) != 0, 0)
#endif

#endif
