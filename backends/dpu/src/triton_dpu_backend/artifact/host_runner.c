/* Runs a kernel on DPUs: shards what the programs of each DPU reach, launches, gathers what they wrote.
 *
 * Needs dpu.h of the UPMEM SDK or of its emulator, and DPU_PROGRAM, the kernel's program, beside this program.
 * What is known of the kernel stands above this text; the text is the same for all kernels.
 */

enum { MRAM_START = 0x08000000, MRAM_BYTES = 64 << 20 };
/* Shards start at multiples of it, as arrays do: the kernel was compiled for that alignment. DMA needs 8. */
enum { ALIGNMENT = 16 };
/* Bytes that are gathered from each DPU at a time. */
enum { PIECE = 1 << 18 };
/* A Triton grid has no more programs. */
#define MOST_PROGRAMS INT64_C(0x7fffffff)
/* What memory holds that nothing was written to: a NaN in each type of float, no likely number in each of integer. */
static const unsigned char poison[] = {0xfa, 0xff};

#define COUNT ((int)(sizeof parameters / sizeof *parameters))

/* Elements that programs reach behind a pointer: low <= element < high; none if low >= high. */
struct reached {
    int64_t low, high;
};

/* A pointer's array on the host, and what is known of how the DPUs use it. */
struct array {
    int64_t length; /* elements; -1 until known */
    const char *in, *fill, *out;
    int is_read, is_written;
    int anywhere;             /* addresses come from data: each DPU needs all of it */
    int64_t least, most;      /* elements that are reached for certain */
    struct reached *part;     /* for each DPU, also those that may be reached */
    unsigned char *sent, *got; /* before and after the launch */
    uint32_t offset, bytes;   /* in each DPU's heap */
};

static struct array arrays[sizeof parameters / sizeof *parameters];
static int64_t argument[sizeof parameters / sizeof *parameters];
static double real[sizeof parameters / sizeof *parameters];
static int given[sizeof parameters / sizeof *parameters];
static uint32_t grid[3];
static uint32_t nr_dpus = DEFAULT_DPUS;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fputs("error: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(EXIT_FAILURE);
}

static void *memory(size_t bytes)
{
    void *made = malloc(bytes ? bytes : 1);
    if (!made)
        fail("no memory for %zu bytes", bytes);
    return made;
}

static int is_pointer(int index) { return parameters[index].kind == POINTER; }

static int64_t aligned(int64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Reach: what a program's loads and stores touch. */

static uint32_t dpu_at;       /* whose programs we are at */
static int64_t program_at[3]; /* at which of them */
static int planned;           /* whether there are parts to note it in */
static int stored;            /* whether it stored something */

struct span {
    int64_t low, high; /* the first and the last element */
    int empty;
};

static inline __attribute__((unused)) struct span span_at(int64_t element)
{
    return (struct span){element, element, 0};
}

static void span_stretch(struct span *span, int64_t one, int64_t other)
{
    span->low += one < other ? one : other;
    span->high += one < other ? other : one;
}

/* The elements `stride` apart, for low <= i < high. */
static inline __attribute__((unused)) void span_along(struct span *span, int64_t low, int64_t high, int64_t stride)
{
    if (low >= high)
        span->empty = 1;
    else
        span_stretch(span, low * stride, (high - 1) * stride);
}

static inline int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; }

static inline int64_t remainder_of(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

/* The elements ((first + i) mod modulus) * stride. */
static inline __attribute__((unused)) void span_around(
    struct span *span, int64_t low, int64_t high, int64_t first, int64_t modulus, int64_t stride)
{
    if (low >= high) {
        span->empty = 1;
        return;
    }
    int64_t from = first + low, to = first + high - 1;
    if (quotient(from, modulus) == quotient(to, modulus) && (from >= 0 || to <= 0))
        span_stretch(span, remainder_of(from, modulus) * stride, remainder_of(to, modulus) * stride);
    else {
        int64_t most = (modulus < 0 ? -modulus : modulus) - 1;
        span_stretch(span, (from < 0 ? -most : 0) * stride, (to > 0 ? most : 0) * stride);
    }
}

static void note(int index, struct span span, int exact, int is_store)
{
    struct array *array = &arrays[index];
    if (span.empty)
        return;
    stored |= is_store;
    if (!planned)
        return;
    array->is_read |= !is_store;
    array->is_written |= is_store;
    struct reached *part = &array->part[dpu_at];
    if (exact) {
        if (array->length >= 0 && (span.low < 0 || span.high >= array->length))
            fail("program %" PRId64 ",%" PRId64 ",%" PRId64 " %s elements %" PRId64 " to %" PRId64 " of argument %d, which has "
                 "%" PRId64 ": check --arg, --grid and --len %d=N",
                 program_at[0], program_at[1], program_at[2], is_store ? "writes" : "reads", span.low, span.high, index,
                 array->length, index);
        if (span.low < array->least)
            array->least = span.low;
        if (span.high >= array->most)
            array->most = span.high + 1;
    }
    if (part->low >= part->high)
        *part = (struct reached){span.low, span.high + 1};
    if (span.low < part->low)
        part->low = span.low;
    if (span.high >= part->high)
        part->high = span.high + 1;
}

static inline __attribute__((unused)) void reads(int index, struct span span, int exact) { note(index, span, exact, 0); }

static inline __attribute__((unused)) void writes(int index, struct span span, int exact) { note(index, span, exact, 1); }

static inline __attribute__((unused)) void reads_any(int index)
{
    arrays[index].anywhere = arrays[index].is_read = 1;
}

static inline __attribute__((unused)) void writes_any(int index)
{
    stored = 1;
    arrays[index].anywhere = arrays[index].is_written = 1;
}

/* What a loop carries may serve data only. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
REACH
#pragma GCC diagnostic pop

/* The command line. */

static void usage(FILE *file, const char *name)
{
    fprintf(file,
        "usage: %s [--nr-dpus N] [--arg IDX=VAL ...] [--in IDX=PATH ...] [--out IDX=PATH ...]\n\n"
        "Runs the Triton kernel %s on DPUs. IDX is a parameter's index:\n\n",
        name, KERNEL);
    for (int i = 0; i < COUNT; i++) {
        const struct parameter *parameter = &parameters[i];
        if (parameter->kind == POINTER)
            fprintf(file, "  %2d  array of %s%s\n", i, parameter->type, parameter->is_out ? ", output" : "");
        else if (parameter->kind != INTERNAL)
            fprintf(file, "  %2d  %s\n", i, parameter->type);
    }
    fprintf(file,
        "\n"
        "  --arg IDX=VAL    value of a scalar; all of them must be given\n"
        "  --in IDX=PATH    raw elements of an array that the kernel reads, host byte order\n"
        "  --fill IDX=VAL   every element of it instead. Without any --in and --fill the run is a trial: inputs count\n"
        "                   up, element i is i %% 100 + IDX, and the first results are printed\n"
        "  --out IDX=PATH   write an array as it is after the launch; elements that no program wrote are what --in or\n"
        "                   --fill made them, else 0x%02x%02x, a NaN in each type of float\n"
        "  --len IDX=N      elements of an array. Without it: as many as --in has, else as many as the programs reach,\n"
        "                   else the value of the only integer scalar\n"
        "  --nr-dpus N      DPUs to use; default %" PRIu32 "%s\n"
        "  --grid X[,Y[,Z]] programs to run. %s\n"
        "  --help           this\n\n"
        "Each DPU gets a run of programs of about the same length, and of each array the part that they reach; all of\n"
        "it where that depends on data.\n",
        poison[1], poison[0], (uint32_t)DEFAULT_DPUS, DEFAULT_DPUS_FROM,
        HAS_BLOCK ? "Default: as many as have something to store" : "Must be given: it does not follow from the arguments");
}

static int64_t integer(const char *text, const char *what, int64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    int64_t value;
    if (*text == '-') {
        value = strtoll(text, &end, 0);
        if (!errno && value < least)
            errno = ERANGE;
    } else {
        uint64_t bits = strtoull(text, &end, 0);
        value = (int64_t)bits;
        if (!errno && bits > most)
            errno = ERANGE;
    }
    if (end == text || *end)
        fail("%s: %s is no integer", what, text);
    if (errno)
        fail("%s: %s is not between %" PRId64 " and %" PRIu64, what, text, least, most);
    return value;
}

static double floating(const char *text, const char *what)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end)
        fail("%s: %s is no number", what, text);
    return value;
}

/* IDX=VALUE; returns the index. */
static int assignment(const char *option, const char *text, const char **value)
{
    const char *sign = strchr(text, '=');
    char *end;
    long index = strtol(text, &end, 10);
    if (!sign || end != sign || end == text || !sign[1])
        fail("--%s %s: write --%s IDX=VALUE, such as --%s 0=...", option, text, option, option);
    if (index < 0 || index >= COUNT || parameters[index].kind == INTERNAL)
        fail("--%s %s: the kernel %s has no parameter %ld that can be set; see --help", option, text, KERNEL, index);
    if (!strcmp(option, "arg") == is_pointer((int)index))
        fail("--%s %s: parameter %ld is %s; see --help", option, text, index,
             is_pointer((int)index) ? "an array: give it --in, --fill or --out" : "a scalar: give it --arg");
    *value = sign + 1;
    return (int)index;
}

static void set_scalar(int index, const char *text)
{
    const struct parameter *parameter = &parameters[index];
    char what[32];
    snprintf(what, sizeof what, "--arg %d", index);
    given[index] = 1;
    if (parameter->kind == FLOAT)
        real[index] = floating(text, what);
    else {
        /* Signed or unsigned: the kernel's IR does not tell the two apart. */
        int bits = 8 * parameter->bytes;
        argument[index] = integer(text, what, INT64_MIN >> (64 - bits), UINT64_MAX >> (64 - bits));
        argument[index] = (int64_t)((uint64_t)argument[index] << (64 - bits)) >> (64 - bits);
    }
}

static void set_grid(const char *text)
{
    char part[3][32] = {"", "1", "1"};
    int end = 0;
    int parts = sscanf(text, "%31[0-9]%n,%31[0-9]%n,%31[0-9]%n", part[0], &end, part[1], &end, part[2], &end);
    int64_t programs = 1;
    if (parts < 1 || text[end])
        fail("--grid %s: write --grid X, X,Y or X,Y,Z", text);
    for (int axis = 0; axis < 3; axis++) {
        grid[axis] = (uint32_t)integer(part[axis], "--grid", 1, MOST_PROGRAMS);
        programs *= grid[axis];
        if (programs > MOST_PROGRAMS)
            fail("--grid %s: more than %" PRId64 " programs", text, MOST_PROGRAMS);
    }
}

static void parse(int count, char **words)
{
    static const struct option options[] = {
        {"nr-dpus", required_argument, 0, 'd'}, {"arg", required_argument, 0, 'a'}, {"len", required_argument, 0, 'l'},
        {"in", required_argument, 0, 'i'},      {"fill", required_argument, 0, 'f'}, {"out", required_argument, 0, 'o'},
        {"grid", required_argument, 0, 'g'},    {"help", no_argument, 0, 'h'},       {0, 0, 0, 0},
    };
    const char *value;
    int option;
    while ((option = getopt_long(count, words, "", options, 0)) != -1) {
        switch (option) {
        case 'd':
            nr_dpus = (uint32_t)integer(optarg, "--nr-dpus", 1, 1 << 20);
            break;
        case 'a':
            set_scalar(assignment("arg", optarg, &value), strchr(optarg, '=') + 1);
            break;
        case 'l': {
            int index = assignment("len", optarg, &value);
            arrays[index].length = integer(value, "--len", 0, INT64_MAX / 8);
            break;
        }
        case 'i':
            arrays[assignment("in", optarg, &value)].in = strchr(optarg, '=') + 1;
            break;
        case 'f':
            arrays[assignment("fill", optarg, &value)].fill = strchr(optarg, '=') + 1;
            break;
        case 'o':
            arrays[assignment("out", optarg, &value)].out = strchr(optarg, '=') + 1;
            break;
        case 'g':
            set_grid(optarg);
            break;
        case 'h':
            usage(stdout, words[0]);
            exit(EXIT_SUCCESS);
        default:
            fprintf(stderr, "try %s --help\n", words[0]);
            exit(EXIT_FAILURE);
        }
    }
    if (optind < count)
        fail("%s: what is that? See --help", words[optind]);
    for (int i = 0; i < COUNT; i++) {
        if (!is_pointer(i) && parameters[i].kind != INTERNAL && !given[i])
            fail("scalar %d (%s) has no value: --arg %d=VAL", i, parameters[i].type, i);
        if (arrays[i].in && arrays[i].fill)
            fail("array %d has both --in and --fill", i);
    }
}

/* Arrays. */

static void size_by_file(int index)
{
    struct array *array = &arrays[index];
    struct stat status;
    if (stat(array->in, &status))
        fail("--in %d=%s: %s", index, array->in, strerror(errno));
    int64_t bytes = parameters[index].bytes;
    if (array->length < 0 && status.st_size % bytes == 0)
        array->length = status.st_size / bytes;
    if (status.st_size != array->length * bytes)
        fail("--in %d=%s has %lld bytes; %s%" PRId64 " elements of %s need %" PRId64, index, array->in,
             (long long)status.st_size, array->length < 0 ? "no whole number of them: " : "", array->length < 0 ? 1 : array->length,
             parameters[index].type, array->length < 0 ? bytes : array->length * bytes);
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
            whole = integer(array->fill, "--fill", INT64_MIN >> (64 - 8 * parameter->bytes), UINT64_MAX >> (64 - 8 * parameter->bytes));
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

/* Planning: the grid, each DPU's programs, what they reach. */

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
            fail("array %d needs %" PRId64 " bytes on a DPU, after %" PRId64 " for those before it; its MRAM has %" PRId64
                 " free: use more DPUs than %" PRIu32 "%s",
                 i, most, offset, MRAM_START + MRAM_BYTES - (int64_t)heap, nr_dpus,
                 arrays[i].anywhere ? " (not for this array: its addresses depend on data, so each DPU gets all of it)" : "");
        arrays[i].offset = (uint32_t)offset;
        arrays[i].bytes = (uint32_t)most;
        offset += most;
    }
}

/* The DPUs. */

static void send(struct dpu_set_t set, int index)
{
    const struct array *array = &arrays[index];
    struct dpu_set_t dpu;
    uint32_t each;
    if (!array->bytes)
        return;
    DPU_FOREACH (set, dpu, each)
        DPU_ASSERT(dpu_prepare_xfer(dpu, array->sent + start(index, each)));
    DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, array->offset, array->bytes, DPU_XFER_DEFAULT));
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
            /* Of the array's first element, which may not be there: modulo 2^32, as the DPU computes. */
            uint32_t address = heap + arrays[i].offset - (uint32_t)start(i, each);
            float single = (float)real[i];
            if (is_pointer(i))
                memcpy(field, &address, sizeof address);
            else if (parameters[i].kind == INTEGER)
                memcpy(field, &argument[i], (size_t)parameters[i].bytes);
            else if (parameters[i].kind == FLOAT)
                memcpy(field, parameters[i].bytes == 4 ? (void *)&single : (void *)&real[i], (size_t)parameters[i].bytes);
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
    int64_t low = array->part[dpu].low * parameters[index].bytes, high = array->part[dpu].high * parameters[index].bytes;
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
        DPU_ASSERT(dpu_push_xfer(set, DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME, array->offset + from, bytes, DPU_XFER_DEFAULT));
        for (each = 0; each < nr_dpus; each++)
            merge(index, each, pieces + (size_t)each * PIECE, from, bytes);
    }
    free(pieces);
}

/* The emulator knows how long DPUs would have taken, by its model; hardware's host library does not have the function. */
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

/* What came out. */

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
        fprintf(stderr, "warning: %" PRId64 " of %" PRId64 " elements of array %d were not written by any program\n", untouched,
                array->length, index);
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
    printf("array %d: %" PRId64 " elements of %s,%s%s; at most %" PRId64 " of them on a DPU%s\n", index, array->length,
           parameters[index].type, array->is_read ? " read" : "", array->is_written ? " written" : "", most,
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
    printf("%s: %" PRIu32 ",%" PRIu32 ",%" PRIu32 " programs on %" PRIu32 " DPUs\n", KERNEL, grid[0], grid[1], grid[2], nr_dpus);
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
