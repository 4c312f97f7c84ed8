/* Shard a launch over DPUs by what the programs of each DPU reach; see shards.h. runtime.c has the DPUs. */
#include "shards.h"

enum { SHARDS_MRAM = 0x08000000, SHARDS_MRAM_BYTES = 64 << 20 };
/* Shards start at multiples of it, as arrays do: the kernel was compiled for that alignment. DMA needs 8. */
enum { SHARDS_ALIGNMENT = 16 };
/* Bytes that are gathered from each DPU at a time. */
enum { SHARDS_PIECE = 1 << 18 };
/* A Triton grid has no more programs. */
#define SHARDS_MOST_PROGRAMS INT64_C(0x7fffffff)
#define SHARDS_HEAP "__sys_used_mram_end"

/* What fills the bytes next to an array in a transfer: a NaN in each type of float, no likely number in integers. */
static const unsigned char shards_poison[] = {0xfa, 0xff};

/* The first error stays: what follows it may be its consequence. */
__attribute__((format(printf, 2, 3))) static const char *shards_fail(struct shards *shards, const char *format, ...)
{
    if (!*shards->error) {
        va_list values;
        va_start(values, format);
        vsnprintf(shards->error, sizeof shards->error, format, values);
        va_end(values);
    }
    return shards->error;
}

static int64_t shards_aligned(int64_t bytes)
{
    return (bytes + SHARDS_ALIGNMENT - 1) / SHARDS_ALIGNMENT * SHARDS_ALIGNMENT;
}

static struct shards_region *region_at(struct shards *shards, int index, int is_store)
{
    shards->has_stored |= is_store;
    if (!shards->is_planned || shards->region_of[index] < 0)
        return NULL;
    struct shards_region *region = &shards->regions[shards->region_of[index]];
    region->is_read |= !is_store;
    region->is_written |= is_store;
    return region;
}

static void shards_anywhere(struct packed_reach *reach, int index, int is_store)
{
    struct shards_region *region = region_at((struct shards *)(void *)reach, index, is_store);
    if (region)
        region->anywhere = 1;
}

static void shards_note(struct packed_reach *reach, int index, int64_t low, int64_t high, int exact, int is_store)
{
    struct shards *shards = (struct shards *)(void *)reach;
    struct shards_region *region = region_at(shards, index, is_store);
    const int64_t size = shards->sizes[index], *at = shards->at_program;
    const int64_t first = (int64_t)shards->launch->arguments[index].first;
    if (!region) {
        if (shards->is_planned && exact)
            shards_fail(shards, "program %" PRId64 ",%" PRId64 ",%" PRId64 " %s elements %" PRId64 " to %" PRId64
                " of array %d, which has none", at[0], at[1], at[2], is_store ? "writes" : "reads", low, high, index);
        return;
    }
    /* An element so far away is in no memory; the product must not overflow. */
    const int64_t most = INT64_MAX / 16;
    const int64_t from = first + (low < -most ? -most : low > most ? most : low) * size;
    const int64_t end = first + ((high < -most ? -most : high > most ? most : high) + 1) * size;
    if (exact) {
        const int64_t bytes = region->memory->bytes;
        if (bytes >= 0 && (from < 0 || end > bytes))
            shards_fail(shards, "program %" PRId64 ",%" PRId64 ",%" PRId64 " %s elements %" PRId64 " to %" PRId64
                " of array %d, which has %" PRId64 ": check the numbers, the grid and the length of the array",
                at[0], at[1], at[2], is_store ? "writes" : "reads", low, high, index, (bytes - first) / size);
        region->least = from < region->least ? from : region->least;
        region->most = end > region->most ? end : region->most;
    }
    struct shards_part *part = &region->part[shards->at_dpu];
    if (part->low >= part->high)
        *part = (struct shards_part){from, end};
    part->low = from < part->low ? from : part->low;
    part->high = end > part->high ? end : part->high;
}

struct shards *shards_new(const struct road_launch *launch, const int *sizes, uint32_t dpus, int is_atomic)
{
    const size_t count = (size_t)launch->count + 1;
    struct shards *shards = calloc(1, sizeof *shards);
    if (!shards)
        return NULL;
    shards->reach = (struct packed_reach){shards_note, shards_anywhere};
    shards->launch = launch;
    shards->sizes = sizes;
    shards->dpus = dpus;
    shards->is_atomic = is_atomic;
    shards->integers = calloc(count, sizeof *shards->integers);
    shards->region_of = calloc(count, sizeof *shards->region_of);
    shards->regions = calloc(count, sizeof *shards->regions);
    if (!shards->integers || !shards->region_of || !shards->regions) {
        shards_free(shards);
        return NULL;
    }
    for (int i = 0; i < (int)launch->count; i++) {
        const struct road_argument *argument = &launch->arguments[i];
        const int is_pointer = argument->parameter->how == PACKED_POINTER;
        shards->integers[i] = is_pointer ? 0 : argument->integer;
        shards->region_of[i] = -1;
        if (!is_pointer || !argument->memory)
            continue;
        int at = 0;
        while (at < shards->count && shards->regions[at].memory != argument->memory)
            at++;
        struct shards_region *region = &shards->regions[at];
        if (at == shards->count)
            *region = (struct shards_region){
                .memory = argument->memory, .index = i, .size = sizes[i], .least = INT64_MAX};
        shards->count += at == shards->count;
        region->size = sizes[i] < region->size ? sizes[i] : region->size;
        shards->region_of[i] = at;
    }
    return shards;
}

void shards_free(struct shards *shards)
{
    for (int i = 0; shards->regions && i < shards->count; i++) {
        free(shards->regions[i].part);
        free(shards->regions[i].sent);
        free(shards->regions[i].got);
    }
    free(shards->regions);
    free(shards->region_of);
    free(shards->integers);
    free(shards);
}

static void reach_program(struct shards *shards, const int64_t size[3], int64_t number)
{
    int64_t *at = shards->at_program;
    at[0] = number % size[0];
    at[1] = number / size[0] % size[1];
    at[2] = number / size[0] / size[1];
    shards->launch->variant->reach(&shards->reach, shards->integers, at, size);
}

int shards_program_stores(struct shards *shards, int64_t number)
{
    const int64_t line[3] = {SHARDS_MOST_PROGRAMS, 1, 1};
    shards->has_stored = 0;
    reach_program(shards, line, number);
    return shards->has_stored;
}

void shards_share(const struct shards *shards, uint32_t dpu, uint32_t *first, uint32_t *count)
{
    const uint32_t *grid = shards->launch->grid;
    uint32_t programs = grid[0] * grid[1] * grid[2];
    uint32_t least = programs / shards->dpus, more = programs % shards->dpus;
    *first = dpu * least + (dpu < more ? dpu : more);
    *count = least + (dpu < more);
}

const char *shards_plan(struct shards *shards, int64_t only)
{
    const struct road_launch *launch = shards->launch;
    const int64_t grid[3] = {launch->grid[0], launch->grid[1], launch->grid[2]};
    if (shards->is_atomic && shards->dpus > 1 && grid[0] * grid[1] * grid[2] > 1)
        return shards_fail(shards, "the kernel %s has atomic operations, and DPUs share no memory: use one DPU",
            launch->variant->symbol);
    for (int i = 0; i < shards->count; i++)
        if (!(shards->regions[i].part = calloc(shards->dpus, sizeof *shards->regions[i].part)))
            return shards_fail(shards, "no memory to plan for %" PRIu32 " DPUs", shards->dpus);
    shards->is_planned = 1;
    for (shards->at_dpu = 0; shards->at_dpu < shards->dpus; shards->at_dpu++) {
        uint32_t first, count;
        shards_share(shards, shards->at_dpu, &first, &count);
        for (uint32_t i = 0; i < count && !*shards->error; i++)
            reach_program(shards, grid, (int64_t)first + i);
    }
    for (int i = 0; i < shards->count && !*shards->error; i++) {
        struct shards_region *region = &shards->regions[i];
        struct road_memory *memory = region->memory;
        const int64_t size = shards->sizes[region->index];
        if (memory->bytes < 0 && region->anywhere) {
            if (only < 0)
                return shards_fail(shards, "the length of array %d does not follow from the arguments", region->index);
            memory->bytes = only * size;
            if (region->most > memory->bytes)
                return shards_fail(shards, "the programs reach element %" PRId64 " of array %d",
                    region->most / size - 1, region->index);
        }
        if (memory->bytes < 0)
            memory->bytes = region->most;
        if (region->least < 0)
            return shards_fail(shards, "the programs reach element %" PRId64 " of array %d", region->least / size,
                region->index);
        for (uint32_t dpu = 0; dpu < shards->dpus; dpu++) {
            struct shards_part *part = &region->part[dpu];
            if (region->anywhere)
                *part = (struct shards_part){0, memory->bytes};
            part->low = part->low < 0 ? 0 : part->low;
            part->high = part->high > memory->bytes ? memory->bytes : part->high;
        }
    }
    /* DPUs would have a copy of each: a store to one is not seen by a load from the other. */
    for (int i = 0; i < shards->count && !*shards->error; i++)
        for (int j = 0; j < i; j++) {
            const struct shards_region *one = &shards->regions[i], *other = &shards->regions[j];
            const uintptr_t a = (uintptr_t)one->memory->data, b = (uintptr_t)other->memory->data;
            if (a && b && a < b + (uint64_t)other->memory->bytes && b < a + (uint64_t)one->memory->bytes
                && (one->is_written || other->is_written))
                shards_fail(shards, "arrays %d and %d share memory of the host, and each DPU would have a copy of each",
                    other->index, one->index);
        }
    return *shards->error ? shards->error : NULL;
}

/* The byte at which a DPU's part starts: at or before its first one. */
static int64_t start_of(const struct shards_region *region, uint32_t dpu)
{
    const struct shards_part *part = &region->part[dpu];
    return part->low < part->high ? part->low / SHARDS_ALIGNMENT * SHARDS_ALIGNMENT : 0;
}

/* Lay the memories out in the heap, the same on all DPUs. */
static const char *lay_out(struct shards *shards, uint32_t heap)
{
    int64_t offset = shards_aligned(heap) - heap, room = SHARDS_MRAM + SHARDS_MRAM_BYTES - (int64_t)heap;
    for (int i = 0; i < shards->count; i++) {
        struct shards_region *region = &shards->regions[i];
        int64_t most = 0;
        for (uint32_t dpu = 0; dpu < shards->dpus; dpu++) {
            const struct shards_part *part = &region->part[dpu];
            int64_t bytes = part->low < part->high ? shards_aligned(part->high - start_of(region, dpu)) : 0;
            most = bytes > most ? bytes : most;
        }
        if (most > room - offset)
            return shards_fail(shards,
                "array %d needs %" PRId64 " bytes on a DPU, after %" PRId64 " for those before it; the heap in MRAM has "
                "%" PRId64 ": %s", region->index, most, offset, room,
                region->anywhere ? "its addresses depend on data, so each DPU must have all of it"
                                 : "use more DPUs, if programs reach different parts of it");
        region->offset = (uint32_t)offset;
        region->bytes = (uint32_t)most;
        offset += most;
    }
    return NULL;
}

/* Send a memory by way of a copy, because a transfer may read on to the end of the longest part. */
static const char *send_region(struct shards *shards, struct dpus *dpus, struct shards_region *region, void **buffers)
{
    const size_t bytes = (size_t)region->memory->bytes, room = bytes + region->bytes + SHARDS_ALIGNMENT;
    if (!region->bytes)
        return NULL;
    region->sent = malloc(room);
    region->got = malloc(bytes);
    if (!region->sent || !region->got)
        return "there is no memory for a copy of an array";
    for (size_t i = bytes; i < room; i++)
        region->sent[i] = shards_poison[i % sizeof shards_poison];
    memcpy(region->sent, region->memory->data, bytes);
    memcpy(region->got, region->memory->data, bytes);
    for (uint32_t each = 0; each < shards->dpus; each++)
        buffers[each] = region->sent + start_of(region, each);
    return triton_dpu_transfer(dpus, 1, SHARDS_HEAP, region->offset, region->bytes, buffers);
}

static const char *send_each(struct shards *shards, struct dpus *dpus, const char *symbol, unsigned char *values,
                             size_t bytes, void **buffers)
{
    for (uint32_t each = 0; each < shards->dpus; each++)
        buffers[each] = values + each * bytes;
    return triton_dpu_transfer(dpus, 1, symbol, 0, bytes, buffers);
}

static const char *send_arguments(struct shards *shards, struct dpus *dpus, uint32_t heap, void **buffers)
{
    /* As in triton_args.h of the DPU program: x, y, z, first, count, tasklets; 0 tasklets are all. */
    enum { GRID_BYTES = 6 * sizeof(uint32_t) };
    const struct road_launch *launch = shards->launch;
    const size_t block = launch->variant->argument_bytes;
    unsigned char *values = calloc(shards->dpus, block + GRID_BYTES);
    if (!values)
        return "there is no memory for the arguments";
    unsigned char *grids = values + shards->dpus * block;
    for (uint32_t each = 0; each < shards->dpus; each++) {
        uint32_t grid[6] = {launch->grid[0], launch->grid[1], launch->grid[2], 0, 0, 0};
        shards_share(shards, each, &grid[3], &grid[4]);
        memcpy(grids + each * GRID_BYTES, grid, GRID_BYTES);
        for (uint32_t i = 0; i < launch->count; i++) {
            const struct road_argument *argument = &launch->arguments[i];
            unsigned char *field = values + each * block + argument->parameter->offset;
            if (argument->parameter->how == PACKED_NUMBER)
                memcpy(field, &argument->bits, (size_t)argument->bytes); /* little-endian, as DPUs and their hosts are */
            else if (shards->region_of[i] >= 0) {
                const struct shards_region *region = &shards->regions[shards->region_of[i]];
                /* Of the array's first element, which may not be there: modulo 2^32, as the DPU computes. */
                uint32_t address = heap + region->offset - (uint32_t)start_of(region, each) + (uint32_t)argument->first;
                memcpy(field, &address, sizeof address);
            }
        }
    }
    const char *error = send_each(shards, dpus, "DPU_INPUT_ARGUMENTS", values, block, buffers);
    if (!error)
        error = send_each(shards, dpus, "DPU_GRID", grids, GRID_BYTES, buffers);
    free(values);
    return error;
}

/* Take over the elements that a DPU changed. Parts may overlap where programs of several DPUs write into one array. */
static void merge(struct shards_region *region, uint32_t dpu, const unsigned char *piece, int64_t from, int64_t bytes)
{
    const struct shards_part *part = &region->part[dpu];
    const int64_t begin = start_of(region, dpu) + from;
    for (int64_t i = 0; i < bytes; i += region->size) {
        int64_t at = begin + i;
        if (at >= part->low && at < part->high && memcmp(piece + i, region->sent + at, (size_t)region->size))
            memcpy(region->got + at, piece + i, (size_t)region->size);
    }
}

static const char *gather(struct shards *shards, struct dpus *dpus, struct shards_region *region, void **buffers)
{
    const char *error = NULL;
    unsigned char *pieces = malloc((size_t)shards->dpus * SHARDS_PIECE);
    if (!pieces)
        return "there is no memory for what comes back";
    for (uint32_t from = 0; from < region->bytes && !error; from += SHARDS_PIECE) {
        uint32_t bytes = region->bytes - from < SHARDS_PIECE ? region->bytes - from : SHARDS_PIECE;
        for (uint32_t each = 0; each < shards->dpus; each++)
            buffers[each] = pieces + (size_t)each * SHARDS_PIECE;
        error = triton_dpu_transfer(dpus, 0, SHARDS_HEAP, region->offset + from, bytes, buffers);
        for (uint32_t each = 0; each < shards->dpus && !error; each++)
            merge(region, each, pieces + (size_t)each * SHARDS_PIECE, from, bytes);
    }
    free(pieces);
    return error;
}

const char *shards_run(struct shards *shards, struct dpus *dpus)
{
    const struct packed_variant *variant = shards->launch->variant;
    uint32_t heap = 0, size = 0, place = 0, takes = 0;
    /* The heap starts at the symbol's address; what lies there means nothing. */
    const char *error = triton_dpu_symbol(dpus, SHARDS_HEAP, &heap, &size);
    if (!error)
        error = triton_dpu_symbol(dpus, "DPU_INPUT_ARGUMENTS", &place, &takes);
    if (!error && takes != variant->argument_bytes)
        error = "it takes other arguments";
    if (error)
        return shards_fail(shards, "the DPU program is not of the kernel %s: %s", variant->symbol, error);
    if (lay_out(shards, heap))
        return shards->error;
    void **buffers = calloc(shards->dpus, sizeof *buffers);
    if (!buffers)
        return shards_fail(shards, "no memory for %" PRIu32 " DPUs", shards->dpus);
    for (int i = 0; i < shards->count && !error; i++)
        error = send_region(shards, dpus, &shards->regions[i], buffers);
    if (!error)
        error = send_arguments(shards, dpus, heap, buffers);
    if (!error)
        error = triton_dpu_launch(dpus);
    for (int i = 0; i < shards->count && !error; i++)
        if (shards->regions[i].is_written)
            error = gather(shards, dpus, &shards->regions[i], buffers);
    free(buffers);
    if (error)
        return shards_fail(shards, "%s", error);
    for (int i = 0; i < shards->count; i++) {
        const struct shards_region *region = &shards->regions[i];
        if (region->is_written && region->bytes)
            memcpy(region->memory->data, region->got, (size_t)region->memory->bytes);
    }
    return NULL;
}
