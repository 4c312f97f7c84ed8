/* The device library beyond the essentials: allocators of blocks, locks by number, unaligned MRAM, strings. */
/* built as: device_library -DNR_TASKLETS=8 */
#include <alloc.h>
#include <assert.h>
#include <atomic_bit.h>
#include <barrier.h>
#include <buddy_alloc.h>
#include <defs.h>
#include <fsb_allocator.h>
#include <mram.h>
#include <mram_unaligned.h>
#include <mutex_pool.h>
#include <stdint.h>
#include <string.h>
#include <vmutex.h>

#include "library.h"

__host uint32_t task;
__host uint32_t results[16];
__host uint8_t bytes[64];

__mram_noinit uint8_t text[256];
__mram_noinit uint8_t copy[256];
__mram_noinit int32_t counters[8];

BARRIER_INIT(everybody, NR_TASKLETS);
MUTEX_POOL_INIT(pool, 4);
VMUTEX_INIT(many, 16, 2);
ATOMIC_BIT_INIT(bit);
static uint32_t counts[16];

static void blocks(void) {
    fsb_allocator_t allocator = fsb_alloc(24, 4);
    uint8_t *first = fsb_get(allocator), *second = fsb_get(allocator);
    fsb_get(allocator);
    fsb_get(allocator);
    results[0] = fsb_get(allocator) == NULL;
    results[1] = first != second && ((uint32_t)first | (uint32_t)second) % 8 == 0;
    fsb_free(allocator, second);
    results[2] = fsb_get(allocator) == second;
}

static void buddies(void) {
    buddy_init(4096);
    uint32_t overlaps = 0, got = 0;
    uint8_t *block[4] = {buddy_alloc(40), buddy_alloc(100), buddy_alloc(1000), buddy_alloc(32)};
    const uint32_t size[4] = {40, 100, 1000, 32};
    for (uint32_t i = 0; i < 4; i++) {
        got += block[i] != NULL && (uint32_t)block[i] % 8 == 0;
        for (uint32_t j = 0; j < i; j++) overlaps += block[i] < block[j] + size[j] && block[j] < block[i] + size[i];
    }
    for (uint32_t i = 0; i < 4; i++) buddy_free(block[i]);
    results[0] = got;
    results[1] = overlaps;
    results[2] = buddy_alloc(4096) != NULL;
}

/* Many counters, more than there are hardware mutexes; each tasklet counts all of them up. */
static void locks(void) {
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 16; i++) {
            if (task == MUTEX_POOL) mutex_pool_lock(&pool, i);
            if (task == VIRTUAL_MUTEXES) vmutex_lock(&many, i);
            if (task == ATOMIC_BIT) ATOMIC_BIT_ACQUIRE(bit);
            volatile uint32_t *count = &counts[i];
            const uint32_t before = *count;
            for (volatile uint32_t wait = 0; wait < 2; wait++) continue;
            *count = before + 1;
            if (task == MUTEX_POOL) mutex_pool_unlock(&pool, i);
            if (task == VIRTUAL_MUTEXES) vmutex_unlock(&many, i);
            if (task == ATOMIC_BIT) ATOMIC_BIT_RELEASE(bit);
        }
    }
    barrier_wait(&everybody);
    if (me() == 0)
        for (uint32_t i = 0; i < 16; i++) results[i] = counts[i];
}

static void increment(int *value, void *by) { *value += *(int *)by; }

/* All tasklets write into the same 8-byte words. */
static void atomics(void) {
    int by = 3;
    for (uint32_t i = 0; i < 10; i++) mram_update_int_atomic(&counters[i % 2], increment, &by);
    barrier_wait(&everybody);
    mram_write_byte_atomic(&copy[me()], (uint8_t)(me() + 1));
}

static void unaligned(void) {
    __dma_aligned uint8_t buffer[64];
    for (uint32_t start = 0; start < 8; start++) {
        for (uint32_t length = 1; length < 24; length++) {
            uint8_t *read = mram_read_unaligned(&text[start], buffer, length);
            for (uint32_t i = 0; i < length; i++) results[0] += read[i] != (uint8_t)(start + i);
        }
    }
    /* Both addresses leave the same remainder modulo 8. */
    for (uint32_t i = 0; i < 13; i++) buffer[3 + i] = (uint8_t)(100 + i);
    mram_write_unaligned(buffer + 3, &text[67], 13);
}

static void strings(void) {
    char name[24] = "tasklet";
    results[0] = strlen(name);
    strcat(name, "s of a DPU");
    results[1] = (uint32_t)(strchr(name, 'D') - name);
    results[2] = strcmp(name, "tasklets of a DPU") == 0;
    memset(bytes, 7, 32);
    memcpy(bytes + 32, name, 18);
    memmove(bytes + 34, bytes + 32, 18);
    results[3] = memcmp(bytes + 34, name, 18) == 0;
}

int main(void) {
    if (task == MUTEX_POOL || task == VIRTUAL_MUTEXES || task == ATOMIC_BIT) {
        locks();
    } else if (task == ATOMIC_UPDATES) {
        atomics();
    } else if (me() == 0) {
        mem_reset();
        switch (task) {
            case BLOCKS: blocks(); break;
            case BUDDIES: buddies(); break;
            case UNALIGNED: unaligned(); break;
            case STRINGS: strings(); break;
            case HALT: halt(); break;
            case ASSERTION: assert(task == BLOCKS); break;
            default: break;
        }
    }
    return 0;
}
