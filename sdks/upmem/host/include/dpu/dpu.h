/* The host API of the UPMEM SDK: allocate DPUs, load programs, move data, launch.
 *
 * Programs written for the SDK's dpu.h compile with this one and the other way round. All functions return DPU_OK or an
 * error; each error also explains itself on stderr, with the numbers.
 */
#ifndef DPU_H
#define DPU_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DPU_ALLOCATE_ALL (UINT_MAX)

/* The symbol whose ADDRESS is the base of a program's MRAM heap; it reaches to the end of MRAM. */
#define DPU_MRAM_HEAP_POINTER_NAME "__sys_used_mram_end"

#define DPU_CHECK(statement, on_error)                                                                             \
    do {                                                                                                           \
        dpu_error_t foundry_dpu_error = (statement);                                                               \
        if (foundry_dpu_error != DPU_OK) {                                                                         \
            const char *foundry_dpu_text = dpu_error_to_string(foundry_dpu_error);                                 \
            fprintf(stderr, "%s:%d(%s): DPU Error (%s)\n", __FILE__, __LINE__, __func__, foundry_dpu_text);         \
            free((void *)foundry_dpu_text);                                                                        \
            on_error;                                                                                              \
        }                                                                                                          \
    } while (0)

/* Defines `struct dpu_incbin_t name`, with the bytes of a file (a string) as it is when the host program is compiled. */
#define DPU_INCBIN(name, file)                                                                                     \
    __asm__(".pushsection .rodata\n"                                                                               \
            "771: .incbin \"" file "\"\n"                                                                          \
            "772: .byte 0\n"                                                                                       \
            "773: .asciz \"" file "\"\n"                                                                           \
            ".popsection\n"                                                                                        \
            ".pushsection .data\n"                                                                                 \
            ".balign 8\n"                                                                                          \
            ".globl " FOUNDRY_DPU_TEXT(name) "\n"                                                                  \
            ".type " FOUNDRY_DPU_TEXT(name) ", @object\n"                                                          \
            ".size " FOUNDRY_DPU_TEXT(name) ", 24\n"                                                               \
            FOUNDRY_DPU_TEXT(name) ": .quad 771b, 772b - 771b, 773b\n"                                             \
            ".popsection\n");                                                                                      \
    extern struct dpu_incbin_t name;
#define FOUNDRY_DPU_TEXT(name) FOUNDRY_DPU_TEXT_OF(name)
#define FOUNDRY_DPU_TEXT_OF(name) #name

#define DPU_ASSERT(statement) DPU_CHECK(statement, exit(EXIT_FAILURE))

typedef enum _dpu_launch_policy_t { DPU_ASYNCHRONOUS, DPU_SYNCHRONOUS } dpu_launch_policy_t;

typedef enum _dpu_xfer_t { DPU_XFER_TO_DPU, DPU_XFER_FROM_DPU } dpu_xfer_t;

typedef enum _dpu_xfer_flags_t {
    DPU_XFER_DEFAULT = 0,
    DPU_XFER_NO_RESET = 1 << 0, /* keep the prepared buffers */
    DPU_XFER_ASYNC = 1 << 1     /* may happen as late as in dpu_sync, after what was asked for before */
} dpu_xfer_flags_t;

/* Allocates whole ranks of 64 DPUs, of which the set has `nr_dpus`. `profile` is NULL or "key=value,...". */
dpu_error_t dpu_alloc(uint32_t nr_dpus, const char *profile, struct dpu_set_t *dpu_set);
dpu_error_t dpu_alloc_ranks(uint32_t nr_ranks, const char *profile, struct dpu_set_t *dpu_set);
dpu_error_t dpu_free(struct dpu_set_t dpu_set);
dpu_error_t dpu_get_nr_ranks(struct dpu_set_t dpu_set, uint32_t *nr_ranks);
dpu_error_t dpu_get_nr_dpus(struct dpu_set_t dpu_set, uint32_t *nr_dpus);

/* Load a program into all DPUs of a set. `*program`, where asked for, is valid until dpu_free. */
dpu_error_t dpu_load(struct dpu_set_t dpu_set, const char *binary_path, struct dpu_program_t **program);
dpu_error_t dpu_load_from_memory(struct dpu_set_t dpu_set, uint8_t *buffer, size_t buffer_size,
                                 struct dpu_program_t **program);
dpu_error_t dpu_load_from_incbin(struct dpu_set_t dpu_set, struct dpu_incbin_t *incbin, struct dpu_program_t **program);
dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *symbol_name, struct dpu_symbol_t *symbol);

dpu_error_t dpu_launch(struct dpu_set_t dpu_set, dpu_launch_policy_t policy);
dpu_error_t dpu_sync(struct dpu_set_t dpu_set);
dpu_error_t dpu_status(struct dpu_set_t dpu_set, bool *done, bool *fault);

/* Transfers by the name of a symbol, or the symbol: offset and length in bytes. MRAM: both multiples of 8; WRAM: of 4. */
dpu_error_t dpu_copy_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset, const void *src,
                        size_t length);
dpu_error_t dpu_copy_from(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset, void *dst,
                          size_t length);
dpu_error_t dpu_copy_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol, uint32_t symbol_offset,
                               const void *src, size_t length);
dpu_error_t dpu_copy_from_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                 void *dst, size_t length);
dpu_error_t dpu_broadcast_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset,
                             const void *src, size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_broadcast_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                    const void *src, size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_prepare_xfer(struct dpu_set_t dpu_set, void *buffer);
dpu_error_t dpu_push_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name, uint32_t symbol_offset,
                          size_t length, dpu_xfer_flags_t flags);
dpu_error_t dpu_push_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer, struct dpu_symbol_t symbol,
                                 uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags);

/* Transfers of several blocks of host memory for each DPU, one after the other in its MRAM. The profile of dpu_alloc must
 * have sgXferEnable=true; sgXferMaxBlocksPerDpu=N is the most blocks of a DPU. */
typedef enum _dpu_sg_xfer_flags_t {
    DPU_SG_XFER_DEFAULT = 0,
    DPU_SG_XFER_ASYNC = 1 << 1,               /* as DPU_XFER_ASYNC */
    DPU_SG_XFER_DISABLE_LENGTH_CHECK = 1 << 2 /* a DPU's blocks may be shorter than `length`; zeros follow in MRAM */
} dpu_sg_xfer_flags_t;

struct sg_block_info {
    uint8_t *addr;
    uint32_t length; /* in bytes */
};

/* Gives a block of the DPU with this index in the set; false if there is none of this index. */
typedef bool (*get_block_func_t)(struct sg_block_info *out, uint32_t dpu_index, uint32_t block_index, void *args);

/* The arguments are copied: an asynchronous transfer calls the function later. */
typedef struct get_block_t {
    get_block_func_t f;
    void *args;
    size_t args_size;
} get_block_t;

dpu_error_t dpu_push_sg_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name, uint32_t symbol_offset,
                             size_t length, get_block_t *get_block_info, dpu_sg_xfer_flags_t flags);
dpu_error_t dpu_push_sg_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer, struct dpu_symbol_t symbol,
                                    uint32_t symbol_offset, size_t length, get_block_t *get_block_info,
                                    dpu_sg_xfer_flags_t flags);

typedef enum _dpu_callback_flags_t {
    DPU_CALLBACK_DEFAULT = 0,          /* once for each rank, all in parallel; dpu_callback returns when all have ended */
    DPU_CALLBACK_ASYNC = 1 << 0,       /* in the ranks' queues: after what was asked for before, and before what follows */
    DPU_CALLBACK_NONBLOCKING = 1 << 1, /* what follows does not wait for its end; with DPU_CALLBACK_ASYNC */
    DPU_CALLBACK_SINGLE_CALL = 1 << 2  /* once for the whole set, when all ranks have come so far */
} dpu_callback_flags_t;

/* Calls a function from a thread that is not the caller's: with each rank and its index in the set, or with the set, of
 * one DPU or for a single call, and UINT32_MAX. A blocking callback may use its ranks, but not asynchronously. The error
 * that it returns is returned by dpu_callback, or if it was asynchronous by the next function that waits. */
dpu_error_t dpu_callback(struct dpu_set_t dpu_set, dpu_error_t (*callback)(struct dpu_set_t, uint32_t, void *),
                         void *args, dpu_callback_flags_t flags);

/* What one DPU printed in its last launch. */
dpu_error_t dpu_log_read(struct dpu_set_t set, FILE *stream);
/* The same without a heading, by its older name. */
dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream);

/* Iteration: DPU_FOREACH(set, dpu) or DPU_FOREACH(set, dpu, i); DPU_RANK_FOREACH likewise over ranks. */
struct dpu_set_iterator_t {
    struct dpu_set_t set;
    uint32_t rank, dpu;
    uint32_t count;
    bool has_next;
    struct dpu_set_t next;
};
struct dpu_set_iterator_t dpu_set_dpus(const struct dpu_set_t *set);
void dpu_set_dpus_next(struct dpu_set_iterator_t *iterator);
struct dpu_set_iterator_t dpu_set_ranks(const struct dpu_set_t *set);
void dpu_set_ranks_next(struct dpu_set_iterator_t *iterator);

#define FOUNDRY_DPU_PICK(set, one, index, name, ...) name
#define FOUNDRY_DPU_EACH(kind, set, one)                                                                           \
    for (struct dpu_set_iterator_t foundry_dpu_it = dpu_set_##kind(&(set));                                        \
         one = foundry_dpu_it.next, foundry_dpu_it.has_next; dpu_set_##kind##_next(&foundry_dpu_it))
#define FOUNDRY_DPU_EACH_INDEXED(kind, set, one, index)                                                            \
    for (struct dpu_set_iterator_t foundry_dpu_it = dpu_set_##kind(&(set));                                        \
         index = foundry_dpu_it.count, one = foundry_dpu_it.next, foundry_dpu_it.has_next;                         \
         dpu_set_##kind##_next(&foundry_dpu_it))
#define DPU_FOREACH(...)                                                                                           \
    FOUNDRY_DPU_PICK(__VA_ARGS__, FOUNDRY_DPU_EACH_INDEXED, FOUNDRY_DPU_EACH, )(dpus, __VA_ARGS__)
#define DPU_RANK_FOREACH(...)                                                                                      \
    FOUNDRY_DPU_PICK(__VA_ARGS__, FOUNDRY_DPU_EACH_INDEXED, FOUNDRY_DPU_EACH, )(ranks, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif
