/* What came out, and main. */

static void print_element(const unsigned char *from, const struct parameter *parameter)
{
    int64_t whole = 0;
    float single;
    double number;
    memcpy(&single, from, parameter->bytes < 4 ? 1 : sizeof single);
    memcpy(&number, from, parameter->bytes < 8 ? 1 : sizeof number);
    memcpy(&whole, from, (size_t)parameter->bytes);
    int bits = 8 * parameter->bytes;
    if (parameter->is_float)
        printf(" %g", parameter->bytes == 4 ? (double)single : number);
    else
        printf(" %" PRId64, (int64_t)((uint64_t)whole << (64 - bits)) >> (64 - bits));
}

/* Elements that nobody gave a value, and no program either. */
static int64_t untouched(int index)
{
    const unsigned char *data = memories[index].data;
    int64_t size = parameters[index].bytes, count = 0;
    for (int64_t i = 0; i < length_of(index) && !files[index].in && !files[index].fill && !region_of(index)->is_read; i++) {
        int is_poison = 1;
        for (int64_t at = i * size; at < (i + 1) * size; at++)
            is_poison &= data[at] == shards_poison[at % (int64_t)sizeof shards_poison];
        count += is_poison;
    }
    return count;
}

static void save(int index)
{
    const struct parameter *parameter = &parameters[index];
    const unsigned char *data = memories[index].data;
    const char *out = files[index].out;
    int64_t length = length_of(index), bytes = length * parameter->bytes, left = untouched(index);
    if (left)
        fprintf(stderr, "warning: %" PRId64 " of %" PRId64 " elements of array %d were not written by any program\n",
                left, length, index);
    if (!out) {
        printf("array %d:", index);
        for (int64_t i = 0; i < length && i < 10; i++)
            print_element(data + i * parameter->bytes, parameter);
        printf("%s\n", length > 10 ? " ..." : "");
        return;
    }
    FILE *file = fopen(out, "wb");
    if (!file || fwrite(data, 1, (size_t)bytes, file) != (size_t)bytes || fclose(file))
        fail("--out %d=%s: %s", index, out, strerror(errno));
    printf("array %d: %" PRId64 " elements of %s in %s\n", index, length, parameter->type, out);
}

static void describe(int index)
{
    const struct shards_region *region = region_of(index);
    int64_t most = 0;
    if (files[index].out && launch.grid[0] && !region->is_written)
        fail("--out %d=%s: no program writes array %d", index, files[index].out, index);
    for (uint32_t dpu = 0; dpu < nr_dpus; dpu++)
        if (region->part[dpu].high - region->part[dpu].low > most)
            most = region->part[dpu].high - region->part[dpu].low;
    static const char *const uses[] = {"not used", "written", "read", "read and written"};
    printf("array %d: %" PRId64 " x %s, %s; %" PRId64 " on a DPU%s\n", index, length_of(index), parameters[index].type,
           uses[2 * region->is_read + region->is_written], most / parameters[index].bytes,
           region->anywhere ? ", since addresses depend on data" : "");
}

/* The emulator says how long DPUs would have taken, by its model; the SDK's host library has no model. */
static void report_cycles(struct dpus *dpus)
{
    struct stats *stats = memory(nr_dpus * sizeof *stats);
    int known = 0;
    uint64_t most = 0, read = 0, written = 0;
    if (!triton_dpu_stats(dpus, stats, &known) && known) {
        for (uint32_t each = 0; each < nr_dpus; each++) {
            most = stats[each].cycles > most ? stats[each].cycles : most;
            read += stats[each].dma_read_bytes;
            written += stats[each].dma_write_bytes;
        }
        printf("modelled by the emulator: %" PRIu64 " cycles on the slowest DPU; %" PRIu64 " bytes read and %" PRIu64
               " written by DMA on all\n", most, read, written);
    }
    free(stats);
}

static void run(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof DPU_PROGRAM);
    char *name = length < 0 ? path : (char *)memrchr(path, '/', (size_t)length) + 1;
    memcpy(name, DPU_PROGRAM, sizeof DPU_PROGRAM);
    struct dpus *dpus;
    const char *error = triton_dpu_allocate(nr_dpus, &dpus);
    if (error)
        fail("%s", error);
    if ((error = triton_dpu_load(dpus, path)) || (error = shards_run(shards, dpus)))
        fail("%s", error);
    report_cycles(dpus);
    if ((error = triton_dpu_free(dpus)))
        fail("%s", error);
}

int main(int count, char **words)
{
    for (int i = 0; i < COUNT; i++) {
        memories[i].bytes = -1;
        arguments[i].parameter = &passed[i];
        if (is_pointer(i))
            arguments[i].memory = &memories[i];
    }
    parse(count, words);
    shards = shards_new(&launch, sizes, nr_dpus, IS_ATOMIC);
    if (!shards)
        fail("no memory");
    const uint32_t *grid = launch.grid;
    if (!grid[0])
        find_grid();
    plan();
    /* A DPU without a program does nothing, see shards_share(). */
    uint64_t programs = (uint64_t)grid[0] * grid[1] * grid[2];
    printf("%s: grid %" PRIu32 ",%" PRIu32 ",%" PRIu32 ", %" PRIu64 " program%s on %" PRIu32 " of %" PRIu32 " DPU%s\n",
           KERNEL, grid[0], grid[1], grid[2], programs, programs == 1 ? "" : "s",
           programs < nr_dpus ? (uint32_t)programs : nr_dpus, nr_dpus, nr_dpus == 1 ? "" : "s");
    if (programs && programs < nr_dpus)
        printf("%" PRIu64 " of them have nothing to do: a program runs on one DPU, and smaller blocks make more programs\n",
               nr_dpus - programs);
    for (int i = 0; i < COUNT; i++)
        if (is_pointer(i))
            describe(i);
    make_arrays();
    if (grid[0])
        run();
    for (int i = 0; i < COUNT; i++)
        if (is_pointer(i) && (parameters[i].is_out || files[i].out))
            save(i);
    return EXIT_SUCCESS;
}
