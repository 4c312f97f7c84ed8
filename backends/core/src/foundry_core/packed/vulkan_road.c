/* The road of packed kernels to a Vulkan 1.3 device. It is vulkan.c, by which the plugin launches, without Python.
 *
 * What a form of a kernel assumes of its device, beyond what its SPIR-V declares (vulkan_needs.h), is in `needs`:
 *     subgroup=N  the invocations of a subgroup
 *     local=N     its bytes of workgroup memory
 *     pushed=N    if its arguments are more bytes than this, it takes their address
 *     in_parts    it also takes its grid and the number of its first program, so that a large grid is launched in parts
 *     vendor=N    it relies on what only devices of this vendor do
 * `buffers` is how many addresses of bytes that can always be read it takes, for loads under masks. The files behind the
 * module are probes: kernels that show whether the device does what the form relies on and no standard promises, such as
 * which invocation holds which element of a matrix. A form is refused if one of them finds anything else.
 *
 * Environment, as for the plugin: FOUNDRY_VULKAN_DEVICE, FOUNDRY_VULKAN_TIMEOUT and FOUNDRY_VULKAN_VALIDATION.
 */
#define _GNU_SOURCE
#define EXPORT static __attribute__((unused))
/* The loader's functions, which find the driver by the handle: a program may open devices of several drivers. */
#define FIND_DEVICE(name) if (!vk##name) vk##name = (PFN_vk##name)get_function(instance, "vk" #name);
/* foundry_core/vulkan/vulkan.c, under a name that no build takes for a source of its own. */
#include "vulkan_calls.h"

#include <stddef.h>

#include "road.h"
#include "vulkan_needs.h"

/* Bytes that are copied at once. */
#define PIECE (16u << 20)
#define DEFAULT_TIMEOUT 60.0

struct road_memory {
    Buffer *buffer;
    uint64_t bytes;
};

/* A file of probes that was tried, by its hash. */
struct tried {
    struct tried *next;
    unsigned char sha256[32];
    int holds;
};

struct road_device {
    int index;
    Properties known;
    Device *device;
    Buffer *spare, *staging;
    struct tried *tried;
    char text[1024];
};

struct road_kernel {
    Pipeline *pipeline;
    int in_parts;
};

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t speaking = PTHREAD_MUTEX_INITIALIZER;
static char said[2048];

static void hear(const char *text) {
    pthread_mutex_lock(&speaking);
    if (!said[0]) snprintf(said, sizeof said, "%s", text);
    pthread_mutex_unlock(&speaking);
}

/* Return a status, or an error if the validation layer has said something. */
static foundry_status heard(foundry_status status) {
    char text[sizeof said];
    pthread_mutex_lock(&speaking);
    memcpy(text, said, sizeof said);
    said[0] = 0;
    pthread_mutex_unlock(&speaking);
    if (!text[0]) return status;
    return packed_failed(FOUNDRY_DEVICE, text, "", "Vulkan is used wrongly: a defect of the packed library");
}

/* Return the error of a call of vulkan.c that failed: of the call, or of a device that takes nothing more. */
static foundry_status call_failed(const struct road_device *d, foundry_status status, const char *next, const char *what) {
    const char *why = foundry_vulkan_error();
    const int state = d->device ? foundry_vulkan_state(d->device) : WELL;
    if (heard(FOUNDRY_OK)) return FOUNDRY_DEVICE;
    if (state == LOST)
        return packed_failed(FOUNDRY_DEVICE, why, "close the folder and open it again: its arrays are lost", "%s was lost",
                             d->known.name);
    if (state == GIVEN_UP)
        return packed_failed(FOUNDRY_DEVICE, why,
                             "if the kernel is slow, set FOUNDRY_VULKAN_TIMEOUT to more seconds; if it never ends, end the process",
                             "%s does not finish its launches", d->known.name);
    if (state == FORKED)
        return packed_failed(FOUNDRY_DEVICE, why, "open the folder in the process that uses it",
                             "%s cannot be used in a child of fork()", d->known.name);
    return packed_failed(status, why, next, "%s: %s", d->known.name, what);
}

/* Devices. */

/* Say what a device must have for every kernel and does not; 0 if there is nothing. */
static const char *lacks(const Properties *p) {
    return p->api < VK_API_VERSION_1_3          ? "it has no Vulkan 1.3"
           : !p->bufferDeviceAddress            ? "it lacks bufferDeviceAddress"
           : !p->vulkanMemoryModel              ? "it lacks vulkanMemoryModel"
           : !p->shaderInt64                    ? "it lacks shaderInt64"
           : !p->shaderSubgroupExtendedTypes    ? "it lacks shaderSubgroupExtendedTypes"
           : !p->subgroupSizeControl            ? "it lacks subgroupSizeControl"
                                                : NULL;
}

/* Return whether a device has what `needs` says; else foundry_vulkan_error() says what it lacks. */
static int has(const Properties *p, const char *needs) {
    const uint64_t subgroup = packed_need(needs, "subgroup"), local = packed_need(needs, "local"),
                   vendor = packed_need(needs, "vendor");
    if (!subgroup || subgroup < p->least_subgroup || subgroup > p->most_subgroup)
        return failed("the kernel is for subgroups of %llu invocations, and the device's have %u to %u",
                      (unsigned long long)subgroup, p->least_subgroup, p->most_subgroup), 0;
    if (local > p->workgroup_bytes)
        return failed("the kernel needs %llu bytes of workgroup memory, and the device has %u", (unsigned long long)local,
                      p->workgroup_bytes), 0;
    if (vendor && vendor != p->vendor)
        return failed("the kernel relies on devices of the vendor 0x%llx, and the device is of 0x%x", (unsigned long long)vendor,
                      p->vendor), 0;
    return 1;
}

/* Return whether a device has what one form at least of each kernel needs. */
static int suits(const foundry_module *module, const Properties *p) {
    const char *lacking = lacks(p);
    if (lacking) return failed("%s", lacking), 0;
    for (uint32_t k = 0; k < module->kernel_count; k++) {
        const struct packed_kernel *kernel = &module->kernels[k];
        uint32_t v = 0;
        while (v < kernel->variant_count && !has(p, kernel->variants[v].needs)) v++;
        if (v && v == kernel->variant_count) return 0;
    }
    return 1;
}

/* Return the number of the device to open: a GPU before others. If none fits, -1, and `reasons` has a line for each. */
static int choose(const foundry_module *module, const char *wanted, char *reasons, size_t size) {
    int found = -1, found_cpu = 1;
    size_t at = 0;
    for (int i = 0; i < foundry_vulkan_count(); i++) {
        Properties p;
        if (!foundry_vulkan_properties(i, &p)) continue;
        const char *why = NULL;
        if (!packed_wants(wanted, (unsigned)i, p.name)) why = "not the device that was asked for";
        if (!why && !suits(module, &p)) why = foundry_vulkan_error();
        const int cpu = p.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
        if (!why && (found < 0 || cpu < found_cpu)) found = i, found_cpu = cpu;
        if (why && at < size) at += (size_t)snprintf(reasons + at, size - at, "%s%d, %s: %s", at ? "; " : "", i, p.name, why);
    }
    return found;
}

static void road_close(struct road_device *d) {
    if (d->device && foundry_vulkan_state(d->device) != FORKED) {
        Device *device = d->device;
        while (foundry_vulkan_wait(device, 0, SECOND) < 0) {}
        foundry_vulkan_close(device);
        foundry_vulkan_free(device, d->spare);
        foundry_vulkan_free(device, d->staging);
        /* A kernel that never ended still uses the rest. */
        if (foundry_vulkan_state(device) != GIVEN_UP) {
            for (int i = 0; i < SLOTS; i++) foundry_vulkan_free(device, device->batches[i].arguments);
            destroy(device);
        }
    }
    while (d->tried) {
        struct tried *each = d->tried;
        d->tried = each->next;
        free(each);
    }
    free(d);
}

/* Wait for a batch. Returns 0 after an error. */
static int waited(struct road_device *d, uint64_t number) {
    int done = 0;
    if (number)
        while ((done = foundry_vulkan_wait(d->device, number, SECOND)) < 0) {}
    return done;
}

static foundry_status road_open(const foundry_module *module, const char *folder, const char *wanted, struct road_device **made) {
    (void)folder;
    char reasons[2048] = "the loader found no driver (see /usr/share/vulkan/icd.d)";
    const char *named = getenv("FOUNDRY_VULKAN_DEVICE"), *seconds = getenv("FOUNDRY_VULKAN_TIMEOUT"),
               *validates = getenv("FOUNDRY_VULKAN_VALIDATION");
    if (!wanted[0] && named) wanted = named;
    struct road_device *d = calloc(1, sizeof *d);
    if (!d) return packed_failed(FOUNDRY_MEMORY, "malloc failed", "", "a device cannot be opened");
    /* Two folders may be opened at the same time. */
    pthread_mutex_lock(&opening);
    const int started = foundry_vulkan_start(validates && !strcmp(validates, "1") ? hear : NULL);
    d->index = started ? choose(module, wanted, reasons, sizeof reasons) : -1;
    if (d->index >= 0 && foundry_vulkan_properties(d->index, &d->known)) {
        const double asked = seconds ? strtod(seconds, NULL) : 0, timeout = asked > 0 && asked < 1e9 ? asked : DEFAULT_TIMEOUT;
        d->device = foundry_vulkan_open(d->index, (uint64_t)(timeout * 1e9));
    }
    pthread_mutex_unlock(&opening);
    foundry_status status = FOUNDRY_OK;
    if (!started)
        status = packed_failed(FOUNDRY_DEVICE, foundry_vulkan_error(),
                               "install a Vulkan loader and a driver, such as Debian's libvulkan1 and mesa-vulkan-drivers",
                               "Vulkan cannot be used");
    else if (d->index < 0)
        status = packed_failed(FOUNDRY_DEVICE, reasons,
                               "name another device, install its driver, or pack the kernels for a device that is here",
                               wanted[0] ? "no Vulkan device fits \"%s\"" : "no Vulkan device fits%s", wanted);
    else if (!d->device)
        status = call_failed(d, FOUNDRY_DEVICE, "", "it cannot be opened");
    if (status) return road_close(d), heard(status);
    d->device->describes = 0;
    snprintf(d->text, sizeof d->text, "%s (%s, Vulkan %u.%u.%u)", d->known.name, d->known.driver, VK_API_VERSION_MAJOR(d->known.api),
             VK_API_VERSION_MINOR(d->known.api), VK_API_VERSION_PATCH(d->known.api));
    d->spare = foundry_vulkan_allocate(d->device, 16, 0);
    if (!d->spare || !waited(d, foundry_vulkan_fill(d->device, d->spare, 0, 16, 0))) {
        status = call_failed(d, FOUNDRY_MEMORY, "", "16 bytes cannot be set to zero");
        return road_close(d), status;
    }
    if ((status = heard(FOUNDRY_OK))) return road_close(d), status;
    *made = d;
    return FOUNDRY_OK;
}

static const char *road_describe(const struct road_device *d) { return d->text; }

/* Kernels. */

/* Launch a pipeline and wait for it; `launch` has its arguments behind it. Returns 0 after an error. */
static int run(struct road_device *d, Launch *launch) { return waited(d, foundry_vulkan_launch(d->device, launch)); }

/* Return whether the device does what a probe expects: -1 if that cannot be said. A probe is a kernel that one program
 * executes, on one array: words for its argument bytes and the bytes of module and array; then the module, the array
 * before, and the array after. */
static int probe_holds(struct road_device *d, const struct road_file *file, uint32_t subgroup) {
    uint32_t head[3];
    if (file->bytes < sizeof head) return failed("a probe is damaged"), -1;
    memcpy(head, file->data, sizeof head);
    const char *module = (const char *)file->data + sizeof head, *before = module + head[1], *after = before + head[2];
    if (head[0] < 12 || head[0] > 1024 || head[1] % 4 || (uint64_t)sizeof head + head[1] + 2ull * head[2] != file->bytes || !head[2])
        return failed("a probe is damaged"), -1;
    uint32_t threads;
    if (!device_fits(d->index, &d->known, (const uint32_t *)module, head[1] / 4, &threads)) return 0;
    int holds = -1;
    Buffer *array = foundry_vulkan_allocate(d->device, head[2], 1);
    Pipeline *pipeline =
        foundry_vulkan_pipeline(d->device, (const uint32_t *)module, head[1], "probe", head[0], 128, subgroup, NULL, 0);
    Launch *launch = calloc(1, sizeof *launch + head[0]);
    if (array && pipeline && launch) {
        *launch = (Launch){pipeline, 1, 1, 1, 0};
        memcpy(launch + 1, &array->address, sizeof array->address);
        memcpy(array->mapped, before, head[2]);
        if (run(d, launch)) holds = !memcmp(array->mapped, after, head[2]);
    } else if (!pipeline) {
        holds = 0;
    }
    free(launch);
    drop(d->device, pipeline);
    foundry_vulkan_free(d->device, array);
    if (!holds) failed("it does not do what the kernel relies on");
    return holds;
}

/* The same, tried once for each device. */
static int probe_held(struct road_device *d, const struct packed_file *name, const struct road_file *file, uint32_t subgroup) {
    for (const struct tried *each = d->tried; each; each = each->next)
        if (!memcmp(each->sha256, name->sha256, sizeof each->sha256)) {
            if (!each->holds) failed("it does not do what the kernel relies on");
            return each->holds;
        }
    const int holds = probe_holds(d, file, subgroup);
    struct tried *kept = holds < 0 ? NULL : calloc(1, sizeof *kept);
    if (kept) {
        memcpy(kept->sha256, name->sha256, sizeof kept->sha256);
        kept->holds = holds, kept->next = d->tried;
        d->tried = kept;
    }
    return holds;
}

static foundry_status refused(const struct road_device *d, const struct packed_variant *v, const char *why) {
    char kept[1024];
    snprintf(kept, sizeof kept, "%.1000s", why);
    return heard(packed_failed(FOUNDRY_DEVICE, kept, "choose another device, or pack the kernel for this one",
                               "kernel %s cannot run on %s", v->symbol, d->known.name));
}

static foundry_status road_load(struct road_device *d, const struct packed_variant *v, const struct road_file *files,
                                struct road_kernel **made) {
    const uint32_t subgroup = (uint32_t)packed_need(v->needs, "subgroup"), *words = files[0].data;
    const uint64_t pushed = packed_need(v->needs, "pushed");
    const int in_parts = packed_need(v->needs, "in_parts") != 0;
    /* Addresses, a zero that the device's compiler cannot know, and the grid with the number of the first program. */
    const uint32_t added = 8 * v->buffers + 4 + 16 * (uint32_t)in_parts;
    uint32_t threads = 0;
    if (!has(&d->known, v->needs)) return refused(d, v, foundry_vulkan_error());
    if (files[0].bytes % 4 || v->argument_bytes % 4 || v->argument_bytes < added || v->argument_bytes > MOST_ARGUMENTS || !pushed)
        return packed_failed(FOUNDRY_FOLDER, "its sizes contradict each other", "pack the kernels again", "kernel %s is damaged", v->symbol);
    if (pushed > d->known.push_bytes && v->argument_bytes > d->known.push_bytes && v->argument_bytes <= pushed) {
        char why[128];
        snprintf(why, sizeof why, "the kernel has %u bytes of push constants, and the device takes %u", v->argument_bytes,
                 d->known.push_bytes);
        return refused(d, v, why);
    }
    if (!device_fits(d->index, &d->known, words, files[0].bytes / 4, &threads)) return refused(d, v, foundry_vulkan_error());
    if (threads != v->threads || threads % subgroup)
        return packed_failed(FOUNDRY_FOLDER, "its module has workgroups of another size", "pack the kernels again",
                             "kernel %s is damaged", v->symbol);
    if (threads / subgroup > d->known.most_subgroups) return refused(d, v, "its workgroups have fewer subgroups");
    for (uint32_t i = 1; i < v->file_count; i++) {
        const int holds = probe_held(d, &v->files[i], &files[i], subgroup);
        if (holds < 0) return call_failed(d, FOUNDRY_DEVICE, "", "what a kernel relies on cannot be tried");
        if (!holds) {
            char why[1024];
            snprintf(why, sizeof why, "%.500s (%.400s)", foundry_vulkan_error(), v->files[i].path);
            return refused(d, v, why);
        }
    }
    struct road_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) return packed_failed(FOUNDRY_MEMORY, "malloc failed", "", "kernel %s cannot be loaded", v->symbol);
    kernel->in_parts = in_parts;
    kernel->pipeline = foundry_vulkan_pipeline(d->device, words, files[0].bytes, v->symbol, v->argument_bytes, (uint32_t)pushed, subgroup,
                                               NULL, 0);
    if (!kernel->pipeline) {
        free(kernel);
        return call_failed(d, FOUNDRY_DEVICE, "pack the kernel with smaller blocks, or with a larger num_warps",
                           "its driver did not compile a kernel");
    }
    const foundry_status status = heard(FOUNDRY_OK);
    if (status) return drop(d->device, kernel->pipeline), free(kernel), status;
    *made = kernel;
    return FOUNDRY_OK;
}

static void road_unload(struct road_device *d, struct road_kernel *kernel) {
    if (foundry_vulkan_state(d->device) == WELL || foundry_vulkan_state(d->device) == LOST) drop(d->device, kernel->pipeline);
    free(kernel);
}

/* Memory. */

static foundry_status road_allocate(struct road_device *d, uint64_t bytes, void *host, struct road_memory **made) {
    struct road_memory *memory = calloc(1, sizeof *memory);
    if (!memory) return packed_failed(FOUNDRY_MEMORY, "malloc failed", "", "an array cannot be made");
    /* Whole words, and none is shared with another array. */
    const uint64_t rounded = bytes + (-bytes & 15);
    (void)host;
    memory->bytes = bytes;
    if (rounded < bytes || rounded > d->known.most_buffer)
        failed("the device allows %llu bytes in a buffer", (unsigned long long)d->known.most_buffer);
    else
        memory->buffer = foundry_vulkan_allocate(d->device, rounded, 0);
    if (memory->buffer) return *made = memory, heard(FOUNDRY_OK);
    free(memory);
    char what[96];
    snprintf(what, sizeof what, "%llu bytes cannot be allocated", (unsigned long long)bytes);
    return call_failed(d, FOUNDRY_MEMORY, "release arrays, or use smaller ones", what);
}

static void road_release(struct road_device *d, struct road_memory *memory) {
    /* A kernel that never ended may still use it. */
    if (foundry_vulkan_state(d->device) != GIVEN_UP) foundry_vulkan_free(d->device, memory->buffer);
    free(memory);
}

/* Copy between memory of the device and of the process, in pieces. */
static foundry_status copy(struct road_device *d, struct road_memory *memory, uint64_t first, uint64_t bytes, const void *from, void *to) {
    const char *what = from ? "an array cannot be written" : "an array cannot be read";
    if (first > memory->bytes || bytes > memory->bytes - first)
        return packed_failed(FOUNDRY_ARGUMENT, "it is shorter", "", "%s", what);
    if (!d->staging && !(d->staging = foundry_vulkan_allocate(d->device, PIECE, 1))) return call_failed(d, FOUNDRY_MEMORY, "", what);
    for (uint64_t done = 0; done < bytes; done += PIECE) {
        const uint64_t piece = bytes - done < PIECE ? bytes - done : PIECE;
        if (from) memcpy(d->staging->mapped, (const char *)from + done, piece);
        const uint64_t number = from ? foundry_vulkan_copy(d->device, memory->buffer, first + done, d->staging, 0, piece)
                                     : foundry_vulkan_copy(d->device, d->staging, 0, memory->buffer, first + done, piece);
        if (!waited(d, number)) return call_failed(d, FOUNDRY_DEVICE, "", what);
        if (to) memcpy((char *)to + done, d->staging->mapped, piece);
    }
    return heard(FOUNDRY_OK);
}

static foundry_status road_write(struct road_device *d, struct road_memory *memory, uint64_t first, uint64_t bytes, const void *from) {
    return copy(d, memory, first, bytes, from, NULL);
}

static foundry_status road_read(struct road_device *d, struct road_memory *memory, uint64_t first, uint64_t bytes, void *to) {
    return copy(d, memory, first, bytes, NULL, to);
}

static int road_copies(const struct road_device *d) { return (void)d, 1; }

static uint64_t road_address(const struct road_device *d, const struct road_memory *memory) {
    (void)d;
    return memory->buffer->address;
}

/* Launches. */

static foundry_status road_launch(struct road_device *d, struct road_kernel *kernel, const struct road_launch *launch) {
    const struct packed_variant *v = launch->variant;
    const uint32_t *grid = launch->grid;
    const uint64_t most_x = kernel->in_parts || d->known.grid[0] > INT32_MAX ? INT32_MAX : d->known.grid[0];
    if (grid[0] > most_x || grid[1] > d->known.grid[1] || grid[2] > d->known.grid[2] ||
        (uint64_t)grid[0] * grid[1] > INT32_MAX || (uint64_t)grid[0] * grid[1] * grid[2] > INT32_MAX) {
        char why[512];
        snprintf(why, sizeof why, "%s takes %llu x %llu x %llu, and %d in all", d->known.name, (unsigned long long)most_x,
                 (unsigned long long)d->known.grid[1], (unsigned long long)d->known.grid[2], INT32_MAX);
        return packed_failed(FOUNDRY_ARGUMENT, why, "use the first axis for the largest extent, or let each program do more",
                             "kernel %s is launched on a grid of %u x %u x %u programs", v->symbol, grid[0], grid[1], grid[2]);
    }
    foundry_status status = FOUNDRY_OK;
    Launch *packed = calloc(1, sizeof *packed + v->argument_bytes);
    if (!packed) return packed_failed(FOUNDRY_MEMORY, "malloc failed", "", "kernel %s cannot be launched", v->symbol);
    char *block = (char *)(packed + 1);
    *packed = (Launch){kernel->pipeline, grid[0], grid[1], grid[2], 0};
    uint32_t end = v->argument_bytes;
    if (kernel->in_parts) memcpy(block + (end -= 16), grid, sizeof launch->grid);
    end -= 4;
    for (uint32_t i = 0; i < v->buffers; i++) memcpy(block + (end -= 8), &d->spare->address, 8);
    for (uint32_t i = 0; i < launch->count && !status; i++) {
        const struct road_argument *a = &launch->arguments[i];
        const int is_pointer = a->parameter->how == PACKED_POINTER;
        const uint64_t bits = !is_pointer ? a->bits : a->memory ? a->memory->buffer->address + a->first : 0;
        const uint64_t bytes = is_pointer ? 8 : a->bytes;
        if (bytes > 8 || a->parameter->offset > end || bytes > end - a->parameter->offset)
            status = packed_failed(FOUNDRY_FOLDER, "an argument is behind its block", "pack the kernels again", "kernel %s is damaged",
                                   v->symbol);
        else
            memcpy(block + a->parameter->offset, &bits, bytes);
    }
    if (!status && !run(d, packed)) status = call_failed(d, FOUNDRY_DEVICE, "", "a launch failed");
    free(packed);
    return status ? status : heard(FOUNDRY_OK);
}

const struct packed_road vulkan_road = {
    "vulkan",    road_open,     road_close,   road_describe, road_load, road_unload,  road_copies,
    road_allocate, road_release, road_write, road_read,     road_address, road_launch,
};
