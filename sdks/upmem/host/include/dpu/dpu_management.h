/* Which DPU and which rank a set of one DPU stands for, by the SDK's numbers: a rank has 8 slices of 8 DPUs. */
#ifndef DPU_MANAGEMENT_H
#define DPU_MANAGEMENT_H

#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t dpu_id_t;
typedef uint8_t dpu_slice_id_t;
typedef uint8_t dpu_member_id_t;

/* NULL for a set that is not one DPU. */
struct dpu_t *dpu_from_set(struct dpu_set_t set);
struct dpu_rank_t *dpu_get_rank(struct dpu_t *dpu);
/* NULL if the rank has no such DPU, or the set that it was allocated for has fewer. */
struct dpu_t *dpu_get(struct dpu_rank_t *rank, dpu_slice_id_t slice_id, dpu_member_id_t dpu_id);

dpu_id_t dpu_get_rank_id(struct dpu_rank_t *rank);
/* Rank, slice and member: 16, 8 and 8 bits. */
dpu_id_t dpu_get_id(struct dpu_t *dpu);
dpu_slice_id_t dpu_get_slice_id(struct dpu_t *dpu);
dpu_member_id_t dpu_get_member_id(struct dpu_t *dpu);

#ifdef __cplusplus
}
#endif

#endif
