/* The road to OpenCL: SPIR-V on any device that takes it. The loader, libOpenCL.so.1, is opened when a folder is.
 *
 * If the device shares the host's address space (fine-grained system SVM), kernels reach arrays where they are.
 * Otherwise an array is a cl_mem.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

/* ---- What this file needs of OpenCL 3.0 (Khronos's registry), so that no headers of it need to be installed */

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_bits;
typedef struct _cl *cl_platform, *cl_device, *cl_context, *cl_queue, *cl_program, *cl_kernel, *cl_mem;
typedef void (*cl_notify)(const char *, const void *, size_t, void *);

enum {
    CL_SUCCESS = 0,
    CL_DEVICE_TYPE_ALL_LOW = -1,
    CL_PLATFORM_NAME = 0x0902,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_ADDRESS_BITS = 0x100D,
    CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_NAME = 0x102B,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    CL_DEVICE_SVM_CAPABILITIES = 0x1053,
    CL_DEVICE_IL_VERSION = 0x105B,
    CL_DEVICE_SVM_FINE_GRAIN_SYSTEM = 1 << 2,
    CL_MEM_READ_WRITE = 1 << 0,
    CL_MEM_USE_HOST_PTR = 1 << 3,
    CL_MEM_COPY_HOST_PTR = 1 << 5,
    CL_BUFFER_CREATE_TYPE_REGION = 0x1220,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_NUM_ARGS = 0x1191,
    CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
};

#define FUNCTIONS(X) \
    X(cl_int, GetPlatformIDs, (cl_uint, cl_platform *, cl_uint *)) \
    X(cl_int, GetPlatformInfo, (cl_platform, cl_uint, size_t, void *, size_t *)) \
    X(cl_int, GetDeviceIDs, (cl_platform, cl_bits, cl_uint, cl_device *, cl_uint *)) \
    X(cl_int, GetDeviceInfo, (cl_device, cl_uint, size_t, void *, size_t *)) \
    X(cl_context, CreateContext, (const intptr_t *, cl_uint, const cl_device *, cl_notify, void *, cl_int *)) \
    X(cl_queue, CreateCommandQueueWithProperties, (cl_context, cl_device, const cl_bits *, cl_int *)) \
    X(cl_program, CreateProgramWithIL, (cl_context, const void *, size_t, cl_int *)) \
    X(cl_int, BuildProgram, (cl_program, cl_uint, const cl_device *, const char *, void *, void *)) \
    X(cl_int, GetProgramBuildInfo, (cl_program, cl_device, cl_uint, size_t, void *, size_t *)) \
    X(cl_kernel, CreateKernel, (cl_program, const char *, cl_int *)) \
    X(cl_int, GetKernelInfo, (cl_kernel, cl_uint, size_t, void *, size_t *)) \
    X(cl_int, GetKernelWorkGroupInfo, (cl_kernel, cl_device, cl_uint, size_t, void *, size_t *)) \
    X(cl_int, SetKernelArg, (cl_kernel, cl_uint, size_t, const void *)) \
    X(cl_int, SetKernelArgSVMPointer, (cl_kernel, cl_uint, const void *)) \
    X(cl_mem, CreateBuffer, (cl_context, cl_bits, size_t, void *, cl_int *)) \
    X(cl_mem, CreateSubBuffer, (cl_mem, cl_bits, cl_uint, const void *, cl_int *)) \
    X(cl_int, EnqueueReadBuffer, (cl_queue, cl_mem, cl_uint, size_t, size_t, void *, cl_uint, const void *, void *)) \
    X(cl_int, EnqueueWriteBuffer, (cl_queue, cl_mem, cl_uint, size_t, size_t, const void *, cl_uint, const void *, void *)) \
    X(cl_int, EnqueueNDRangeKernel, \
        (cl_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint, const void *, void *)) \
    X(cl_int, Finish, (cl_queue)) \
    X(cl_int, ReleaseMemObject, (cl_mem)) \
    X(cl_int, ReleaseKernel, (cl_kernel)) \
    X(cl_int, ReleaseProgram, (cl_program)) \
    X(cl_int, ReleaseCommandQueue, (cl_queue)) \
    X(cl_int, ReleaseContext, (cl_context))

#define DECLARE(result, name, arguments) static result(*cl##name) arguments;
FUNCTIONS(DECLARE)

static const char *loader_missing = "";

static void open_loader(void)
{
    static char text[512];
    void *loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!loader) {
        snprintf(text, sizeof text, "%s", dlerror());
        loader_missing = text;
        return;
    }
#define FIND(result, name, arguments) \
    *(void **)&cl##name = dlsym(loader, "cl" #name); \
    if (!cl##name) \
        loader_missing = "libOpenCL.so.1 has no cl" #name " (older than OpenCL 2.1)";
    FUNCTIONS(FIND)
}

static const struct {
    cl_int code;
    const char *name;
} codes[] = {
    {-1, "no device was found"}, {-2, "the device is not available"}, {-3, "there is no compiler"},
    {-4, "there is no memory for a buffer"}, {-5, "the device is out of resources"}, {-6, "the host is out of memory"},
    {-11, "the kernel was not built"}, {-30, "an invalid value"}, {-34, "an invalid context"}, {-36, "an invalid queue"},
    {-42, "an invalid binary"}, {-46, "no kernel of this name"}, {-48, "an invalid kernel"}, {-51, "an argument of another size"},
    {-52, "an argument was not set"}, {-54, "a work-group of an impossible size"}, {-61, "a buffer of an impossible size"},
};

static foundry_status failed(const char *what, cl_int code)
{
    char why[128];
    snprintf(why, sizeof why, "OpenCL's error %d", (int)code);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            snprintf(why, sizeof why, "%s (OpenCL's error %d)", codes[i].name, (int)code);
    return packed_failed(FOUNDRY_DEVICE, why, "", "%s failed", what);
}

/* ---- Devices */

struct road_device {
    cl_device id;
    cl_context context;
    cl_queue queue;
    cl_mem spare;      /* 16 bytes of zeros */
    int shares;        /* the host's address space */
    int is_pocl;
    uint64_t base;     /* the alignment of buffers, in bytes */
    char name[384];
};

struct road_memory {
    cl_mem buffer;   /* NULL if kernels reach the host's memory */
    void *host;
    uint64_t bytes;
    int is_ours;     /* `host` was allocated here */
};

static void text_of(cl_device id, cl_uint what, char *text, size_t size)
{
    size_t got = 0;
    memset(text, 0, size);
    if (clGetDeviceInfo(id, what, size - 1, text, &got) != CL_SUCCESS)
        text[0] = 0;
    while (*text && isspace((unsigned char)text[strlen(text) - 1]))
        text[strlen(text) - 1] = 0;
}

static uint64_t number_of(cl_device id, cl_uint what)
{
    uint64_t number = 0;
    return clGetDeviceInfo(id, what, sizeof number, &number, NULL) == CL_SUCCESS ? number : 0;
}

/* A long text, such as the extensions. Freed by the caller; NULL if there is none. */
static char *long_text(cl_device id, cl_uint what)
{
    size_t size = 0;
    if (clGetDeviceInfo(id, what, 0, NULL, &size) != CL_SUCCESS || !size)
        return NULL;
    char *text = calloc(1, size + 1);
    if (text && clGetDeviceInfo(id, what, size, text, NULL) != CL_SUCCESS)
        text[0] = 0;
    return text;
}

static int has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = text; at && (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return 1;
    return 0;
}

/* Why a device cannot be used; "" if it can. */
static const char *refusal(cl_device id)
{
    char *il = long_text(id, CL_DEVICE_IL_VERSION);
    const int takes = il && strstr(il, "SPIR-V");
    free(il);
    cl_uint available = 0;
    clGetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    return !available ? "not available" : !takes ? "takes no SPIR-V" : number_of(id, CL_DEVICE_ADDRESS_BITS) != 64 ? "has no addresses of 64 bits" : "";
}

static foundry_status find_device(const char *wanted, struct road_device *device)
{
    cl_platform platforms[32];
    cl_uint platform_count = 0;
    unsigned index = 0;
    char why[1400] = "";
    size_t used = 0;
    const char *next = "install an OpenCL driver that takes SPIR-V, such as PoCL 6 (Debian: pocl-opencl-icd), or name another device";
    if (clGetPlatformIDs(32, platforms, &platform_count) != CL_SUCCESS)
        platform_count = 0;
    for (cl_uint p = 0; p < platform_count && p < 32; p++) {
        cl_device ids[32];
        cl_uint count = 0;
        char platform[128] = "";
        clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof platform - 1, platform, NULL);
        if (clGetDeviceIDs(platforms[p], 0xFFFFFFFF, 32, ids, &count) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < count && d < 32; d++, index++) {
            char name[128];
            text_of(ids[d], CL_DEVICE_NAME, name, sizeof name);
            snprintf(device->name, sizeof device->name, "%s (%s)", name, platform);
            const char *reason = packed_wants(wanted, index, device->name) ? refusal(ids[d]) : "not asked for";
            if (!*reason) {
                char version[96];
                text_of(ids[d], CL_DRIVER_VERSION, version, sizeof version);
                snprintf(device->name, sizeof device->name, "%s (%s %s)", name, platform, version);
                device->id = ids[d];
                device->is_pocl = !strcmp(platform, "Portable Computing Language");
                return FOUNDRY_OK;
            }
            if (used < sizeof why)
                used += (size_t)snprintf(why + used, sizeof why - used, "%s%u: %s: %s", used ? "\n" : "", index, device->name, reason);
        }
    }
    return packed_failed(FOUNDRY_DEVICE, used ? why : "no OpenCL platform is installed (see /etc/OpenCL/vendors)", next,
        *wanted ? "no OpenCL device fits \"%.100s\"" : "no OpenCL device takes SPIR-V%.0s", wanted);
}

static void close_device(struct road_device *device)
{
    if (device->spare)
        clReleaseMemObject(device->spare);
    if (device->queue)
        clReleaseCommandQueue(device->queue);
    if (device->context)
        clReleaseContext(device->context);
    free(device);
}

static foundry_status open_device(const foundry_module *module, const char *folder, const char *wanted, struct road_device **result)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)module;
    (void)folder;
    pthread_once(&once, open_loader);
    if (*loader_missing)
        return packed_failed(FOUNDRY_DEVICE, loader_missing, "install OpenCL's loader (Debian: ocl-icd-libopencl1)", "OpenCL cannot be used");
    struct road_device *device = calloc(1, sizeof *device);
    if (!device)
        return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for a device");
    foundry_status status = find_device(wanted, device);
    if (status) {
        free(device);
        return status;
    }
    cl_int code = CL_SUCCESS;
    uint64_t zeros[2] = {0, 0};
    device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &code);
    if (code == CL_SUCCESS)
        device->queue = clCreateCommandQueueWithProperties(device->context, device->id, NULL, &code);
    if (code == CL_SUCCESS)
        device->spare = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof zeros, zeros, &code);
    if (code != CL_SUCCESS) {
        status = failed("to open the device", code);
        close_device(device);
        return status;
    }
    device->shares = (number_of(device->id, CL_DEVICE_SVM_CAPABILITIES) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) != 0;
    device->base = number_of(device->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    if (!device->base)
        device->base = 128;
    *result = device;
    return FOUNDRY_OK;
}

static const char *describe_device(const struct road_device *device) { return device->name; }

/* ---- Kernels */

struct road_kernel {
    const struct packed_variant *variant;
    const struct opencl_extra *extra;
    void *state;
    cl_program program;
    cl_kernel kernel;
    uint32_t buffers;
};

/* The widest vectors that PoCL's library takes, by the processor that it compiles for (System V ABI of x86-64, 3.2.3). */
static uint64_t call_bytes(cl_device id)
{
    static const struct {
        const char *end;
        uint64_t bytes;
    } known[] = {{"-gnu-skylake-avx512", 64}, {"-gnu-haswell", 32}, {"-gnu-bdver1", 32}, {"-gnu-ivybridge", 32}, {"-gnu-sandybridge", 32}};
    char version[256];
    text_of(id, CL_DEVICE_VERSION, version, sizeof version);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t length = strlen(known[i].end);
        if (strlen(version) >= length && !strcmp(version + strlen(version) - length, known[i].end))
            return known[i].bytes;
    }
    return 16;
}

static foundry_status lacks(const struct road_device *device, const struct packed_variant *variant, const char *why)
{
    return packed_failed(FOUNDRY_DEVICE, why, "name another device, or pack the kernel on a machine with such a device",
        "%s lacks what the kernel %s needs", device->name, variant->symbol);
}

static foundry_status check_needs(const struct road_device *device, const struct packed_variant *variant)
{
    const char *needs = variant->needs;
    char why[256];
    const uint64_t calls = packed_need(needs, "calls"), takes = device->is_pocl ? call_bytes(device->id) : 128;
    if (calls > takes) {
        snprintf(why, sizeof why, "it calls library functions with vectors of %" PRIu64 " bytes; this device takes up to %" PRIu64
            ", and would compute wrong results without a message", calls, takes);
        return lacks(device, variant, why);
    }
    if (packed_need(needs, "fp64") && !number_of(device->id, CL_DEVICE_DOUBLE_FP_CONFIG))
        return lacks(device, variant, "it computes with numbers of 64 bits (cl_khr_fp64)");
    const uint64_t local = packed_need(needs, "local"), has = number_of(device->id, CL_DEVICE_LOCAL_MEM_SIZE);
    if (local > has) {
        snprintf(why, sizeof why, "it needs %" PRIu64 " bytes of local memory, and there are %" PRIu64, local, has);
        return lacks(device, variant, why);
    }
    const uint64_t most = number_of(device->id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    if (variant->threads > most) {
        snprintf(why, sizeof why, "a program is a work-group of %u work-items, and one can have %" PRIu64, variant->threads, most);
        return lacks(device, variant, why);
    }
    static const struct {
        const char *need, *extensions, *why;
    } wanted[] = {
        {"fp16", "cl_khr_fp16", "it computes with numbers of 16 bits (cl_khr_fp16)"},
        {"int64_atomics", "cl_khr_int64_base_atomics", "it has atomic operations of 64 bits (cl_khr_int64_base_atomics)"},
        {"subgroup", "cl_khr_subgroup_shuffle", "it exchanges values in subgroups (cl_khr_subgroup_shuffle)"},
        {"subgroup", "cl_intel_required_subgroup_size", "it needs subgroups of one size (cl_intel_required_subgroup_size)"},
    };
    char *extensions = long_text(device->id, CL_DEVICE_EXTENSIONS);
    foundry_status status = FOUNDRY_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && !status; i++)
        if (packed_need(needs, wanted[i].need) && !has_word(extensions, wanted[i].extensions))
            status = lacks(device, variant, wanted[i].why);
    free(extensions);
    return status;
}

static void unload(struct road_device *device, struct road_kernel *kernel)
{
    (void)device;
    if (kernel->extra && kernel->extra->unload && kernel->state)
        kernel->extra->unload(kernel->state);
    if (kernel->kernel)
        clReleaseKernel(kernel->kernel);
    if (kernel->program)
        clReleaseProgram(kernel->program);
    free(kernel);
}

static foundry_status build(struct road_device *device, const struct road_file *file, struct road_kernel *kernel)
{
    cl_int code = CL_SUCCESS;
    kernel->program = clCreateProgramWithIL(device->context, file->data, (size_t)file->bytes, &code);
    if (code != CL_SUCCESS)
        return failed("to pass SPIR-V to the device", code);
    code = clBuildProgram(kernel->program, 1, &device->id, NULL, NULL, NULL);
    if (code != CL_SUCCESS) {
        char log[1400] = "";
        size_t size = 0;
        char *all = NULL;
        if (clGetProgramBuildInfo(kernel->program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) == CL_SUCCESS && size && (all = calloc(1, size + 1))
            && clGetProgramBuildInfo(kernel->program, device->id, CL_PROGRAM_BUILD_LOG, size, all, NULL) == CL_SUCCESS)
            snprintf(log, sizeof log, "%s", all);
        free(all);
        failed("the build", code);
        return packed_failed(FOUNDRY_DEVICE, *log ? log : foundry_error(), "", "%s did not accept the kernel %s", device->name, kernel->variant->symbol);
    }
    kernel->kernel = clCreateKernel(kernel->program, kernel->variant->symbol, &code);
    return code == CL_SUCCESS ? FOUNDRY_OK : failed("to find the kernel", code);
}

static foundry_status load(struct road_device *device, const struct packed_variant *variant, const struct road_file *files, struct road_kernel **result)
{
    foundry_status status = check_needs(device, variant);
    if (status)
        return status;
    struct road_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for a kernel");
    kernel->variant = variant;
    kernel->extra = variant->extra;
    kernel->buffers = variant->buffers;
    status = build(device, files, kernel);
    if (!status && kernel->extra && kernel->extra->load)
        status = kernel->extra->load(variant, files, &kernel->state);
    if (!status && kernel->extra && kernel->extra->count)
        kernel->buffers = kernel->extra->count(kernel->state);
    size_t most = 0;
    if (!status && clGetKernelWorkGroupInfo(kernel->kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL) == CL_SUCCESS
        && variant->threads > most)
        status = lacks(device, variant, "its work-groups would be larger than the device can run of this kernel");
    if (status)
        unload(device, kernel);
    else
        *result = kernel;
    return status;
}

/* ---- Memory */

static int copies(const struct road_device *device) { return !device->shares; }

static foundry_status allocate(struct road_device *device, uint64_t bytes, void *host, struct road_memory **result)
{
    struct road_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for an array");
    memory->host = host;
    memory->bytes = bytes;
    if (device->shares && !host) {
        /* Vectors of the widest kind, and a cache line. */
        memory->is_ours = 1;
        memory->host = bytes <= SIZE_MAX - 4096 ? aligned_alloc(128, (size_t)((bytes + 127) / 128 * 128)) : NULL;
    }
    cl_int code = CL_SUCCESS;
    if (!device->shares)
        memory->buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (code == CL_SUCCESS && (memory->host || memory->buffer)) {
        *result = memory;
        return FOUNDRY_OK;
    }
    free(memory);
    if (code != CL_SUCCESS)
        failed("to make a buffer", code);
    return packed_failed(FOUNDRY_MEMORY, code != CL_SUCCESS ? foundry_error() : "", "", "there is no memory for an array of %" PRIu64 " bytes", bytes);
}

static void release(struct road_device *device, struct road_memory *memory)
{
    (void)device;
    if (memory->buffer)
        clReleaseMemObject(memory->buffer);
    if (memory->is_ours)
        free(memory->host);
    free(memory);
}

static foundry_status write_memory(struct road_device *device, struct road_memory *memory, uint64_t first, uint64_t bytes, const void *from)
{
    if (memory->host) {
        memmove((char *)memory->host + first, from, (size_t)bytes);
        return FOUNDRY_OK;
    }
    cl_int code = clEnqueueWriteBuffer(device->queue, memory->buffer, 1, (size_t)first, (size_t)bytes, from, 0, NULL, NULL);
    return code == CL_SUCCESS ? FOUNDRY_OK : failed("to write to an array", code);
}

static foundry_status read_memory(struct road_device *device, struct road_memory *memory, uint64_t first, uint64_t bytes, void *to)
{
    if (memory->host) {
        memmove(to, (char *)memory->host + first, (size_t)bytes);
        return FOUNDRY_OK;
    }
    cl_int code = clEnqueueReadBuffer(device->queue, memory->buffer, 1, (size_t)first, (size_t)bytes, to, 0, NULL, NULL);
    return code == CL_SUCCESS ? FOUNDRY_OK : failed("to read an array", code);
}

static uint64_t address(const struct road_device *device, const struct road_memory *memory)
{
    /* A buffer starts at a multiple of CL_DEVICE_MEM_BASE_ADDR_ALIGN, which is at least 128 bytes. */
    return device->shares ? (uint64_t)(uintptr_t)memory->host : 0;
}

/* ---- A launch */

/* Buffers that live as long as a launch. */
struct made {
    cl_mem *buffers;
    uint32_t count;
};

static cl_int set_pointer(struct road_device *device, const struct road_kernel *kernel, cl_uint at, const struct road_argument *argument, struct made *made, const char **why)
{
    const int takes_cl_mem = packed_need(kernel->variant->needs, "cl_mem") != 0;
    cl_int code = CL_SUCCESS;
    cl_mem buffer = NULL;
    if (device->shares && !takes_cl_mem)
        return clSetKernelArgSVMPointer(kernel->kernel, at, argument->memory ? (char *)argument->memory->host + argument->first : NULL);
    if (argument->memory && argument->memory->bytes > argument->first) {
        const struct {
            size_t origin, size;
        } region = {(size_t)argument->first, (size_t)(argument->memory->bytes - argument->first)};
        if (device->shares)
            buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, region.size, (char *)argument->memory->host + region.origin, &code);
        else if (!region.origin)
            return clSetKernelArg(kernel->kernel, at, sizeof argument->memory->buffer, &argument->memory->buffer);
        else if (region.origin % device->base) {
            *why = "it starts inside another array, at a byte where a buffer of this device cannot start (CL_DEVICE_MEM_BASE_ADDR_ALIGN)";
            return -13;
        } else
            buffer = clCreateSubBuffer(argument->memory->buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
        if (code != CL_SUCCESS)
            return code;
        made->buffers[made->count++] = buffer;
    }
    return clSetKernelArg(kernel->kernel, at, sizeof buffer, &buffer);
}

static foundry_status set_arguments(struct road_device *device, struct road_kernel *kernel, const struct road_launch *launch, struct made *made)
{
    cl_uint at = 0;
    for (uint32_t i = 0; i < launch->count; i++, at++) {
        const struct road_argument *argument = &launch->arguments[i];
        const char *why = "";
        cl_int code = argument->parameter->how == PACKED_POINTER ? set_pointer(device, kernel, at, argument, made, &why)
                                                                : clSetKernelArg(kernel->kernel, at, (size_t)argument->bytes, &argument->bits);
        if (code != CL_SUCCESS) {
            foundry_status status = failed("to pass an argument", code);
            return *why ? packed_failed(FOUNDRY_ARGUMENT, why, "pass a copy", "%s of %s cannot be passed", argument->name, launch->variant->symbol) : status;
        }
    }
    for (int axis = 0; axis < 3; axis++, at++) {
        int32_t side = (int32_t)launch->grid[axis];
        cl_int code = clSetKernelArg(kernel->kernel, at, sizeof side, &side);
        if (code != CL_SUCCESS)
            return failed("to pass the grid", code);
    }
    const struct opencl_extra *extra = kernel->extra;
    void **hosts = calloc(launch->count + 1, sizeof *hosts);
    if (!hosts)
        return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for a launch");
    foundry_status status = FOUNDRY_OK;
    for (uint32_t i = 0; i < launch->count; i++) {
        const struct road_argument *argument = &launch->arguments[i];
        hosts[i] = argument->memory && argument->memory->host ? (char *)argument->memory->host + argument->first : argument->host;
    }
    for (uint32_t i = 0; i < kernel->buffers && !status; i++, at++) {
        cl_mem buffer = device->spare;
        cl_int code = CL_SUCCESS;
        if (extra && extra->make) {
            void *data = NULL;
            uint64_t bytes = 0;
            if ((status = extra->make(kernel->state, launch, hosts, i, &data, &bytes)))
                break;
            buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, (size_t)bytes, data, &code);
            free(data);
            if (code == CL_SUCCESS)
                made->buffers[made->count++] = buffer;
        }
        if (code == CL_SUCCESS)
            code = clSetKernelArg(kernel->kernel, at, sizeof buffer, &buffer);
        if (code != CL_SUCCESS)
            status = failed("to pass a buffer", code);
    }
    free(hosts);
    return status;
}

static foundry_status run(struct road_device *device, struct road_kernel *kernel, const struct road_launch *launch)
{
    struct made made = {calloc(launch->count + kernel->buffers + 1, sizeof *made.buffers), 0};
    if (!made.buffers)
        return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for a launch");
    cl_uint count = 0;
    foundry_status status = FOUNDRY_OK;
    if (clGetKernelInfo(kernel->kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL) == CL_SUCCESS && count != launch->count + 3 + kernel->buffers)
        status = packed_failed(FOUNDRY_FOLDER, "the binary and the tables are not of one packing", "pack the kernels again",
            "the kernel %s takes %u arguments, and would be passed %u", launch->variant->symbol, count, launch->count + 3 + kernel->buffers);
    if (!status)
        status = set_arguments(device, kernel, launch, &made);
    if (!status) {
        const size_t threads = launch->variant->threads;
        const size_t local[3] = {threads, 1, 1}, global[3] = {launch->grid[0] * threads, launch->grid[1], launch->grid[2]};
        cl_int code = clEnqueueNDRangeKernel(device->queue, kernel->kernel, 3, NULL, global, local, 0, NULL, NULL);
        if (code == CL_SUCCESS)
            code = clFinish(device->queue);
        if (code != CL_SUCCESS)
            status = failed("the launch", code);
    }
    for (uint32_t i = 0; i < made.count; i++)
        clReleaseMemObject(made.buffers[i]);
    free(made.buffers);
    return status;
}

const struct packed_road opencl_road = {
    .name = "opencl",
    .open = open_device,
    .close = close_device,
    .describe = describe_device,
    .load = load,
    .unload = unload,
    .copies = copies,
    .allocate = allocate,
    .release = release,
    .write = write_memory,
    .read = read_memory,
    .address = address,
    .launch = run,
};
