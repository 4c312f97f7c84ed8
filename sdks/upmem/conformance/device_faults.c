/* Each thing that a program must not do, done by one tasklet of four on demand; and beside it the same done rightly. */
/* built as: device_faults -DNR_TASKLETS=4 */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mutex.h>
#include <sem.h>
#include <stdint.h>

#include "faults.h"

__host uint32_t fault;
__host uint32_t culprit;
__host uint32_t size;
__host uint32_t offset;
/* What the culprit touches, written before it does. */
__host uint32_t touched;
__host uint32_t finished[NR_TASKLETS];

__mram_noinit uint8_t area[8192];
__mram_noinit uint32_t halves[8];
__dma_aligned static uint8_t buffer[4096];

BARRIER_INIT(everybody, NR_TASKLETS);
BARRIER_INIT(too_few, NR_TASKLETS - 1);
BARRIER_INIT(too_many, NR_TASKLETS + 1);
MUTEX_INIT(door);
SEMAPHORE_INIT(never, 0);

/* Its own address says how deep the stack is; the array is what fills it. */
static uint32_t __attribute__((noinline)) deep(uint32_t levels) {
    volatile uint32_t frame[16];
    for (uint32_t i = 0; i < 16; i++) frame[i] = levels + i;
    if (levels == 0) return frame[3];
    return deep(levels - 1) + frame[levels % 16];
}

static uint32_t __attribute__((noinline)) wide(uint32_t last) {
    volatile uint8_t frame[1500];
    frame[last] = 1;
    return frame[last];
}

static void half_words(uint32_t locked) {
    barrier_wait(&everybody);
    for (uint32_t round = 0; round < 8; round++) {
        if (me() > 1) continue;
        touched = (uint32_t)&halves[0];
        if (locked) mutex_lock(door);
        halves[me()] = 100 * (me() + 1) + round;
        if (locked) mutex_unlock(door);
    }
}

/* Tasklet 1 writes its half long after tasklet 0 has written the other; in good order if it was told so. */
static void half_words_in_turn(uint32_t told) {
    if (me() == 0) {
        touched = (uint32_t)&halves[0];
        halves[0] = 1;
        if (told) handshake_notify();
    } else if (me() == 1) {
        if (told) handshake_wait_for(0);
        for (volatile uint32_t i = 0; i < 1000; i++) continue;
        halves[1] = 2;
    }
}

static void misdeed(void) {
    switch (fault) {
        case MRAM_READ:
            touched = (uint32_t)(area + offset);
            mram_read(area + offset, buffer, size);
            break;
        case MRAM_WRITE:
            touched = (uint32_t)(area + offset);
            mram_write(buffer, area + offset, size);
            break;
        case WRAM_READ:
            touched = (uint32_t)(buffer + offset);
            mram_read(area, buffer + offset, size);
            break;
        case WRAM_WRITE:
            touched = (uint32_t)(buffer + offset);
            mram_write(buffer + offset, area, size);
            break;
        case MRAM_END:
            touched = 0x0c000000 - 8;
            mram_read((__mram_ptr void *)touched, buffer, size);
            break;
        case MRAM_NOWHERE:
            touched = 0x00001000 + offset;
            mram_read((__mram_ptr void *)touched, buffer, size);
            break;
        case MRAM_SCALAR:
            touched = 0x0c000000 + offset;
            *(__mram_ptr volatile uint32_t *)touched = 1;
            break;
        case MRAM_SCALAR_ODD:
            touched = (uint32_t)(area + offset);
            *(__mram_ptr volatile uint32_t *)touched = 1;
            break;
        case WRAM_ODD:
            touched = (uint32_t)(buffer + offset);
            *(volatile uint32_t *)touched = 1;
            break;
        case STORE:
            touched = offset;
            *(volatile uint32_t *)touched = 1;
            break;
        case LOAD:
            touched = offset;
            buffer[0] = *(volatile uint8_t *)touched;
            break;
        case CALL:
            touched = offset;
            ((void (*)(void))touched)();
            break;
        case DEEP: buffer[0] = (uint8_t)deep(size); break;
        case WIDE: buffer[0] = (uint8_t)wide(size); break;
        case HEAP_FULL:
            for (;;) touched = (uint32_t)mem_alloc(size);
            break;
        case LOCKED_TWICE:
            mutex_lock(door);
            if (size != 0) mutex_unlock(door);
            mutex_lock(door);
            mutex_unlock(door);
            break;
        case NEVER_GIVEN: sem_take(&never); break;
        case NEVER_NOTIFIED: handshake_wait_for((me() + 1) % NR_TASKLETS); break;
        case ENDLESS:
            for (volatile uint32_t i = 0;; i++) continue;
            break;
        case DIVISION: buffer[0] = (uint8_t)(1000 / *(volatile uint32_t *)&size); break;
        default: break;
    }
}

int main(void) {
    switch (fault) {
        case HALF_WORDS: half_words(0); break;
        case HALF_WORDS_LOCKED: half_words(1); break;
        case HALF_WORDS_LATER: half_words_in_turn(0); break;
        case HALF_WORDS_ORDERED: half_words_in_turn(1); break;
        case UNLOCKED_BY_OTHER:
            if (me() == 0) mutex_lock(door);
            barrier_wait(&everybody);
            if (me() == culprit) mutex_unlock(door);
            break;
        case BARRIER_TOO_FEW: barrier_wait(&too_few); break;
        case BARRIER_TOO_MANY: barrier_wait(&too_many); break;
        case BARRIER_ONE_MISSING:
            if (me() != culprit) barrier_wait(&everybody);
            break;
        default:
            if (me() == culprit) misdeed();
            break;
    }
    finished[me()] = 1;
    return 0;
}
