/* The arguments of vec_add.mlir: the host writes them before a launch. */
#include <mram.h>
#include <stdint.h>

/* Addresses in MRAM, multiples of 8, of n 32-bit integers each: C = A + B. */
struct vec_add_arguments {
    uint32_t a, b, c;
    uint32_t n;
} __attribute__((aligned(8)));

__host struct vec_add_arguments DPU_INPUT_ARGUMENTS;
