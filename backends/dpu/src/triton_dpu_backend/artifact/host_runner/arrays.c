/* The arrays on the host: their data before the launch. */

static void size_by_file(int index)
{
    struct array *array = &arrays[index];
    struct stat status;
    if (stat(array->in, &status))
        fail("--in %d=%s: %s", index, array->in, strerror(errno));
    int64_t bytes = parameters[index].bytes;
    if (array->length < 0 && status.st_size % bytes == 0)
        array->length = status.st_size / bytes;
    if (array->length < 0)
        fail("--in %d=%s has %lld bytes; an element, %s, has %" PRId64, index, array->in, (long long)status.st_size,
             parameters[index].type, bytes);
    if (status.st_size != array->length * bytes)
        fail("--in %d=%s has %lld bytes; %" PRId64 " elements of %s have %" PRId64, index, array->in,
             (long long)status.st_size, array->length, parameters[index].type, array->length * bytes);
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
    struct array *array = &arrays[index];
    const struct parameter *parameter = &parameters[index];
    size_t bytes = (size_t)array->length * (size_t)parameter->bytes;
    /* A transfer may read on to the end of the longest part. */
    size_t room = bytes + array->bytes + ALIGNMENT;
    array->sent = memory(room);
    for (size_t i = 0; i < room; i++)
        array->sent[i] = poison[i % sizeof poison];
    if (array->in) {
        FILE *file = fopen(array->in, "rb");
        if (!file || fread(array->sent, 1, bytes, file) != bytes)
            fail("--in %d=%s: %s", index, array->in, errno ? strerror(errno) : "it has become shorter");
        fclose(file);
    } else if (array->fill || (array->is_read && is_trial)) {
        int64_t whole = 0;
        double number = 0;
        if (array->fill && parameter->is_float)
            number = floating(array->fill, "--fill");
        else if (array->fill)
            whole = integer_of(8 * parameter->bytes, array->fill, "--fill");
        for (int64_t i = 0; i < array->length; i++) {
            if (!array->fill)
                number = (double)(whole = i % 100 + index);
            put(array->sent + i * parameter->bytes, parameter, whole, number);
        }
    } else if (array->is_read)
        fail("the kernel reads array %d, and no data was given: --in %d=PATH or --fill %d=VALUE", index, index, index);
    array->got = memory(bytes);
    memcpy(array->got, array->sent, bytes);
}

static void make_arrays(void)
{
    int is_trial = 1;
    for (int i = 0; i < COUNT; i++)
        is_trial &= !arrays[i].in && !arrays[i].fill;
    for (int i = 0; i < COUNT; i++)
        if (is_pointer(i)) {
            if (arrays[i].is_read && is_trial)
                printf("array %d: no --in and no --fill: a trial with %d, %d, %d, ...\n", i, i, i + 1, i + 2);
            make_array(i, is_trial);
        }
}
