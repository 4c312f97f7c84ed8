/* What is the same for all devices: files, the choice of a kernel's form, arguments, lengths of arrays, errors. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "road.h"

/* The ids of programs are int32. */
#define MOST_PROGRAMS UINT32_C(0x7fffffff)
/* Programs of which each is checked; of a larger grid, those at its edges are. */
#define MOST_CHECKED (INT64_C(1) << 20)
/* Results of such a check that are kept. */
#define REMEMBERED 16
/* Bytes of a file of a kernel. */
#define MOST_BYTES (UINT64_C(256) << 20)
#define MANIFEST "foundry.json"

static _Thread_local char error_text[4096];

const char *foundry_error(void) { return error_text; }

foundry_status packed_failed(foundry_status status, const char *why, const char *next, const char *what, ...)
{
    char made[sizeof error_text];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(made, sizeof made / 2, what, arguments);
    va_end(arguments);
    /* `why` may be the text of the error before. */
    size_t used = strlen(made);
    if (why && *why)
        used += (size_t)snprintf(made + used, sizeof made - used, "\n  why:  %.*s", 1500, why);
    if (next && *next && used < sizeof made)
        snprintf(made + used, sizeof made - used, "\n  next: %.*s", 400, next);
    memcpy(error_text, made, sizeof made);
    return status;
}

/* ---- Types */

static const struct {
    const char *name;
    uint8_t bytes, is_signed, is_float;
} types[FOUNDRY_TYPES] = {
    {"i1", 1, 0, 0}, {"i8", 1, 1, 0}, {"i16", 2, 1, 0}, {"i32", 4, 1, 0}, {"i64", 8, 1, 0},
    {"u8", 1, 0, 0}, {"u16", 2, 0, 0}, {"u32", 4, 0, 0}, {"u64", 8, 0, 0},
    {"fp16", 2, 1, 1}, {"bf16", 2, 1, 1}, {"fp32", 4, 1, 1}, {"fp64", 8, 1, 1},
    {"fp8e5", 1, 1, 1}, {"fp8e4nv", 1, 1, 1}, {"fp8e4b8", 1, 1, 1}, {"fp8e5b16", 1, 1, 1}, {"fp8e4b15", 1, 1, 1},
};

uint32_t packed_bytes(uint32_t type) { return type < FOUNDRY_TYPES ? types[type].bytes : 0; }
const char *packed_type(uint32_t type) { return type < FOUNDRY_TYPES ? types[type].name : "a type of another version"; }

/* Round to nearest, ties to even, to a float of 16 bits with `mantissa` bits of mantissa. */
static uint16_t narrow(double value, int mantissa)
{
    const int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 63 << 15), infinity = (uint16_t)(((1 << exponent_bits) - 1) << mantissa);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 1024)
        return sign | infinity | (uint16_t)(fraction ? 1 << (mantissa - 1) : 0);
    if (exponent < -bias - mantissa - 1)
        return sign; /* less than half of the smallest, subnormals of f64 among them */
    fraction |= UINT64_C(1) << 52;
    /* A subnormal has fewer bits. */
    const int lost = 52 - mantissa + (exponent < 1 - bias ? 1 - bias - exponent : 0);
    uint64_t kept = fraction >> lost;
    const uint64_t rest = fraction & ((UINT64_C(1) << lost) - 1), half = UINT64_C(1) << (lost - 1);
    kept += rest > half || (rest == half && (kept & 1));
    /* The leading bit counts as one of the exponent, and a carry goes there. */
    if (exponent >= 1 - bias)
        kept += (uint64_t)(exponent + bias - 1) << mantissa;
    return sign | (kept >= infinity ? infinity : (uint16_t)kept);
}

/* ---- SHA-256 (FIPS 180-4) */

static uint32_t turned(uint32_t word, int by) { return word >> by | word << (32 - by); }

static void sha256_block(uint32_t state[8], const unsigned char *block)
{
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
        0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
        0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
        0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
        0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
        0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
        0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8
            | block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7]
            + (turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t one = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6]))
            + k[i] + w[i];
        uint32_t two = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22))
            + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

static void sha256(const unsigned char *data, uint64_t bytes, unsigned char digest[32])
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned char last[128] = {0};
    const uint64_t whole = bytes / 64 * 64, rest = bytes - whole, tail = rest < 56 ? 64 : 128;
    for (uint64_t at = 0; at < whole; at += 64)
        sha256_block(state, data + at);
    memcpy(last, data + whole, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[tail - 1 - (uint64_t)i] = (unsigned char)(bytes * 8 >> 8 * i);
    for (uint64_t at = 0; at < tail; at += 64)
        sha256_block(state, last + at);
    for (int i = 0; i < 32; i++)
        digest[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- The folder */

struct loaded {
    const struct packed_variant *variant;
    struct road_kernel *kernel;
    struct loaded *next;
};

/* A check of lengths that passed: with these numbers and this grid, the arrays need these elements. */
struct checked {
    const struct packed_variant *variant;
    uint32_t grid[3];
    int64_t *values; /* the numbers, then the first and the last element of each argument that is reached for certain */
};

struct foundry_pack {
    const foundry_module *module;
    char *folder; /* with / at its end */
    struct road_device *device;
    struct loaded *loaded;
    struct checked checked[REMEMBERED];
    unsigned next_checked;
    uint64_t arrays; /* that were not released */
    uint64_t copies; /* of the host's arrays, to the device or back, one for all arguments of a launch */
    atomic_flag busy;
};

/* Memory of an array and of its parts. It is released with the last of them. */
struct memory {
    struct road_memory *road; /* NULL if it has no bytes */
    char *host;               /* of an array over memory of the host */
    uint64_t bytes, arrays;
    uint64_t copied; /* foundry_pack.copies when it was last copied */
};

struct foundry_array {
    foundry_pack *pack;
    struct memory *memory;
    uint64_t first, count; /* in elements */
    uint32_t type, rank;
    uint64_t shape[8];
};

static const struct packed_road *road(const foundry_pack *pack) { return pack->module->road; }

static foundry_status enter(foundry_pack *pack)
{
    if (!atomic_flag_test_and_set_explicit(&pack->busy, memory_order_acquire))
        return FOUNDRY_OK;
    return packed_failed(FOUNDRY_BUSY, "another thread is in a call of the same opened folder",
        "open the folder once for each thread, or take a lock around each call", "%s is in use", pack->module->name);
}

static foundry_status leave(foundry_pack *pack, foundry_status status)
{
    atomic_flag_clear_explicit(&pack->busy, memory_order_release);
    return status;
}

static foundry_status null(const char *function)
{
    return packed_failed(FOUNDRY_ARGUMENT, "", "", "%s was passed a null pointer", function);
}

static foundry_status no_memory(uint64_t bytes)
{
    return packed_failed(FOUNDRY_MEMORY, "", "", "there is no memory for %" PRIu64 " bytes", bytes);
}

/* Read a file that has `bytes` bytes. */
static foundry_status read_file(const foundry_pack *pack, const char *path, uint64_t bytes, unsigned char **data)
{
    const char *again = "pack the kernels again, or copy the folder again";
    if (bytes > MOST_BYTES)
        return packed_failed(FOUNDRY_FOLDER, "", again, "%s has too many bytes", path);
    size_t length = strlen(pack->folder) + strlen(path) + 1;
    char *name = malloc(length);
    unsigned char *read = malloc((size_t)bytes + 1);
    if (!name || !read) {
        free(name);
        free(read);
        return no_memory(bytes);
    }
    snprintf(name, length, "%s%s", pack->folder, path);
    FILE *file = fopen(name, "rb");
    uint64_t got = file ? fread(read, 1, (size_t)bytes + 1, file) : 0;
    const char *why = !file ? strerror(errno) : ferror(file) ? "it cannot be read" : "";
    if (file)
        fclose(file);
    foundry_status status = FOUNDRY_OK;
    if (*why)
        status = packed_failed(FOUNDRY_FOLDER, why, again, "%s cannot be read", name);
    else if (got != bytes)
        status = packed_failed(FOUNDRY_FOLDER, "it has another length than when it was packed", again, "%s is damaged", name);
    free(name);
    if (status)
        free(read);
    else
        *data = read;
    return status;
}

/* Compare the folder's version with this library's. */
static foundry_status check_version(const foundry_pack *pack)
{
    const foundry_module *module = pack->module;
    char wanted[512], found[512], name[PATH_MAX];
    snprintf(wanted, sizeof wanted, "{\"format\": %d, \"name\": \"%s\", \"target\": \"%s\", \"version\": \"%s\",",
        FOUNDRY_PACKED_FORMAT, module->name, module->target, module->version);
    if (module->format != FOUNDRY_PACKED_FORMAT)
        return packed_failed(FOUNDRY_FOLDER, "the kernels' tables are of another format than the library", "build both from one folder",
            "%s has format %u, and this library %d", module->name, module->format, FOUNDRY_PACKED_FORMAT);
    if (snprintf(name, sizeof name, "%s%s", pack->folder, MANIFEST) >= (int)sizeof name)
        return packed_failed(FOUNDRY_FOLDER, "", "", "the folder's name is too long");
    FILE *file = fopen(name, "rb");
    if (!file)
        return packed_failed(FOUNDRY_FOLDER, strerror(errno),
            "name the folder that ./foundry pack wrote, or where it was installed", "%s is no folder of packed kernels", pack->folder);
    size_t got = fread(found, 1, strlen(wanted), file);
    fclose(file);
    if (got == strlen(wanted) && !memcmp(found, wanted, got))
        return FOUNDRY_OK;
    found[got] = 0;
    for (size_t i = 0; i < got; i++)
        if (found[i] < ' ' || found[i] > '~')
            found[i] = '?';
    char why[1200];
    snprintf(why, sizeof why, "%s begins with %.300s\nand this library is for %s", MANIFEST, found, wanted);
    return packed_failed(FOUNDRY_FOLDER, why, "use the library that was built from this folder",
        "%s has kernels of another name, target or version", pack->folder);
}

/* The folder of this library, or of what was built or installed from one: the first that has a manifest. The address of
 * the tables does not tell, because a program may have a copy of them. */
static char *find_folder(const foundry_module *module)
{
    static const char *const around[] = {"", "../", "../../"};
    Dl_info info;
    char name[PATH_MAX];
    if (!dladdr((const void *)(uintptr_t)find_folder, &info) || !info.dli_fname)
        return NULL;
    const char *end = strrchr(info.dli_fname, '/');
    int length = end ? (int)(end - info.dli_fname) + 1 : 0;
    for (size_t i = 0; i < 2 * sizeof around / sizeof *around; i++) {
        const char *place = i % 2 ? module->place : "", *slash = i % 2 ? "/" : "";
        int kept = snprintf(name, sizeof name, "%.*s%s%s%s", length, length ? info.dli_fname : "./", around[i / 2], place, slash);
        if (kept < 0 || kept + sizeof MANIFEST >= sizeof name)
            continue;
        strcpy(name + kept, MANIFEST);
        FILE *file = fopen(name, "rb");
        if (!file)
            continue;
        fclose(file);
        name[kept] = 0;
        return strdup(kept ? name : "./");
    }
    return NULL;
}

foundry_status foundry_open(const foundry_module *module, const char *folder, const char *device, foundry_pack **result)
{
    if (!module || !result)
        return null("foundry_open");
    foundry_pack *pack = calloc(1, sizeof *pack);
    if (!pack)
        return no_memory(sizeof *pack);
    pack->module = module;
    atomic_flag_clear(&pack->busy);
    if (folder && *folder) {
        size_t length = strlen(folder);
        pack->folder = malloc(length + 2);
        if (pack->folder)
            snprintf(pack->folder, length + 2, "%s%s", folder, folder[length - 1] == '/' ? "" : "/");
    } else
        pack->folder = find_folder(module);
    foundry_status status = FOUNDRY_OK;
    if (!pack->folder)
        status = packed_failed(FOUNDRY_FOLDER, "no folder with " MANIFEST " is beside the library, or where it would be installed",
            "pass the folder that ./foundry pack wrote", "the kernels of %s were not found", module->name);
    if (!status)
        status = check_version(pack);
    if (!status)
        status = road(pack)->open(module, pack->folder, device ? device : "", &pack->device);
    if (status) {
        free(pack->folder);
        free(pack);
        return status;
    }
    *result = pack;
    return FOUNDRY_OK;
}

foundry_status foundry_close(foundry_pack *pack)
{
    if (!pack)
        return FOUNDRY_OK;
    foundry_status status = enter(pack);
    if (status)
        return status;
    if (pack->arrays)
        return leave(pack, packed_failed(FOUNDRY_ARGUMENT, "", "release them first",
            "%s cannot be closed: %" PRIu64 " arrays were not released", pack->module->name, pack->arrays));
    for (struct loaded *each = pack->loaded, *next; each; each = next) {
        next = each->next;
        road(pack)->unload(pack->device, each->kernel);
        free(each);
    }
    for (int i = 0; i < REMEMBERED; i++)
        free(pack->checked[i].values);
    road(pack)->close(pack->device);
    free(pack->folder);
    free(pack);
    return FOUNDRY_OK;
}

const char *foundry_device(const foundry_pack *pack) { return pack ? road(pack)->describe(pack->device) : ""; }

/* ---- Arrays */

/* Whether kernels reach this memory of the host by copies only. */
static int is_copied(const foundry_pack *pack, const struct memory *memory)
{
    return memory->host && road(pack)->copies && road(pack)->copies(pack->device);
}

static foundry_status make_array(foundry_pack *pack, foundry_type type, uint64_t count, void *host, int is_host, foundry_array **result)
{
    if (!pack || !result || (is_host && !host && count))
        return null(is_host ? "foundry_array_over" : "foundry_array_create");
    if ((unsigned)type >= FOUNDRY_TYPES)
        return packed_failed(FOUNDRY_ARGUMENT, "", "", "%d is no type of elements", (int)type);
    if (count > INT64_MAX / 8)
        return no_memory(count);
    if (is_host && (uintptr_t)host % packed_bytes(type))
        return packed_failed(FOUNDRY_ARGUMENT, "", "", "an array of %s starts at %p, which is no multiple of %u bytes",
            packed_type(type), host, packed_bytes(type));
    foundry_array *array = malloc(sizeof *array);
    struct memory *memory = malloc(sizeof *memory);
    foundry_status status = array && memory ? enter(pack) : no_memory(sizeof *array);
    if (!status) {
        *memory = (struct memory){.host = host, .bytes = count * packed_bytes(type), .arrays = 1};
        *array = (foundry_array){pack, memory, 0, count, (uint32_t)type, 1, {count}};
        if (count)
            status = road(pack)->allocate(pack->device, memory->bytes, is_copied(pack, memory) ? NULL : host, &memory->road);
        pack->arrays += !status;
        leave(pack, status);
    }
    if (status) {
        free(array);
        free(memory);
    } else
        *result = array;
    return status;
}

foundry_status foundry_array_create(foundry_pack *pack, foundry_type type, uint64_t count, foundry_array **array)
{
    return make_array(pack, type, count, NULL, 0, array);
}

foundry_status foundry_array_over(foundry_pack *pack, foundry_type type, uint64_t count, void *memory, foundry_array **array)
{
    return make_array(pack, type, count, memory, 1, array);
}

static foundry_status outside(const foundry_array *array, uint64_t first, uint64_t count)
{
    if (first <= array->count && count <= array->count - first)
        return FOUNDRY_OK;
    return packed_failed(FOUNDRY_ARGUMENT, "", "", "elements %" PRIu64 " to %" PRIu64 " are asked for of an array of %" PRIu64,
        first, first + count, array->count);
}

foundry_status foundry_array_part(foundry_array *of, uint64_t first, uint64_t count, foundry_array **result)
{
    if (!of || !result)
        return null("foundry_array_part");
    foundry_status status = outside(of, first, count);
    if (status || (status = enter(of->pack)))
        return status;
    foundry_array *array = malloc(sizeof *array);
    if (!array)
        return leave(of->pack, no_memory(sizeof *array));
    *array = (foundry_array){of->pack, of->memory, of->first + first, count, of->type, 1, {count}};
    of->memory->arrays++;
    of->pack->arrays++;
    *result = array;
    return leave(of->pack, FOUNDRY_OK);
}

foundry_status foundry_array_shape(foundry_array *array, uint32_t rank, const uint64_t *sizes)
{
    if (!array || (rank && !sizes))
        return null("foundry_array_shape");
    uint64_t product = 1;
    for (uint32_t i = 0; i < rank && rank <= 8; i++)
        if (__builtin_mul_overflow(product, sizes[i], &product))
            product = UINT64_MAX;
    if (rank < 1 || rank > 8 || product != array->count)
        return packed_failed(FOUNDRY_ARGUMENT, "the sizes' product is the number of elements, and there are 1 to 8", "",
            "an array of %" PRIu64 " elements cannot have this shape", array->count);
    foundry_status status = enter(array->pack);
    if (status)
        return status;
    array->rank = rank;
    memcpy(array->shape, sizes, rank * sizeof *sizes);
    return leave(array->pack, FOUNDRY_OK);
}

/* Copy elements to an array, or from it. */
static foundry_status transfer(const foundry_array *array, uint64_t first, uint64_t count, const void *from, void *to, const char *function)
{
    if (!array || (count && !from && !to))
        return null(function);
    foundry_status status = outside(array, first, count);
    if (status || !count || (status = enter(array->pack)))
        return status;
    const uint64_t bytes = count * packed_bytes(array->type), at = (array->first + first) * packed_bytes(array->type);
    const struct memory *memory = array->memory;
    if (memory->host)
        memmove(from ? memory->host + at : to, from ? from : memory->host + at, (size_t)bytes);
    else
        status = from ? road(array->pack)->write(array->pack->device, memory->road, at, bytes, from)
                      : road(array->pack)->read(array->pack->device, memory->road, at, bytes, to);
    return leave(array->pack, status);
}

foundry_status foundry_array_write(foundry_array *array, uint64_t first, uint64_t count, const void *from)
{
    return transfer(array, first, count, from, NULL, "foundry_array_write");
}

foundry_status foundry_array_read(const foundry_array *array, uint64_t first, uint64_t count, void *to)
{
    return transfer(array, first, count, NULL, to, "foundry_array_read");
}

void foundry_array_release(foundry_array *array)
{
    if (!array)
        return;
    foundry_pack *pack = array->pack;
    /* A function without a status: wait for a launch of another thread. */
    while (atomic_flag_test_and_set_explicit(&pack->busy, memory_order_acquire))
        ;
    if (!--array->memory->arrays) {
        if (array->memory->road)
            road(pack)->release(pack->device, array->memory->road);
        free(array->memory);
    }
    free(array);
    pack->arrays--;
    leave(pack, FOUNDRY_OK);
}

/* ---- The choice of a form */

/* Triton's type of a number that is no constant; NULL for other arguments. */
static const char *number_type(const foundry_argument *argument)
{
    const int64_t integer = argument->value.integer;
    switch (argument->kind) {
    case FOUNDRY_INTEGER: return integer >= INT32_MIN && integer <= INT32_MAX ? "i32" : "i64";
    case FOUNDRY_UNSIGNED: return "u64";
    case FOUNDRY_BOOLEAN: return "i1";
    case FOUNDRY_FLOAT: return "fp32";
    default: return NULL;
    }
}

/* Write an argument: a value, or the type of an array. */
static void describe(const foundry_argument *argument, char *text, size_t size)
{
    const foundry_array *array = argument->kind == FOUNDRY_ARRAY ? argument->value.array : NULL;
    switch (argument->kind) {
    case FOUNDRY_ARRAY: snprintf(text, size, "%s%s", array ? "*" : "None", array ? packed_type(array->type) : ""); break;
    case FOUNDRY_INTEGER: snprintf(text, size, "%" PRId64, argument->value.integer); break;
    case FOUNDRY_UNSIGNED: snprintf(text, size, "%" PRIu64, argument->value.bits); break;
    case FOUNDRY_BOOLEAN: snprintf(text, size, "%s", argument->value.boolean ? "True" : "False"); break;
    case FOUNDRY_FLOAT: snprintf(text, size, "%.17g", argument->value.number); break;
    case FOUNDRY_TEXT: snprintf(text, size, "%.100s", argument->value.text ? argument->value.text : "None"); break;
    case FOUNDRY_CHOSEN: snprintf(text, size, "what triton.autotune chose"); break;
    default: snprintf(text, size, "an argument of kind %d, which there is not", (int)argument->kind);
    }
}

/* Return the argument that the text of a constant stands for. */
static foundry_argument read_constant(const char *text)
{
    char *end;
    if (!strcmp(text, "None"))
        return (foundry_argument){.kind = FOUNDRY_ARRAY};
    if (!strcmp(text, "True") || !strcmp(text, "False"))
        return (foundry_argument){.kind = FOUNDRY_BOOLEAN, .value.boolean = *text == 'T'};
    /* A repr of a float has a point, an exponent, or is inf or nan. */
    if (strpbrk(text, ".en")) {
        locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* the program's may have a decimal comma */
        double number = strtod_l(text, &end, plain);
        freelocale(plain);
        if (end != text && !*end)
            return (foundry_argument){.kind = FOUNDRY_FLOAT, .value.number = number};
    }
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (!errno && end != text && !*end)
        return (foundry_argument){.kind = FOUNDRY_INTEGER, .value.integer = integer};
    errno = 0;
    unsigned long long bits = strtoull(text, &end, 10);
    if (!errno && end != text && !*end && *text != '-')
        return (foundry_argument){.kind = FOUNDRY_UNSIGNED, .value.bits = bits};
    return (foundry_argument){.kind = FOUNDRY_TEXT, .value.text = text};
}

static int is_constant_equal(const foundry_argument *argument, const char *text)
{
    const foundry_argument packed = read_constant(text);
    if (argument->kind == FOUNDRY_UNSIGNED && packed.kind == FOUNDRY_INTEGER)
        return packed.value.integer >= 0 && argument->value.bits == packed.value.bits;
    if (argument->kind != packed.kind)
        return 0;
    switch (packed.kind) {
    case FOUNDRY_ARRAY: return !argument->value.array;
    case FOUNDRY_TEXT: return argument->value.text && !strcmp(argument->value.text, text);
    case FOUNDRY_BOOLEAN: return !argument->value.boolean == !packed.value.boolean;
    case FOUNDRY_FLOAT: /* 0.0 is not -0.0, and a NaN is a NaN */
        return argument->value.bits == packed.value.bits || (argument->value.number != argument->value.number && packed.value.number != packed.value.number);
    default: return argument->value.bits == packed.value.bits;
    }
}

/* The bits of an argument that is an integer or a Boolean. */
static uint64_t integer_bits(const foundry_argument *argument)
{
    return argument->kind == FOUNDRY_BOOLEAN ? argument->value.boolean != 0 : argument->value.bits;
}

/* Return whether an integer is in the range of a type. */
static int fits(const foundry_argument *argument, uint32_t type)
{
    if (argument->kind == FOUNDRY_BOOLEAN)
        return 1;
    if (type == FOUNDRY_I1)
        return 0;
    const int bits = 8 * types[type].bytes;
    if (argument->kind == FOUNDRY_UNSIGNED)
        return argument->value.bits <= (types[type].is_signed ? (uint64_t)INT64_MAX : UINT64_MAX) >> (64 - bits);
    const int64_t value = argument->value.integer;
    if (types[type].is_signed)
        return bits == 64 || (value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << (bits - 1));
    return value >= 0 && (bits == 64 || value < INT64_C(1) << bits);
}

static uint64_t address(const foundry_pack *pack, const foundry_array *array)
{
    const struct road_memory *memory = array->memory->road;
    return memory ? road(pack)->address(pack->device, memory) + array->first * packed_bytes(array->type) : 0;
}

/* Return whether a form of a kernel takes an argument; if not, why is in `why`. */
static int takes(const foundry_pack *pack, const struct packed_name *name, const struct packed_parameter *parameter, const foundry_argument *argument, char *why, size_t size)
{
    const char *type = number_type(argument), *packed = packed_type(parameter->type);
    const int is_integer = type && argument->kind != FOUNDRY_FLOAT;
    char is[256];
    describe(argument, is, sizeof is);
    switch (parameter->how) {
    case PACKED_CONSTANT:
        if (is_constant_equal(argument, parameter->text))
            return 1;
        snprintf(why, size, "%s is %s, and compiled in is %.200s", name->name, is, parameter->text);
        return 0;
    case PACKED_POINTER:
        if (argument->kind != FOUNDRY_ARRAY || !argument->value.array || argument->value.array->type != parameter->type)
            snprintf(why, size, "%s is %s, and packed is *%s", name->name, type ? type : is, packed);
        else if (address(pack, argument->value.array) % parameter->divisor == 0)
            return 1;
        else
            snprintf(why, size, "%s starts at an address that is not divisible by %d", name->name, parameter->divisor);
        return 0;
    default:
        if (!type || (types[parameter->type].is_float ? !name->declared && (is_integer || parameter->type != FOUNDRY_FP32)
                                                      : !is_integer || (!name->declared && strcmp(type, packed))))
            snprintf(why, size, "%.100s is %.100s%s%s, and packed is %s", name->name, is, type ? ", to Triton " : "", type ? type : "", packed);
        else if (types[parameter->type].is_float)
            return 1;
        else if (!fits(argument, parameter->type))
            snprintf(why, size, "%s is %s, which is not in the range of %s", name->name, is, packed);
        else if (integer_bits(argument) % parameter->divisor == 0)
            return 1;
        else
            snprintf(why, size, "%s is not divisible by %d", name->name, parameter->divisor);
        return 0;
    }
}

/* Compare a part of the key of triton.autotune: 1 if it is equal, more if a number is as many times larger or smaller, 0
 * if it is something else. */
static double distance(const char *key, const foundry_argument *argument)
{
    if (*key == '*' && argument->kind == FOUNDRY_ARRAY && argument->value.array)
        return !strcmp(key + 1, packed_type(argument->value.array->type));
    if (is_constant_equal(argument, key))
        return 1;
    const foundry_argument known = read_constant(key);
    if (argument->kind != FOUNDRY_INTEGER || known.kind != FOUNDRY_INTEGER)
        return 0;
    double one = (double)known.value.integer, other = (double)argument->value.integer;
    one = one < 0 ? 1 - one : 1 + one;
    other = other < 0 ? 1 - other : 1 + other;
    return one > other ? one / other : other / one;
}

/* Put the constants that triton.autotune chose for the nearest key in their places. */
static foundry_status choose_constants(const struct packed_kernel *kernel, foundry_argument *arguments)
{
    const struct packed_choice *nearest = NULL;
    double least = 0;
    int asked = 0;
    for (uint32_t i = 0; i < kernel->name_count; i++)
        asked |= arguments[i].kind == FOUNDRY_CHOSEN;
    if (!asked)
        return FOUNDRY_OK;
    for (uint32_t at = 0; at < kernel->choice_count; at++) {
        double far = 1;
        for (uint32_t i = 0; i < kernel->name_count; i++)
            if (kernel->choices[at].key[i])
                far *= distance(kernel->choices[at].key[i], &arguments[i]);
        if (far && (!nearest || far < least)) {
            nearest = &kernel->choices[at];
            least = far;
        }
    }
    for (uint32_t i = 0; i < kernel->name_count; i++) {
        if (arguments[i].kind != FOUNDRY_CHOSEN)
            continue;
        const char *text = nearest ? nearest->constants[i] : NULL;
        if (!text)
            return packed_failed(FOUNDRY_ARGUMENT,
                nearest || !kernel->choice_count ? "triton.autotune did not choose it" : "triton.autotune chose nothing for arguments of such types",
                "pass its value", "%s was not passed %s", kernel->name, kernel->names[i].name);
        arguments[i] = read_constant(text);
    }
    return FOUNDRY_OK;
}

/* Return how many arguments a form does not take. The first of them is argument `at`, and `why` says why. A constant that
 * triton.autotune chooses counts as more than all others: its value is nobody's mistake. */
static uint32_t misfits(const foundry_pack *pack, const struct packed_kernel *kernel, const struct packed_variant *variant, const foundry_argument *arguments, uint32_t *at, char why[512])
{
    uint32_t wrong = 0;
    char text[512];
    for (uint32_t i = 0; i < kernel->name_count; i++)
        if (!takes(pack, &kernel->names[i], &variant->parameters[i], &arguments[i], text, sizeof text)) {
            if (!wrong) {
                *at = i;
                snprintf(why, 512, "%s", text);
            }
            wrong += kernel->names[i].constant == 2 ? kernel->name_count : 1;
        }
    return wrong;
}

/* Return the first form, which is the most specialised, that takes all arguments. */
static foundry_status choose_variant(const foundry_pack *pack, const struct packed_kernel *kernel, const foundry_argument *arguments, const struct packed_variant **variant)
{
    char first[512] = "", why[512];
    uint32_t fewest = UINT32_MAX, at = 0, where = 0;
    for (uint32_t v = 0; v < kernel->variant_count; v++) {
        const uint32_t wrong = misfits(pack, kernel, &kernel->variants[v], arguments, &where, why);
        if (!wrong) {
            *variant = &kernel->variants[v];
            return FOUNDRY_OK;
        }
        if (wrong <= fewest) { /* of those with as few, the last is the least specialised */
            fewest = wrong;
            memcpy(first, why, sizeof first);
            at = where;
        }
    }
    /* What the forms take there that take as many others. */
    char all[1024];
    size_t used = (size_t)snprintf(all, sizeof all, "%s; the packed forms take", first);
    const size_t list = used;
    for (uint32_t v = 0; v < kernel->variant_count && used < sizeof all - 300; v++) {
        char is[256];
        const struct packed_parameter *taken = &kernel->variants[v].parameters[at];
        if (misfits(pack, kernel, &kernel->variants[v], arguments, &where, why) != fewest || where != at)
            continue;
        if (taken->how == PACKED_CONSTANT)
            snprintf(is, sizeof is, " %.200s", taken->text);
        else
            snprintf(is, sizeof is, " %s%s", taken->how == PACKED_POINTER ? "*" : "", packed_type(taken->type));
        if (taken->divisor > 1)
            strcat(is, " divisible by 16");
        /* Each ends with a semicolon, so that one is not taken for a part of another. */
        strcat(is, ";");
        if (!strstr(all + list, is))
            used += (size_t)snprintf(all + used, sizeof all - used, "%s", is);
    }
    if (all[used - 1] == ';')
        all[used - 1] = 0;
    return packed_failed(FOUNDRY_ARGUMENT, all, "launch the kernel with such arguments in the script, and pack it again",
        "no packed form of %s takes the argument %s", kernel->name, kernel->names[at].name);
}

static foundry_status find_kernel(const foundry_pack *pack, const char *name, size_t count, const struct packed_kernel **kernel)
{
    const foundry_module *module = pack->module;
    for (uint32_t i = 0; i < module->kernel_count; i++)
        if (!strcmp(module->kernels[i].name, name)) {
            *kernel = &module->kernels[i];
            if (count == (*kernel)->name_count)
                return FOUNDRY_OK;
            return packed_failed(FOUNDRY_ARGUMENT, "", "pass one for each parameter, constants included", "%s takes %u arguments, and was passed %zu",
                name, (*kernel)->name_count, count);
        }
    return packed_failed(FOUNDRY_ARGUMENT, "", "NAME.h lists the kernels", "%s has no kernel %.200s", module->name, name);
}

/* Copy arguments, complete the copy, and check what does not depend on a form. */
static foundry_status complete(foundry_pack *pack, const char *name, const foundry_argument *given, size_t count, const struct packed_kernel **kernel, foundry_argument **arguments)
{
    foundry_status status = find_kernel(pack, name, count, kernel);
    if (status)
        return status;
    foundry_argument *copy = malloc((count + 1) * sizeof *copy);
    if (!copy)
        return no_memory(count * sizeof *copy);
    if (count)
        memcpy(copy, given, count * sizeof *copy);
    for (size_t i = 0; i < count && !status; i++)
        if (copy[i].kind == FOUNDRY_ARRAY && copy[i].value.array && copy[i].value.array->pack != pack)
            status = packed_failed(FOUNDRY_ARGUMENT, "the array was made for another opened folder", "make it with the same foundry_pack",
                "%s cannot take %s", (*kernel)->name, (*kernel)->names[i].name);
    if (!status)
        status = choose_constants(*kernel, copy);
    if (status)
        free(copy);
    else
        *arguments = copy;
    return status;
}

foundry_status foundry_choose(foundry_pack *pack, const char *name, foundry_argument *arguments, size_t count)
{
    if (!pack || !name || (count && !arguments))
        return null("foundry_choose");
    const struct packed_kernel *kernel;
    foundry_argument *chosen;
    foundry_status status = enter(pack);
    if (status)
        return status;
    status = complete(pack, name, arguments, count, &kernel, &chosen);
    if (!status) {
        memcpy(arguments, chosen, count * sizeof *chosen);
        free(chosen);
    }
    return leave(pack, status);
}

/* ---- The lengths of arrays */

struct collected {
    struct packed_reach reach;
    int64_t *least, *most; /* the elements of each argument that are reached for certain */
};

static void note(struct packed_reach *reach, int index, int64_t low, int64_t high, int exact, int is_store)
{
    struct collected *found = (struct collected *)reach;
    (void)is_store;
    if (!exact)
        return;
    if (low < found->least[index])
        found->least[index] = low;
    if (high > found->most[index])
        found->most[index] = high;
}

static void anywhere(struct packed_reach *reach, int index, int is_store)
{
    (void)reach;
    (void)index;
    (void)is_store;
}

static void collect(struct collected *found, const struct road_launch *launch, const int64_t *numbers)
{
    int64_t grid[3] = {launch->grid[0], launch->grid[1], launch->grid[2]}, at[3];
    const int all = grid[0] * grid[1] * grid[2] <= MOST_CHECKED;
    int64_t step[3];
    for (int axis = 0; axis < 3; axis++)
        step[axis] = all || grid[axis] <= 64 ? 1 : grid[axis] - 1;
    for (at[2] = 0; at[2] < grid[2]; at[2] += step[2])
        for (at[1] = 0; at[1] < grid[1]; at[1] += step[1])
            for (at[0] = 0; at[0] < grid[0]; at[0] += step[0])
                launch->variant->reach(&found->reach, numbers, at, grid);
}

static foundry_status check_lengths(foundry_pack *pack, const struct packed_kernel *kernel, const struct road_launch *launch)
{
    const struct packed_variant *variant = launch->variant;
    const uint32_t count = launch->count;
    if (!variant->reach || !count)
        return FOUNDRY_OK;
    int64_t *values = malloc(3 * count * sizeof *values);
    if (!values)
        return no_memory(3 * count * sizeof *values);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = launch->arguments[i].integer;
        values[count + i] = INT64_MAX;
        values[2 * count + i] = INT64_MIN;
    }
    const int64_t *known = NULL;
    for (int i = 0; i < REMEMBERED && !known; i++) {
        struct checked *each = &pack->checked[i];
        if (each->variant == variant && !memcmp(each->grid, launch->grid, sizeof each->grid) && !memcmp(each->values, values, count * sizeof *values))
            known = each->values;
    }
    if (!known) {
        struct collected found = {{note, anywhere}, values + count, values + 2 * count};
        collect(&found, launch, values);
        struct checked *kept = &pack->checked[pack->next_checked++ % REMEMBERED];
        free(kept->values);
        kept->variant = variant;
        memcpy(kept->grid, launch->grid, sizeof kept->grid);
        kept->values = values;
        known = values;
    } else
        free(values);
    for (uint32_t i = 0; i < count; i++) {
        const struct road_argument *argument = &launch->arguments[i];
        const int64_t low = known[count + i], high = known[2 * count + i];
        if (argument->parameter->how != PACKED_POINTER || low > high)
            continue;
        const int64_t bytes = packed_bytes(argument->parameter->type), has = (int64_t)argument->bytes / bytes;
        if (low >= -((int64_t)argument->first / bytes) && high < has)
            continue;
        char why[256];
        snprintf(why, sizeof why, "with these numbers and a grid of %u x %u x %u programs, it reaches elements %" PRId64 " to %" PRId64,
            launch->grid[0], launch->grid[1], launch->grid[2], low, high);
        return packed_failed(FOUNDRY_ARGUMENT, why, "pass a longer array, or check the numbers and the grid",
            "%s is too short for %s: it has %" PRId64 " elements", argument->name, kernel->name, has);
    }
    return FOUNDRY_OK;
}

/* ---- A launch */

/* The memory of an argument of a launch, if it is the host's and is copied for each launch; else NULL. */
static struct memory *copied(const foundry_pack *pack, const struct packed_parameter *parameter, const foundry_argument *argument)
{
    struct memory *memory = parameter->how == PACKED_POINTER ? argument->value.array->memory : NULL;
    return memory && is_copied(pack, memory) ? memory : NULL;
}

/* Refuse arrays that overlap if each would be copied by itself, and the kernel writes to one. */
static foundry_status check_copies(const foundry_pack *pack, const struct packed_kernel *kernel, const struct packed_variant *variant, const foundry_argument *arguments)
{
    const struct packed_parameter *parameters = variant->parameters;
    for (uint32_t i = 0; i < kernel->name_count; i++)
        for (uint32_t j = 0; j < kernel->name_count; j++) {
            const struct memory *one = copied(pack, &parameters[i], &arguments[i]), *other = copied(pack, &parameters[j], &arguments[j]);
            if (one && other && one != other && parameters[i].is_written && one->host < other->host + other->bytes && other->host < one->host + one->bytes)
                return packed_failed(FOUNDRY_ARGUMENT, "the device has its own memory, and each array would be copied to it by itself",
                    "make one array of the memory, and parts of it (foundry_array_part)", "%s and %s of %s share memory of the host",
                    kernel->names[i].name, kernel->names[j].name, kernel->name);
        }
    return FOUNDRY_OK;
}

/* Copy the host's arrays to the device, or back those that the kernel writes; each once. */
static foundry_status copy_arrays(foundry_pack *pack, const struct packed_kernel *kernel, const struct packed_variant *variant, const foundry_argument *arguments, int is_back)
{
    foundry_status status = FOUNDRY_OK;
    pack->copies++;
    for (uint32_t i = 0; i < kernel->name_count && !status; i++) {
        struct memory *memory = copied(pack, &variant->parameters[i], &arguments[i]);
        if (!memory || !memory->road || memory->copied == pack->copies || (is_back && !variant->parameters[i].is_written))
            continue;
        memory->copied = pack->copies;
        status = is_back ? road(pack)->read(pack->device, memory->road, 0, memory->bytes, memory->host)
                         : road(pack)->write(pack->device, memory->road, 0, memory->bytes, memory->host);
    }
    return status;
}

static foundry_status load(foundry_pack *pack, const struct packed_variant *variant, struct road_kernel **kernel)
{
    for (struct loaded *each = pack->loaded; each; each = each->next)
        if (each->variant == variant) {
            *kernel = each->kernel;
            return FOUNDRY_OK;
        }
    struct loaded *made = calloc(1, sizeof *made);
    struct road_file *files = calloc(variant->file_count + 1, sizeof *files);
    foundry_status status = made && files ? FOUNDRY_OK : no_memory(sizeof *made);
    for (uint32_t i = 0; i < variant->file_count && !status; i++) {
        const struct packed_file *file = &variant->files[i];
        unsigned char *data = NULL, digest[32];
        if ((status = read_file(pack, file->path, file->bytes, &data)))
            break;
        files[i] = (struct road_file){data, file->bytes};
        sha256(data, file->bytes, digest);
        if (memcmp(digest, file->sha256, sizeof digest))
            status = packed_failed(FOUNDRY_FOLDER, "its sha256 is not the one that it had when it was packed", "pack the kernels again, or copy the folder again",
                "%s%s is damaged", pack->folder, file->path);
    }
    if (!status)
        status = road(pack)->load(pack->device, variant, files, &made->kernel);
    for (uint32_t i = 0; files && i < variant->file_count; i++)
        free((void *)files[i].data);
    free(files);
    if (status) {
        free(made);
        return status;
    }
    made->variant = variant;
    made->next = pack->loaded;
    pack->loaded = made;
    *kernel = made->kernel;
    return FOUNDRY_OK;
}

static void set_number(struct road_argument *to, const foundry_argument *from)
{
    const uint32_t type = to->parameter->type;
    to->bytes = packed_bytes(type);
    if (types[type].is_float) {
        double number = from->kind == FOUNDRY_FLOAT ? from->value.number
            : from->kind == FOUNDRY_UNSIGNED        ? (double)from->value.bits
            : from->kind == FOUNDRY_BOOLEAN         ? from->value.boolean != 0
                                                    : (double)from->value.integer;
        float single = (float)number;
        /* Triton's launcher rounds to bf16 by way of f32. */
        uint16_t half = type == FOUNDRY_FP16 ? narrow(number, 10) : narrow((double)single, 7);
        memcpy(&to->bits, type == FOUNDRY_FP64 ? (void *)&number : type == FOUNDRY_FP32 ? (void *)&single : (void *)&half, to->bytes);
        return;
    }
    const uint64_t value = integer_bits(from);
    memcpy(&to->bits, &value, to->bytes);
    const int unused = 64 - 8 * (int)to->bytes;
    /* As the analysis of addresses reads it: the sign is that of the number's own highest bit. */
    to->integer = type == FOUNDRY_I1 ? (int64_t)value : (int64_t)(value << unused) >> unused;
}

static foundry_status launch(foundry_pack *pack, const struct packed_kernel *kernel, const uint32_t grid[3], const foundry_argument *arguments)
{
    struct road_launch launch = {.grid = {grid[0], grid[1], grid[2]}};
    foundry_status status = choose_variant(pack, kernel, arguments, &launch.variant);
    if (status)
        return status;
    const uint32_t count = kernel->name_count;
    struct road_argument *passed = calloc(count + 1, sizeof *passed);
    if (!passed)
        return no_memory(count * sizeof *passed);
    for (uint32_t i = 0; i < count; i++) {
        const struct packed_parameter *parameter = &launch.variant->parameters[i];
        if (parameter->how == PACKED_CONSTANT)
            continue;
        struct road_argument *to = &passed[launch.count++];
        to->name = kernel->names[i].name;
        to->parameter = parameter;
        if (parameter->how == PACKED_NUMBER) {
            set_number(to, &arguments[i]);
            continue;
        }
        const foundry_array *array = arguments[i].value.array;
        const uint64_t bytes = packed_bytes(array->type);
        to->memory = array->memory->road;
        to->first = array->first * bytes;
        to->bytes = array->count * bytes;
        to->host = array->memory->host ? array->memory->host + to->first : NULL;
        to->rank = array->rank;
        memcpy(to->shape, array->shape, sizeof to->shape);
    }
    launch.arguments = passed;
    struct road_kernel *loaded;
    if (grid[0] && grid[1] && grid[2]) {
        status = check_lengths(pack, kernel, &launch);
        if (!status)
            status = check_copies(pack, kernel, launch.variant, arguments);
        if (!status)
            status = load(pack, launch.variant, &loaded);
        if (!status)
            status = copy_arrays(pack, kernel, launch.variant, arguments, 0);
        if (!status)
            status = road(pack)->launch(pack->device, loaded, &launch);
        if (!status)
            status = copy_arrays(pack, kernel, launch.variant, arguments, 1);
    }
    free(passed);
    return status;
}

foundry_status foundry_launch(foundry_pack *pack, const char *name, const uint32_t grid[3], const foundry_argument *given, size_t count)
{
    if (!pack || !name || !grid || (count && !given))
        return null("foundry_launch");
    const uint64_t plane = (uint64_t)grid[0] * grid[1];
    const int is_empty = !grid[0] || !grid[1] || !grid[2];
    if (grid[0] > MOST_PROGRAMS || grid[1] > MOST_PROGRAMS || grid[2] > MOST_PROGRAMS
        || (!is_empty && (plane > MOST_PROGRAMS || plane * grid[2] > MOST_PROGRAMS)))
        return packed_failed(FOUNDRY_ARGUMENT, "a launch can have 2147483647 programs", "let each program do more",
            "%.200s is launched on a grid of %u x %u x %u programs", name, grid[0], grid[1], grid[2]);
    const struct packed_kernel *kernel;
    foundry_argument *arguments;
    foundry_status status = enter(pack);
    if (status)
        return status;
    status = complete(pack, name, given, count, &kernel, &arguments);
    if (!status) {
        status = launch(pack, kernel, grid, arguments);
        free(arguments);
    }
    return leave(pack, status);
}

/* ---- What roads use */

int packed_wants(const char *wanted, unsigned index, const char *name)
{
    char number[16];
    snprintf(number, sizeof number, "%u", index);
    return wanted[strspn(wanted, "0123456789")] ? strcasestr(name, wanted) != NULL : !*wanted || !strcmp(wanted, number);
}

uint64_t packed_need(const char *needs, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = needs ? needs : ""; *at;) {
        size_t word = strcspn(at, " ");
        if (word >= length && !strncmp(at, name, length)) {
            if (word == length)
                return 1;
            if (at[length] == '=')
                return strtoull(at + length + 1, NULL, 10);
        }
        at += word + (at[word] == ' ');
    }
    return 0;
}
