/* vulkan.c on a driver that is made up, in the place of libvulkan.so.1: the input says what the driver answers, and what the program asks for next.
 *
 * The driver checks what a real one may take for granted: command buffers are recorded between begin and end, and not
 * while they run; numbers are within the limits that it named; objects live while they are used; and a kernel finds the
 * arguments of its launch when it runs, whether they were pushed or lie in memory.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static void *open_loader(const char *name, int flags);
static void *find(void *loader, const char *name);
static int start_thread(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with);
#define dlopen open_loader
#define dlsym find
#define pthread_create start_thread
#include "vulkan.c"

int accepted = 0;
static const uint8_t *input;
static size_t input_bytes;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static uint8_t next(void) {
    pthread_mutex_lock(&turn);
    uint8_t byte = input_bytes ? (input_bytes--, *input++) : 0;
    pthread_mutex_unlock(&turn);
    return byte;
}

/* Fail for one byte of 32; always succeed after the end of the input. */
static VkResult result(void) {
    static const VkResult errors[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST,
                                      VK_ERROR_TOO_MANY_OBJECTS};
    uint8_t byte = next();
    return byte >= 248 ? errors[byte % 4] : VK_SUCCESS;
}

static void check(int holds) {
    if (!holds) abort();
}

static int start_thread(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
#undef pthread_create
    return next() & THREADS ? pthread_create(thread, how, run, with) : 1;
}

static VkPhysicalDeviceLimits limits;
static VkPhysicalDeviceMemoryProperties memories;
static uint8_t features;
/* A device whose subgroups have one size may refuse kernels that ask for it. */
#define ONE_SIZE (features >> 5 & 1)

/* What was recorded: a kernel's arguments, and where it finds them when it runs. */
typedef struct {
    uint32_t bytes;
    uint8_t expected[1024];
    const uint8_t *address;
} Run;
enum { INITIAL, RECORDING, ENDED, PENDING };
typedef struct {
    int state, has_pipeline;
    uint32_t pushed, runs;
    uint8_t push[256];
    uint64_t number;
    Run run[MOST_COMMANDS + 1];
} Commands;
typedef struct {
    VkDeviceMemory memory;
    uint64_t bytes;
} Memory_buffer;

static Commands commands[SLOTS];
static uint64_t signalled, submitted_last;
/* The arguments of the launch that is being recorded. */
static const uint8_t *launched;
static uint32_t launched_bytes;

static Commands *of(VkCommandBuffer c) {
    Commands *found = (Commands *)c;
    if (found->state == PENDING && found->number <= signalled) found->state = INITIAL;
    return found;
}

static void advance(uint64_t to) {
    pthread_mutex_lock(&turn);
    for (; signalled < to; signalled++)
        for (int i = 0; i < SLOTS; i++)
            if (commands[i].state == PENDING && commands[i].number == signalled + 1)
                for (uint32_t r = 0; r < commands[i].runs; r++) {
                    Run *run = &commands[i].run[r];
                    if (run->address) check(!memcmp(run->address, run->expected, run->bytes));
                }
    pthread_mutex_unlock(&turn);
}

#define FAKE(type, name, ...) static VKAPI_ATTR type VKAPI_CALL fake_##name(__VA_ARGS__)
#define MADE(type, name, info, handle) \
    FAKE(VkResult, name, VkDevice d, const info *i, const VkAllocationCallbacks *a, handle *made) { \
        (void)d, (void)i, (void)a; \
        VkResult r = result(); \
        *made = r ? VK_NULL_HANDLE : (handle)malloc(1); \
        return r; \
    }
#define GONE(name, handle) \
    FAKE(void, name, VkDevice d, handle gone, const VkAllocationCallbacks *a) { (void)d, (void)a, free((void *)gone); }

FAKE(VkResult, EnumerateInstanceVersion, uint32_t *version) { return *version = VK_API_VERSION_1_3, VK_SUCCESS; }
FAKE(VkResult, CreateInstance, const VkInstanceCreateInfo *i, const VkAllocationCallbacks *a, VkInstance *made) {
    (void)i, (void)a, *made = (VkInstance)&limits;
    return VK_SUCCESS;
}
FAKE(VkResult, EnumeratePhysicalDevices, VkInstance i, uint32_t *count, VkPhysicalDevice *all) {
    (void)i, *count = 1, all[0] = (VkPhysicalDevice)&limits;
    return VK_SUCCESS;
}
FAKE(void, GetPhysicalDeviceProperties2, VkPhysicalDevice p, VkPhysicalDeviceProperties2 *all) {
    (void)p;
    all->properties.limits = limits;
    memset(all->properties.deviceName, 'd', sizeof all->properties.deviceName - 1);
    for (VkBaseOutStructure *each = all->pNext; each; each = each->pNext) {
        VkPhysicalDeviceSubgroupSizeControlProperties *sizes = (VkPhysicalDeviceSubgroupSizeControlProperties *)each;
        if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT)
            ((VkPhysicalDeviceExternalMemoryHostPropertiesEXT *)each)->minImportedHostPointerAlignment = 64;
        if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES)
            sizes->minSubgroupSize = ONE_SIZE ? 64 : 32, sizes->maxSubgroupSize = 64,
            sizes->requiredSubgroupSizeStages = ONE_SIZE ? 0 : VK_SHADER_STAGE_COMPUTE_BIT;
    }
}
FAKE(void, GetPhysicalDeviceFeatures2, VkPhysicalDevice p, VkPhysicalDeviceFeatures2 *all) {
    (void)p;
    for (VkBaseOutStructure *each = all->pNext; each; each = each->pNext) {
        VkPhysicalDeviceVulkan12Features *f = (VkPhysicalDeviceVulkan12Features *)each;
        if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
            f->timelineSemaphore = f->bufferDeviceAddress = features != 255, f->hostQueryReset = features & 1;
        if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR)
            ((VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR *)each)->pipelineExecutableInfo = features >> 1 & 1;
        if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR)
            ((VkPhysicalDeviceCooperativeMatrixFeaturesKHR *)each)->cooperativeMatrix = features >> 2 & 1;
    }
}
FAKE(void, GetPhysicalDeviceQueueFamilyProperties, VkPhysicalDevice p, uint32_t *count, VkQueueFamilyProperties *all) {
    (void)p, *count = 1 + next() % 2;
    for (uint32_t i = 0; i < *count; i++)
        all[i] = (VkQueueFamilyProperties){.queueFlags = next() == 255 ? 0 : VK_QUEUE_COMPUTE_BIT, .timestampValidBits = next() % 65};
}
FAKE(void, GetPhysicalDeviceMemoryProperties, VkPhysicalDevice p, VkPhysicalDeviceMemoryProperties *all) {
    (void)p, *all = memories;
}
FAKE(VkResult, EnumerateDeviceExtensionProperties, VkPhysicalDevice p, const char *l, uint32_t *count, VkExtensionProperties *all) {
    static const char *const names[] = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
                                        VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
    (void)p, (void)l;
    uint32_t there = features >> 3 & 7;
    if (there > sizeof names / sizeof *names) there = sizeof names / sizeof *names;
    for (uint32_t i = 0; all && i < there && i < *count; i++) strcpy(all[i].extensionName, names[i]);
    *count = there;
    return VK_SUCCESS;
}
FAKE(VkResult, GetPhysicalDeviceCooperativeMatrixPropertiesKHR, VkPhysicalDevice p, uint32_t *count,
     VkCooperativeMatrixPropertiesKHR *all) {
    (void)p;
    uint32_t there = all && next() % 2 ? *count / 2 : all ? *count : next() % 40u;
    for (uint32_t i = 0; all && i < there; i++) all[i].scope = next() % 4;
    *count = there;
    return VK_SUCCESS;
}
FAKE(void, GetPhysicalDeviceExternalBufferProperties, VkPhysicalDevice p, const VkPhysicalDeviceExternalBufferInfo *i,
     VkExternalBufferProperties *all) {
    (void)p, (void)i, all->externalMemoryProperties.externalMemoryFeatures = features;
}
FAKE(VkResult, CreateDevice, VkPhysicalDevice p, const VkDeviceCreateInfo *i, const VkAllocationCallbacks *a, VkDevice *made) {
    (void)p, (void)i, (void)a;
    VkResult r = result();
    *made = r ? NULL : (VkDevice)malloc(1);
    return r;
}
FAKE(void, DestroyDevice, VkDevice d, const VkAllocationCallbacks *a) { (void)a, free(d); }
FAKE(void, GetDeviceQueue, VkDevice d, uint32_t f, uint32_t i, VkQueue *q) { (void)f, (void)i, *q = (VkQueue)d; }
MADE(CommandPool, CreateCommandPool, VkCommandPoolCreateInfo, VkCommandPool)
MADE(Semaphore, CreateSemaphore, VkSemaphoreCreateInfo, VkSemaphore)
MADE(PipelineLayout, CreatePipelineLayout, VkPipelineLayoutCreateInfo, VkPipelineLayout)
MADE(ShaderModule, CreateShaderModule, VkShaderModuleCreateInfo, VkShaderModule)
MADE(PipelineCache, CreatePipelineCache, VkPipelineCacheCreateInfo, VkPipelineCache)
MADE(QueryPool, CreateQueryPool, VkQueryPoolCreateInfo, VkQueryPool)
GONE(DestroyCommandPool, VkCommandPool)
GONE(DestroySemaphore, VkSemaphore)
GONE(DestroyPipelineLayout, VkPipelineLayout)
GONE(DestroyShaderModule, VkShaderModule)
GONE(DestroyPipelineCache, VkPipelineCache)
GONE(DestroyQueryPool, VkQueryPool)
GONE(DestroyPipeline, VkPipeline)
FAKE(VkResult, AllocateCommandBuffers, VkDevice d, const VkCommandBufferAllocateInfo *i, VkCommandBuffer *made) {
    (void)d;
    for (uint32_t n = 0; n < i->commandBufferCount; n++) made[n] = (VkCommandBuffer)&commands[n];
    return result();
}
FAKE(VkResult, CreateComputePipelines, VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo *i,
     const VkAllocationCallbacks *a, VkPipeline *made) {
    (void)d, (void)c, (void)n, (void)a;
    check(!i->stage.pNext == ONE_SIZE);
    VkResult r = result();
    *made = r ? VK_NULL_HANDLE : (VkPipeline)malloc(1);
    return r;
}
FAKE(VkResult, GetPipelineCacheData, VkDevice d, VkPipelineCache c, size_t *bytes, void *data) {
    (void)d, (void)c;
    if (data) memset(data, 1, *bytes < 40 ? *bytes : 40);
    *bytes = !data || *bytes > 40 ? 40 : *bytes;
    return result();
}
FAKE(VkResult, CreateBuffer, VkDevice d, const VkBufferCreateInfo *i, const VkAllocationCallbacks *a, VkBuffer *made) {
    (void)d, (void)a;
    VkResult r = result();
    *made = r ? VK_NULL_HANDLE : (VkBuffer)calloc(1, sizeof(Memory_buffer));
    if (!r) ((Memory_buffer *)*made)->bytes = i->size;
    return r;
}
GONE(DestroyBuffer, VkBuffer)
FAKE(void, GetBufferMemoryRequirements, VkDevice d, VkBuffer b, VkMemoryRequirements *needed) {
    (void)d;
    *needed = (VkMemoryRequirements){((Memory_buffer *)b)->bytes + next() % 2 * 64, 16, next() % 16 ? UINT32_MAX : next()};
}
FAKE(VkResult, AllocateMemory, VkDevice d, const VkMemoryAllocateInfo *i, const VkAllocationCallbacks *a, VkDeviceMemory *made) {
    (void)d, (void)a;
    check(i->memoryTypeIndex < memories.memoryTypeCount);
    VkResult r = result();
    *made = r ? VK_NULL_HANDLE : (VkDeviceMemory)malloc(i->allocationSize ? i->allocationSize : 1);
    return r;
}
GONE(FreeMemory, VkDeviceMemory)
FAKE(VkResult, BindBufferMemory, VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize offset) {
    (void)d, (void)offset, ((Memory_buffer *)b)->memory = m;
    return result();
}
FAKE(VkResult, MapMemory, VkDevice d, VkDeviceMemory m, VkDeviceSize o, VkDeviceSize b, VkMemoryMapFlags f, void **at) {
    (void)d, (void)o, (void)b, (void)f, *at = (void *)m;
    return result();
}
FAKE(VkDeviceAddress, GetBufferDeviceAddress, VkDevice d, const VkBufferDeviceAddressInfo *i) {
    (void)d;
    return (VkDeviceAddress)(uintptr_t)((Memory_buffer *)i->buffer)->memory;
}
FAKE(VkResult, BeginCommandBuffer, VkCommandBuffer c, const VkCommandBufferBeginInfo *i) {
    (void)i;
    Commands *all = of(c);
    check(all->state == INITIAL || all->state == ENDED);
    VkResult r = result();
    if (!r) all->state = RECORDING, all->has_pipeline = 0, all->runs = 0;
    return r;
}
FAKE(VkResult, EndCommandBuffer, VkCommandBuffer c) {
    check(of(c)->state == RECORDING);
    of(c)->state = ENDED;
    return result();
}
FAKE(void, CmdBindPipeline, VkCommandBuffer c, VkPipelineBindPoint b, VkPipeline p) {
    (void)b, (void)p, check(of(c)->state == RECORDING), of(c)->has_pipeline = 1;
}
FAKE(void, CmdPushConstants, VkCommandBuffer c, VkPipelineLayout l, VkShaderStageFlags s, uint32_t at, uint32_t bytes, const void *data) {
    (void)l, (void)s;
    check(of(c)->state == RECORDING && at == 0 && bytes <= limits.maxPushConstantsSize);
    memcpy(of(c)->push, data, bytes);
    of(c)->pushed = bytes;
}
FAKE(void, CmdDispatch, VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z) {
    Commands *all = of(c);
    check(all->state == RECORDING && all->has_pipeline && x && x <= limits.maxComputeWorkGroupCount[0] && y && z);
    check(all->runs <= MOST_COMMANDS);
    Run *run = &all->run[all->runs];
    all->runs += all->runs < MOST_COMMANDS;
    run->bytes = launched_bytes < sizeof run->expected ? launched_bytes : sizeof run->expected;
    memcpy(run->expected, launched, run->bytes);
    run->address = NULL;
    if (launched_bytes > limits.maxPushConstantsSize)
        memcpy(&run->address, all->push, sizeof run->address);
    else
        check(!launched_bytes || (all->pushed == launched_bytes && !memcmp(all->push, launched, run->bytes)));
}
FAKE(void, CmdPipelineBarrier, VkCommandBuffer c, VkPipelineStageFlags f, VkPipelineStageFlags t, VkDependencyFlags d, uint32_t m,
     const VkMemoryBarrier *a, uint32_t n, const VkBufferMemoryBarrier *b, uint32_t o, const VkImageMemoryBarrier *e) {
    (void)f, (void)t, (void)d, (void)m, (void)a, (void)n, (void)b, (void)o, (void)e, check(of(c)->state == RECORDING);
}
FAKE(void, CmdCopyBuffer, VkCommandBuffer c, VkBuffer from, VkBuffer to, uint32_t n, const VkBufferCopy *r) {
    (void)n, check(of(c)->state == RECORDING);
    check(r->srcOffset + r->size <= ((Memory_buffer *)from)->bytes && r->dstOffset + r->size <= ((Memory_buffer *)to)->bytes);
}
FAKE(void, CmdFillBuffer, VkCommandBuffer c, VkBuffer to, VkDeviceSize at, VkDeviceSize bytes, uint32_t word) {
    (void)word, check(of(c)->state == RECORDING && at + bytes <= ((Memory_buffer *)to)->bytes);
}
FAKE(void, CmdResetQueryPool, VkCommandBuffer c, VkQueryPool p, uint32_t first, uint32_t n) {
    (void)p, check(of(c)->state == RECORDING && first + n <= STAMPS);
}
FAKE(void, ResetQueryPool, VkDevice d, VkQueryPool p, uint32_t first, uint32_t n) {
    (void)d, (void)p, check(features & 1 && first + n <= STAMPS);
}
FAKE(void, CmdWriteTimestamp, VkCommandBuffer c, VkPipelineStageFlagBits s, VkQueryPool p, uint32_t at) {
    (void)s, check(of(c)->state == RECORDING && p && at < STAMPS);
}
FAKE(VkResult, GetQueryPoolResults, VkDevice d, VkQueryPool p, uint32_t at, uint32_t n, size_t bytes, void *to, VkDeviceSize s,
     VkQueryResultFlags f) {
    (void)d, (void)s, (void)f, check(p && at + n <= STAMPS), memset(to, 255, bytes);
    return next() % 4 ? result() : VK_NOT_READY;
}
FAKE(VkResult, QueueSubmit, VkQueue q, uint32_t n, const VkSubmitInfo *i, VkFence f) {
    (void)q, (void)n, (void)f;
    Commands *all = of(i->pCommandBuffers[0]);
    uint64_t number = ((const VkTimelineSemaphoreSubmitInfo *)i->pNext)->pSignalSemaphoreValues[0];
    check(all->state == ENDED && number > submitted_last);
    VkResult r = result();
    pthread_mutex_lock(&turn);
    if (!r) all->number = submitted_last = number, all->state = PENDING;
    pthread_mutex_unlock(&turn);
    return r;
}
FAKE(VkResult, GetSemaphoreCounterValue, VkDevice d, VkSemaphore s, uint64_t *value) {
    (void)d, (void)s;
    if (next() % 2 && signalled < submitted_last) advance(signalled + 1);
    *value = signalled;
    return result();
}
FAKE(VkResult, WaitSemaphores, VkDevice d, const VkSemaphoreWaitInfo *i, uint64_t nanoseconds) {
    (void)d, (void)nanoseconds;
    if (next() % 8 == 7) return VK_TIMEOUT;
    VkResult r = result();
    if (!r) check(i->pValues[0] <= submitted_last), advance(i->pValues[0] > signalled ? i->pValues[0] : signalled);
    return r;
}
FAKE(VkResult, GetPipelineExecutablePropertiesKHR, VkDevice d, const VkPipelineInfoKHR *i, uint32_t *count,
     VkPipelineExecutablePropertiesKHR *all) {
    (void)d, (void)i, (void)all, *count = next() % 4;
    return result();
}
FAKE(VkResult, GetPipelineExecutableStatisticsKHR, VkDevice d, const VkPipelineExecutableInfoKHR *i, uint32_t *count,
     VkPipelineExecutableStatisticKHR *all) {
    (void)d, (void)i;
    uint32_t there = next() % 64u;
    *count = there < *count ? there : *count;
    for (uint32_t n = 0; n < *count; n++) {
        /* A name may have no end. */
        memset(all[n].name, 'n', next() % 4 ? 4 : sizeof all[n].name);
        memset(all[n].description, 'd', sizeof all[n].description);
        all[n].format = next() % 5, all[n].value.f64 = -1.797e308;
    }
    int more = there > *count;
    if (next() % 4 == 3) *count += there;
    return more ? VK_INCOMPLETE : result();
}
FAKE(VkResult, GetMemoryHostPointerPropertiesEXT, VkDevice d, VkExternalMemoryHandleTypeFlagBits h, const void *p,
     VkMemoryHostPointerPropertiesEXT *all) {
    (void)d, (void)h, (void)p, all->memoryTypeBits = next() % 4 ? UINT32_MAX : next();
    return result();
}

FAKE(VkResult, GetMemoryFdKHR, VkDevice d, const VkMemoryGetFdInfoKHR *i, int *made) {
    (void)d, check(i->memory != VK_NULL_HANDLE), *made = 100;
    return result();
}

static PFN_vkVoidFunction function(const char *name) {
#define OFFER(each) if (!strcmp(name, "vk" #each)) return (PFN_vkVoidFunction)fake_##each;
    OFFER(CreateInstance) OFFER(EnumerateInstanceVersion) OFFER(EnumeratePhysicalDevices) OFFER(GetPhysicalDeviceProperties2)
    OFFER(GetPhysicalDeviceFeatures2) OFFER(GetPhysicalDeviceQueueFamilyProperties) OFFER(GetPhysicalDeviceMemoryProperties)
    OFFER(CreateDevice) OFFER(EnumerateDeviceExtensionProperties) OFFER(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)
    OFFER(GetDeviceQueue) OFFER(CreateCommandPool) OFFER(AllocateCommandBuffers) OFFER(CreateSemaphore)
    OFFER(CreatePipelineLayout) OFFER(CreateShaderModule) OFFER(DestroyShaderModule) OFFER(CreateComputePipelines)
    OFFER(DestroyPipeline) OFFER(CreatePipelineCache) OFFER(GetPipelineCacheData) OFFER(CreateBuffer) OFFER(DestroyBuffer)
    OFFER(GetBufferMemoryRequirements) OFFER(AllocateMemory) OFFER(FreeMemory) OFFER(BindBufferMemory) OFFER(MapMemory)
    OFFER(GetBufferDeviceAddress) OFFER(BeginCommandBuffer) OFFER(EndCommandBuffer) OFFER(CmdBindPipeline)
    OFFER(CmdPushConstants) OFFER(CmdDispatch) OFFER(CmdPipelineBarrier) OFFER(CmdCopyBuffer) OFFER(CmdFillBuffer)
    OFFER(QueueSubmit) OFFER(WaitSemaphores) OFFER(GetSemaphoreCounterValue) OFFER(CreateQueryPool)
    OFFER(CmdResetQueryPool) OFFER(ResetQueryPool) OFFER(CmdWriteTimestamp) OFFER(GetQueryPoolResults)
    OFFER(DestroyDevice) OFFER(DestroyPipelineLayout) OFFER(DestroyCommandPool) OFFER(DestroySemaphore)
    OFFER(DestroyQueryPool) OFFER(DestroyPipelineCache) OFFER(GetPipelineExecutablePropertiesKHR)
    OFFER(GetPipelineExecutableStatisticsKHR) OFFER(GetMemoryHostPointerPropertiesEXT)
    OFFER(GetPhysicalDeviceExternalBufferProperties) OFFER(GetMemoryFdKHR)
    return NULL;
}
FAKE(PFN_vkVoidFunction, GetDeviceProcAddr, VkDevice d, const char *name) { return (void)d, function(name); }
FAKE(PFN_vkVoidFunction, GetInstanceProcAddr, VkInstance i, const char *name) {
    (void)i;
    return strcmp(name, "vkGetDeviceProcAddr") ? function(name) : (PFN_vkVoidFunction)fake_GetDeviceProcAddr;
}
static void *open_loader(const char *name, int flags) { return (void)flags, (void *)(uintptr_t)name; }
static void *find(void *loader, const char *name) { return (void)loader, (void)name, (void *)fake_GetInstanceProcAddr; }

static void use(Device *d) {
    enum { MOST = 4 };
    Buffer *buffers[MOST] = {0};
    Pipeline *kernels[MOST] = {0};
    uint64_t last = 0;
    while (input_bytes) {
        uint8_t what = next(), which = next() % MOST, other = next() % MOST;
        if (what % 8 == 0 && !buffers[which]) {
            int kind = (what >> 3) % 3;
            uint64_t bytes;
            buffers[which] = foundry_vulkan_allocate(d, 4ull * next(), kind);
            if (buffers[which] && kind == 2) check(foundry_vulkan_export(d, buffers[which], &bytes) < 0 || bytes >= buffers[which]->size);
        }
        if (what % 8 == 1 && buffers[which] && buffers[other]) {
            uint64_t most = buffers[which]->size < buffers[other]->size ? buffers[which]->size : buffers[other]->size;
            last = foundry_vulkan_copy(d, buffers[which], 0, buffers[other], 0, most);
        }
        if (what % 8 == 2 && buffers[which]) last = foundry_vulkan_fill(d, buffers[which], 0, buffers[which]->size, what);
        if (what % 8 == 3 && !kernels[which])
            kernels[which] = foundry_vulkan_pipeline(d, (const uint32_t *)"word", 4, "main", 4u * (next() << (what >> 3 & 15)),
                                                      limits.maxPushConstantsSize, 64, NULL, 0);
        if (what % 8 == 4 && kernels[which]) {
            launched_bytes = kernels[which]->bytes;
            Launch *launch = malloc(sizeof *launch + launched_bytes + 1);
            uint8_t *arguments = (uint8_t *)(launch + 1);
            memset(arguments, what ^ other, launched_bytes);
            launched = arguments;
            /* A grid that does not fit needs room for its number. */
            uint32_t x = launched_bytes >= 4 ? 1 + next() * 10u : 1;
            *launch = (Launch){kernels[which], x, 1, 1, 0};
            for (int n = what >> 6 == 3 ? 300 : 1; n; n--) last = foundry_vulkan_launch(d, launch);
            free(launch);
        }
        uint64_t ticks;
        uint32_t slot = which * 700u;
        if (what % 8 == 5 && foundry_vulkan_stamp(d, slot) && foundry_vulkan_wait(d, 0, 1000) > 0)
            foundry_vulkan_read_stamp(d, slot, &ticks);
        if (what % 8 == 6) foundry_vulkan_wait(d, what >> 3 & 1 ? last : 0, 1000);
        if (what % 8 == 7 && kernels[which]) {
            char text[4096], blob[64];
            foundry_vulkan_describe(d, kernels[which], text, what >> 3 & 1 ? 321 : sizeof text);
            foundry_vulkan_cache(d, kernels[which], blob, next() % sizeof blob);
        }
    }
    foundry_vulkan_close(d);
    if (foundry_vulkan_state(d) == WELL) accepted++;
    for (int i = 0; i < MOST; i++) foundry_vulkan_free(d, buffers[i]), drop(d, kernels[i]);
    for (int i = 0; i < SLOTS; i++) foundry_vulkan_free(d, d->batches[i].arguments);
    for (int i = 0; i < STAMP_POOLS; i++) free((void *)d->stamps[i]), free(d->stamped[i]);
    destroy(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input = data, input_bytes = size;
    memset(commands, 0, sizeof commands);
    signalled = submitted_last = 0;
    features = next();
    static const uint32_t push[] = {128, 256, 8};
    limits = (VkPhysicalDeviceLimits){.maxPushConstantsSize = push[next() % 3], .maxComputeWorkGroupCount = {100 + next() * 999u, 65535, 65535}};
    memories = (VkPhysicalDeviceMemoryProperties){.memoryTypeCount = next() % 33, .memoryHeapCount = next() % 17};
    for (uint32_t i = 0; i < memories.memoryTypeCount; i++) memories.memoryTypes[i].propertyFlags = i ? next() : 15;
    if (!instance) check(foundry_vulkan_start(NULL));
    Properties known;
    uint32_t shapes[8][5];
    check(foundry_vulkan_properties(0, &known) && !foundry_vulkan_properties(1, &known));
    check(foundry_vulkan_fragments(0, shapes, 8) <= 8);
    Device *d = foundry_vulkan_open(0, SECOND);
    if (d) use(d);
    return 0;
}
