/* Kernels of Triton without Triton: open a folder that `./foundry pack` wrote, make arrays, launch.
 *
 * A function returns FOUNDRY_OK, or another status; foundry_error() then says on this thread what failed, why, and what
 * to do next. A call that fails writes nothing: neither to arrays nor to what its pointers name.
 *
 * Any thread may call a function. Launches of one opened folder do not wait for each other: a launch while another
 * thread is in one is refused (FOUNDRY_BUSY), because both might write the same arrays. Open the folder once a thread, or
 * take a lock of your own.
 *
 * NAME.h beside this file has a typed function for each kernel of the folder; these functions are what it calls.
 */
#ifndef FOUNDRY_PACKED_H
#define FOUNDRY_PACKED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined __GNUC__
#pragma GCC visibility push(default)
#endif

/* The format of the folder, and of what is below. The functions' names have it, so that folders of different versions
 * can be in one program. */
#define FOUNDRY_PACKED_FORMAT 1
#define foundry_error foundry_error_1
#define foundry_open foundry_open_1
#define foundry_close foundry_close_1
#define foundry_device foundry_device_1
#define foundry_array_create foundry_array_create_1
#define foundry_array_over foundry_array_over_1
#define foundry_array_part foundry_array_part_1
#define foundry_array_shape foundry_array_shape_1
#define foundry_array_write foundry_array_write_1
#define foundry_array_read foundry_array_read_1
#define foundry_array_release foundry_array_release_1
#define foundry_choose foundry_choose_1
#define foundry_launch foundry_launch_1

typedef enum {
    FOUNDRY_OK = 0,
    FOUNDRY_FOLDER = 1,   /* the folder is not there, of another version, or a file of it is damaged */
    FOUNDRY_DEVICE = 2,   /* no device, or it lacks what the kernels need, or it failed */
    FOUNDRY_ARGUMENT = 3, /* an argument that no packed kernel takes, or an array that is too short */
    FOUNDRY_BUSY = 4,     /* another thread is in a launch of this folder */
    FOUNDRY_MEMORY = 5,   /* there is no memory for it */
} foundry_status;

/* Types of elements and of numbers, by Triton's names. A Boolean is a byte, 0 or 1. */
typedef enum {
    FOUNDRY_I1, FOUNDRY_I8, FOUNDRY_I16, FOUNDRY_I32, FOUNDRY_I64,
    FOUNDRY_U8, FOUNDRY_U16, FOUNDRY_U32, FOUNDRY_U64,
    FOUNDRY_FP16, FOUNDRY_BF16, FOUNDRY_FP32, FOUNDRY_FP64,
    FOUNDRY_FP8E5, FOUNDRY_FP8E4NV, FOUNDRY_FP8E4B8, FOUNDRY_FP8E5B16, FOUNDRY_FP8E4B15,
    FOUNDRY_TYPES
} foundry_type;

typedef struct foundry_module foundry_module; /* a folder's tables, in its library: see NAME.h */
typedef struct foundry_pack foundry_pack;     /* an opened folder, on a device */
typedef struct foundry_array foundry_array;

/* What failed on this thread, in words; "" before the first error. */
const char *foundry_error(void);

/* Open a folder on a device.
 * folder: NULL for the folder in which the library was found, or where it was installed.
 * device: its number or a part of its name; NULL or "" for the first that fits. */
foundry_status foundry_open(const foundry_module *module, const char *folder, const char *device, foundry_pack **pack);

/* Wait for nothing, release everything. Arrays of the folder must have been released. Refused while a launch runs. */
foundry_status foundry_close(foundry_pack *pack);

/* What kernels run on, in words. */
const char *foundry_device(const foundry_pack *pack);

/* Make an array of `count` elements in the device's memory. What it contains is not defined before it is written. */
foundry_status foundry_array_create(foundry_pack *pack, foundry_type type, uint64_t count, foundry_array **array);

/* Make an array of `count` elements in memory of the host, which must live until the array is released. A launch reads
 * it, and has written to it when it returns. */
foundry_status foundry_array_over(
    foundry_pack *pack, foundry_type type, uint64_t count, void *memory, foundry_array **array);

/* Make an array of `count` elements of another one, from element `first` on: a pointer with an offset. It shares the
 * memory of the other, which lives until both are released. */
foundry_status foundry_array_part(foundry_array *of, uint64_t first, uint64_t count, foundry_array **array);

/* Say the sizes of an array's dimensions, up to 8; without this, it has one dimension. Only some devices ask. */
foundry_status foundry_array_shape(foundry_array *array, uint32_t rank, const uint64_t *sizes);

/* Copy elements to and from an array. */
foundry_status foundry_array_write(foundry_array *array, uint64_t first, uint64_t count, const void *from);
foundry_status foundry_array_read(const foundry_array *array, uint64_t first, uint64_t count, void *to);

void foundry_array_release(foundry_array *array);

/* An argument of a launch, one for each parameter of the kernel, constants included. */
typedef enum {
    FOUNDRY_ARRAY,   /* array; NULL means None */
    FOUNDRY_INTEGER, /* a Python int: i32 if it fits, else i64, as Triton decides */
    FOUNDRY_UNSIGNED, /* a Python int of 2^63 or more */
    FOUNDRY_BOOLEAN, /* a Python bool */
    FOUNDRY_FLOAT,   /* a Python float */
    FOUNDRY_TEXT,    /* a constant that is none of these, as Python's repr writes it */
    FOUNDRY_CHOSEN,  /* a constant that triton.autotune chose: the folder knows it */
} foundry_kind;

typedef struct {
    foundry_kind kind;
    union {
        foundry_array *array;
        int64_t integer;
        uint64_t bits; /* FOUNDRY_UNSIGNED */
        int boolean;
        double number;
        const char *text;
    } value;
} foundry_argument;

/* Make one: foundry_pass_int(256). A program may have this text in its own file, and need only some of them. */
#define FOUNDRY_PASS(name, type, of_kind, member) \
    static inline __attribute__((unused)) foundry_argument foundry_pass_##name(type given) \
    { \
        foundry_argument made; \
        made.kind = of_kind; \
        made.value.member = given; \
        return made; \
    }
FOUNDRY_PASS(array, foundry_array *, FOUNDRY_ARRAY, array)
FOUNDRY_PASS(int, int64_t, FOUNDRY_INTEGER, integer)
FOUNDRY_PASS(uint, uint64_t, FOUNDRY_UNSIGNED, bits)
FOUNDRY_PASS(bool, int, FOUNDRY_BOOLEAN, boolean)
FOUNDRY_PASS(float, double, FOUNDRY_FLOAT, number)
FOUNDRY_PASS(text, const char *, FOUNDRY_TEXT, text)
FOUNDRY_PASS(chosen, int, FOUNDRY_CHOSEN, boolean)
#undef FOUNDRY_PASS

/* Say what a launch would choose: the constants, by parameter (others are unchanged). For a grid that depends on a
 * constant that triton.autotune chose. */
foundry_status foundry_choose(
    foundry_pack *pack, const char *kernel, foundry_argument *arguments, size_t count);

/* Launch a kernel, and wait until it has finished. A grid with a side of 0 runs no program.
 * Chosen is, as in Triton, the most specialised of the packed forms of the kernel that the arguments fit. */
foundry_status foundry_launch(
    foundry_pack *pack, const char *kernel, const uint32_t grid[3], const foundry_argument *arguments, size_t count);

#if defined __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
