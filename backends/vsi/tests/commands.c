/* A cmd_gen.so that writes down what it is asked: 32 words of 64 bits for each program. What is returned of a half-filled
   buffer is seen by the poison that is left. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WORDS = 32 };

#define PARAMETERS                                                                                                     \
    void *out, int8_t flag, uint16_t half, uint16_t brain, int64_t big, float single, double precise, void *marks,     \
        int gx, int gy, int gz, const size_t *out_shape, const size_t *marks_shape, int8_t *commands
#define ARGUMENTS                                                                                                      \
    out, flag, half, brain, big, single, precise, marks, gx, gy, gz, out_shape, marks_shape, commands

size_t get_matmul_num(void)
{
    return 2;
}

size_t get_dma_num(void)
{
    return 1;
}

static bool fill(int64_t kind, size_t index, const size_t *grid, PARAMETERS)
{
    int64_t *words = (int64_t *)commands;
    if (big == -1)
        return false;
    for (int z = 0; z < gz; z++)
        for (int y = 0; y < gy; y++)
            for (int x = 0; x < gx; x++, words += WORDS) {
                memset(words, 0, WORDS * sizeof *words);
                words[0] = kind + 100 * (int64_t)index;
                words[1] = x + 10 * y + 100 * z;
                words[2] = (int64_t)(intptr_t)out;
                words[3] = (int64_t)(intptr_t)marks;
                words[4] = flag;
                words[5] = half;
                words[6] = brain;
                words[7] = big;
                memcpy(&words[8], &single, sizeof single);
                memcpy(&words[9], &precise, sizeof precise);
                words[10] = (int64_t)out_shape[0];
                words[11] = (int64_t)marks_shape[0];
                words[12] = (int64_t)marks_shape[1];
                for (int side = 0; grid && side < 3; side++)
                    words[13 + side] = (int64_t)grid[side];
            }
    return true;
}

bool generate_matmul_command(size_t index, const size_t grid[3], PARAMETERS)
{
    return index < get_matmul_num() && fill(1000, index, grid, ARGUMENTS);
}

bool generate_dma_command(size_t index, PARAMETERS)
{
    return index < get_dma_num() && fill(2000, index, NULL, ARGUMENTS);
}
