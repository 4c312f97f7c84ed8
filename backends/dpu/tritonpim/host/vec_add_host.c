/* Runs vec_add (dpu/vec_add.mlir) on NR_DPUS DPUs and checks the result: vec_add_host [n], 512 integers by default.
 *
 * A, B and C are split into one part a DPU, of an even number of elements, so that each begins at a multiple of 8 bytes;
 * the last parts may be shorter, or empty. What C's memory holds before is known, and a word more than C needs is looked
 * at afterwards: an element that was not computed shows, and so does a write behind the end.
 */
#define _POSIX_C_SOURCE 200809L

#include <dpu.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#ifndef NR_DPUS
#define NR_DPUS 1
#endif

/* The DPU program, in the folder of this one. */
#ifndef DPU_PROGRAM
#define DPU_PROGRAM "vec_add"
#endif

#define MRAM_WORD 8u
#define POISON 0xdeadbeefu

/* As in dpu/vec_add_args.c. */
struct vec_add_arguments {
    uint32_t a, b, c;
    uint32_t n;
};

static void fail(const char *what)
{
    fprintf(stderr, "vec_add_host: %s\n", what);
    exit(EXIT_FAILURE);
}

/* The number of elements that the command line gives. */
static uint32_t count_of(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || n > UINT32_MAX / 2)
        fail("usage: vec_add_host [n], n being how many integers to add");
    return (uint32_t)n;
}

static void find_program(char *path, size_t size)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        fail("cannot find out where this program is");
    self[length] = '\0';
    if ((size_t)snprintf(path, size, "%s/%s", dirname(self), DPU_PROGRAM) >= size)
        fail("the path of the DPU program is too long");
}

static uint32_t *words(size_t count)
{
    uint32_t *array = malloc((count ? count : 1) * sizeof *array);
    if (!array)
        fail("out of memory");
    return array;
}

/* Move one array between the host and the DPUs, `part` elements each, at an offset into the heap. */
static void transfer(struct dpu_set_t set, dpu_xfer_t direction, uint32_t *array, uint32_t part, uint32_t offset)
{
    struct dpu_set_t dpu;
    uint32_t index;
    DPU_FOREACH(set, dpu, index)
        DPU_ASSERT(dpu_prepare_xfer(dpu, array + (size_t)index * part));
    DPU_ASSERT(dpu_push_xfer(set, direction, DPU_MRAM_HEAP_POINTER_NAME, offset, part * sizeof *array, DPU_XFER_DEFAULT));
}

int main(int argc, char **argv)
{
    if (argc > 2)
        fail("usage: vec_add_host [n]");
    const uint32_t n = argc == 2 ? count_of(argv[1]) : 512;
    char program_path[PATH_MAX];
    find_program(program_path, sizeof program_path);

    struct dpu_set_t set, dpu;
    struct dpu_program_t *program;
    struct dpu_symbol_t heap;
    uint32_t nr_dpus, index;
    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_get_nr_dpus(set, &nr_dpus));
    DPU_ASSERT(dpu_load(set, program_path, &program));
    DPU_ASSERT(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &heap));

    /* Elements of a DPU, an even number; in its memory one word more lies behind each array. */
    const uint32_t even = (uint32_t)(((uint64_t)n + nr_dpus - 1) / nr_dpus + 1) & ~1u;
    const uint32_t part = even + MRAM_WORD / sizeof(uint32_t);
    const uint64_t bytes = (uint64_t)part * sizeof(uint32_t);
    if (3 * bytes > heap.size)
        fail("so many elements do not fit into these DPUs' memory; compile with a larger -DNR_DPUS");

    const size_t all = (size_t)part * nr_dpus;
    uint32_t *a = words(all), *b = words(all), *c = words(all);
    for (size_t i = 0; i < all; i++) {
        a[i] = (uint32_t)i * 2654435761u;
        b[i] = ~(uint32_t)i * 40503u;
        c[i] = POISON ^ (uint32_t)i;
    }
    transfer(set, DPU_XFER_TO_DPU, a, part, 0);
    transfer(set, DPU_XFER_TO_DPU, b, part, (uint32_t)bytes);
    transfer(set, DPU_XFER_TO_DPU, c, part, (uint32_t)(2 * bytes));

    struct vec_add_arguments arguments[NR_DPUS];
    DPU_FOREACH(set, dpu, index) {
        const uint64_t first = (uint64_t)index * even;
        const uint32_t left = first < n ? n - (uint32_t)first : 0;
        arguments[index] = (struct vec_add_arguments){
            .a = heap.address,
            .b = heap.address + (uint32_t)bytes,
            .c = heap.address + (uint32_t)(2 * bytes),
            .n = left < even ? left : even,
        };
        DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[index]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "DPU_INPUT_ARGUMENTS", 0, sizeof arguments[0], DPU_XFER_DEFAULT));

    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));

    /* Something else than what the DPU had, so that a transfer that brings nothing shows. */
    memset(c, 0x5a, all * sizeof *c);
    transfer(set, DPU_XFER_FROM_DPU, c, part, (uint32_t)(2 * bytes));

    uint64_t wrong = 0;
    for (uint32_t d = 0; d < nr_dpus; d++)
        for (uint32_t i = 0; i < part; i++) {
            const size_t at = (size_t)d * part + i;
            const uint32_t expected = i < arguments[d].n ? a[at] + b[at] : POISON ^ (uint32_t)at;
            if (c[at] != expected && wrong++ < 10)
                fprintf(stderr, "DPU %" PRIu32 ", element %" PRIu32 " of %" PRIu32 ": %#" PRIx32 ", expected %#" PRIx32 "%s\n",
                        d, i, arguments[d].n, c[at], expected, i < arguments[d].n ? "" : " (behind the end)");
        }
    DPU_ASSERT(dpu_free(set));
    free(a);
    free(b);
    free(c);
    if (wrong) {
        fprintf(stderr, "vec_add: %" PRIu64 " of %" PRIu32 " elements wrong\n", wrong, n);
        return EXIT_FAILURE;
    }
    uint32_t working = 0; /* Those that have an element to add. */
    for (uint32_t d = 0; d < nr_dpus; d++)
        working += arguments[d].n > 0;
    printf("vec_add: %" PRIu32 " elements on %" PRIu32 " of %" PRIu32 " DPUs: correct\n", n, working, nr_dpus);
    return EXIT_SUCCESS;
}
