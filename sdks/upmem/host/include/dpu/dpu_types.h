/* The types of host programs: sets, programs and symbols. */
#ifndef DPU_TYPES_H
#define DPU_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dpu_t;
struct dpu_rank_t;
struct dpu_program_t;

typedef enum dpu_set_kind_t { DPU_SET_RANKS, DPU_SET_DPU } dpu_set_kind_t;

/* Ranks of DPUs, or one DPU. Passed by value; belongs to dpu_alloc and dpu_free. */
struct dpu_set_t {
    dpu_set_kind_t kind;
    union {
        struct {
            uint32_t nr_ranks;
            struct dpu_rank_t **ranks;
        } list;
        struct dpu_t *dpu;
    };
};

/* Where a DPU program has a variable, as the DPU numbers addresses, and its size in bytes. */
struct dpu_symbol_t {
    uint32_t address;
    uint32_t size;
};

/* A DPU program in the host program, see DPU_INCBIN. */
struct dpu_incbin_t {
    uint8_t *buffer;
    size_t size;
    const char *path;
};

#endif
