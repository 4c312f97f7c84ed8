/* A libOpenCL.so.1 for tests of packed folders: one device, whose properties tests set, and two kernels in C.
 *
 *     add(x, y, out, n)     out[i] = x[i] + y[i], 256 elements a program
 *     numbers(out, ...)     out has 8 bytes of each further argument
 *
 * fake_log has what was passed as SPIR-V, so that tests see which form of a kernel was chosen. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct object {
    char name[64];
    void *data;
    size_t size;
    int owned, count, is_buffer, set[64];
    struct object *part_of;
    unsigned char value[64][8];
    size_t bytes[64];
} object;

static struct {
    int shares, fp64, is_pocl, has_spirv, platforms, milliseconds, group, fails_launch;
    char version[64], extensions[128];
} device = {1, 1, 1, 1, 1, 0, 4096, 0, "OpenCL 3.0 PoCL HSTR: cpu-x86_64-pc-linux-gnu-haswell", "cl_khr_fp16x"};
char fake_log[1 << 16];
int fake_objects;

void fake_set(const char *name, int value)
{
    int *places[] = {&device.shares, &device.fp64, &device.is_pocl, &device.has_spirv, &device.platforms, &device.milliseconds, &device.group, &device.fails_launch};
    const char *names[] = {"shares", "fp64", "is_pocl", "has_spirv", "platforms", "milliseconds", "group", "fails_launch"};
    for (int i = 0; i < 8; i++)
        if (!strcmp(name, names[i]))
            *places[i] = value;
}

/* A device that does not share the host's memory, for a program that cannot call fake_set before it opens a folder. */
__attribute__((constructor)) static void configure(void) { device.shares = !getenv("FAKE_COPIES"); }

static object *make(void) { fake_objects++; return calloc(1, sizeof(object)); }
static int drop(object *o)
{
    fake_objects--;
    if (o->owned)
        free(o->data);
    free(o);
    return 0;
}
static int answer(const void *data, size_t size, size_t room, void *to, size_t *got)
{
    if (got)
        *got = size;
    if (!to)
        return 0;
    if (room < size)
        return -30;
    memcpy(to, data, size);
    return 0;
}
static int text(const char *said, size_t room, void *to, size_t *got) { return answer(said, strlen(said) + 1, room, to, got); }
static int number(uint64_t value, size_t size, size_t room, void *to, size_t *got) { return answer(&value, size, room, to, got); }

int clGetPlatformIDs(uint32_t room, void **to, uint32_t *count)
{
    *count = (uint32_t)device.platforms;
    if (room && device.platforms)
        *to = &device;
    return device.platforms ? 0 : -1001;
}
int clGetPlatformInfo(void *p, uint32_t what, size_t room, void *to, size_t *got) { (void)p, (void)what; return text(device.is_pocl ? "Portable Computing Language" : "Another", room, to, got); }
int clGetDeviceIDs(void *p, uint64_t type, uint32_t room, void **to, uint32_t *count) { (void)p, (void)type; *count = 1; if (room) *to = &device; return 0; }
int clGetDeviceInfo(void *d, uint32_t what, size_t room, void *to, size_t *got)
{
    (void)d;
    switch (what) {
    case 0x1004: return number((uint64_t)device.group, 8, room, to, got);
    case 0x100D: return number(64, 4, room, to, got);
    case 0x1019: return number(1024, 4, room, to, got);
    case 0x1023: return number(32768, 8, room, to, got);
    case 0x1027: return number(1, 4, room, to, got);
    case 0x102B: return text("a device of tests", room, to, got);
    case 0x102D: return text("1", room, to, got);
    case 0x102F: return text(device.version, room, to, got);
    case 0x1030: return text(device.extensions, room, to, got);
    case 0x1032: return number(device.fp64 ? 63 : 0, 8, room, to, got);
    case 0x1053: return number(device.shares ? 4 : 1, 8, room, to, got);
    case 0x105B: return text(device.has_spirv ? "SPIR-V_1.2" : "", room, to, got);
    default: return -30;
    }
}
void *clCreateContext(void *a, uint32_t b, void *c, void *d, void *e, int *code) { (void)a, (void)b, (void)c, (void)d, (void)e; *code = 0; return make(); }
void *clCreateCommandQueueWithProperties(void *a, void *b, void *c, int *code) { (void)a, (void)b, (void)c; *code = 0; return make(); }
void *clCreateProgramWithIL(void *context, const void *il, size_t bytes, int *code)
{
    (void)context;
    object *o = make();
    strncat(fake_log, il, bytes);
    strcat(fake_log, "\n");
    *code = 0;
    o->size = !memcmp(il, "refused", bytes < 7 ? bytes : 7);
    return o;
}
int clBuildProgram(object *p, uint32_t a, void *b, void *c, void *d, void *e) { (void)a, (void)b, (void)c, (void)d, (void)e; return p->size ? -11 : 0; }
int clGetProgramBuildInfo(void *p, void *d, uint32_t what, size_t room, void *to, size_t *got) { (void)p, (void)d, (void)what; return text("line 7 is wrong", room, to, got); }
object *clCreateKernel(void *program, const char *name, int *code) { (void)program; object *o = make(); strcpy(o->name, name); *code = 0; return o; }
int clGetKernelInfo(object *k, uint32_t what, size_t room, void *to, size_t *got) { (void)what; return number(!strcmp(k->name, "add") ? 7 : !strcmp(k->name, "numbers") ? 15 : 0, 4, room, to, got); }
int clGetKernelWorkGroupInfo(void *k, void *d, uint32_t what, size_t room, void *to, size_t *got) { (void)k, (void)d, (void)what; return number((uint64_t)device.group, 8, room, to, got); }
int clSetKernelArg(object *k, uint32_t at, size_t bytes, const void *value)
{
    memset(k->value[at], 0, 8);
    memcpy(k->value[at], value, bytes);
    k->bytes[at] = bytes;
    k->set[at] = 1 + (at < 3 && !device.shares);
    return 0;
}
int clSetKernelArgSVMPointer(object *k, uint32_t at, const void *value) { memcpy(k->value[at], &value, 8); k->set[at] = 1; return 0; }
object *clCreateBuffer(void *context, uint64_t flags, size_t bytes, void *host, int *code)
{
    (void)context;
    object *o = make();
    o->size = bytes;
    o->is_buffer = 1;
    o->owned = !(flags & 8);
    o->data = o->owned ? malloc(bytes) : host;
    if (o->owned)
        memset(o->data, 0xa5, bytes);
    if (flags & 32)
        memcpy(o->data, host, bytes);
    *code = 0;
    return o;
}
object *clCreateSubBuffer(object *of, uint64_t flags, uint32_t type, const size_t *region, int *code)
{
    (void)flags, (void)type;
    object *o = make();
    o->data = (char *)of->data + region[0];
    o->size = region[1];
    *code = region[0] % 128 ? -13 : 0;
    return o;
}
int clEnqueueReadBuffer(void *q, object *b, uint32_t blocking, size_t at, size_t bytes, void *to, uint32_t n, void *w, void *e) { (void)q, (void)blocking, (void)n, (void)w, (void)e; memcpy(to, (char *)b->data + at, bytes); return 0; }
int clEnqueueWriteBuffer(void *q, object *b, uint32_t blocking, size_t at, size_t bytes, const void *from, uint32_t n, void *w, void *e) { (void)q, (void)blocking, (void)n, (void)w, (void)e; memcpy((char *)b->data + at, from, bytes); return 0; }
static void *pointer(object *k, int at)
{
    void *value;
    memcpy(&value, k->value[at], 8);
    return k->set[at] == 2 && value ? ((object *)value)->data : value;
}
int clEnqueueNDRangeKernel(void *q, object *k, uint32_t dimensions, void *offset, const size_t *global, const size_t *local, uint32_t n, void *w, void *e)
{
    (void)q, (void)dimensions, (void)offset, (void)local, (void)n, (void)w, (void)e;
    usleep((unsigned)device.milliseconds * 1000);
    if (device.fails_launch)
        return -5;
    if (!strcmp(k->name, "add")) {
        float *x = pointer(k, 0), *y = pointer(k, 1), *out = pointer(k, 2);
        int32_t count;
        memcpy(&count, k->value[3], 4);
        for (size_t i = 0; i < global[0] * 256 && (int64_t)i < count; i++)
            out[i] = x[i] + y[i];
    } else if (!strcmp(k->name, "numbers")) {
        unsigned char *out = pointer(k, 0);
        for (int i = 1; i < 12; i++)
            memcpy(out + 8 * (i - 1), k->value[i], 8);
    }
    return 0;
}
int clFinish(void *q) { (void)q; return 0; }
int clReleaseMemObject(object *o) { return drop(o); }
int clReleaseKernel(object *o) { return drop(o); }
int clReleaseProgram(object *o) { return drop(o); }
int clReleaseCommandQueue(object *o) { return drop(o); }
int clReleaseContext(object *o) { return drop(o); }
