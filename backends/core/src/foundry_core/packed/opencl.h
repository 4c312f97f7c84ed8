/* What opencl.c offers to a road whose kernels take buffers that are made for each launch. */
#ifndef FOUNDRY_OPENCL_H
#define FOUNDRY_OPENCL_H

#include "road.h"

/* packed_variant.extra of such a kernel. Without it, the buffers after the grid are 16 zero bytes each.
 *
 * Words of packed_variant.needs that this road knows:
 *   cl_mem       the kernel takes a cl_mem for each array, also where the device shares the host's address space
 *   calls=N      it calls library functions with vectors of N bytes, which not each of PoCL's processors takes
 *   fp16, fp64, int64_atomics   the device must compute with them
 *   subgroup=N   the device must run N work-items of a group as one subgroup, with shuffles
 *   local=N      bytes of local memory
 */
struct opencl_extra {
    /* Prepare a form of a kernel: `state` is passed to the other functions. Any of them may be NULL. */
    foundry_status (*load)(const struct packed_variant *variant, const struct road_file *files, void **state);
    void (*unload)(void *state);
    /* Say how many buffers the kernel takes after the grid. */
    uint32_t (*count)(void *state);
    /* Make the contents of one, in memory of malloc. host[i] is the i-th argument's array in the host's memory, or NULL. */
    foundry_status (*make)(void *state, const struct road_launch *launch, void *const *host, uint32_t index,
        void **data, uint64_t *bytes);
};

extern const struct packed_road opencl_road;

#endif
