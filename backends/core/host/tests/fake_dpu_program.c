/* A DPU program for fake_dpus.c: c[i] = a[i] + b[i] for i < n, 64 elements a program. */
#include <stdint.h>
#include <string.h>

struct arguments {
    uint32_t a, b, c;
    int32_t n;
    uint64_t pad;
};
const uint32_t arguments_bytes = sizeof(struct arguments);

static float *element(unsigned char *mram, uint32_t base, uint32_t index)
{
    return (float *)(void *)(mram + (base - 0x08000000u + 4 * index));
}

void run_dpu(unsigned char *mram, const unsigned char *block, const uint32_t *grid)
{
    struct arguments taken;
    memcpy(&taken, block, sizeof taken);
    for (uint32_t i = 64 * grid[3]; i < 64 * (grid[3] + grid[4]); i++)
        if ((int64_t)i < taken.n)
            *element(mram, taken.c, i) = *element(mram, taken.a, i) + *element(mram, taken.b, i);
}
