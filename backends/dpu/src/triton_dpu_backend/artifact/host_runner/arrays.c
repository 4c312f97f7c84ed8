/* The arrays on the host: their lengths and their data before the launch, and the grid. */

static void size_by_file(int index)
{
    const char *in = files[index].in;
    struct stat status;
    if (stat(in, &status))
        fail("--in %d=%s: %s", index, in, strerror(errno));
    int64_t bytes = parameters[index].bytes;
    if (memories[index].bytes < 0 && status.st_size % bytes == 0)
        memories[index].bytes = status.st_size;
    if (memories[index].bytes < 0)
        fail("--in %d=%s has %lld bytes; an element, %s, has %" PRId64, index, in, (long long)status.st_size,
             parameters[index].type, bytes);
    if (status.st_size != memories[index].bytes)
        fail("--in %d=%s has %lld bytes; %" PRId64 " elements of %s have %" PRId64, index, in,
             (long long)status.st_size, length_of(index), parameters[index].type, memories[index].bytes);
}

/* The programs along x that have something to store: such kernels store up to an element that an argument gives. */
static void find_grid(void)
{
    int64_t none = 1, some = 0;
    if (!HAS_BLOCK)
        fail("how many programs the kernel %s needs does not follow from its arguments: give --grid X[,Y[,Z]]", KERNEL);
    launch.grid[1] = launch.grid[2] = 1;
    if (!shards_program_stores(shards, 0))
        none = 0;
    while (none > some && shards_program_stores(shards, none)) {
        some = none;
        none *= 2;
        if (none > SHARDS_MOST_PROGRAMS)
            fail("every program stores something, however many there are: give --grid X");
    }
    while (none > some + 1) {
        int64_t middle = some + (none - some) / 2;
        *(shards_program_stores(shards, middle) ? &some : &none) = middle;
    }
    launch.grid[0] = (uint32_t)none;
    for (int i = 0; i < COUNT && !none; i++)
        if (parameters[i].kind == INTEGER && arguments[i].integer < 0)
            fail("--arg %d: with %" PRId64 ", no program has anything to store", i, arguments[i].integer);
}

static void plan(void)
{
    int scalars = 0;
    int64_t only = -1;
    for (int i = 0; i < COUNT; i++) {
        if (parameters[i].kind == INTEGER) {
            scalars++;
            only = arguments[i].integer < 0 ? 0 : arguments[i].integer;
        } else if (is_pointer(i) && files[i].in)
            size_by_file(i);
    }
    const char *error = shards_plan(shards, scalars == 1 ? only : -1);
    if (error)
        fail("%s\n  next: --arg, --grid, --len IDX=N and --nr-dpus say otherwise; see --help", error);
}

/* One number as an element. */
static void put(unsigned char *to, const struct parameter *parameter, int64_t whole, double number)
{
    float single = (float)number;
    if (parameter->is_float && parameter->bytes == 4)
        memcpy(to, &single, sizeof single);
    else if (parameter->is_float)
        memcpy(to, &number, sizeof number);
    else
        memcpy(to, &whole, (size_t)parameter->bytes); /* little-endian, as DPUs and their hosts are */
}

static void make_array(int index, int is_trial)
{
    struct road_memory *memory_of = &memories[index];
    const int is_read = region_of(index)->is_read;
    const struct parameter *parameter = &parameters[index];
    const struct file *file = &files[index];
    size_t bytes = (size_t)memory_of->bytes;
    memory_of->data = memory(bytes);
    for (size_t i = 0; i < bytes; i++)
        memory_of->data[i] = shards_poison[i % sizeof shards_poison];
    if (file->in) {
        FILE *stream = fopen(file->in, "rb");
        if (!stream || fread(memory_of->data, 1, bytes, stream) != bytes)
            fail("--in %d=%s: %s", index, file->in, errno ? strerror(errno) : "it has become shorter");
        fclose(stream);
    } else if (file->fill || (is_read && is_trial)) {
        int64_t whole = 0;
        double number = 0;
        if (file->fill && parameter->is_float)
            number = floating(file->fill, "--fill");
        else if (file->fill)
            whole = integer_of(8 * parameter->bytes, file->fill, "--fill");
        for (int64_t i = 0; i < length_of(index); i++) {
            if (!file->fill)
                number = (double)(whole = i % 100 + index);
            put(memory_of->data + i * parameter->bytes, parameter, whole, number);
        }
    } else if (is_read)
        fail("the kernel reads array %d, and no data was given: --in %d=PATH or --fill %d=VALUE", index, index, index);
}

static void make_arrays(void)
{
    int is_trial = 1;
    for (int i = 0; i < COUNT; i++)
        is_trial &= !files[i].in && !files[i].fill;
    for (int i = 0; i < COUNT; i++)
        if (is_pointer(i)) {
            if (region_of(i)->is_read && is_trial)
                printf("array %d: no --in and no --fill: a trial with %d, %d, %d, ...\n", i, i, i + 1, i + 2);
            make_array(i, is_trial);
        }
}
