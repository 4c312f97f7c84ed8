/* The WRAM heap: a pointer that only grows. */
#include <alloc.h>
#include <foundry_service.h>
#include <mutex.h>

extern uint8_t __foundry_heap_start[], __foundry_heap_end[];

/* Not set again when a loaded program is launched once more: what has been allocated stays so until mem_reset. */
static volatile uint32_t pointer = (uint32_t)__foundry_heap_start;

MUTEX_INIT(__foundry_heap);

void *mem_alloc(size_t bytes)
{
    mutex_lock(__foundry_heap);
    uint32_t block = pointer;
    if (bytes) {
        block = (block + 7) & ~7u;
        if (bytes > (uint32_t)__foundry_heap_end - block) __foundry_fault(FOUNDRY_DPU_REASON_HEAP_FULL, block, bytes);
        pointer = block + bytes;
    }
    mutex_unlock(__foundry_heap);
    return (void *)block;
}

void *mem_reset(void)
{
    mutex_lock(__foundry_heap);
    pointer = (uint32_t)__foundry_heap_start;
    mutex_unlock(__foundry_heap);
    return __foundry_heap_start;
}
