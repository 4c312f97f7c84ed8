/* Blocks of powers of two: halves of twice as large ones, which they become again when both are free. */
#include <alloc.h>
#include <errno.h>
#include <foundry_service.h>
#include <mutex.h>
#include <string.h>

enum { SMALLEST = 5, LARGEST = 15, LEAST_AREA = 2048 }; /* logarithms of blocks of 32 bytes and of the largest area */

/* A free block; of a block in use, nothing is in it: its size is in `sizes`. */
struct free_block {
    struct free_block *next;
};

static uint8_t *area;
static uint32_t area_order;
static struct free_block *lists[LARGEST + 1];
/* For each 32 bytes of the area that a block in use begins with, the logarithm of its size; else 0. */
static uint8_t *sizes;

MUTEX_INIT(__foundry_buddy);

static uint32_t order_of(size_t bytes)
{
    uint32_t order = SMALLEST;
    while (order < 32 && (1u << order) < bytes) order++;
    return order;
}

void buddy_init(size_t bytes)
{
    mutex_lock(__foundry_buddy);
    if (!area) {
        area_order = order_of(bytes);
        if (bytes < LEAST_AREA || area_order > LARGEST || 1u << area_order != bytes)
            __foundry_fault(FOUNDRY_DPU_REASON_ALLOCATOR, 0, bytes);
        sizes = mem_alloc(bytes >> SMALLEST);
        memset(sizes, 0, bytes >> SMALLEST);
        memset(lists, 0, sizeof lists);
        area = mem_alloc(bytes);
        lists[area_order] = (struct free_block *)area;
        lists[area_order]->next = NULL;
    }
    mutex_unlock(__foundry_buddy);
}

void buddy_reset(void)
{
    mutex_lock(__foundry_buddy);
    area = NULL;
    mutex_unlock(__foundry_buddy);
}

void *buddy_alloc(size_t bytes)
{
    void *result = NULL;
    mutex_lock(__foundry_buddy);
    uint32_t wanted = order_of(bytes), order = wanted;
    while (order <= area_order && !lists[order]) order++;
    if (area && bytes && order <= area_order) {
        struct free_block *block = lists[order];
        lists[order] = block->next;
        while (order > wanted) {
            order--;
            struct free_block *half = (struct free_block *)((uint8_t *)block + (1u << order));
            half->next = lists[order];
            lists[order] = half;
        }
        sizes[((uint8_t *)block - area) >> SMALLEST] = wanted;
        result = block;
    } else {
        errno = ENOMEM;
    }
    mutex_unlock(__foundry_buddy);
    return result;
}

static uint8_t *size_of(void *block)
{
    uint32_t offset = (uint32_t)block - (uint32_t)area;
    if (!area || offset >= 1u << area_order || offset & ((1u << SMALLEST) - 1) || !sizes[offset >> SMALLEST])
        __foundry_fault(FOUNDRY_DPU_REASON_ALLOCATOR, (uint32_t)block, 0);
    return &sizes[offset >> SMALLEST];
}

/* Takes a free block out of the list of its size. Returns whether it was there. */
static int take(struct free_block *block, uint32_t order)
{
    for (struct free_block **link = &lists[order]; *link; link = &(*link)->next)
        if (*link == block) {
            *link = block->next;
            return 1;
        }
    return 0;
}

void buddy_free(void *block)
{
    if (!block) return;
    mutex_lock(__foundry_buddy);
    uint8_t *size = size_of(block);
    uint32_t order = *size, offset = (uint8_t *)block - area;
    *size = 0;
    while (order < area_order && take((struct free_block *)(area + (offset ^ 1u << order)), order)) {
        offset &= ~(1u << order);
        order++;
    }
    struct free_block *freed = (struct free_block *)(area + offset);
    freed->next = lists[order];
    lists[order] = freed;
    mutex_unlock(__foundry_buddy);
}

void *buddy_realloc(void *block, size_t bytes)
{
    if (!block) return buddy_alloc(bytes);
    if (!bytes) {
        buddy_free(block);
        return NULL;
    }
    uint32_t room = 1u << *size_of(block);
    if (order_of(bytes) == order_of(room)) return block;
    void *other = buddy_alloc(bytes);
    if (other) {
        memcpy(other, block, room < bytes ? room : bytes);
        buddy_free(block);
    }
    return other;
}
