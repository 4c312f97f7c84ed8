/* What packed.c needs of a kind of device, and the tables that the packing writes. A folder has one road.
 *
 * packed.c does all that is the same everywhere: it reads and checks files, chooses the form of a kernel, checks
 * arguments and the lengths of arrays, and lets no two launches of a folder run at once. A road is called by one thread at
 * a time for one device. Its functions return FOUNDRY_OK, or a status after packed_failed(), which keeps the words.
 */
#ifndef FOUNDRY_ROAD_H
#define FOUNDRY_ROAD_H

#include "foundry_packed.h"

/* ---- What the packing writes of each kernel (NAME.c) */

/* A file of the folder. */
struct packed_file {
    const char *path; /* in the folder, with / between names */
    uint64_t bytes;
    unsigned char sha256[32];
};

/* A parameter of the Python function. */
struct packed_name {
    const char *name;
    uint8_t declared; /* 1: the function declares its type (n: tl.int64), so a number's value does not decide it */
    uint8_t constant; /* 1: tl.constexpr; 2: one that triton.autotune chooses */
};

/* How one form of a kernel takes a parameter. */
enum packed_how {
    PACKED_POINTER,  /* an array with elements of `type` */
    PACKED_NUMBER,   /* a number of `type` */
    PACKED_CONSTANT, /* compiled in, as `text` says: a tl.constexpr, an argument that was 1, or None */
};
struct packed_parameter {
    uint8_t how, type;
    uint8_t divisor;  /* 16: only addresses, or numbers, that are divisible by it; else 1 */
    uint8_t is_written;
    uint32_t offset;  /* where it is in the block of arguments, for roads that have one */
    const char *text; /* the constant, as Python's repr writes it */
};

/* Collects what a program of a launch reaches: see foundry_core/footprint/code.py. `index` counts passed arguments. */
struct packed_reach {
    void (*note)(struct packed_reach *, int index, int64_t low, int64_t high, int exact, int is_store);
    void (*anywhere)(struct packed_reach *, int index, int is_store);
};

/* A compiled form of a kernel. */
struct packed_variant {
    const struct packed_parameter *parameters; /* one for each packed_name of the kernel */
    const char *symbol;                        /* its name in the binary */
    const struct packed_file *files;           /* the first is the binary; others are the road's own */
    uint32_t file_count;
    uint32_t threads;                          /* of a program; 1 where a program is one work-item */
    uint32_t buffers;                          /* that it takes after the grid, as a road knows */
    uint32_t argument_bytes;                   /* of the block of arguments */
    const char *needs; /* what the device must have: words NAME or NAME=NUMBER with spaces between, as the road defines */
    /* Call `reach` for the accesses of one program; NULL if nothing is known of them. */
    void (*reach)(struct packed_reach *reach, const int64_t *argument, const int64_t *program, const int64_t *grid);
    const void *extra; /* of this road: what its own generator wrote */
};

/* What triton.autotune chose. */
struct packed_choice {
    const char *const *key;       /* a text for each parameter: its value, the type of its elements; NULL if not in the key */
    const char *const *constants; /* a text for each parameter; NULL if it is not chosen */
};

struct packed_kernel {
    const char *name;
    const struct packed_name *names;
    uint32_t name_count;
    const struct packed_variant *variants; /* the most specialised first */
    uint32_t variant_count;
    const struct packed_choice *choices;
    uint32_t choice_count;
};

struct foundry_module {
    uint32_t format;     /* FOUNDRY_PACKED_FORMAT */
    const char *name;    /* of the folder */
    const char *version; /* of the packing */
    const char *target;
    const char *place;   /* the folder below the prefix where it is installed, such as share/NAME */
    const struct packed_kernel *kernels;
    uint32_t kernel_count;
    const struct packed_road *road;
};

/* ---- What a road is */

struct road_device;
struct road_kernel;
struct road_memory; /* a range of memory that kernels reach, on the device or on the host */

/* A file that was read, and is as the table says. It is gone after `load` returns. */
struct road_file {
    const void *data;
    uint64_t bytes;
};

/* A passed argument of a launch, in the order of the kernel's: constants are not among them. */
struct road_argument {
    const char *name;
    const struct packed_parameter *parameter;
    struct road_memory *memory; /* of a pointer; NULL for an array without elements */
    uint64_t first;             /* of a pointer: the byte in `memory` that it points to */
    uint64_t bytes;             /* of a pointer: from there on, what the array has; of a number: its size */
    void *host;                 /* of a pointer to an array over memory of the host: where it is there */
    uint32_t rank;              /* of a pointer */
    uint64_t shape[8];
    uint64_t bits;              /* of a number: little-endian, as the kernel takes it; the other bytes are 0 */
    int64_t integer;            /* of a number: its value for `reach`, sign-extended; 0 of a float */
};

struct road_launch {
    const struct packed_variant *variant;
    const struct road_argument *arguments;
    uint32_t count;
    uint32_t grid[3]; /* each at least 1 */
};

struct packed_road {
    const char *name;
    /* Open the device that `wanted` names, "" for any. `folder` is the opened folder, "/" at its end. */
    foundry_status (*open)(
        const foundry_module *module, const char *folder, const char *wanted, struct road_device **device);
    void (*close)(struct road_device *device);
    const char *(*describe)(const struct road_device *device);
    /* Prepare a form of a kernel. What it needs and the device lacks is refused here (FOUNDRY_DEVICE). */
    foundry_status (*load)(struct road_device *device, const struct packed_variant *variant,
        const struct road_file *files, struct road_kernel **kernel);
    void (*unload)(struct road_device *device, struct road_kernel *kernel);
    /* Whether kernels reach the host's memory only if it is copied. If so, packed.c copies it for each launch, and no other
     * function gets it. NULL: they reach it. */
    int (*copies)(const struct road_device *device);
    /* Make memory of the device, `bytes` > 0; or let kernels reach memory of the host, which is `host` then. */
    foundry_status (*allocate)(struct road_device *device, uint64_t bytes, void *host, struct road_memory **memory);
    void (*release)(struct road_device *device, struct road_memory *memory);
    foundry_status (*write)(
        struct road_device *device, struct road_memory *memory, uint64_t first, uint64_t bytes, const void *from);
    foundry_status (*read)(
        struct road_device *device, struct road_memory *memory, uint64_t first, uint64_t bytes, void *to);
    /* The address of the first byte as the kernel will see it, to test whether it is divisible; only its low bits count. */
    uint64_t (*address)(const struct road_device *device, const struct road_memory *memory);
    /* Run the kernel, and return when it has finished, and memory of the host that it reaches has what it wrote. After an
     * error no memory may be changed later. */
    foundry_status (*launch)(struct road_device *device, struct road_kernel *kernel, const struct road_launch *launch);
};

/* ---- What a road may use of packed.c */

/* Keep what failed, why, and what to do next ("" if there is nothing to say), and return the status. */
foundry_status packed_failed(foundry_status status, const char *why, const char *next, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

/* Return the number of the word NAME=NUMBER in `needs`, 1 for the word NAME alone, 0 if there is none. */
uint64_t packed_need(const char *needs, const char *name);

/* Return whether a user who named `wanted` ("" for any) means the device with this number and name. Digits are a number. */
int packed_wants(const char *wanted, unsigned index, const char *name);

/* Bytes of an element; 0 if it is no type. Triton's name of a type. */
uint32_t packed_bytes(uint32_t type);
const char *packed_type(uint32_t type);

#endif
