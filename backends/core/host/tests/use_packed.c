/* Uses a packed folder as a C program does, wrongly too: for sanitizers, and for compilers that warn of everything.
 *
 *     use_packed FOLDER
 */
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sums.h"

#define CHECK(what) \
    if (!(what)) { \
        fprintf(stderr, "line %d: %s; %s\n", __LINE__, #what, foundry_error()); \
        exit(1); \
    }

enum { LENGTH = 300, ARRAYS = 7, THREADS = 4 };
static const char *folder;

static uint64_t random_bits(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33 ^ *state << 31;
}

/* Make arrays of all kinds; memory of the host ends where an array does. */
static void make_arrays(foundry_pack *pack, foundry_array **arrays, float **memory)
{
    *memory = (float *)malloc(LENGTH * sizeof **memory);
    CHECK(*memory);
    for (int i = 0; i < LENGTH; i++)
        (*memory)[i] = (float)i;
    CHECK(!foundry_array_over(pack, FOUNDRY_FP32, LENGTH, *memory, &arrays[0]));
    CHECK(!foundry_array_create(pack, FOUNDRY_FP32, LENGTH, &arrays[1]));
    CHECK(!foundry_array_write(arrays[1], 0, LENGTH, *memory));
    CHECK(!foundry_array_part(arrays[1], 32, 100, &arrays[2]));
    CHECK(!foundry_array_part(arrays[0], LENGTH, 0, &arrays[3]));
    CHECK(!foundry_array_create(pack, FOUNDRY_I32, 0, &arrays[4]));
    CHECK(!foundry_array_create(pack, FOUNDRY_FP64, 7, &arrays[5]));
    CHECK(!foundry_array_over(pack, FOUNDRY_FP32, LENGTH - 9, *memory + 9, &arrays[6]));
}

/* A part lives as long as it is used, in whichever order arrays are released. */
static void release_wholes_first(foundry_pack *pack)
{
    const uint32_t grid[3] = {1, 1, 1};
    float memory[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int is_host = 0; is_host < 2; is_host++) {
        foundry_array *whole = NULL, *part = NULL, *of_part = NULL;
        CHECK(!(is_host ? foundry_array_over(pack, FOUNDRY_FP32, 8, memory, &whole) : foundry_array_create(pack, FOUNDRY_FP32, 8, &whole)));
        CHECK(!foundry_array_write(whole, 0, 8, memory));
        CHECK(!foundry_array_part(whole, 0, 6, &part));
        foundry_array_release(whole);
        CHECK(!foundry_array_part(part, 0, 3, &of_part));
        foundry_array_release(part);
        CHECK(!add_launch(pack, grid, of_part, of_part, of_part, 3, 256));
        float found[3];
        CHECK(!foundry_array_read(of_part, 0, 3, found));
        CHECK(found[0] == 0 && found[1] == 2 && found[2] == 4);
        CHECK(foundry_array_read(of_part, 3, 1, found) == FOUNDRY_ARGUMENT);
        CHECK(foundry_array_read(of_part, UINT64_MAX, 2, found) == FOUNDRY_ARGUMENT);
        CHECK(foundry_close(pack) == FOUNDRY_ARGUMENT);
        foundry_array_release(of_part);
    }
}

/* Launch with arguments that no caller should pass: each call is refused, or reaches nothing but its arrays. */
static void launch_anything(foundry_pack *pack, uint64_t seed, int calls, int *launched)
{
    static const char *const kernels[] = {"add", "numbers", "tuned", "sum", "none"};
    static const char *const texts[] = {"256", "i32", "*fp32", "None", "True", "0.0", "'relu'", "", NULL};
    static const int64_t integers[] = {0, 1, 16, 64, 255, 256, 257, 299, 300, 301, -1, INT32_MAX, INT64_MAX, INT64_MIN};
    static const double numbers[] = {0.0, -0.0, 0.1, 1e300};
    static const uint32_t sides[] = {0, 1, 1, 1, 2, 3, 65536, UINT32_MAX};
    foundry_array *arrays[ARRAYS];
    float *memory;
    make_arrays(pack, arrays, &memory);
    for (int call = 0; call < calls; call++) {
        foundry_argument arguments[12];
        const uint64_t bits = random_bits(&seed);
        for (int i = 0; i < 12; i++) {
            const uint64_t random = random_bits(&seed) >> 8;
            /* Mostly what the kernel takes there. */
            switch (random % 4 ? (i < 3 ? 0 : 1) : random / 4 % 8) {
            case 0: arguments[i] = foundry_pass_array(random / 64 % 8 ? arrays[random / 64 % ARRAYS] : NULL); break;
            case 1: arguments[i] = foundry_pass_int(i == 4 && random / 64 % 4 ? 256 : integers[random / 64 % 14]); break;
            case 2: arguments[i] = foundry_pass_uint(random); break;
            case 3: arguments[i] = foundry_pass_bool((int)random); break;
            case 4: arguments[i] = foundry_pass_float(numbers[random / 64 % 4]); break;
            case 5: arguments[i] = foundry_pass_text(texts[random / 64 % 9]); break;
            case 6: arguments[i] = foundry_pass_chosen(0); break;
            default: memset(&arguments[i], (int)random, sizeof arguments[i]);
            }
        }
        const char *kernel = kernels[bits % 8 < 4 ? 0 : bits % 5];
        const size_t counts[] = {5, 12, 6, 5, 0};
        uint32_t grid[3] = {1, 1, 1};
        for (int axis = 0; axis < 3; axis++)
            grid[axis] = sides[axis ? bits >> (8 + 4 * axis) & 1 : bits >> 16 & 7];
        const foundry_status status = foundry_launch(pack, kernel, grid, arguments, bits >> 40 & 7 ? counts[kernel == kernels[0] ? 0 : bits % 5] : 12);
        CHECK(status <= FOUNDRY_ARGUMENT);
        *launched += status == FOUNDRY_OK;
    }
    for (int i = 0; i < ARRAYS; i++)
        foundry_array_release(arrays[i]);
    free(memory);
}

static void check_constants(foundry_pack *pack)
{
    foundry_array *array = NULL;
    struct tuned_chosen chosen = {-1, -1};
    const uint32_t grid[3] = {1, 1, 1};
    CHECK(!foundry_array_create(pack, FOUNDRY_FP32, 256, &array));
    CHECK(!tuned_choose(pack, array, array, array, 90, 0, &chosen) && chosen.BLOCK == 64 && chosen.FAST == 1);
    /* The kernel was packed with 0.1; the program has a decimal comma, if the machine has such a locale. */
    setlocale(LC_ALL, "de_DE.UTF-8");
    CHECK(!sum_launch(pack, grid, array, array, array, 0, foundry_pass_float(0.1)));
    setlocale(LC_ALL, "C");
    CHECK(!sum_launch(pack, grid, array, array, array, 0, foundry_pass_text("'relu'")));
    CHECK(sum_launch(pack, grid, array, array, array, 0, foundry_pass_text("0.1")) == FOUNDRY_ARGUMENT);
    foundry_array_release(array);
}

/* Each opens the folder for itself, and all launch on the first one's, which refuses those that come at the same time. */
static foundry_pack *shared;
static void *open_and_launch(void *unused)
{
    const uint32_t grid[3] = {1, 1, 1};
    foundry_pack *pack = NULL;
    CHECK(!sums_open(folder, NULL, &pack));
    for (int i = 0; i < 200; i++) {
        foundry_array *own = NULL;
        float memory[16] = {1};
        CHECK(!foundry_array_over(pack, FOUNDRY_FP32, 16, memory, &own));
        CHECK(!add_launch(pack, grid, own, own, own, 16, 256) && memory[0] == 2);
        foundry_array_release(own);
        foundry_status status = foundry_array_over(shared, FOUNDRY_FP32, 16, memory, &own);
        CHECK(status == FOUNDRY_BUSY ? strstr(foundry_error(), "is in use") != NULL : !status);
        if (status)
            continue;
        status = add_launch(shared, grid, own, own, own, 16, 256);
        CHECK(status == FOUNDRY_BUSY ? memory[0] == 2 : !status && memory[0] == 4);
        foundry_array_release(own);
    }
    CHECK(!foundry_close(pack));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int launched = 0;
    CHECK(argc == 2);
    folder = argv[1];
    CHECK(sums_open("/nowhere", NULL, &shared) == FOUNDRY_FOLDER);
    for (int i = 0; i < THREADS; i++) {
        if (!i)
            CHECK(!sums_open(folder, "0", &shared));
        CHECK(!pthread_create(&threads[i], NULL, open_and_launch, NULL));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    release_wholes_first(shared);
    check_constants(shared);
    launch_anything(shared, 1, 20000, &launched);
    CHECK(launched > 100);
    CHECK(!foundry_close(shared));
    printf("%d calls were launched\n", launched);
    return 0;
}
