/* What a program reaches in memory: what the kernel's address arithmetic calls, and REACH, which stands for it. Where
 * SPANS stands, foundry_core's spans.h comes. */

static uint32_t dpu_at;       /* whose programs we are at */
static int64_t program_at[3]; /* at which of them */
static int planned;           /* whether there are parts to note it in */
static int stored;            /* whether it stored something */

SPANS
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
