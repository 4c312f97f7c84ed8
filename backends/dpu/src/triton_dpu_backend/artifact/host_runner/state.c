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
