/* run PROGRAM: launches it once on one DPU, prints its `results` and then its log. */
#include <dpu.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct dpu_set_t set, dpu;
    unsigned long results[16] = {0};
    if (argc != 2) return 2;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, argv[1], NULL));
    dpu_error_t launched = dpu_launch(set, DPU_SYNCHRONOUS);
    if (launched != DPU_OK) {
        printf("%s\n", dpu_error_to_string(launched));
        return 1;
    }
    DPU_FOREACH(set, dpu)
    {
        DPU_ASSERT(dpu_copy_from(dpu, "results", 0, results, sizeof results));
        for (int i = 0; i < 16; i++) printf(i == 15 ? "%lu\n" : "%lu ", results[i]);
        DPU_ASSERT(dpu_log_read(dpu, stdout));
    }
    DPU_ASSERT(dpu_free(set));
    return 0;
}
