/* The arguments of ir_kernel.ll: a variable of the host's, defined in C as TritonPIM's flows define it. */
#include <attributes.h>
#include <stdint.h>

__host struct {
    uint32_t base;
    uint32_t n;
    uint64_t pad;
} __attribute__((aligned(8))) arguments;
