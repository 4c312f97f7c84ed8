/* The road of packed kernels to UPMEM's DPUs. An array is in the host's memory; a launch copies to the DPUs what their
 * programs reach, and back what they wrote: see shards.h.
 *
 * The device that is wanted is a number of DPUs. By default a launch uses one DPU for 11 programs, because 11 tasklets
 * fill a DPU's pipeline, and at most the 64 of a rank; one DPU if programs have atomic operations.
 *
 * Word of packed_variant.needs that this road knows:
 *   atomic   programs have an effect on others while they run
 */
#include "runtime.c"
#include "shards.c"

enum { DPU_FULL_PIPELINE = 11, DPU_RANK = 64, DPU_MOST = 2560 };

struct road_device {
    uint32_t asked;           /* DPUs; 0: as many as a launch has work for */
    uint32_t count;           /* DPUs that are allocated */
    struct dpus *dpus;        /* NULL before the first launch */
    struct road_kernel *loaded;
    char name[128];
};

struct road_kernel {
    const struct packed_variant *variant;
    void *program;
    uint64_t bytes;
};

static foundry_status dpu_open(
    const foundry_module *module, const char *folder, const char *wanted, struct road_device **result)
{
    (void)module, (void)folder;
    char *end;
    unsigned long asked = strtoul(wanted, &end, 10);
    if (*wanted && (*end || *wanted < '0' || *wanted > '9' || asked < 1 || asked > DPU_MOST))
        return packed_failed(FOUNDRY_ARGUMENT, "on DPUs, the device is how many of them a launch uses, from 1 to 2560",
            "pass \"\" or a number", "\"%.100s\" is no number of DPUs", wanted);
    struct road_device *device = calloc(1, sizeof *device);
    if (!device)
        return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for a device");
    device->asked = (uint32_t)asked;
    const char *kind = triton_dpu_is_emulator() ? "emulated DPUs" : "UPMEM DPUs";
    if (asked)
        snprintf(device->name, sizeof device->name, "%lu %s", asked, kind);
    else
        snprintf(device->name, sizeof device->name, "%s, one for %d programs", kind, DPU_FULL_PIPELINE);
    /* That there are DPUs at all is known now, and not at the first launch. */
    const char *error = triton_dpu_allocate(asked ? device->asked : 1, &device->dpus);
    if (error) {
        free(device);
        return packed_failed(FOUNDRY_DEVICE, error, "name fewer DPUs, or end the programs that use them",
            "%lu DPUs cannot be used", asked ? asked : 1);
    }
    device->count = asked ? device->asked : 1;
    *result = device;
    return FOUNDRY_OK;
}

/* Release the DPUs. What they may say about it helps nobody: the next allocation says whether there are any. */
static void dpu_release_set(struct road_device *device)
{
    if (device->dpus)
        triton_dpu_free(device->dpus);
    device->dpus = NULL;
    device->loaded = NULL;
    device->count = 0;
}

static void dpu_close(struct road_device *device)
{
    dpu_release_set(device);
    free(device);
}

static const char *dpu_describe(const struct road_device *device) { return device->name; }

static foundry_status dpu_load_kernel(struct road_device *device, const struct packed_variant *variant,
    const struct road_file *files, struct road_kernel **result)
{
    (void)device;
    if (!variant->reach)
        return packed_failed(FOUNDRY_FOLDER, "nothing is known of what its programs reach, and DPUs get parts of arrays",
            "pack the kernels again", "the kernel %s cannot run on DPUs", variant->symbol);
    struct road_kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel)
        kernel->program = malloc((size_t)files->bytes + 1);
    if (!kernel || !kernel->program) {
        free(kernel);
        return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for a program");
    }
    memcpy(kernel->program, files->data, (size_t)files->bytes);
    kernel->bytes = files->bytes;
    kernel->variant = variant;
    *result = kernel;
    return FOUNDRY_OK;
}

static void dpu_unload(struct road_device *device, struct road_kernel *kernel)
{
    if (device->loaded == kernel)
        device->loaded = NULL;
    free(kernel->program);
    free(kernel);
}

static foundry_status dpu_make(struct road_device *device, uint64_t bytes, void *host, struct road_memory **result)
{
    (void)device;
    struct road_memory *memory = calloc(1, sizeof *memory);
    if (memory && bytes <= INT64_MAX / 2) {
        memory->is_ours = !host;
        memory->bytes = (int64_t)bytes;
        memory->data = host ? host : malloc((size_t)bytes);
    }
    if (memory && memory->data) {
        *result = memory;
        return FOUNDRY_OK;
    }
    free(memory);
    return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for an array of %" PRIu64 " bytes", bytes);
}

static void dpu_drop(struct road_device *device, struct road_memory *memory)
{
    (void)device;
    if (memory->is_ours)
        free(memory->data);
    free(memory);
}

static foundry_status dpu_write(
    struct road_device *device, struct road_memory *memory, uint64_t first, uint64_t bytes, const void *from)
{
    (void)device;
    memmove(memory->data + first, from, (size_t)bytes);
    return FOUNDRY_OK;
}

static foundry_status dpu_read(
    struct road_device *device, struct road_memory *memory, uint64_t first, uint64_t bytes, void *to)
{
    (void)device;
    memmove(to, memory->data + first, (size_t)bytes);
    return FOUNDRY_OK;
}

/* A memory starts at a multiple of 16 in MRAM, wherever the host has it. */
static uint64_t dpu_address(const struct road_device *device, const struct road_memory *memory)
{
    (void)device, (void)memory;
    return 0;
}

/* Have `count` DPUs with the kernel's program. */
static foundry_status dpu_prepare(struct road_device *device, struct road_kernel *kernel, uint32_t count)
{
    if (device->count != count)
        dpu_release_set(device);
    if (!device->dpus) {
        const char *error = triton_dpu_allocate(count, &device->dpus);
        if (error)
            return packed_failed(FOUNDRY_DEVICE, error, "open the folder with fewer DPUs, or end the programs that use them",
                "%" PRIu32 " DPUs cannot be used", count);
        device->count = count;
    }
    if (device->loaded == kernel)
        return FOUNDRY_OK;
    device->loaded = NULL;
    const char *error = triton_dpu_load_bytes(device->dpus, kernel->program, (size_t)kernel->bytes);
    if (error)
        return packed_failed(FOUNDRY_DEVICE, error, "pack the kernels with the SDK that this machine has",
            "the DPUs did not take the program of %s", kernel->variant->symbol);
    device->loaded = kernel;
    return FOUNDRY_OK;
}

static foundry_status dpu_run(struct road_device *device, struct road_kernel *kernel, const struct road_launch *launch)
{
    const uint64_t programs = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    const int is_atomic = packed_need(launch->variant->needs, "atomic") != 0;
    uint64_t count = device->asked;
    if (!count) {
        count = is_atomic ? 1 : (programs + DPU_FULL_PIPELINE - 1) / DPU_FULL_PIPELINE;
        count = count > DPU_RANK ? DPU_RANK : count;
    }
    int *sizes = calloc(launch->count + 1, sizeof *sizes);
    struct shards *shards = NULL;
    if (sizes) {
        for (uint32_t i = 0; i < launch->count; i++)
            sizes[i] = (int)packed_bytes(launch->arguments[i].parameter->type);
        shards = shards_new(launch, sizes, (uint32_t)count, is_atomic);
    }
    foundry_status status = FOUNDRY_OK;
    if (!shards)
        status = packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for a launch");
    else if (shards_plan(shards, -1))
        status = packed_failed(FOUNDRY_ARGUMENT, shards->error, "check the numbers, the grid and the arrays",
            "%s cannot be launched with %" PRIu64 " of the DPUs", launch->variant->symbol, count);
    if (!status)
        status = dpu_prepare(device, kernel, (uint32_t)count);
    if (!status && shards_run(shards, device->dpus)) {
        status = packed_failed(FOUNDRY_DEVICE, shards->error, "", "%s failed with %" PRIu64 " of the DPUs", launch->variant->symbol, count);
        /* DPUs in fault run nothing else. */
        dpu_release_set(device);
    }
    if (shards)
        shards_free(shards);
    free(sizes);
    return status;
}

const struct packed_road dpu_road = {
    .name = "dpu",
    .open = dpu_open,
    .close = dpu_close,
    .describe = dpu_describe,
    .load = dpu_load_kernel,
    .unload = dpu_unload,
    .allocate = dpu_make,
    .release = dpu_drop,
    .write = dpu_write,
    .read = dpu_read,
    .address = dpu_address,
    .launch = dpu_run,
};
