/* The DPUs: arrays and arguments go there, the kernel runs, what it wrote comes back. */

static void send(struct dpu_set_t set, int index)
{
    const struct array *array = &arrays[index];
    struct dpu_set_t dpu;
    uint32_t each;
    if (!array->bytes)
        return;
    DPU_FOREACH (set, dpu, each)
        DPU_ASSERT(dpu_prepare_xfer(dpu, array->sent + start(index, each)));
    DPU_ASSERT(dpu_push_xfer(
        set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, array->offset, array->bytes, DPU_XFER_DEFAULT));
}

static void send_arguments(struct dpu_set_t set, uint32_t heap)
{
    host_input_arguments_t *values = memory(nr_dpus * sizeof *values);
    host_grid_t *grids = memory(nr_dpus * sizeof *grids);
    struct dpu_set_t dpu;
    uint32_t each;
    DPU_FOREACH (set, dpu, each) {
        host_grid_t *shared = &grids[each];
        *shared = (host_grid_t){.x = grid[0], .y = grid[1], .z = grid[2]};
        share(each, grid[0] * grid[1] * grid[2], &shared->first, &shared->count);
        memset(&values[each], 0, sizeof *values);
        for (int i = 0; i < COUNT; i++) {
            unsigned char *field = (unsigned char *)&values[each] + parameters[i].offset;
            float single = (float)real[i];
            if (is_pointer(i)) {
                /* Of the array's first element, which may not be there: modulo 2^32, as the DPU computes. */
                uint32_t address = heap + arrays[i].offset - (uint32_t)start(i, each);
                memcpy(field, &address, sizeof address);
            } else if (parameters[i].kind == INTEGER)
                memcpy(field, &argument[i], (size_t)parameters[i].bytes);
            else if (parameters[i].kind == FLOAT && parameters[i].bytes == 4)
                memcpy(field, &single, sizeof single);
            else if (parameters[i].kind == FLOAT)
                memcpy(field, &real[i], sizeof real[i]);
        }
    }
    DPU_FOREACH (set, dpu, each)
        DPU_ASSERT(dpu_prepare_xfer(dpu, &values[each]));
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "DPU_INPUT_ARGUMENTS", 0, sizeof *values, DPU_XFER_DEFAULT));
    DPU_FOREACH (set, dpu, each)
        DPU_ASSERT(dpu_prepare_xfer(dpu, &grids[each]));
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, "DPU_GRID", 0, sizeof *grids, DPU_XFER_DEFAULT));
    free(values);
    free(grids);
}

/* Take over what a DPU changed. Parts may overlap where programs of several DPUs write into one array. */
static void merge(int index, uint32_t dpu, const unsigned char *piece, int64_t from, int64_t bytes)
{
    struct array *array = &arrays[index];
    int64_t low = array->part[dpu].low * parameters[index].bytes;
    int64_t high = array->part[dpu].high * parameters[index].bytes;
    int64_t begin = start(index, dpu) + from;
    for (int64_t i = 0; i < bytes; i++) {
        int64_t at = begin + i;
        if (at >= low && at < high && piece[i] != array->sent[at])
            array->got[at] = piece[i];
    }
}

static void gather(struct dpu_set_t set, int index)
{
    const struct array *array = &arrays[index];
    unsigned char *pieces = memory((size_t)nr_dpus * PIECE);
    struct dpu_set_t dpu;
    uint32_t each;
    for (uint32_t from = 0; from < array->bytes; from += PIECE) {
        uint32_t bytes = array->bytes - from < PIECE ? array->bytes - from : PIECE;
        DPU_FOREACH (set, dpu, each)
            DPU_ASSERT(dpu_prepare_xfer(dpu, pieces + (size_t)each * PIECE));
        DPU_ASSERT(dpu_push_xfer(
            set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, array->offset + from, bytes, DPU_XFER_DEFAULT));
        for (each = 0; each < nr_dpus; each++)
            merge(index, each, pieces + (size_t)each * PIECE, from, bytes);
    }
    free(pieces);
}

/* The emulator says how long DPUs would have taken, by its model; the SDK's host library lacks the function. */
static void report_cycles(struct dpu_set_t set)
{
    struct {
        uint64_t cycles, instructions, dma_read_bytes, dma_write_bytes, dma_transfers, dma_cycles;
    } stats;
    int (*ask)(struct dpu_set_t, void *);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "dpu_emulator_stats");
    uint64_t most = 0, read = 0, written = 0;
    struct dpu_set_t dpu;
    if (!ask)
        return;
    DPU_FOREACH (set, dpu) {
        if (ask(dpu, &stats))
            return;
        most = stats.cycles > most ? stats.cycles : most;
        read += stats.dma_read_bytes;
        written += stats.dma_write_bytes;
    }
    printf("modelled by the emulator: %" PRIu64 " cycles on the slowest DPU; %" PRIu64 " bytes read and %" PRIu64
           " written by DMA on all\n", most, read, written);
}

static void run(void)
{
    struct dpu_set_t set;
    struct dpu_program_t *program;
    struct dpu_symbol_t heap;
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof DPU_PROGRAM);
    char *name = length < 0 ? path : memrchr(path, '/', (size_t)length) + 1;
    memcpy(name, DPU_PROGRAM, sizeof DPU_PROGRAM);

    DPU_ASSERT(dpu_alloc(nr_dpus, NULL, &set));
    DPU_ASSERT(dpu_load(set, path, &program));
    /* The heap starts at the symbol's address; what lies there means nothing. */
    DPU_ASSERT(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &heap));
    lay_out((uint32_t)heap.address);
    make_arrays();
    for (int i = 0; i < COUNT; i++)
        if (is_pointer(i))
            send(set, i);
    send_arguments(set, (uint32_t)heap.address);
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    for (int i = 0; i < COUNT; i++)
        if (is_pointer(i) && (parameters[i].is_out || arrays[i].out))
            gather(set, i);
    report_cycles(set);
    DPU_ASSERT(dpu_free(set));
}
