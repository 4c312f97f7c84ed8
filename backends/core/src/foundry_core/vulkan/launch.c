/* vulkan.c for Python: a launch on arrays of the device is one call, which also packs the arguments.
 *
 * `foundry_vulkan_launcher` makes a function of Python for one kernel. It takes what Triton passes a launcher. What it does
 * not take, such as an array of the host, a hook or a number that is too large, it leaves to Python's way, which takes or
 * refuses it: then it returns None, and has launched nothing.
 *
 * Only functions of Python's stable interface are called, which are the same in all releases from 3.10 on. They are weak
 * symbols and not those of a header, so that the library is the same for all releases, and loads without Python. */
#include "vulkan.c"

#include <stddef.h>

typedef struct Object Object;
typedef Object *(*Function)(Object *self, Object *const *arguments, ptrdiff_t count);
typedef struct {
    const char *name;
    Function function;
    int flags;
    const char *description;
} Definition;
enum { FASTCALL = 0x80 };

#define PYTHON __attribute__((weak)) extern
PYTHON Object _Py_NoneStruct;
PYTHON Object *PyCFunction_NewEx(Definition *definition, Object *self, Object *module);
PYTHON char *PyBytes_AsString(Object *bytes);
PYTHON Object *PyObject_Type(Object *of);
PYTHON Object *PyObject_GetAttr(Object *of, Object *name);
PYTHON int PyObject_IsTrue(Object *value);
PYTHON double PyFloat_AsDouble(Object *value);
PYTHON long long PyLong_AsLongLong(Object *value);
PYTHON unsigned long long PyLong_AsUnsignedLongLong(Object *value);
PYTHON Object *PyLong_FromUnsignedLongLong(unsigned long long value);
PYTHON Object *PyErr_Occurred(void);
PYTHON void PyErr_Clear(void);
PYTHON void *PyEval_SaveThread(void);
PYTHON void PyEval_RestoreThread(void *state);
PYTHON void Py_IncRef(Object *of);
PYTHON void Py_DecRef(Object *of);

/* The arguments of Triton's call before those of the kernel: the grid, three others, and two hooks. */
enum { ENTER_HOOK = 7, EXIT_HOOK = 8 };
enum { MOST_BLOCK = 4096 };

/* One number of the block: the argument `from` of the call, put at byte `at` in `size` bytes. */
typedef struct {
    uint8_t kind, size;
    uint16_t from;
    uint32_t at;
} Part;

/* What launcher.py packs: this structure, the parts, and a block in which the rest is filled in. */
typedef struct {
    Device *device;
    /* DeviceTensor, and the names of attributes. */
    Object *tensor, *address, *dense, *calls;
    uint64_t most_programs;
    uint32_t arguments, parts, bytes, unused;
    Part part[];
} Plan;

static Object *none(void) {
    PyErr_Clear();
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* Return whether an attribute is true: 1, 0, or -1 if it cannot be read. */
static int attribute(Object *of, Object *name) {
    Object *value = PyObject_GetAttr(of, name);
    int result = value ? PyObject_IsTrue(value) : -1;
    if (value) Py_DecRef(value);
    return result;
}

/* Triton passes a chain, which calls nothing in most launches, or None. */
static int idle(const Plan *plan, Object *hook) {
    return hook == &_Py_NoneStruct || attribute(hook, plan->calls) == 0;
}

static int is_tensor(const Plan *plan, Object *value) {
    Object *type = PyObject_Type(value);
    Py_DecRef(type);
    return type == plan->tensor;
}

/* Put an argument into the block; return whether that is possible. */
static int put(const Plan *plan, const Part *part, Object *value, char *block) {
    uint64_t bits;
    switch (part->kind) {
    case 'o': /* an array that is written to */
    case 'p':
        if (!is_tensor(plan, value) || (part->kind == 'o' && attribute(value, plan->dense) != 1)) return 0;
        if (!(value = PyObject_GetAttr(value, plan->address))) return 0;
        bits = PyLong_AsUnsignedLongLong(value);
        Py_DecRef(value);
        break;
    case 'f': {
        double number = PyFloat_AsDouble(value);
        float narrow = (float)number;
        if (part->size == sizeof number) memcpy(&bits, &number, sizeof number);
        else memcpy(&bits, &narrow, sizeof narrow);
        break;
    }
    case 'u':
        bits = PyLong_AsUnsignedLongLong(value);
        if (part->size < 8 && bits >> 8 * part->size) return 0;
        break;
    case '?': bits = (uint64_t)PyObject_IsTrue(value); break;
    default: { /* an integer with a sign; or a side of the grid, which is 1 at least */
        long long number = PyLong_AsLongLong(value), end = part->size < 8 ? 1ll << (8 * part->size - 1) : 0;
        if ((end && (number < -end || number >= end)) || (part->kind == 'g' && number < 1)) return 0;
        bits = (uint64_t)number;
    }
    }
    memcpy(block + part->at, &bits, part->size);
    return !PyErr_Occurred();
}

/* Launch. Returns the number of the batch, 0 after an error, or None. */
static Object *launch_directly(Object *self, Object *const *arguments, ptrdiff_t count) {
    const Plan *plan = (const Plan *)PyBytes_AsString(self);
    _Alignas(16) char block[MOST_BLOCK];
    Launch *launch = (Launch *)block;
    if (count < plan->arguments || !idle(plan, arguments[ENTER_HOOK]) || !idle(plan, arguments[EXIT_HOOK])) return none();
    memcpy(block, plan->part + plan->parts, plan->bytes);
    for (const Part *part = plan->part; part < plan->part + plan->parts; part++)
        if (!put(plan, part, arguments[part->from], block)) return none();
    uint64_t most = plan->most_programs, *wide = plan->device->most_groups, plane = (uint64_t)launch->x * launch->y;
    if (plane > most || plane * launch->z > most || launch->y > wide[1] || launch->z > wide[2]) return none();
    void *state = PyEval_SaveThread();
    uint64_t number = foundry_vulkan_launch(plan->device, launch);
    PyEval_RestoreThread(state);
    return PyLong_FromUnsignedLongLong(number);
}

/* Return a function of Python that launches by a plan, which is bytes; None if its block is too large. */
EXPORT Object *foundry_vulkan_launcher(Object *bytes) {
    static Definition definition = {"launch", launch_directly, FASTCALL, NULL};
    const Plan *plan = (const Plan *)PyBytes_AsString(bytes);
    const Launch *launch = (const Launch *)(plan->part + plan->parts);
    if (sizeof *launch + launch->pipeline->bytes > MOST_BLOCK || plan->bytes > MOST_BLOCK) return none();
    return PyCFunction_NewEx(&definition, bytes, NULL);
}
