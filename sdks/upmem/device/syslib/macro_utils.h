/* Text and names from macros. */
#ifndef FOUNDRY_MACRO_UTILS_H
#define FOUNDRY_MACRO_UTILS_H

#include <dpuruntime.h>

#endif
