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

static void save(int index)
{
    const struct array *array = &arrays[index];
    const struct parameter *parameter = &parameters[index];
    int64_t bytes = array->length * parameter->bytes, untouched = 0;
    for (int64_t i = 0; i < bytes && !array->in && !array->fill && !array->is_read; i += parameter->bytes)
        untouched += !memcmp(array->got + i, array->sent + i, (size_t)parameter->bytes);
    if (untouched)
        fprintf(stderr, "warning: %" PRId64 " of %" PRId64 " elements of array %d were not written by any program\n",
                untouched, array->length, index);
    if (!array->out) {
        printf("array %d:", index);
        for (int64_t i = 0; i < array->length && i < 10; i++)
            print_element(array->got + i * parameter->bytes, parameter);
        printf("%s\n", array->length > 10 ? " ..." : "");
        return;
    }
    FILE *file = fopen(array->out, "wb");
    if (!file || fwrite(array->got, 1, (size_t)bytes, file) != (size_t)bytes || fclose(file))
        fail("--out %d=%s: %s", index, array->out, strerror(errno));
    printf("array %d: %" PRId64 " elements of %s in %s\n", index, array->length, parameter->type, array->out);
}

static void describe(int index)
{
    const struct array *array = &arrays[index];
    int64_t most = 0;
    if (array->out && grid[0] && !array->is_written)
        fail("--out %d=%s: no program writes array %d", index, array->out, index);
    for (uint32_t dpu = 0; dpu < nr_dpus; dpu++)
        if (array->part[dpu].high - array->part[dpu].low > most)
            most = array->part[dpu].high - array->part[dpu].low;
    static const char *const uses[] = {"not used", "written", "read", "read and written"};
    printf("array %d: %" PRId64 " x %s, %s; %" PRId64 " on a DPU%s\n", index, array->length, parameters[index].type,
           uses[2 * array->is_read + array->is_written], most,
           array->anywhere ? ", since addresses depend on data" : "");
}

int main(int count, char **words)
{
    for (int i = 0; i < COUNT; i++)
        arrays[i].length = -1;
    parse(count, words);
    if (!grid[0])
        find_grid();
    plan();
    /* A DPU without a program does nothing, see share(). */
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
    if (grid[0])
        run();
    else
        make_arrays();
    for (int i = 0; i < COUNT; i++)
        if (is_pointer(i) && (parameters[i].is_out || arrays[i].out))
            save(i);
    return EXIT_SUCCESS;
}
