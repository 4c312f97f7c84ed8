/* What is planned before DPUs are asked for: the grid, each DPU's programs, what they reach, where that lies. */

static void share(uint32_t dpu, uint32_t programs, uint32_t *first, uint32_t *count)
{
    uint32_t least = programs / nr_dpus, more = programs % nr_dpus;
    *first = dpu * least + (dpu < more ? dpu : more);
    *count = least + (dpu < more);
}

static void reach_program(int64_t number)
{
    int64_t size[3] = {grid[0], grid[1], grid[2]};
    program_at[0] = number % size[0];
    program_at[1] = number / size[0] % size[1];
    program_at[2] = number / size[0] / size[1];
    reach(program_at, size);
}

static int program_stores(int64_t number)
{
    stored = 0;
    grid[0] = (uint32_t)MOST_PROGRAMS;
    reach_program(number);
    return stored;
}

/* The programs along x that have something to store: such kernels store up to an element that an argument gives. */
static void find_grid(void)
{
    int64_t none = 1, some = 0;
    if (!HAS_BLOCK)
        fail("how many programs the kernel %s needs does not follow from its arguments: give --grid X[,Y[,Z]]", KERNEL);
    grid[1] = grid[2] = 1;
    if (!program_stores(0))
        none = 0;
    while (none > some && program_stores(none)) {
        some = none;
        none *= 2;
        if (none > MOST_PROGRAMS)
            fail("every program stores something, however many there are: give --grid X");
    }
    while (none > some + 1) {
        int64_t middle = some + (none - some) / 2;
        *(program_stores(middle) ? &some : &none) = middle;
    }
    grid[0] = (uint32_t)none;
    for (int i = 0; i < COUNT && !none; i++)
        if (parameters[i].kind == INTEGER && argument[i] < 0)
            fail("--arg %d: with %" PRId64 ", no program has anything to store", i, argument[i]);
}

static void plan(void)
{
    int scalars = 0;
    int64_t only = -1;
    for (int i = 0; i < COUNT; i++) {
        struct array *array = &arrays[i];
        if (parameters[i].kind == INTEGER) {
            scalars++;
            only = argument[i];
        }
        if (!is_pointer(i))
            continue;
        if (array->in)
            size_by_file(i);
        array->part = memory(nr_dpus * sizeof *array->part);
        memset(array->part, 0, nr_dpus * sizeof *array->part);
        array->least = INT64_MAX;
    }
    planned = 1;
    uint32_t programs = grid[0] * grid[1] * grid[2];
    if (IS_ATOMIC && nr_dpus > 1 && programs > 1)
        fail("the kernel %s has atomic operations, and DPUs share no memory: give --nr-dpus 1", KERNEL);
    for (dpu_at = 0; dpu_at < nr_dpus; dpu_at++) {
        uint32_t first, count;
        share(dpu_at, programs, &first, &count);
        for (uint32_t i = 0; i < count; i++)
            reach_program((int64_t)first + i);
    }
    for (int i = 0; i < COUNT; i++) {
        struct array *array = &arrays[i];
        if (!is_pointer(i))
            continue;
        if (array->length < 0 && array->anywhere) {
            if (scalars != 1)
                fail("the length of array %d does not follow from the arguments: give --len %d=N", i, i);
            array->length = only < 0 ? 0 : only;
            if (array->most > array->length)
                fail("the programs reach element %" PRId64 " of array %d: give --len %d=N", array->most - 1, i, i);
        }
        if (array->length < 0)
            array->length = array->most;
        if (array->least < 0)
            fail("the programs reach element %" PRId64 " of array %d", array->least, i);
        for (uint32_t dpu = 0; dpu < nr_dpus; dpu++) {
            struct reached *part = &array->part[dpu];
            if (array->anywhere)
                *part = (struct reached){0, array->length};
            if (part->low < 0)
                part->low = 0;
            if (part->high > array->length)
                part->high = array->length;
        }
    }
}

/* The byte at which a DPU's part starts: at or before its first element. */
static int64_t start(int index, uint32_t dpu)
{
    const struct reached *part = &arrays[index].part[dpu];
    return part->low < part->high ? part->low * parameters[index].bytes / ALIGNMENT * ALIGNMENT : 0;
}

/* Lay the arrays out in the heap, the same on all DPUs. */
static void lay_out(uint32_t heap)
{
    int64_t offset = aligned(heap) - heap;
    for (int i = 0; i < COUNT; i++) {
        if (!is_pointer(i))
            continue;
        int64_t most = 0;
        for (uint32_t dpu = 0; dpu < nr_dpus; dpu++) {
            const struct reached *part = &arrays[i].part[dpu];
            int64_t bytes = part->low < part->high ? aligned(part->high * parameters[i].bytes - start(i, dpu)) : 0;
            most = bytes > most ? bytes : most;
        }
        if (offset + most > MRAM_START + MRAM_BYTES - (int64_t)heap)
            fail("array %d needs %" PRId64 " bytes on a DPU, after %" PRId64 " for those before it; the heap in MRAM "
                 "has %" PRId64 ": %s",
                 i, most, offset, MRAM_START + MRAM_BYTES - (int64_t)heap,
                 arrays[i].anywhere ? "its addresses depend on data, so each DPU must have all of it"
                                    : "give --nr-dpus more, if programs reach different parts of it");
        arrays[i].offset = (uint32_t)offset;
        arrays[i].bytes = (uint32_t)most;
        offset += most;
    }
}
