/* Runs the copies of copies.ll over lengths and alignments and looks at every byte, those around the copies as well. */
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdint.h>

enum { ROOM = 6144, MARGIN = 16, AROUND = 0xee, SHARED = 37 };

void copy_in(uint8_t *wram, __mram_ptr uint8_t *mram, uint32_t bytes);
void copy_out(uint8_t *wram, __mram_ptr uint8_t *mram, uint32_t bytes);
void copy_in_words(uint8_t *wram, __mram_ptr uint8_t *mram, uint32_t words);
void copy_out_words(uint8_t *wram, __mram_ptr uint8_t *mram, uint32_t words);

MUTEX_INIT(lock);
void __triton_mram_lock(void) { mutex_lock(lock); }
void __triton_mram_unlock(void) { mutex_unlock(lock); }

__host uint32_t cases, wrong, first_wrong[4];
__mram_noinit uint8_t area[ROOM];
__mram_noinit uint8_t shared[SHARED * NR_TASKLETS + 8];
__dma_aligned uint8_t wram[ROOM];
__dma_aligned uint8_t seen[ROOM];
BARRIER_INIT(everybody, NR_TASKLETS);

static uint8_t pattern(uint32_t i) { return (uint8_t)(i * 7 + (i >> 8) * 13 + 1); }

static void fill(uint8_t *bytes, uint32_t number, int with_pattern)
{
    for (uint32_t i = 0; i < number; i++) bytes[i] = with_pattern ? pattern(i) : AROUND;
}

static void put(const uint8_t *bytes, uint32_t number)
{
    for (uint32_t at = 0; at < number; at += 512) mram_write(bytes + at, area + at, 512);
}

static void get(uint8_t *bytes, uint32_t number)
{
    for (uint32_t at = 0; at < number; at += 512) mram_read(area + at, bytes + at, 512);
}

/* Bytes [to, to + length) are the pattern from `from` on, all others untouched. */
static void check(const uint8_t *bytes, uint32_t number, uint32_t to, uint32_t from, uint32_t length)
{
    cases++;
    for (uint32_t i = 0; i < number; i++) {
        uint8_t right = i - to < length ? pattern(from + (i - to)) : AROUND;
        if (bytes[i] == right) continue;
        if (wrong++ == 0) first_wrong[0] = to, first_wrong[1] = from, first_wrong[2] = length, first_wrong[3] = i;
        return;
    }
}

static void one(uint32_t to, uint32_t from, uint32_t length)
{
    uint32_t number = (length + 2 * MARGIN + 511) & ~511u;
    fill(seen, number, 1);
    put(seen, number);
    fill(wram, number, 0);
    copy_in(wram + to, area + from, length);
    check(wram, number, to, from, length);

    fill(seen, number, 0);
    put(seen, number);
    fill(wram, number, 1);
    copy_out(wram + from, area + to, length);
    get(seen, number);
    check(seen, number, to, from, length);
}

static void words(uint32_t length)
{
    uint32_t number = (length + 2 * MARGIN + 511) & ~511u;
    fill(seen, number, 1);
    put(seen, number);
    fill(wram, number, 0);
    copy_in_words(wram + 8, area + 16, length / 8);
    check(wram, number, 8, 16, length);

    fill(seen, number, 0);
    put(seen, number);
    fill(wram, number, 1);
    copy_out_words(wram + 16, area + 8, length / 8);
    get(seen, number);
    check(seen, number, 8, 16, length);
}

/* All tasklets write neighbouring parts of the same words at the same time. */
static void together(void)
{
    uint8_t mine[SHARED];
    for (uint32_t i = 0; i < SHARED; i++) mine[i] = pattern(me() * SHARED + i);
    barrier_wait(&everybody);
    copy_out(mine, shared + 3 + me() * SHARED, SHARED);
    barrier_wait(&everybody);
    if (me() != 0) return;
    for (uint32_t i = 0; i < SHARED * NR_TASKLETS; i++) {
        cases++;
        if (shared[3 + i] != pattern(i) && wrong++ == 0) first_wrong[3] = i;
    }
}

int main(void)
{
    if (me() == 0) {
        for (uint32_t to = 0; to < 8; to++)
            for (uint32_t from = 0; from < 8; from++) {
                for (uint32_t length = 0; length < 36; length++) one(to, from, length);
                one(to, from, 200 + to);
            }
        static const uint16_t lengths[] = {2040, 2047, 2048, 2049, 2056, 4096, 4100, 5000};
        for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            one(0, 0, lengths[i]);
            one(0, 4, lengths[i]);
            one(5, 2, lengths[i]);
        }
        for (uint32_t length = 0; length <= 64; length += 8) words(length);
        words(2048);
        words(2056);
        words(5000);
    }
    together();
    return 0;
}
