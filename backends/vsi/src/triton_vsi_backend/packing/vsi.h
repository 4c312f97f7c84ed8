/* What packed kernels for VeriSilicon's GPGPUs have more than OpenCL's: buffers of commands for the tensor core and for DMA.
 *
 * A kernel's second file is the library that zen-compiler wrote for it, which makes the commands. Its functions take the
 * kernel's own arguments, so the packing generates a call of each.
 */
#ifndef FOUNDRY_VSI_H
#define FOUNDRY_VSI_H

#include <stdbool.h>

#include "opencl.h"

/* Call a function of the library: fill the buffer `index`, 256 bytes for each program of the launch's grid. `host` has the
 * arrays' addresses in the host's memory, by argument. 0: the library refuses the arguments. */
typedef bool (*vsi_call)(
    void *function, size_t index, const struct road_launch *launch, void *const *host, signed char *commands);

/* packed_variant.extra of such a kernel. */
struct vsi_extra {
    struct opencl_extra opencl; /* first: it is all that opencl.c knows */
    vsi_call matmul, dma;
};

foundry_status vsi_load(const struct packed_variant *variant, const struct road_file *files, void **state);
void vsi_unload(void *state);
uint32_t vsi_count(void *state);
foundry_status vsi_make(
    void *state, const struct road_launch *launch, void *const *host, uint32_t index, void **data, uint64_t *bytes);

/* Numbers and shapes of a launch's arguments, as the library's functions take them. */
#define VSI_INTEGER(type, index) ((type)launch->arguments[index].bits)
#define VSI_SHAPE(index) ((const size_t *)launch->arguments[index].shape)
static inline __attribute__((unused)) float vsi_float(const struct road_argument *argument)
{
    float number;
    __builtin_memcpy(&number, &argument->bits, sizeof number);
    return number;
}
static inline __attribute__((unused)) double vsi_double(const struct road_argument *argument)
{
    double number;
    __builtin_memcpy(&number, &argument->bits, sizeof number);
    return number;
}

#endif
