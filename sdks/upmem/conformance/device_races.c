/* Accesses of several tasklets to the same memory, in order and in none; and legal programs that look like the latter. */
/* built as: device_races -DNR_TASKLETS=16 */
/* built as: device_races_O0 -DNR_TASKLETS=16 -O0 */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mutex.h>
#include <sem.h>
#include <stdint.h>
#include <string.h>

#include "races.h"

__host uint32_t task;
__host uint32_t result;

/* As PrIM's TRNS declares a function. */
uint32_t twice();

uint32_t counter;
volatile uint32_t watched;
uint32_t table[NR_TASKLETS];
uint8_t bytes[NR_TASKLETS];
volatile uint32_t flag;
uint32_t four = 4;
__mram_noinit uint32_t words[8];
__mram_noinit uint64_t far[64];

/* With and without a semicolon, as public programs have them. */
BARRIER_INIT(everybody, NR_TASKLETS)
BARRIER_INIT(quarter, 4);
MUTEX_INIT(door)
SEMAPHORE_INIT(one, 1)

static void count_in_mram(uint32_t locked) {
    uint64_t value;
    if (locked) mutex_lock(door);
    mram_read(&words[2], &value, 8);
    value++;
    mram_write(&value, &words[2], 8);
    if (locked) mutex_unlock(door);
}

static void wide(void) {
    __dma_aligned uint32_t values[4] = {1, 2, 3, 4};
    mram_write(values, words, sizeof values);
}

static void in_turns(void) {
    while (flag != me()) continue;
    counter += me();
    flag = me() + 1;
}

static void wait_a_while(void) {
    for (volatile uint32_t i = 0; i < 1000; i++) continue;
}

/* Tasklet 1 reads what tasklet 0 writes. */
static void read_in_mram(uint32_t ordered) {
    __dma_aligned uint64_t values[2] = {3, 4};
    if (me() == 0) {
        if (task == MRAM_LOAD || task == MRAM_LOAD_HANDSHAKE)
            far[1] = 4;
        else
            mram_write(values, far, sizeof values);
        if (ordered) handshake_notify();
    } else if (me() == 1) {
        if (ordered) handshake_wait_for(0);
        else wait_a_while();
        if (task == MRAM_LOAD || task == MRAM_LOAD_HANDSHAKE) {
            result = (uint32_t)far[1];
            return;
        }
        values[0] = values[1] = 0;
        mram_read(far, values, sizeof values);
        if (task == MRAM_READ || task == MRAM_READ_HANDSHAKE)
            result = (uint32_t)values[1];
        else
            mram_write(values, far + 8, sizeof values);
    }
}

/* Tasklet 0 changes its own memory before and after a handshake with tasklet 1, which reads it then. */
static void change_again(uint32_t as_bytes, uint32_t ordered) {
    for (uint32_t round = 0; round < 2; round++) {
        if (me() == 0)
            for (uint32_t i = 0; i < 3; i++) {
                if (as_bytes) bytes[i] = (uint8_t)(5 * round + i + 1);
                else table[i] = 5 * round + i + 1;
            }
        if (round == 0 && me() == 0) handshake_notify();
        if (round == 0 && me() == 1) handshake_wait_for(0);
    }
    if (ordered) barrier_wait(&everybody);
    if (me() != 1) return;
    wait_a_while();
    result = as_bytes ? bytes[1] : table[1];
}

/* Two tasklets transfer to the same word, each with one in front of it or behind: MRAM is looked at by pages of 16 KiB. */
static void across_pages(uint32_t ordered) {
    __dma_aligned uint64_t values[2] = {5 * me() + 1, 5 * me() + 2};
    __mram_ptr uint64_t *page = (__mram_ptr uint64_t *)(((uint32_t)DPU_MRAM_HEAP_POINTER + 0x7fff) & ~0x3fffu);
    if (me() == 0) mram_write(values, page - 1, sizeof values);
    if (ordered && me() == 0) handshake_notify();
    if (ordered && me() == 1) handshake_wait_for(0);
    if (me() == 1) mram_write(values, page, sizeof values);
}

enum { LONG = 128 };
uint64_t *blocks[NR_TASKLETS][2]; /* so that a block is read again after a barrier */

/* Sums of a block, sums so far and an addition to each, unrolled as in PrIM's SCAN: all in the default stack. */
static void scan_unrolled(void) {
    uint64_t *in = mem_alloc(LONG * sizeof *in), *out = mem_alloc(LONG * sizeof *out);
    blocks[me()][0] = in;
    blocks[me()][1] = out;
    for (uint32_t i = 0; i < LONG; i++) in[i] = i + me();
    uint64_t whole = 0;
    for (uint32_t round = 0; round < 3; round++) {
        barrier_wait(&everybody);
#pragma unroll
        for (uint32_t i = 0; i < LONG; i++) whole += in[i];
    }
    for (uint32_t round = 0; round < 3; round++) {
        barrier_wait(&everybody);
        out[0] = in[0];
#pragma unroll
        for (uint32_t i = 1; i < LONG; i++) out[i] = out[i - 1] + in[i];
        barrier_wait(&everybody);
#pragma unroll
        for (uint32_t i = 0; i < LONG; i++) out[i] += round;
        if (out[LONG - 1] != LONG * (LONG - 1) / 2 + LONG * me() + round) result = 1;
    }
    if (whole != 3 * (LONG * (LONG - 1) / 2 + LONG * me())) result = 1;
    barrier_wait(&everybody);
    if (me() == 0) mem_reset();
    barrier_wait(&everybody);
}

int main(void) {
    switch (task) {
        case COUNT: counter++; break;
        case COUNT_LOCKED:
            mutex_lock(door);
            counter++;
            mutex_unlock(door);
            break;
        case COUNT_VOLATILE: watched++; break;
        case COUNT_SEMAPHORE:
            sem_take(&one);
            watched++;
            sem_give(&one);
            break;
        case COUNT_ON_BOTH_WAYS:
            if (me() & 1)
                counter++;
            else
                counter++;
            break;
        case MISSING_BARRIER:
        case WITH_BARRIER:
            table[me()] = me() + 1;
            if (task == WITH_BARRIER) barrier_wait(&everybody);
            if (me() == 3) {
                uint32_t sum = 0;
                for (uint32_t i = 0; i < NR_TASKLETS; i++) sum += table[i];
                result = sum;
            }
            break;
        case MRAM_COUNT: count_in_mram(0); break;
        case MRAM_COUNT_LOCKED: count_in_mram(1); break;
        case WIDE_AND_NARROW:
        case WIDE_AND_NARROW_HANDSHAKE:
            if (me() == 0) {
                wide();
                if (task == WIDE_AND_NARROW_HANDSHAKE) handshake_notify();
            } else if (me() == 1) {
                if (task == WIDE_AND_NARROW_HANDSHAKE) handshake_wait_for(0);
                else for (volatile uint32_t i = 0; i < 1000; i++) continue;
                words[3] = 9;
            }
            break;
        case NARROW_AND_WIDE:
            if (me() == 1) {
                words[3] = 9;
            } else if (me() == 0) {
                for (volatile uint32_t i = 0; i < 1000; i++) continue;
                wide();
            }
            break;
        case NEIGHBOURS:
            /* Bytes next to each other in WRAM are stored one by one. */
            for (uint32_t i = 0; i < 10; i++) bytes[me()] += (uint8_t)(i + me());
            break;
        case SAME_VALUE:
            for (uint32_t i = 0; i < 100; i++) counter = 7;
            barrier_wait(&everybody);
            if (me() == 0) result = counter;
            break;
        case FLAG:
            if (me() == 0) {
                counter = 5;
                flag = 1;
            } else {
                while (!flag) continue;
                if (counter != 5) result = 1;
            }
            break;
        case TURNS: in_turns(); break;
        case PART_BARRIER:
            /* Groups of four one after the other, as PrIM's HST-L waits. */
            for (uint32_t round = 0; round < 5; round++) {
                if (me() < 4) {
                    table[me()] = round;
                    barrier_wait(&quarter);
                    uint32_t sum = 0;
                    for (uint32_t i = 0; i < 4; i++) sum += table[i];
                    if (me() == 2 && sum != 4 * round) result = 1;
                    barrier_wait(&quarter);
                }
            }
            __builtin_nop_();
            break;
        case NO_BASE: {
            /* Only the low bits of an MRAM address count. */
            const uint32_t address = (uint32_t)&far[me()] & 0x03ffffff;
            uint64_t value = 100 + me();
            mram_write(&value, (__mram_ptr void *)address, 8);
            uint64_t got = *(__mram_ptr uint64_t *)address;
            if (got != value) result = 1;
            break;
        }
        case ALLOCATIONS: {
            uint32_t *own = mem_alloc(8);
            *own = me();
            barrier_wait(&everybody);
            if (me() == 0) mem_reset();
            barrier_wait(&everybody);
            own = mem_alloc(8);
            *own = me() + 1;
            if (*own != me() + 1) result = 1;
            break;
        }
        case EARLY_READ:
            /* As PrIM's UNI: what the last one writes, all others have read on their way. */
            if (me() != 0) handshake_wait_for(me() - 1);
            if (me() != NR_TASKLETS - 1) handshake_notify();
            table[me()] = counter;
            if (me() == NR_TASKLETS - 1) counter++;
            barrier_wait(&everybody);
            if (table[me()] + 1 != counter) result = 1;
            break;
        case MRAM_READ:
        case MRAM_LOAD:
        case MRAM_FORWARD: read_in_mram(0); break;
        case MRAM_READ_HANDSHAKE:
        case MRAM_LOAD_HANDSHAKE:
        case MRAM_FORWARD_HANDSHAKE: read_in_mram(1); break;
        case CHANGED_AGAIN:
        case CHANGED_AGAIN_BARRIER: change_again(0, task == CHANGED_AGAIN_BARRIER); break;
        case BYTE_CHANGED_AGAIN:
        case BYTE_CHANGED_AGAIN_BARRIER: change_again(1, task == BYTE_CHANGED_AGAIN_BARRIER); break;
        case ACROSS_PAGES:
        case ACROSS_PAGES_HANDSHAKE: across_pages(task == ACROSS_PAGES_HANDSHAKE); break;
        case COPIES:
        case COPIES_LOCKED: {
            /* All tasklets copy to the same place, a length that the compiler does not know. */
            uint32_t values[4] = {me(), me(), me(), me()};
            if (task == COPIES_LOCKED) mutex_lock(door);
            memcpy(table, values, 4 * *(volatile uint32_t *)&four);
            if (task == COPIES_LOCKED) mutex_unlock(door);
            break;
        }
        case UNUSED: {
            /* Tasklet 1 reads two words, of which tasklet 0 has written the first, and uses the second; and the first
               after writing it. */
            __dma_aligned uint64_t values[2] = {7, 7};
            if (me() == 0) mram_write(values, far, 8);
            if (me() != 1) break;
            wait_a_while();
            mram_read(far, values, sizeof values);
            uint64_t second = values[1];
            values[0] = second + 5;
            if (values[0] != 5) result = 1;
            break;
        }
        case OTHER_BYTES:
            /* Tasklet 0 writes half of a word, of which tasklet 1 reads the other half. */
            if (me() == 0) words[2] = 6;
            if (me() != 1) break;
            wait_a_while();
            result = words[3];
            __dma_aligned uint32_t halves[2];
            mram_read(&words[2], halves, sizeof halves);
            result += halves[1];
            break;
        case POLLED:
            if (me() == 0) wait_a_while(), far[3] = 1;
            if (me() == 1)
                while (!*(volatile __mram_ptr uint64_t *)&far[3]) continue;
            break;
        case UNROLLED: scan_unrolled(); break;
        case OVERREAD: {
            /* Each reads a word more than it uses, which its neighbour writes. */
            __dma_aligned uint64_t values[2];
            mram_read(&far[me()], values, sizeof values);
            values[0] = twice(me());
            mram_write(values, &far[me()], 8);
            break;
        }
    }
    return 0;
}

uint32_t twice(uint32_t number) { return 2 * number; }
