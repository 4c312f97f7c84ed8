/* Blocks of one size: the free ones are a list through their first words. */
#include <alloc.h>
#include <foundry_service.h>
#include <mutex.h>

MUTEX_INIT(__foundry_fsb);

fsb_allocator_t fsb_alloc(unsigned int bytes, unsigned int blocks)
{
    uint32_t step = bytes == 0 ? 8 : (bytes + 7) & ~7u;
    if (step < bytes || (blocks && step > UINT32_MAX / blocks - 8))
        __foundry_fault(FOUNDRY_DPU_REASON_HEAP_FULL, 0, bytes);
    /* The list's head comes after the blocks. */
    uint8_t *area = mem_alloc(step * blocks + sizeof(void *));
    fsb_allocator_t head = (fsb_allocator_t)(area + step * blocks);
    *head = NULL;
    for (uint32_t i = blocks; i; i--) {
        void **block = (void **)(area + step * (i - 1));
        *block = *head;
        *head = block;
    }
    return head;
}

void *fsb_get(fsb_allocator_t allocator)
{
    mutex_lock(__foundry_fsb);
    void **block = *allocator;
    if (block) *allocator = *block;
    mutex_unlock(__foundry_fsb);
    return block;
}

void fsb_free(fsb_allocator_t allocator, void *block)
{
    mutex_lock(__foundry_fsb);
    *(void **)block = *allocator;
    *allocator = block;
    mutex_unlock(__foundry_fsb);
}
