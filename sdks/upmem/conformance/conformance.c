/* The main program that every host_*.c of the suite shares: it runs one test. */
#define _GNU_SOURCE
#include "conformance.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

struct test {
    const char *name;
    const char *real;
    void (*run)(void);
    bool stricter;
};

enum { CAPACITY = 128 };
static struct test tests[CAPACITY];
static int count;
static char folder[PATH_MAX];

void conformance_register(const char *name, bool stricter, const char *real, void (*run)(void)) {
    if (count == CAPACITY) abort();
    tests[count++] = (struct test){.name = name, .real = real, .run = run, .stricter = stricter};
}

void conformance_fail(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s:%d: ", file, line);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    fflush(stdout);
    _exit(EXIT_FAILURE);
}

dpu_error_t conformance_plain(dpu_error_t error) {
    const uint32_t bits = (uint32_t)error;
    return bits >> 31 ? (dpu_error_t)(bits & 0xffff) : error;
}

void conformance_expect_error(const char *file, int line, const char *call, dpu_error_t actual, dpu_error_t expected) {
    if (conformance_plain(actual) == expected) return;
    conformance_fail(file, line, "%s gave \"%s\" (%d), not \"%s\" (%d)", call, dpu_error_to_string(actual), (int)actual,
                     dpu_error_to_string(expected), (int)expected);
}

void conformance_skip(const char *why) {
    printf("skipped: %s\n", why);
    fflush(stdout);
    _exit(CONFORMANCE_SKIPPED);
}

bool conformance_emulated(void) { return dlsym(RTLD_DEFAULT, "dpu_emulator_stats") != NULL; }

const char *conformance_program(const char *name) {
    static char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

struct dpu_set_t conformance_dpus(uint32_t wanted, const char *program) {
    struct dpu_set_t set;
    const dpu_error_t error = dpu_alloc(wanted, NULL, &set);
    if (error == DPU_ERR_ALLOCATION && !conformance_emulated()) conformance_skip("the machine has too few DPUs");
    OK(error);
    OK(dpu_load(set, conformance_program(program), NULL));
    return set;
}

struct dpu_set_t conformance_first(struct dpu_set_t set) {
    struct dpu_set_t dpu;
    DPU_FOREACH(set, dpu) { return dpu; }
    FAIL("the set is empty");
}

static int standard_error = -1;
static FILE *heard;

void conformance_hear(void) {
    fflush(stderr);
    heard = tmpfile();
    standard_error = dup(STDERR_FILENO);
    if (heard == NULL || standard_error < 0 || dup2(fileno(heard), STDERR_FILENO) < 0) FAIL("no temporary file");
}

char *conformance_heard(void) {
    fflush(stderr);
    dup2(standard_error, STDERR_FILENO);
    close(standard_error);
    const long length = lseek(fileno(heard), 0, SEEK_END);
    char *text = calloc((size_t)length + 1, 1);
    if (text == NULL || pread(fileno(heard), text, (size_t)length, 0) != length) FAIL("cannot read what was said");
    fclose(heard);
    return text;
}

void conformance_expect_words(const char *file, int line, const char *text, ...) {
    va_list words;
    va_start(words, text);
    for (const char *word; (word = va_arg(words, const char *)) != NULL;) {
        if (strcasestr(text, word) == NULL)
            conformance_fail(file, line, "\"%s\" is not in what was said: %s", word, *text ? text : "(nothing)");
    }
    va_end(words);
}

int main(int argc, char **argv) {
    char path[PATH_MAX];
    if (argc != 2 || realpath("/proc/self/exe", path) == NULL) {
        fprintf(stderr, "usage: %s TEST\n", argv[0]);
        return 2;
    }
    strcpy(folder, dirname(path));
    for (int i = 0; i < count; i++) {
        if (strcmp(argv[1], tests[i].name) != 0) continue;
        printf("the real SDK: %s\n", tests[i].real);
        if (tests[i].stricter && !conformance_emulated())
            conformance_skip("the emulator is stricter than hardware here");
        tests[i].run();
        return 0;
    }
    fprintf(stderr, "%s has no test %s\n", argv[0], argv[1]);
    return 2;
}
