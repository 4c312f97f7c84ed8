/* What the driver needs of dpu.h, with plain C types, for ctypes. Built against any SDK: nothing here is special to the
 * emulator but three weak functions of its own, which are null with an SDK that has no model to ask.
 *
 * Unless it says otherwise, a function returns NULL, or what failed, in words: a string that the next call on the same thread overwrites.
 */
#define _GNU_SOURCE
#include <dpu.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dpus {
    struct dpu_set_t set;
    struct dpu_program_t *program;
};

/* As in dpu_emulator.h, which is not there with another SDK. */
struct stats {
    uint64_t cycles, instructions, dma_read_bytes, dma_write_bytes, dma_transfers, dma_cycles;
};
struct fault {
    char rule[64];
    uint32_t tasklet, address, size;
    char message[1024];
};
struct line {
    const char *place;
    uint64_t instructions, dma_cycles;
};

extern int dpu_emulator_stats(struct dpu_set_t set, struct stats *result) __attribute__((weak));
extern int dpu_emulator_fault_of(struct dpu_set_t set, struct fault *result) __attribute__((weak));
extern int dpu_emulator_next_line(struct dpu_set_t set, uint32_t *position, struct line *result) __attribute__((weak));

static _Thread_local char message[16384];

static const char *failed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return message;
}

/* The SDK's texts are not freed: whether they are constants depends on its version. */
#define TRY(call)                                                                             \
    do {                                                                                      \
        const dpu_error_t error_ = (call);                                                    \
        if (error_ != DPU_OK) return failed("%s: %s", #call, dpu_error_to_string(error_));    \
    } while (0)

const char *triton_dpu_allocate(uint32_t count, struct dpus **result) {
    struct dpus *dpus = calloc(1, sizeof *dpus);
    if (dpus == NULL) return failed("out of memory");
    const dpu_error_t error = dpu_alloc(count, NULL, &dpus->set);
    if (error != DPU_OK) {
        free(dpus);
        return failed("dpu_alloc(%u): %s", count, dpu_error_to_string(error));
    }
    *result = dpus;
    return NULL;
}

const char *triton_dpu_free(struct dpus *dpus) {
    const struct dpu_set_t set = dpus->set;
    free(dpus);
    TRY(dpu_free(set));
    return NULL;
}

const char *triton_dpu_load(struct dpus *dpus, const char *path) {
    TRY(dpu_load(dpus->set, path, &dpus->program));
    return NULL;
}

/* The same of a program in memory. */
const char *triton_dpu_load_bytes(struct dpus *dpus, void *program, size_t bytes) {
    TRY(dpu_load_from_memory(dpus->set, program, bytes, &dpus->program));
    return NULL;
}

/* The address and size of a symbol of the loaded program. */
const char *triton_dpu_symbol(struct dpus *dpus, const char *name, uint32_t *address, uint32_t *size) {
    struct dpu_symbol_t symbol;
    const dpu_error_t error = dpu_get_symbol(dpus->program, name, &symbol);
    if (error != DPU_OK) return failed("dpu_get_symbol(%s): %s", name, dpu_error_to_string(error));
    *address = symbol.address;
    *size = symbol.size;
    return NULL;
}

/* Copy to or from all DPUs at once: `bytes` at `offset` behind a symbol, for DPU i at buffers[i], NULL for none. */
const char *triton_dpu_transfer(struct dpus *dpus, int to_dpus, const char *symbol, uint32_t offset, size_t bytes,
                                void *const *buffers) {
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH (dpus->set, dpu, i) {
        if (buffers[i] != NULL) TRY(dpu_prepare_xfer(dpu, buffers[i]));
    }
    const dpu_error_t error = dpu_push_xfer(dpus->set, to_dpus ? DPU_XFER_TO_DPU : DPU_XFER_FROM_DPU, symbol, offset,
                                            bytes, DPU_XFER_DEFAULT);
    if (error == DPU_OK) return NULL;
    return failed("dpu_push_xfer(%s, %s + %u, %zu bytes): %s", to_dpus ? "to the DPUs" : "from the DPUs", symbol, offset,
                  bytes, dpu_error_to_string(error));
}

static void append(uint32_t dpu, const char *text) {
    const size_t used = strlen(message);
    snprintf(message + used, sizeof message - used, "\nDPU %u: %s", dpu, text);
}

/* Whether the log, below its first line, which names the DPU, has this line only. The emulator's has the fault's. */
static bool says_only(const char *log, const char *line) {
    const char *rest = strchr(log, '\n');
    const size_t length = strlen(line);
    return rest != NULL && strncmp(rest + 1, line, length) == 0 && strcmp(rest + 1 + length, "\n") == 0;
}

/* Which DPUs are in fault, and what they have printed. */
static void append_reasons(struct dpus *dpus) {
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH (dpus->set, dpu, i) {
        bool done = false, fault = false;
        if (dpu_status(dpu, &done, &fault) != DPU_OK || !fault) continue;
        struct fault found;
        const bool explained = dpu_emulator_fault_of != NULL && dpu_emulator_fault_of(dpu, &found) == 0;
        append(i, explained ? found.message : "in fault");
        char *text = NULL;
        size_t length = 0;
        FILE *stream = open_memstream(&text, &length);
        if (stream == NULL) return;
        const dpu_error_t error = dpu_log_read(dpu, stream);
        fclose(stream);
        if (error == DPU_OK && length > 0 && !(explained && says_only(text, found.message))) append(i, text);
        free(text);
    }
}

const char *triton_dpu_launch(struct dpus *dpus) {
    const dpu_error_t error = dpu_launch(dpus->set, DPU_SYNCHRONOUS);
    if (error == DPU_OK) return NULL;
    failed("dpu_launch: %s", dpu_error_to_string(error));
    append_reasons(dpus);
    return message;
}

int triton_dpu_is_emulator(void) {
    return dpu_emulator_stats != NULL;
}

/* Of the last launch, for each DPU; *known is 0 where the library has no model to ask. */
const char *triton_dpu_stats(struct dpus *dpus, struct stats *result, int *known) {
    *known = triton_dpu_is_emulator();
    if (!*known) return NULL;
    struct dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH (dpus->set, dpu, i) {
        if (dpu_emulator_stats(dpu, &result[i]) != 0) return failed("DPU %u has run nothing", i);
    }
    return NULL;
}

/* Calls `take` for each source line of each DPU with its instructions and DMA cycles of the last launch. */
const char *triton_dpu_lines(struct dpus *dpus, void (*take)(const char *place, uint64_t instructions, uint64_t cycles)) {
    if (dpu_emulator_next_line == NULL) return NULL;
    struct dpu_set_t dpu;
    DPU_FOREACH (dpus->set, dpu) {
        struct line found;
        for (uint32_t position = 0; dpu_emulator_next_line(dpu, &position, &found) == 0;)
            take(found.place, found.instructions, found.dma_cycles);
    }
    return NULL;
}
