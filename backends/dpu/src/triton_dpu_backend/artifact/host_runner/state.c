/* Runs a kernel on DPUs from a command line: shards.c shards what the programs of each DPU reach, launches, and gathers
 * what they wrote.
 *
 * Needs dpu.h of the UPMEM SDK or of its emulator, and DPU_PROGRAM, the kernel's program, beside this program.
 * What is known of the kernel stands above this text; the text is the same for all kernels.
 */

/* A pointer's array by the command line: raw elements in a file, one value for all, and where results go. */
struct file {
    const char *in, *fill, *out;
};

static struct file files[COUNT + 1];
static int given[COUNT + 1];
static struct road_memory memories[COUNT + 1];
static struct road_argument arguments[COUNT + 1];
/* The grid is 0,0,0 until it is known. */
static struct road_launch launch = {.variant = &variant, .arguments = arguments, .count = COUNT};
static struct shards *shards;
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

/* The elements of an array; -1 until it is known. */
static int64_t length_of(int index)
{
    return memories[index].bytes < 0 ? -1 : memories[index].bytes / parameters[index].bytes;
}

static struct shards_region *region_of(int index) { return &shards->regions[shards->region_of[index]]; }
