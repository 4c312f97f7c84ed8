/* What a rank of DPUs is like. */
#ifndef DPU_DESCRIPTION_H
#define DPU_DESCRIPTION_H

#include <dpu_target.h>
#include <dpu_types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dpu_hw_description_t {
    struct {
        uint8_t nr_of_control_interfaces, nr_of_dpus_per_control_interface;
    } topology;
    struct {
        uint32_t mram_size, wram_size; /* bytes */
        uint32_t iram_size;            /* instructions */
    } memories;
    struct {
        uint8_t nr_of_threads;
        uint32_t nr_of_atomic_bits;
    } dpu;
    struct {
        uint32_t fck_frequency_in_mhz;
    } timings;
};

/* It belongs to the library. The members are those that programs use; the SDK's has more. */
typedef struct _dpu_description_t {
    struct dpu_hw_description_t hw;
    dpu_type_t type;
} const *dpu_description_t;

dpu_description_t dpu_get_description(struct dpu_rank_t *rank);

#ifdef __cplusplus
}
#endif

#endif
