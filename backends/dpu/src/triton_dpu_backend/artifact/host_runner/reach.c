/* What a program reaches in memory: what the kernel's address arithmetic calls, and REACH, which stands for it. */

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

static inline int64_t quotient(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static inline int64_t remainder_of(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

/* The elements ((first + i) mod modulus) * stride; the sum is an integer of which `largest` is the largest. */
static inline __attribute__((unused)) void span_around(
    struct span *span, int64_t low, int64_t high, int64_t first, int64_t modulus, int64_t stride, int64_t largest)
{
    if (low >= high) {
        span->empty = 1;
        return;
    }
    int wraps = first > largest - (high - 1);
    int64_t from = wraps ? -1 : first + low, to = wraps ? 1 : first + high - 1;
    if (!wraps && quotient(from, modulus) == quotient(to, modulus) && (from >= 0 || to <= 0))
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
            fail("program %" PRId64 ",%" PRId64 ",%" PRId64 " %s elements %" PRId64 " to %" PRId64
                 " of array %d, which has %" PRId64 ": check --arg, --grid and --len %d=N",
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

static inline __attribute__((unused)) void reads(int index, struct span span, int exact)
{
    note(index, span, exact, 0);
}

static inline __attribute__((unused)) void writes(int index, struct span span, int exact)
{
    note(index, span, exact, 1);
}

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
