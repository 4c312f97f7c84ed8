/* One launch of a kernel on DPUs: what each DPU gets of the arrays, and what comes back.
 *
 * Call shards_plan, which needs no DPU, then shards_run, with DPUs that the kernel's program is loaded into. Both return
 * NULL, or what is wrong, in words. The host's memory changes only when the whole launch has succeeded. Needs road.h.
 */
#ifndef FOUNDRY_DPU_SHARDS_H
#define FOUNDRY_DPU_SHARDS_H

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "road.h"

/* The bytes of a memory that programs reach: low <= byte < high; none if low >= high. */
struct shards_part {
    int64_t low, high;
};

/* Memory of the host that arguments point into. */
struct road_memory {
    unsigned char *data;
    int64_t bytes; /* -1: as many as the programs reach; shards_plan finds out */
    int is_ours;   /* `data` was allocated with it */
};

/* A memory of a launch, and how the DPUs use it. */
struct shards_region {
    struct road_memory *memory;
    int index;               /* of the first argument that points there, for messages */
    int size;                /* bytes of the smallest element */
    int is_read, is_written;
    int anywhere;            /* addresses come from data: each DPU needs all of it */
    int64_t least, most;     /* bytes that are reached for certain */
    struct shards_part *part; /* for each DPU, also those that may be reached */
    uint32_t offset, bytes;  /* in each DPU's heap */
    unsigned char *sent, *got;
};

struct shards {
    struct packed_reach reach; /* first, so that a note finds the rest */
    const struct road_launch *launch;
    const int *sizes;    /* by argument: the bytes of a pointer's element */
    uint32_t dpus;
    int is_atomic;       /* programs have an effect on others while they run */
    int64_t *integers;   /* by argument */
    int *region_of;      /* by argument: its region; -1 if it is no pointer, or points nowhere */
    struct shards_region *regions;
    int count;           /* regions */
    uint32_t at_dpu;
    int64_t at_program[3];
    int is_planned, has_stored;
    char error[16384];
};

/* Prepare a launch; `sizes` has the bytes of each pointer's element. What both name must live as long. NULL: no memory. */
struct shards *shards_new(const struct road_launch *launch, const int *sizes, uint32_t dpus, int is_atomic);
void shards_free(struct shards *shards);

/* Whether a program along x stores something, on a grid that is long in x. */
int shards_program_stores(struct shards *shards, int64_t number);

/* The programs of a DPU: `count` from `first` on, in linear order, x fastest. */
void shards_share(const struct shards *shards, uint32_t dpu, uint32_t *first, uint32_t *count);

/* Find out what each DPU's programs reach of each memory, and refuse one that is too short.
 * `only`: the elements of a memory of unknown length whose addresses come from data; -1: there are none, an error. */
const char *shards_plan(struct shards *shards, int64_t only);

struct dpus;

/* Lay the memories out in the heaps, send them, launch, and take back what the programs wrote. */
const char *shards_run(struct shards *shards, struct dpus *dpus);

#endif
