/* A host library of DPUs for tests: the functions of dpu.h that runtime.c calls. A DPU is memory of this process, and its
 * program a shared library with `arguments_bytes` and `run_dpu`. MRAM is poison until it is written.
 *
 * MOCK_FAULT=1: a launch runs, and fails. MOCK_DPUS=N: there are N DPUs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <dpu.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MRAM = 64 << 20, HEAP = 24, MOST = 64, BLOCK = 4096 };

struct dpu_t {
    unsigned char *mram, arguments[BLOCK], grid[24];
    void *prepared;
};
struct dpu_rank_t {
    uint32_t count;
    struct dpu_t dpus[MOST];
};
struct dpu_program_t {
    uint32_t arguments;
    void (*run)(unsigned char *mram, const unsigned char *arguments, const uint32_t *grid);
};

static struct dpu_rank_t rank, *ranks[] = {&rank};
static struct dpu_program_t loaded;

dpu_error_t dpu_alloc(uint32_t count, const char *profile, struct dpu_set_t *set)
{
    const char *most = getenv("MOCK_DPUS");
    (void)profile;
    if (rank.count || count > (most ? (uint32_t)atoi(most) : MOST))
        return DPU_ERR_ALLOCATION;
    for (uint32_t i = 0; i < count; i++) {
        rank.dpus[i].mram = malloc(MRAM);
        memset(rank.dpus[i].mram, 0xa5, 1 << 20);
    }
    rank.count = count;
    loaded.run = NULL;
    set->kind = DPU_SET_RANKS;
    set->list.nr_ranks = 1;
    set->list.ranks = ranks;
    return DPU_OK;
}

dpu_error_t dpu_free(struct dpu_set_t set)
{
    (void)set;
    for (uint32_t i = 0; i < rank.count; i++)
        free(rank.dpus[i].mram);
    rank.count = 0;
    return DPU_OK;
}

dpu_error_t dpu_load(struct dpu_set_t set, const char *path, struct dpu_program_t **program)
{
    void *library = dlopen(path, RTLD_NOW);
    (void)set;
    if (!library)
        return DPU_ERR_ELF_INVALID_FILE;
    loaded.arguments = *(const uint32_t *)dlsym(library, "arguments_bytes");
    *(void **)&loaded.run = dlsym(library, "run_dpu");
    *program = &loaded;
    return DPU_OK;
}

dpu_error_t dpu_load_from_memory(struct dpu_set_t set, uint8_t *bytes, size_t size, struct dpu_program_t **program)
{
    char path[64];
    int file = memfd_create("program", 0); /* stays open: the loader keeps its name */
    if (write(file, bytes, size) != (ssize_t)size)
        return DPU_ERR_ELF_INVALID_FILE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return dpu_load(set, path, program);
}

dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *name, struct dpu_symbol_t *symbol)
{
    if (!strcmp(name, DPU_MRAM_HEAP_POINTER_NAME))
        *symbol = (struct dpu_symbol_t){0x08000000 + HEAP, MRAM - HEAP};
    else if (!strcmp(name, "DPU_INPUT_ARGUMENTS"))
        *symbol = (struct dpu_symbol_t){0x100, program->arguments};
    else
        return DPU_ERR_UNKNOWN_SYMBOL;
    return DPU_OK;
}

dpu_error_t dpu_launch(struct dpu_set_t set, dpu_launch_policy_t policy)
{
    (void)set, (void)policy;
    for (uint32_t i = 0; i < rank.count; i++) {
        uint32_t grid[6];
        memcpy(grid, rank.dpus[i].grid, sizeof grid);
        loaded.run(rank.dpus[i].mram, rank.dpus[i].arguments, grid);
    }
    return getenv("MOCK_FAULT") ? DPU_ERR_DPU_FAULT : DPU_OK;
}

dpu_error_t dpu_status(struct dpu_set_t set, bool *done, bool *fault)
{
    (void)set;
    *done = *fault = true;
    return DPU_OK;
}

dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream)
{
    (void)set;
    fputs("the log of this DPU", stream);
    return DPU_OK;
}

const char *dpu_error_to_string(dpu_error_t error)
{
    return error == DPU_ERR_ALLOCATION ? "allocation error" : error == DPU_ERR_DPU_FAULT ? "dpu is in fault" : "error";
}

dpu_error_t dpu_prepare_xfer(struct dpu_set_t dpu, void *buffer)
{
    dpu.dpu->prepared = buffer;
    return DPU_OK;
}

dpu_error_t dpu_push_xfer(struct dpu_set_t set, dpu_xfer_t way, const char *symbol, uint32_t offset, size_t length,
                          dpu_xfer_flags_t flags)
{
    (void)set, (void)flags;
    const int is_mram = !strcmp(symbol, DPU_MRAM_HEAP_POINTER_NAME), is_grid = !strcmp(symbol, "DPU_GRID");
    if (offset % 8 || length % 8 || offset + length > (is_mram ? MRAM - HEAP : is_grid ? 24 : loaded.arguments))
        return DPU_ERR_INVALID_MRAM_ACCESS;
    for (uint32_t i = 0; i < rank.count; i++) {
        struct dpu_t *dpu = &rank.dpus[i];
        unsigned char *at = (is_mram ? dpu->mram + HEAP : is_grid ? dpu->grid : dpu->arguments) + offset;
        if (dpu->prepared && way == DPU_XFER_TO_DPU)
            memcpy(at, dpu->prepared, length);
        else if (dpu->prepared)
            memcpy(dpu->prepared, at, length);
        dpu->prepared = NULL;
    }
    return DPU_OK;
}

struct dpu_set_iterator_t dpu_set_dpus(const struct dpu_set_t *set)
{
    struct dpu_set_iterator_t iterator = {.set = *set, .has_next = rank.count > 0};
    iterator.next = (struct dpu_set_t){.kind = DPU_SET_DPU, .dpu = &rank.dpus[0]};
    return iterator;
}

void dpu_set_dpus_next(struct dpu_set_iterator_t *iterator)
{
    iterator->count++;
    iterator->has_next = iterator->count < rank.count;
    if (iterator->has_next)
        iterator->next.dpu = &rank.dpus[iterator->count];
}
