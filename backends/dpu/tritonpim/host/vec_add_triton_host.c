/* Runs the Triton kernel of flow B on NR_DPUS DPUs and checks C = A + B: vec_add_triton_host [n], 50 floats by default.
 *
 * The grid has ceil(n / BLOCK) programs, of which each DPU gets a run, with the elements that they add. A pointer that a
 * kernel is given is that of its array's first element, wherever that is: addresses are modulo 2^32, so that a DPU with
 * a later part gets one that lies before its memory.
 */
#define _POSIX_C_SOURCE 200809L

#include <dpu.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "triton_args.h"

#ifndef NR_DPUS
#define NR_DPUS 1
#endif
#ifndef BLOCK
#error "compile with -DBLOCK=n, the elements that a program adds"
#endif

/* The DPU program, in the folder of this one. */
#define DPU_PROGRAM "triton_add"
#define MRAM_BYTES (UINT64_C(64) << 20)
#define MRAM_START UINT32_C(0x08000000)

static void fail(const char *what)
{
    fprintf(stderr, "vec_add_triton_host: %s\n", what);
    exit(EXIT_FAILURE);
}

static int32_t count_of(const char *text)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || n > INT32_MAX - BLOCK)
        fail("usage: vec_add_triton_host [n], n being how many floats to add");
    return (int32_t)n;
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

static float *floats(size_t count)
{
    float *array = malloc((count ? count : 1) * sizeof *array);
    if (!array)
        fail("out of memory");
    return array;
}

/* Move one array between the host and the DPUs: `part` elements each, one part after the other on the host. */
static void transfer(struct dpu_set_t set, dpu_xfer_t direction, float *array, uint32_t part, uint32_t offset)
{
    struct dpu_set_t dpu;
    uint32_t index;
    if (!part)
        return;
    DPU_FOREACH (set, dpu, index)
        DPU_ASSERT(dpu_prepare_xfer(dpu, array + (size_t)index * part));
    DPU_ASSERT(dpu_push_xfer(set, direction, DPU_MRAM_HEAP_POINTER_NAME, offset, part * sizeof *array, DPU_XFER_DEFAULT));
}

int main(int argc, char **argv)
{
    if (argc > 2)
        fail("usage: vec_add_triton_host [n]");
    const int32_t n = argc == 2 ? count_of(argv[1]) : 50;
    char path[PATH_MAX];
    find_program(path, sizeof path);

    struct dpu_set_t set, dpu;
    struct dpu_program_t *program;
    struct dpu_symbol_t heap;
    uint32_t index;
    DPU_ASSERT(dpu_alloc(NR_DPUS, NULL, &set));
    DPU_ASSERT(dpu_load(set, path, &program));
    DPU_ASSERT(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &heap));

    const uint32_t programs = ((uint32_t)n + BLOCK - 1) / BLOCK;
    const uint32_t each = (programs + NR_DPUS - 1) / NR_DPUS; /* of a DPU; the last ones may have fewer, or none */
    const uint64_t part = (uint64_t)each * BLOCK + (each * BLOCK) % 2;
    const uint64_t bytes = part * sizeof(float);
    if (3 * bytes > MRAM_BYTES - (heap.address - MRAM_START))
        fail("so many elements do not fit into these DPUs' memory; set NR_DPUS to more");

    const size_t all = (size_t)part * NR_DPUS;
    float *a = floats(all), *b = floats(all), *c = floats(all);
    for (size_t i = 0; i < all; i++) {
        a[i] = (float)(i % 1009) / 7;
        b[i] = (float)(i % 503) * 3;
        c[i] = NAN;
    }
    transfer(set, DPU_XFER_TO_DPU, a, (uint32_t)part, 0);
    transfer(set, DPU_XFER_TO_DPU, b, (uint32_t)part, (uint32_t)bytes);
    transfer(set, DPU_XFER_TO_DPU, c, (uint32_t)part, (uint32_t)(2 * bytes));

    host_input_arguments_t arguments[NR_DPUS];
    host_grid_t grids[NR_DPUS];
    DPU_FOREACH (set, dpu, index) {
        const uint32_t first = index * each < programs ? index * each : programs;
        const uint32_t before = heap.address - first * (uint32_t)(BLOCK * sizeof(float));
        arguments[index] = (host_input_arguments_t){
            .arg0 = before, .arg1 = before + (uint32_t)bytes, .arg2 = before + (uint32_t)(2 * bytes), .arg3 = n};
        grids[index] = (host_grid_t){.x = programs, .y = 1, .z = 1, .first = first};
        grids[index].count = programs - first < each ? programs - first : each;
        DPU_ASSERT(dpu_prepare_xfer(dpu, &arguments[index]));
    }
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "DPU_INPUT_ARGUMENTS", 0, sizeof arguments[0], DPU_XFER_DEFAULT));
    DPU_FOREACH (set, dpu, index)
        DPU_ASSERT(dpu_prepare_xfer(dpu, &grids[index]));
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "DPU_GRID", 0, sizeof grids[0], DPU_XFER_DEFAULT));

    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));

    /* Something else than what the DPU had, so that a transfer that brings nothing shows. */
    memset(c, 0x5a, all * sizeof *c);
    transfer(set, DPU_XFER_FROM_DPU, c, (uint32_t)part, (uint32_t)(2 * bytes));
    DPU_ASSERT(dpu_free(set));

    int64_t wrong = 0;
    for (uint32_t d = 0; d < NR_DPUS; d++)
        for (uint64_t i = 0; i < part; i++) {
            const size_t at = (size_t)d * part + i;
            /* The element's index, as the kernel counts: behind the end nothing may have been written. */
            const uint64_t element = (uint64_t)grids[d].first * BLOCK + i;
            const int is_ours = i < (uint64_t)grids[d].count * BLOCK && element < (uint64_t)n;
            if ((is_ours ? c[at] != a[at] + b[at] : !isnan(c[at])) && wrong++ < 10)
                fprintf(stderr, "DPU %" PRIu32 ", element %" PRIu64 ": %g, expected %g\n", d, element, (double)c[at],
                        is_ours ? (double)(a[at] + b[at]) : (double)NAN);
        }
    free(a);
    free(b);
    free(c);
    if (wrong) {
        fprintf(stderr, "%" PRId64 " of %" PRId32 " elements are wrong\n", wrong, n);
        return EXIT_FAILURE;
    }
    uint32_t working = 0; /* Those that have a program to run. */
    for (uint32_t d = 0; d < NR_DPUS; d++)
        working += grids[d].count > 0;
    printf("C = A + B: %" PRId32 " elements, %" PRIu32 " programs on %" PRIu32 " of %d DPUs, all right\n", n, programs,
           working, NR_DPUS);
    return EXIT_SUCCESS;
}
