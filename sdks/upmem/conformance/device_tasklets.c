/* What tasklets do together: barriers, mutexes, semaphores, handshakes, the WRAM heap, sequential reads, counters. */
/* built as: device_tasklets -DNR_TASKLETS=16 */
/* built as: device_tasklets_1 -DNR_TASKLETS=1 */
/* built as: device_tasklets_24 -DNR_TASKLETS=24 -mcpu=v1A */
/* built as: device_tasklets_v1b -DNR_TASKLETS=16 -mcpu=v1B */
#include <alloc.h>
#include <atomic_bit.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mutex.h>
#include <perfcounter.h>
#include <sem.h>
#include <seqread.h>
#include <stdint.h>

enum { IDENTITY, BARRIER, MUTEX, TRYLOCK, SEMAPHORE, HANDSHAKE, ALLOC, RESET, SEQUENTIAL, COUNTERS, CONTEND, SPIN, LEAVE };
enum { MOST = 24, READ = 4096, LOG = 256 };

__host uint32_t task;
__host uint32_t tasklets;
__host uint32_t results[MOST];
__host uint32_t extra[MOST];
__host uint32_t counter;
__host uint64_t cycles;
__host uint64_t instructions;
__host uint8_t order[LOG];

__mram_noinit uint32_t numbers[READ];

BARRIER_INIT(everybody, NR_TASKLETS);
MUTEX_INIT(door);
MUTEX_INIT(other_door);
ATOMIC_BIT_INIT(bit);
SEMAPHORE_INIT(items, 0);
SEMAPHORE_INIT(room, 2);

static volatile uint32_t plain, inside, worst;
static volatile uint32_t flag;

static void work(uint32_t steps) {
    for (volatile uint32_t i = 0; i < steps; i++) continue;
}

/* After the barrier of each round every tasklet sees what all of them wrote before it. */
static void barrier_rounds(void) {
    for (uint32_t round = 0; round < 10; round++) {
        work(7 * me());
        results[me()] = round + me();
        barrier_wait(&everybody);
        uint32_t sum = 0;
        for (uint32_t i = 0; i < NR_TASKLETS; i++) sum += results[i];
        extra[me()] += sum == NR_TASKLETS * round + NR_TASKLETS * (NR_TASKLETS - 1) / 2;
        barrier_wait(&everybody);
    }
}

static void mutex_rounds(void) {
    for (uint32_t i = 0; i < 100; i++) {
        mutex_lock(door);
        inside++;
        if (inside > worst) worst = inside;
        const uint32_t before = plain;
        work(3);
        plain = before + 1;
        inside--;
        mutex_unlock(door);
    }
    barrier_wait(&everybody);
    if (me() == 0) {
        counter = plain;
        results[0] = worst;
    }
}

static void trylock(void) {
    if (me() == 0) mutex_lock(other_door);
    barrier_wait(&everybody);
    if (me() == 1 % NR_TASKLETS) results[0] = mutex_trylock(other_door);
    barrier_wait(&everybody);
    if (me() == 0) mutex_unlock(other_door);
    barrier_wait(&everybody);
    if (me() == 1 % NR_TASKLETS) {
        results[1] = mutex_trylock(other_door);
        mutex_unlock(other_door);
    }
}

/* Tasklet 0 makes one item for each of the others; at most two are in `room` at a time. */
static void semaphores(void) {
    if (me() == 0) {
        for (uint32_t i = 1; i < NR_TASKLETS; i++) {
            work(50);
            plain++;
            sem_give(&items);
        }
        return;
    }
    sem_take(&items);
    results[me()] = plain;
    sem_take(&room);
    mutex_lock(door);
    inside++;
    if (inside > worst) worst = inside;
    mutex_unlock(door);
    work(200);
    mutex_lock(door);
    inside--;
    counter = worst;
    mutex_unlock(door);
    sem_give(&room);
}

/* Each tasklet waits for the one before it: the numbers come out in order. */
static void handshakes(void) {
    if (me() != 0) handshake_wait_for(me() - 1);
    results[me()] = counter++;
    if (me() != NR_TASKLETS - 1) handshake_notify();
}

static void allocations(void) {
    if (task == RESET && me() == 0) mem_reset();
    barrier_wait(&everybody);
    mutex_lock(door);
    uint8_t *first = mem_alloc(20), *second = mem_alloc(64);
    mutex_unlock(door);
    results[me()] = (uint32_t)first;
    extra[me()] = (uint32_t)second;
    for (uint32_t i = 0; i < 20; i++) first[i] = (uint8_t)me();
    for (uint32_t i = 0; i < 64; i++) second[i] = (uint8_t)(me() + 100);
    barrier_wait(&everybody);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < 20; i++) wrong += first[i] != me();
    for (uint32_t i = 0; i < 64; i++) wrong += second[i] != me() + 100;
    mutex_lock(door);
    counter += wrong;
    mutex_unlock(door);
}

static void sequential(void) {
    mutex_lock(door);
    seqreader_buffer_t cache = seqread_alloc();
    mutex_unlock(door);
    seqreader_t reader;
    const uint32_t share = READ / NR_TASKLETS, start = me() * share;
    uint32_t *current = seqread_init(cache, &numbers[start], &reader), sum = 0;
    for (uint32_t i = 0; i < share; i++) {
        sum += *current;
        current = seqread_get(current, sizeof *current, &reader);
    }
    results[me()] = sum;
    current = seqread_seek(&numbers[start + 3], &reader);
    extra[me()] = *current;
    results[me()] += seqread_tell(current, &reader) != (__mram_ptr void *)&numbers[start + 3];
}

static void counters(void) {
    if (me() != 0) return;
    perfcounter_config(COUNT_CYCLES, true);
    work(1000);
    cycles = perfcounter_get();
    work(1000);
    extra[0] = perfcounter_get() > cycles;
    perfcounter_config(COUNT_INSTRUCTIONS, true);
    work(1000);
    instructions = perfcounter_get();
}

/* Locks, DMA and computation in each other's way; the order in which the mutex was had is kept. */
static void contend(void) {
    __dma_aligned uint64_t buffer[8];
    if (me() == 0) perfcounter_config(COUNT_CYCLES, true);
    barrier_wait(&everybody);
    for (uint32_t round = 0; round < LOG / NR_TASKLETS; round++) {
        mram_read(&numbers[64 * me()], buffer, 8 * (1 + (me() + round) % 8));
        work((me() * 13 + round * 7) % 40);
        mutex_lock(door);
        order[counter++] = (uint8_t)me();
        mutex_unlock(door);
    }
    barrier_wait(&everybody);
    if (me() == 0) cycles = perfcounter_get();
}

/* A tasklet may wait for a variable of WRAM that another one writes. */
static void spin(void) {
    if (me() == 0) {
        work(500);
        flag = 1;
    } else {
        while (flag == 0) continue;
    }
    results[me()] = flag;
}

/* Ends with a mutex locked and an atomic bit acquired, by another tasklet in each launch. */
static void leave_locked(void) {
    const uint32_t one = counter % NR_TASKLETS;
    barrier_wait(&everybody);
    if (me() != one) return;
    counter++;
    results[0] += mutex_trylock(other_door);
    ATOMIC_BIT_ACQUIRE(bit);
    results[1]++;
}

int main(void) {
    tasklets = NR_TASKLETS;
    switch (task) {
        case IDENTITY: results[me()] = me() + 1; break;
        case BARRIER: barrier_rounds(); break;
        case MUTEX: mutex_rounds(); break;
        case TRYLOCK: trylock(); break;
        case SEMAPHORE: semaphores(); break;
        case HANDSHAKE: handshakes(); break;
        case ALLOC:
        case RESET: allocations(); break;
        case SEQUENTIAL: sequential(); break;
        case COUNTERS: counters(); break;
        case CONTEND: contend(); break;
        case SPIN: spin(); break;
        case LEAVE: leave_locked(); break;
        default: break;
    }
    return 0;
}
