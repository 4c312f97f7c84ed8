/* Microbenchmarks in the manner of PrIM: one DMA transfer after the other, one arithmetic operation after the other. */
/* measured as: calibration_1 -DNR_TASKLETS=1 */
/* measured as: calibration_2 -DNR_TASKLETS=2 */
/* measured as: calibration_4 -DNR_TASKLETS=4 */
/* measured as: calibration_8 -DNR_TASKLETS=8 */
/* measured as: calibration_11 -DNR_TASKLETS=11 */
/* measured as: calibration_16 -DNR_TASKLETS=16 */
/* measured as: calibration_24 -DNR_TASKLETS=24 */
#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <stdint.h>

#include "calibration.h"

__host uint32_t task;
__host uint32_t bytes;
__host int32_t operand = 3;
__host float real_operand = 1.5f;
__host uint64_t cycles;
/* The sum of all results, so that the work has to be done. */
__host uint32_t digest;

__mram_noinit uint8_t area[IN_A_ROW * 2048];
__mram_noinit uint8_t areas[NR_TASKLETS][IN_A_ROW * 2048];
__dma_aligned static uint8_t buffer[2048];
static int32_t *integers[NR_TASKLETS];
static float *reals[NR_TASKLETS];

BARRIER_INIT(everybody, NR_TASKLETS);

/* A transfer is not a loop's business: they follow each other, of a length that the compiler knows. */
#define READ(n, length) mram_read(area + 2048 * (n), buffer, length);
#define WRITE(n, length) mram_write(buffer, area + 2048 * (n), length);
/* Read and written by the tasklet alone, at places in no order. */
#define UPDATE(n, length)                                                                                              \
    mram_read(own + 2048 * ((7 * (n) + 3) % IN_A_ROW), mine, length);                                                   \
    mram_write(mine, own + 2048 * ((7 * (n) + 3) % IN_A_ROW), length);
#define FOUR(CALL, n, length) CALL(n, length) CALL(n + 1, length) CALL(n + 2, length) CALL(n + 3, length)
#define SIXTEEN(CALL, length)                                                                                          \
    case length:                                                                                                       \
        for (uint32_t round = 0; round < ROUNDS; round++) {                                                            \
            FOUR(CALL, 0, length) FOUR(CALL, 4, length) FOUR(CALL, 8, length) FOUR(CALL, 12, length)                   \
        }                                                                                                              \
        break;
#define UP_TO_1024(CALL)                                                                                               \
    SIXTEEN(CALL, 8) SIXTEEN(CALL, 16) SIXTEEN(CALL, 32) SIXTEEN(CALL, 64) SIXTEEN(CALL, 128)                          \
    SIXTEEN(CALL, 256) SIXTEEN(CALL, 512) SIXTEEN(CALL, 1024)
#define EVERY_LENGTH(CALL) UP_TO_1024(CALL) SIXTEEN(CALL, 2048)

static void transfers(uint32_t length, void *mine) {
    __mram_ptr uint8_t *own = areas[me()];
    if (task == DMA_UPDATE) {
        switch (length) { UP_TO_1024(UPDATE) }
    } else if (task == DMA_READ) {
        switch (length) { EVERY_LENGTH(READ) }
    } else {
        switch (length) { EVERY_LENGTH(WRITE) }
    }
}

/* PrIM's loop: load, operate, store, advance, branch. */
#define LOOP(array, operation, value)                                                                                  \
    do {                                                                                                               \
        for (uint32_t round = 0; round < ROUNDS; round++) {                                                            \
            _Pragma("clang loop unroll(disable)") for (uint32_t i = 0; i < ELEMENTS; i++) (array)[i] =                 \
                (array)[i] operation(value);                                                                           \
        }                                                                                                              \
    } while (0)

static void __attribute__((noinline)) arithmetic(int32_t *mine, float *real) {
    const int32_t value = operand;
    const float real_value = real_operand;
    switch (task) {
        case ADD_INT32: LOOP(mine, +, value); break;
        case MULTIPLY_INT32: LOOP(mine, *, value); break;
        case DIVIDE_INT32: LOOP(mine, /, value); break;
        case ADD_FLOAT: LOOP(real, +, real_value); break;
        case MULTIPLY_FLOAT: LOOP(real, *, real_value); break;
        case DIVIDE_FLOAT: LOOP(real, /, real_value); break;
        default: break;
    }
}

int main(void) {
    if (me() == 0) mem_reset();
    barrier_wait(&everybody);
    int32_t *mine = mem_alloc(LONGEST_UPDATE); /* both arrays */
    float *real = (float *)(mine + ELEMENTS);
    integers[me()] = mine;
    reals[me()] = real;
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        mine[i] = (int32_t)(i * 2654435761u);
        real[i] = (float)i + 0.25f;
    }
    barrier_wait(&everybody);
    if (me() == 0) perfcounter_config(COUNT_CYCLES, true);
    barrier_wait(&everybody);
    if (task <= DMA_UPDATE)
        transfers(bytes, mine);
    else
        arithmetic(mine, real);
    barrier_wait(&everybody);
    if (me() == 0) cycles = perfcounter_get();
    barrier_wait(&everybody);
    if (me() == 0) {
        digest = 0;
        for (uint32_t tasklet = 0; tasklet < NR_TASKLETS; tasklet++)
            for (uint32_t i = 0; i < ELEMENTS; i++)
                digest += (uint32_t)integers[tasklet][i] + (reals[tasklet][i] > 0.5f);
    }
    return 0;
}
