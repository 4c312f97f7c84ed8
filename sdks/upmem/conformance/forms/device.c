/* Programs of the forms of PrIM's, one for each number of FORM; race_check_cost.py measures what the check of races costs
   them. Tasklets take blocks of an array in turn. */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mutex.h>
#include <stdint.h>

/* FORM */
#define VA 1    /* vector addition */
#define RED 2   /* reduction */
#define SCAN 3  /* prefix sums, a handshake and two barriers for each block */
#define HST_S 4 /* a histogram of each tasklet */
#define HST_L 5 /* one histogram, a mutex for each element */
#define GEMV 6  /* matrix-vector product */
#define BS 7    /* binary search */
#define SEL 8   /* selection, a handshake and a barrier for each block */

#define BLOCK 1024
#define WORDS (BLOCK / 4)
#define LONGS (BLOCK / 8)
__host uint32_t elements; /* of 4 bytes; a multiple of NR_TASKLETS * WORDS */
__host uint64_t result;
BARRIER_INIT(everybody, NR_TASKLETS);
MUTEX_INIT(door);
static uint64_t messages[NR_TASKLETS];
static uint32_t counts[NR_TASKLETS];
static uint32_t *histograms[NR_TASKLETS];
static uint32_t *shared_histogram;
#define HEAP ((uint32_t)DPU_MRAM_HEAP_POINTER)

static void __attribute__((noinline)) add(int32_t *b, int32_t *a, unsigned n) {
    for (unsigned i = 0; i < n; i++) b[i] += a[i];
}
static int64_t __attribute__((noinline)) reduce(int64_t *a, unsigned n) {
    int64_t sum = 0;
    for (unsigned i = 0; i < n; i++) sum += a[i];
    return sum;
}
static int64_t __attribute__((noinline)) scan(int64_t *out, int64_t *in, unsigned n) {
    out[0] = in[0];
    for (unsigned i = 1; i < n; i++) out[i] = out[i - 1] + in[i];
    return out[n - 1];
}
static void __attribute__((noinline)) plus(int64_t *out, int64_t by, unsigned n) {
    for (unsigned i = 0; i < n; i++) out[i] += by;
}
static void __attribute__((noinline)) histogram(uint32_t *h, uint32_t *a, unsigned n) {
    for (unsigned i = 0; i < n; i++) h[(a[i] * 128) >> 12 & 127]++;
}
static void __attribute__((noinline)) histogram_locked(uint32_t *h, uint32_t *a, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        uint32_t d = (a[i] * 256) >> 12 & 255;
        mutex_lock(door);
        h[d]++;
        mutex_unlock(door);
    }
}
static int32_t __attribute__((noinline)) dot(int32_t *x, int32_t *y, unsigned n) {
    int32_t sum = 0;
    for (unsigned i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}
static unsigned __attribute__((noinline)) filter(int64_t *out, int64_t *in, unsigned n) {
    unsigned pos = 0;
    for (unsigned i = 0; i < n; i++)
        if (in[i] & 1) out[pos++] = in[i];
    return pos;
}

int main(void) {
    unsigned self = me();
    if (self == 0) mem_reset();
    barrier_wait(&everybody);
    uint32_t bytes = elements * 4, at_b = HEAP + bytes;
    int32_t *a = mem_alloc(BLOCK), *b = mem_alloc(BLOCK);
    int64_t sum = 0;
#if FORM == VA
    for (uint32_t at = self * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
        mram_read((__mram_ptr void *)(HEAP + at), a, BLOCK);
        mram_read((__mram_ptr void *)(at_b + at), b, BLOCK);
        add(b, a, WORDS);
        mram_write(b, (__mram_ptr void *)(at_b + at), BLOCK);
    }
#elif FORM == RED
    for (uint32_t at = self * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
        mram_read((__mram_ptr void *)(HEAP + at), a, BLOCK);
        sum += reduce((int64_t *)a, LONGS);
    }
    messages[self] = sum;
    barrier_wait(&everybody);
    if (self == 0)
        for (int i = 0; i < NR_TASKLETS; i++) result += messages[i];
#elif FORM == SCAN
    int64_t last = 0;
    for (uint32_t at = self * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
        mram_read((__mram_ptr void *)(HEAP + at), a, BLOCK);
        int64_t own = scan((int64_t *)b, (int64_t *)a, LONGS);
        int64_t before = 0;
        if (self != 0) {
            handshake_wait_for(self - 1);
            before = messages[self];
        } else before = last;
        if (self < NR_TASKLETS - 1) {
            messages[self + 1] = before + own;
            handshake_notify();
        } else messages[0] = before + own;
        barrier_wait(&everybody);
        plus((int64_t *)b, before, LONGS);
        mram_write(b, (__mram_ptr void *)(at_b + at), BLOCK);
        if (self == 0) last = messages[0];
        barrier_wait(&everybody);
    }
#elif FORM == HST_S
    uint32_t *h = mem_alloc(512);
    for (int i = 0; i < 128; i++) h[i] = 0;
    histograms[self] = h;
    for (uint32_t at = self * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
        mram_read((__mram_ptr void *)(HEAP + at), a, BLOCK);
        histogram(h, (uint32_t *)a, WORDS);
    }
    barrier_wait(&everybody);
    for (unsigned i = self; i < 128; i += NR_TASKLETS) {
        uint32_t s = 0;
        for (int t = 0; t < NR_TASKLETS; t++) s += histograms[t][i];
        histograms[0][i] = s;
    }
#elif FORM == HST_L
    if (self == 0) {
        shared_histogram = mem_alloc(1024);
        for (int i = 0; i < 256; i++) shared_histogram[i] = 0;
    }
    barrier_wait(&everybody);
    for (uint32_t at = self * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
        mram_read((__mram_ptr void *)(HEAP + at), a, BLOCK);
        histogram_locked(shared_histogram, (uint32_t *)a, WORDS);
    }
#elif FORM == GEMV
    for (uint32_t row = self; row < elements / WORDS / 16; row += NR_TASKLETS) {
        int32_t s = 0;
        for (uint32_t at = 0; at < 16 * BLOCK; at += BLOCK) {
            mram_read((__mram_ptr void *)(HEAP + row * 16 * BLOCK + at), a, BLOCK);
            mram_read((__mram_ptr void *)(at_b + at), b, BLOCK);
            s += dot(a, b, WORDS);
        }
        sum += s;
    }
    messages[self] = sum;
#elif FORM == BS
    int64_t *q = (int64_t *)a, *w = (int64_t *)b;
    for (uint32_t at = self * BLOCK; at < bytes / 16; at += BLOCK * NR_TASKLETS) {
        mram_read((__mram_ptr void *)(HEAP + at), q, BLOCK);
        for (unsigned i = 0; i < LONGS; i++) {
            uint32_t low = 0, high = bytes / 8 - LONGS;
            while (high - low > LONGS) {
                uint32_t middle = (low + high) / 2;
                mram_read((__mram_ptr void *)(at_b + middle / LONGS * BLOCK), w, 64);
                if (w[0] <= q[i]) low = middle;
                else high = middle;
            }
            sum += low;
        }
    }
    messages[self] = sum;
#elif FORM == SEL
    for (uint32_t at = self * BLOCK; at < bytes; at += BLOCK * NR_TASKLETS) {
        mram_read((__mram_ptr void *)(HEAP + at), a, BLOCK);
        unsigned n = filter((int64_t *)b, (int64_t *)a, LONGS);
        if (self != 0) {
            handshake_wait_for(self - 1);
            counts[self] = counts[self - 1] + n;
        } else counts[0] = n;
        if (self < NR_TASKLETS - 1) handshake_notify();
        barrier_wait(&everybody);
        mram_write(b, (__mram_ptr void *)(at_b + at), BLOCK);
    }
#endif
    return 0;
}
