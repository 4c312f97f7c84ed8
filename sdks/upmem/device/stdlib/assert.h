/* assert: a condition that does not hold faults the DPU. */
#ifndef FOUNDRY_ASSERT_H
#define FOUNDRY_ASSERT_H

#define static_assert _Static_assert

void __foundry_assert(const char *message) __attribute__((noreturn, cold));

#endif

#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define __FOUNDRY_TEXT(x) #x
#define __FOUNDRY_LINE(x) __FOUNDRY_TEXT(x)
#define assert(condition)                                                                                              \
    ((condition) ? (void)0 : __foundry_assert(__FILE__ ":" __FOUNDRY_LINE(__LINE__) ": " #condition))
#endif
