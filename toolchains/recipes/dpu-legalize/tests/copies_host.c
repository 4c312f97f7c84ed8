/* Loads and launches ./copies and says what it found. */
#include <dpu.h>
#include <stdio.h>

int main(void)
{
    struct dpu_set_t set, dpu;
    uint32_t cases = 0, wrong = 1, first[4];
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, "./copies", NULL));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu)
    {
        DPU_ASSERT(dpu_copy_from(dpu, "cases", 0, &cases, sizeof cases));
        DPU_ASSERT(dpu_copy_from(dpu, "wrong", 0, &wrong, sizeof wrong));
        DPU_ASSERT(dpu_copy_from(dpu, "first_wrong", 0, first, sizeof first));
    }
    printf("cases %u wrong %u", cases, wrong);
    if (wrong) printf(", first: to %u from %u length %u byte %u", first[0], first[1], first[2], first[3]);
    printf("\n");
    DPU_ASSERT(dpu_free(set));
    return wrong != 0;
}
