/* What a test of the suite is made of: a name, what the real SDK does, and how a failure is said.

   A test is one process: `host_NAME TEST`. Exit status 0 says that it held, 77 that it says nothing on this SDK (the
   reason is printed), anything else that it failed. CONFORMS tests hold on the real SDK and on the emulator. STRICTER
   tests hold on the emulator alone: where hardware goes on in silence with wrong data or for ever, it refuses. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <dpu.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFORMANCE_SKIPPED = 77 };

void conformance_register(const char *name, bool stricter, const char *real, void (*run)(void));

#define CONFORMANCE_TEST(test, stricter, real)                                                                        \
    static void test_##test(void);                                                                                     \
    __attribute__((constructor)) static void register_##test(void) {                                                   \
        conformance_register(#test, stricter, real, test_##test);                                                      \
    }                                                                                                                  \
    static void test_##test(void)
#define CONFORMS(test, real) CONFORMANCE_TEST(test, false, real)
#define STRICTER(test, real) CONFORMANCE_TEST(test, true, real)

/* Says what failed and ends the test. */
_Noreturn void conformance_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define FAIL(...) conformance_fail(__FILE__, __LINE__, __VA_ARGS__)
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) FAIL("%s does not hold", #condition);                                                        \
    } while (0)
#define EXPECT_EQUAL(actual, expected)                                                                                 \
    do {                                                                                                               \
        long long is_ = (long long)(actual), should_ = (long long)(expected);                                          \
        if (is_ != should_) FAIL("%s is %lld (0x%llx), not %lld", #actual, is_, is_, should_);                         \
    } while (0)

/* The error without what an asynchronous job adds to it (bit 31 and the kind of job). */
dpu_error_t conformance_plain(dpu_error_t error);
void conformance_expect_error(const char *file, int line, const char *call, dpu_error_t actual, dpu_error_t expected);
#define EXPECT_ERROR(call, error) conformance_expect_error(__FILE__, __LINE__, #call, (call), (error))
#define OK(call) EXPECT_ERROR(call, DPU_OK)

/* Ends the test as one that says nothing here. */
_Noreturn void conformance_skip(const char *why);

/* Whether the SDK is the project's emulator. */
bool conformance_emulated(void);

/* Path of a device program of this suite, which lies beside the host program; valid until the next call. */
const char *conformance_program(const char *name);

/* `count` DPUs with a program in each; the test is skipped where a real machine has fewer. */
struct dpu_set_t conformance_dpus(uint32_t count, const char *program);

/* The first DPU of a set. */
struct dpu_set_t conformance_first(struct dpu_set_t set);

/* Collects what is written to standard error between the two calls. Free the result. */
void conformance_hear(void);
char *conformance_heard(void);

/* Fails unless the text contains every word, letters of either case; the last word is NULL. */
void conformance_expect_words(const char *file, int line, const char *text, ...);
#define EXPECT_WORDS(text, ...) conformance_expect_words(__FILE__, __LINE__, text, __VA_ARGS__, NULL)

#endif
