/* Buffers of commands of a launch: see vsi.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vsi.h"

/* A command of one program (VeriSilicon's interface). */
enum { VSI_COMMAND_BYTES = 256 };

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "shapes are passed as they are");

struct vsi_state {
    const struct vsi_extra *extra;
    void *library;
    int file;
    size_t matmuls, dmas;
    void *matmul, *dma; /* generate_matmul_command, generate_dma_command */
};

static foundry_status vsi_damaged(const char *why)
{
    return packed_failed(
        FOUNDRY_FOLDER, why, "pack the kernels again, on a machine of this kind", "a kernel's library of commands cannot be used");
}

/* Load the library from the bytes that were checked, not from the folder, where it may have changed since. */
static foundry_status vsi_open(struct vsi_state *state, const struct road_file *file)
{
    char name[64];
    state->file = memfd_create("commands", MFD_CLOEXEC);
    if (state->file < 0)
        return packed_failed(FOUNDRY_DEVICE, "", "", "the system makes no file in memory (memfd_create)");
    for (uint64_t at = 0; at < file->bytes;) {
        ssize_t written = write(state->file, (const char *)file->data + at, (size_t)(file->bytes - at));
        if (written <= 0)
            return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for a library");
        at += (uint64_t)written;
    }
    /* The file stays open: the loader takes a name that it knows for the library of that name. */
    snprintf(name, sizeof name, "/proc/self/fd/%d", state->file);
    state->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!state->library)
        return vsi_damaged(dlerror());
    size_t (*matmuls)(void), (*dmas)(void);
    *(void **)&matmuls = dlsym(state->library, "get_matmul_num");
    *(void **)&dmas = dlsym(state->library, "get_dma_num");
    state->matmul = dlsym(state->library, "generate_matmul_command");
    state->dma = dlsym(state->library, "generate_dma_command");
    if (!matmuls || !dmas)
        return vsi_damaged("it has no get_matmul_num or no get_dma_num");
    state->matmuls = matmuls();
    state->dmas = dmas();
    if ((state->matmuls && !state->matmul) || (state->dmas && !state->dma))
        return vsi_damaged("it has no generate_matmul_command or no generate_dma_command");
    if (state->matmuls > 1024 || state->dmas > 1024)
        return vsi_damaged("it makes more than 1024 buffers");
    return FOUNDRY_OK;
}

void vsi_unload(void *opaque)
{
    struct vsi_state *state = opaque;
    if (state->library)
        dlclose(state->library);
    if (state->file >= 0)
        close(state->file);
    free(state);
}

foundry_status vsi_load(const struct packed_variant *variant, const struct road_file *files, void **result)
{
    struct vsi_state *state = calloc(1, sizeof *state);
    if (!state)
        return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for a kernel");
    state->extra = variant->extra;
    state->file = -1;
    foundry_status status = vsi_open(state, &files[1]);
    if (status)
        vsi_unload(state);
    else
        *result = state;
    return status;
}

uint32_t vsi_count(void *opaque)
{
    const struct vsi_state *state = opaque;
    return (uint32_t)(state->matmuls + state->dmas);
}

foundry_status vsi_make(
    void *opaque, const struct road_launch *launch, void *const *host, uint32_t index, void **data, uint64_t *bytes)
{
    const struct vsi_state *state = opaque;
    const int is_matmul = index < state->matmuls;
    const char *kind = is_matmul ? "matmul" : "DMA";
    /* At most 2^31 - 1 programs. */
    *bytes = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2] * VSI_COMMAND_BYTES;
    signed char *commands = calloc(1, (size_t)*bytes);
    if (!commands)
        return packed_failed(FOUNDRY_MEMORY, "each program has one of 256 bytes", "launch in parts",
            "there is no memory for the commands of %s", launch->variant->symbol);
    const bool made = is_matmul ? state->extra->matmul(state->matmul, index, launch, host, commands)
                                 : state->extra->dma(state->dma, index - state->matmuls, launch, host, commands);
    if (!made) {
        free(commands);
        return packed_failed(FOUNDRY_ARGUMENT, "the library that zen-compiler wrote for the kernel refuses these arguments", "",
            "the commands of %s %u of %s cannot be made", kind, is_matmul ? index : index - (uint32_t)state->matmuls,
            launch->variant->symbol);
    }
    *data = commands;
    return FOUNDRY_OK;
}
