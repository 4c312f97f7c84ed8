/* What only the emulator can tell: modelled figures and the reason of a fault. The SDK has no such file; programs that are
 * to run with both look the functions up with dlsym. */
#ifndef DPU_EMULATOR_H
#define DPU_EMULATOR_H

#include <stdint.h>

#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one DPU's last launch. All numbers are modelled, see the recipe's README and model/cycles.def. */
struct dpu_emulator_stats {
    uint64_t cycles;          /* from the boot to the end of the last tasklet */
    uint64_t instructions;    /* issued by all tasklets */
    uint64_t dma_read_bytes;  /* MRAM to WRAM */
    uint64_t dma_write_bytes; /* WRAM to MRAM */
    uint64_t dma_transfers;
    uint64_t dma_cycles;      /* in which the DMA engine was busy */
};

/* Of the last launches of all DPUs of a set: they run side by side, so the set has taken as long as its slowest DPU. */
struct dpu_emulator_totals {
    uint64_t nr_dpus;
    uint64_t max_cycles;
    struct dpu_emulator_stats sum;
};

/* Why a DPU is in fault. */
struct dpu_emulator_fault {
    char rule[64];     /* for example "misaligned DMA" */
    uint32_t tasklet;  /* UINT32_MAX where it is not one tasklet's doing */
    uint32_t address;
    uint32_t size;
    char message[1024];
};

/* What a source line did in a DPU's last launch, in a program compiled with -foundry-count-lines. */
struct dpu_emulator_line {
    const char *place;     /* "PATH:LINE", or a function that has no lines; valid until the set is freed */
    uint64_t instructions; /* issued by all tasklets */
    uint64_t dma_cycles;   /* in which the DMA engine was busy */
};

/* All return 0, or -1 for a set that is none, that is not one DPU where one is asked for, or that still runs;
 * dpu_emulator_fault_of also for a DPU that is not in fault. */
int dpu_emulator_stats(struct dpu_set_t set, struct dpu_emulator_stats *out);
int dpu_emulator_totals(struct dpu_set_t set, struct dpu_emulator_totals *out);
int dpu_emulator_fault_of(struct dpu_set_t set, struct dpu_emulator_fault *out);
/* The next line; *position is 0 for the first. -1 also after the last. */
int dpu_emulator_next_line(struct dpu_set_t set, uint32_t *position, struct dpu_emulator_line *out);

/* The name of a symbol of a program, 0 for the first; NULL after the last. Valid until the set is freed. */
const char *dpu_emulator_symbol_name(const struct dpu_program_t *program, uint32_t number);

#ifdef __cplusplus
}
#endif

#endif
