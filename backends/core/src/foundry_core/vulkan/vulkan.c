/* What a Triton launch needs of Vulkan, as one C library without Python in it.
 *
 * A launch on the hot path is one call: it records a command buffer that pushes the arguments and dispatches, and submits
 * it. Everything is submitted to one queue, in order. A timeline semaphore counts submissions; waiting for a number waits
 * for that submission and all before it. A Device is used by one thread at a time.
 *
 * The loader, libvulkan.so.1, is opened when a process first asks for devices, so that this library can be loaded where
 * there is none. Functions return 0 or a null pointer after an error; foundry_vulkan_error() then says what was wrong.
 */
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

/* Headers before 1.4.311 do not know it. */
#ifndef VK_KHR_shader_bfloat16
#define VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME "VK_KHR_shader_bfloat16"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR ((VkStructureType)1000141000)
typedef struct {
    VkStructureType sType;
    void *pNext;
    VkBool32 shaderBFloat16Type, shaderBFloat16DotProduct, shaderBFloat16CooperativeMatrix;
} VkPhysicalDeviceShaderBfloat16FeaturesKHR;
#endif

#define EXPORT __attribute__((visibility("default")))
#define SLOTS 64
#define STAMPS 256

static _Thread_local char error_text[1024];

static void failed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error_text, sizeof error_text, format, arguments);
    va_end(arguments);
}

EXPORT const char *foundry_vulkan_error(void) { return error_text; }

static const char *result_name(VkResult result) {
    switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "out of host memory";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "out of device memory";
    case VK_ERROR_INITIALIZATION_FAILED: return "the driver could not be initialised";
    case VK_ERROR_DEVICE_LOST: return "the device was lost";
    case VK_ERROR_MEMORY_MAP_FAILED: return "memory could not be mapped";
    case VK_ERROR_LAYER_NOT_PRESENT: return "a layer is not installed";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "an extension is not there";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "a feature is not there";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "no driver is installed";
    case VK_ERROR_TOO_MANY_OBJECTS: return "too many objects";
    default: return "an error";
    }
}

static int bad(VkResult result, const char *what) {
    if (result >= 0) return 0;
    failed("%s: %s (VkResult %d)", what, result_name(result), result);
    return 1;
}

/* The functions, found through the loader and the driver. */

#define GLOBAL_FUNCTIONS(X) X(CreateInstance) X(EnumerateInstanceVersion) X(EnumerateInstanceLayerProperties)
#define INSTANCE_FUNCTIONS(X) \
    X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2) \
    X(GetPhysicalDeviceQueueFamilyProperties) X(GetPhysicalDeviceMemoryProperties) X(CreateDevice) \
    X(EnumerateDeviceExtensionProperties) X(GetDeviceProcAddr) X(DestroyInstance) \
    X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)
#define DEVICE_FUNCTIONS(X) \
    X(GetDeviceQueue) X(CreateCommandPool) X(AllocateCommandBuffers) X(CreateSemaphore) X(CreatePipelineLayout) \
    X(CreateShaderModule) X(DestroyShaderModule) X(CreateComputePipelines) X(DestroyPipeline) X(CreatePipelineCache) \
    X(GetPipelineCacheData) X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(AllocateMemory) \
    X(FreeMemory) X(BindBufferMemory) X(MapMemory) X(GetBufferDeviceAddress) X(BeginCommandBuffer) X(EndCommandBuffer) \
    X(CmdBindPipeline) X(CmdPushConstants) X(CmdDispatch) X(CmdPipelineBarrier) X(CmdCopyBuffer) X(CmdFillBuffer) \
    X(QueueSubmit) X(WaitSemaphores) X(GetSemaphoreCounterValue) X(DeviceWaitIdle) X(CreateQueryPool) \
    X(CmdResetQueryPool) X(GetPipelineExecutablePropertiesKHR) X(GetPipelineExecutableStatisticsKHR) X(CmdWriteTimestamp) X(GetQueryPoolResults) X(DestroyDevice) X(ResetCommandBuffer) \
    X(DestroyPipelineLayout) X(DestroyCommandPool) X(DestroySemaphore) X(DestroyQueryPool) X(DestroyPipelineCache)
#define DECLARE(name) static PFN_vk##name vk##name;
GLOBAL_FUNCTIONS(DECLARE)
INSTANCE_FUNCTIONS(DECLARE)
DEVICE_FUNCTIONS(DECLARE)

static PFN_vkGetInstanceProcAddr get_function;
static VkInstance instance;
static VkPhysicalDevice physical_devices[16];
static uint32_t physical_count;
static int validation;

static void (*on_message)(const char *text);

static VKAPI_ATTR VkBool32 VKAPI_CALL message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                              VkDebugUtilsMessageTypeFlagsEXT type,
                                              const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    (void)severity, (void)type, (void)user;
    if (on_message) on_message(data->pMessage);
    return VK_FALSE;
}

/* Open the loader and ask for devices. With a function for messages, the validation layer is switched on. */
EXPORT int foundry_vulkan_start(void (*messages)(const char *)) {
    if (instance) return 1;
    void *loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!loader) return failed("no Vulkan loader: %s", dlerror()), 0;
    get_function = (PFN_vkGetInstanceProcAddr)dlsym(loader, "vkGetInstanceProcAddr");
    if (!get_function) return failed("the Vulkan loader has no vkGetInstanceProcAddr"), 0;
#define FIND(name) vk##name = (PFN_vk##name)get_function(NULL, "vk" #name);
    GLOBAL_FUNCTIONS(FIND)
    uint32_t version = VK_API_VERSION_1_0;
    if (vkEnumerateInstanceVersion) vkEnumerateInstanceVersion(&version);
    if (version < VK_API_VERSION_1_3)
        return failed("the Vulkan loader has version %u.%u, and 1.3 is needed", VK_API_VERSION_MAJOR(version),
                      VK_API_VERSION_MINOR(version)), 0;
    on_message = messages;
    validation = messages != NULL;
    const char *layers[] = {"VK_LAYER_KHRONOS_validation"}, *extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT,
        .pfnUserCallback = message};
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .pApplicationName = "triton-foundry",
                                     .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pNext = validation ? &messenger : NULL,
                                 .pApplicationInfo = &application,
                                 .enabledLayerCount = validation,
                                 .ppEnabledLayerNames = layers,
                                 .enabledExtensionCount = validation,
                                 .ppEnabledExtensionNames = extensions};
    if (bad(vkCreateInstance(&info, NULL, &instance), "the Vulkan instance")) return instance = NULL, 0;
#define FIND_INSTANCE(name) vk##name = (PFN_vk##name)get_function(instance, "vk" #name);
    INSTANCE_FUNCTIONS(FIND_INSTANCE)
    if (validation) {
        PFN_vkCreateDebugUtilsMessengerEXT create =
            (PFN_vkCreateDebugUtilsMessengerEXT)get_function(instance, "vkCreateDebugUtilsMessengerEXT");
        VkDebugUtilsMessengerEXT made;
        if (create) create(instance, &messenger, NULL, &made);
    }
    physical_count = 16;
    if (bad(vkEnumeratePhysicalDevices(instance, &physical_count, physical_devices), "the list of devices"))
        physical_count = 0;
    return 1;
}

EXPORT int foundry_vulkan_count(void) { return (int)physical_count; }

/* What a kernel or the runtime may ask of a device. One structure, so that Python reads it with one call. */
typedef struct {
    char name[256], driver[512];
    uint8_t uuid[16];
    uint32_t api, vendor, type, subgroup, least_subgroup, most_subgroup, workgroup_bytes, push_bytes, invocations;
    uint32_t int8, int16, int64, float16, float64, bfloat16, memory_model, explicit_layout, cooperative, float_atomics,
        float_atomic_add64, int64_atomics, shuffle, device_address, push8, push16, storage8, storage16, size_control,
        denorm16, denorm32, denorm64, special16, special32, special64, nearest16, nearest32, nearest64, timestamps,
        buffer_atomics64;
    float timestamp_ns;
    uint64_t memory_bytes, grid[3];
} Properties;

typedef struct {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceVulkan13Features v13;
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR layout;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative;
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomics;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables;
} Features;

static int has_extension(VkPhysicalDevice physical, const char *name) {
    uint32_t count = 0;
    vkEnumerateDeviceExtensionProperties(physical, NULL, &count, NULL);
    VkExtensionProperties *all = calloc(count, sizeof *all);
    vkEnumerateDeviceExtensionProperties(physical, NULL, &count, all);
    int found = 0;
    for (uint32_t i = 0; i < count; i++) found |= !strcmp(all[i].extensionName, name);
    free(all);
    return found;
}

/* Ask for all features that kernels may use; the chain holds only structures that the device knows. */
static void ask_features(VkPhysicalDevice physical, Features *f) {
    memset(f, 0, sizeof *f);
    f->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, f->base.pNext = &f->v11;
    f->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, f->v11.pNext = &f->v12;
    f->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, f->v12.pNext = &f->v13;
    f->v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    f->layout.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR;
    f->cooperative.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    f->atomics.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
    f->executables.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
    void **next = &f->v13.pNext;
    if (has_extension(physical, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME))
        *next = &f->executables, next = &f->executables.pNext;
    if (has_extension(physical, VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME))
        *next = &f->layout, next = &f->layout.pNext;
    if (has_extension(physical, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        *next = &f->cooperative, next = &f->cooperative.pNext;
    if (has_extension(physical, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME))
        *next = &f->atomics, next = &f->atomics.pNext;
    f->bfloat16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
    if (has_extension(physical, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME))
        *next = &f->bfloat16, next = &f->bfloat16.pNext;
    vkGetPhysicalDeviceFeatures2(physical, &f->base);
}

EXPORT int foundry_vulkan_properties(int index, Properties *p) {
    if (index < 0 || index >= (int)physical_count) return failed("there is no device %d", index), 0;
    VkPhysicalDevice physical = physical_devices[index];
    VkPhysicalDeviceFloatControlsProperties floats = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES, .pNext = &floats};
    VkPhysicalDeviceSubgroupProperties subgroup = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
                                                   .pNext = &sizes};
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, .pNext = &subgroup};
    VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, .pNext = &id};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    vkGetPhysicalDeviceProperties2(physical, &all);
    Features f;
    ask_features(physical, &f);
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", all.properties.deviceName);
    snprintf(p->driver, sizeof p->driver, "%s %s", driver.driverName, driver.driverInfo);
    memcpy(p->uuid, id.deviceUUID, 16);
    const VkPhysicalDeviceLimits *limits = &all.properties.limits;
    p->api = all.properties.apiVersion, p->vendor = all.properties.vendorID, p->type = all.properties.deviceType;
    p->subgroup = subgroup.subgroupSize;
    p->least_subgroup = sizes.minSubgroupSize, p->most_subgroup = sizes.maxSubgroupSize;
    p->workgroup_bytes = limits->maxComputeSharedMemorySize, p->push_bytes = limits->maxPushConstantsSize;
    p->invocations = limits->maxComputeWorkGroupInvocations;
    p->int8 = f.v12.shaderInt8, p->int16 = f.base.features.shaderInt16, p->int64 = f.base.features.shaderInt64;
    p->float16 = f.v12.shaderFloat16, p->float64 = f.base.features.shaderFloat64;
    p->memory_model = f.v12.vulkanMemoryModel && f.v12.vulkanMemoryModelDeviceScope;
    p->explicit_layout = f.layout.workgroupMemoryExplicitLayout;
    p->cooperative = f.cooperative.cooperativeMatrix;
    p->bfloat16 = f.bfloat16.shaderBFloat16Type && f.bfloat16.shaderBFloat16CooperativeMatrix;
    p->float_atomics = f.atomics.shaderBufferFloat32AtomicAdd, p->float_atomic_add64 = f.atomics.shaderBufferFloat64AtomicAdd;
    p->buffer_atomics64 = f.v12.shaderBufferInt64Atomics;
    p->shuffle = (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
    p->device_address = f.v12.bufferDeviceAddress;
    p->push8 = f.v12.storagePushConstant8, p->push16 = f.v11.storagePushConstant16;
    p->storage8 = f.v12.storageBuffer8BitAccess, p->storage16 = f.v11.storageBuffer16BitAccess;
    p->size_control = f.v13.subgroupSizeControl && f.v13.computeFullSubgroups;
    p->denorm16 = floats.shaderDenormPreserveFloat16, p->denorm32 = floats.shaderDenormPreserveFloat32;
    p->denorm64 = floats.shaderDenormPreserveFloat64;
    p->special16 = floats.shaderSignedZeroInfNanPreserveFloat16, p->nearest16 = floats.shaderRoundingModeRTEFloat16;
    p->special32 = floats.shaderSignedZeroInfNanPreserveFloat32, p->nearest32 = floats.shaderRoundingModeRTEFloat32;
    p->special64 = floats.shaderSignedZeroInfNanPreserveFloat64, p->nearest64 = floats.shaderRoundingModeRTEFloat64;
    p->timestamps = limits->timestampComputeAndGraphics, p->timestamp_ns = limits->timestampPeriod;
    for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT && memory.memoryHeaps[i].size > p->memory_bytes)
            p->memory_bytes = memory.memoryHeaps[i].size;
    for (int i = 0; i < 3; i++) p->grid[i] = limits->maxComputeWorkGroupCount[i];
    return 1;
}

/* Write the shapes of cooperative matrices that a subgroup multiplies: M, N, K, and the types (VkComponentTypeKHR) of both
 * operands and of the sum. Returns how many there are, `most` at most. */
EXPORT int foundry_vulkan_fragments(int index, uint32_t (*shapes)[5], int most) {
    VkPhysicalDevice physical = physical_devices[index];
    Features f;
    ask_features(physical, &f);
    if (!f.cooperative.cooperativeMatrix || !vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) return 0;
    uint32_t count = 0;
    vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &count, NULL);
    VkCooperativeMatrixPropertiesKHR *all = calloc(count, sizeof *all);
    for (uint32_t i = 0; i < count; i++) all[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &count, all);
    int found = 0;
    for (uint32_t i = 0; i < count && found < most; i++) {
        if (all[i].scope != VK_SCOPE_SUBGROUP_KHR || all[i].saturatingAccumulation || all[i].AType != all[i].BType ||
            all[i].CType != all[i].ResultType)
            continue;
        uint32_t shape[] = {all[i].MSize, all[i].NSize, all[i].KSize, all[i].AType, all[i].CType};
        memcpy(shapes[found++], shape, sizeof shape);
    }
    free(all);
    return found;
}

typedef struct {
    VkDevice device;
    VkQueue queue;
    VkPhysicalDeviceMemoryProperties memory;
    VkCommandPool pool;
    VkCommandBuffer slots[SLOTS];
    VkSemaphore timeline;
    VkPipelineCache cache;
    VkQueryPool stamps;
    uint64_t submitted, next_stamp;
    int describes;
} Device;

typedef struct {
    VkPipeline pipeline;
    VkPipelineLayout layout;
    uint32_t bytes;
} Pipeline;

typedef struct {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t address, size;
    void *mapped;
} Buffer;

EXPORT void foundry_vulkan_close(Device *d) {
    if (!d) return;
    if (d->device) {
        vkDeviceWaitIdle(d->device);
        vkDestroyQueryPool(d->device, d->stamps, NULL);
        vkDestroyPipelineCache(d->device, d->cache, NULL);
        vkDestroySemaphore(d->device, d->timeline, NULL);
        vkDestroyCommandPool(d->device, d->pool, NULL);
        vkDestroyDevice(d->device, NULL);
    }
    free(d);
}

EXPORT Device *foundry_vulkan_open(int index, const void *cache, size_t cache_bytes) {
    if (index < 0 || index >= (int)physical_count) return failed("there is no device %d", index), NULL;
    VkPhysicalDevice physical = physical_devices[index];
    uint32_t families = 16, family = UINT32_MAX;
    VkQueueFamilyProperties queues[16];
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &families, queues);
    for (uint32_t i = 0; i < families && family == UINT32_MAX; i++)
        if (queues[i].queueFlags & VK_QUEUE_COMPUTE_BIT) family = i;
    if (family == UINT32_MAX) return failed("the device has no queue for computing"), NULL;
    Features f;
    ask_features(physical, &f);
    if (!f.v12.timelineSemaphore || !f.v12.bufferDeviceAddress)
        return failed("the device has no timeline semaphores or no buffer addresses"), NULL;
    f.base.features.robustBufferAccess = VK_FALSE;
    const char *wanted[] = {VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME,
                            VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME,
                            VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME};
    const char *extensions[sizeof wanted / sizeof *wanted];
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (has_extension(physical, wanted[i])) extensions[count++] = wanted[i];
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &f.base,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = count,
                               .ppEnabledExtensionNames = extensions};
    Device *d = calloc(1, sizeof *d);
    if (bad(vkCreateDevice(physical, &info, NULL, &d->device), "the device")) return free(d), NULL;
#define FIND_DEVICE(name) vk##name = (PFN_vk##name)vkGetDeviceProcAddr(d->device, "vk" #name);
    DEVICE_FUNCTIONS(FIND_DEVICE)
    d->describes = f.executables.pipelineExecutableInfo;
    vkGetDeviceQueue(d->device, family, 0, &d->queue);
    vkGetPhysicalDeviceMemoryProperties(physical, &d->memory);
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = family};
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    VkPipelineCacheCreateInfo cached = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                        .initialDataSize = cache_bytes,
                                        .pInitialData = cache};
    VkQueryPoolCreateInfo stamps = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                    .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                    .queryCount = STAMPS};
    VkCommandBufferAllocateInfo buffers = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           .commandBufferCount = SLOTS};
    if (bad(vkCreateCommandPool(d->device, &pool, NULL, &d->pool), "the command pool") ||
        bad(vkCreateSemaphore(d->device, &semaphore, NULL, &d->timeline), "the timeline") ||
        bad(vkCreatePipelineCache(d->device, &cached, NULL, &d->cache), "the pipeline cache") ||
        bad(vkCreateQueryPool(d->device, &stamps, NULL, &d->stamps), "the timestamps"))
        return foundry_vulkan_close(d), NULL;
    buffers.commandPool = d->pool;
    if (bad(vkAllocateCommandBuffers(d->device, &buffers, d->slots), "the command buffers"))
        return foundry_vulkan_close(d), NULL;
    return d;
}

/* Wait for a submission and all before it. Returns 1, 0 after an error, or -1 if the time is over. */
EXPORT int foundry_vulkan_wait(Device *d, uint64_t number, uint64_t nanoseconds) {
    VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &d->timeline,
                                .pValues = &number};
    VkResult result = vkWaitSemaphores(d->device, &wait, nanoseconds);
    if (result == VK_TIMEOUT) return -1;
    return !bad(result, "waiting for the device");
}

EXPORT uint64_t foundry_vulkan_submitted(Device *d) { return d->submitted; }

/* Begin a command buffer. Those that are in flight are left alone: with SLOTS of them, wait for the oldest. */
static VkCommandBuffer begin(Device *d) {
    uint64_t number = d->submitted + 1;
    if (number > SLOTS && foundry_vulkan_wait(d, number - SLOTS, UINT64_MAX) != 1) return NULL;
    VkCommandBuffer commands = d->slots[number % SLOTS];
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                     .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    if (bad(vkBeginCommandBuffer(commands, &info), "a command buffer")) return NULL;
    /* In order: what was submitted before is finished, and what it wrote is visible. */
    VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    vkCmdPipelineBarrier(commands, stages, stages, 0, 1, &barrier, 0, NULL, 0, NULL);
    return commands;
}

static uint64_t submit(Device *d, VkCommandBuffer commands) {
    if (bad(vkEndCommandBuffer(commands), "a command buffer")) return 0;
    uint64_t number = d->submitted + 1;
    VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                              .signalSemaphoreValueCount = 1,
                                              .pSignalSemaphoreValues = &number};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &d->timeline};
    if (bad(vkQueueSubmit(d->queue, 1, &info, VK_NULL_HANDLE), "a launch")) return 0;
    return d->submitted = number;
}

/* Memory. */

static int memory_type(const Device *d, uint32_t allowed, VkMemoryPropertyFlags flags) {
    for (uint32_t i = 0; i < d->memory.memoryTypeCount; i++)
        if (allowed >> i & 1 && (d->memory.memoryTypes[i].propertyFlags & flags) == flags) return (int)i;
    return -1;
}

EXPORT void foundry_vulkan_free(Device *d, Buffer *b) {
    if (!b) return;
    if (b->buffer) vkDestroyBuffer(d->device, b->buffer, NULL);
    if (b->memory) vkFreeMemory(d->device, b->memory, NULL);
    free(b);
}

/* Allocate memory of the device, or of the host where the device reaches it: then it is mapped. */
EXPORT Buffer *foundry_vulkan_allocate(Device *d, uint64_t bytes, int of_host) {
    Buffer *b = calloc(1, sizeof *b);
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = bytes ? bytes : 16,
                               .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    if (bad(vkCreateBuffer(d->device, &info, NULL, &b->buffer), "a buffer")) return foundry_vulkan_free(d, b), NULL;
    VkMemoryRequirements needed;
    vkGetBufferMemoryRequirements(d->device, b->buffer, &needed);
    VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    int type = -1;
    if (of_host) {
        type = memory_type(d, needed.memoryTypeBits, host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
        if (type < 0) type = memory_type(d, needed.memoryTypeBits, host);
    } else {
        type = memory_type(d, needed.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    }
    if (type < 0) return failed("the device has no memory of this kind"), foundry_vulkan_free(d, b), NULL;
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .pNext = &flags,
                                     .allocationSize = needed.size,
                                     .memoryTypeIndex = (uint32_t)type};
    char what[64];
    snprintf(what, sizeof what, "%llu bytes", (unsigned long long)bytes);
    if (bad(vkAllocateMemory(d->device, &allocate, NULL, &b->memory), what) ||
        bad(vkBindBufferMemory(d->device, b->buffer, b->memory, 0), what))
        return foundry_vulkan_free(d, b), NULL;
    if (of_host && bad(vkMapMemory(d->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->mapped), what))
        return foundry_vulkan_free(d, b), NULL;
    VkBufferDeviceAddressInfo asked = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = b->buffer};
    b->address = vkGetBufferDeviceAddress(d->device, &asked);
    b->size = info.size;
    return b;
}

EXPORT uint64_t foundry_vulkan_address(const Buffer *b) { return b->address; }
EXPORT void *foundry_vulkan_mapped(const Buffer *b) { return b->mapped; }

EXPORT uint64_t foundry_vulkan_copy(Device *d, Buffer *to, uint64_t to_offset, Buffer *from, uint64_t from_offset,
                                    uint64_t bytes) {
    VkCommandBuffer commands = begin(d);
    if (!commands) return 0;
    VkBufferCopy region = {from_offset, to_offset, bytes};
    vkCmdCopyBuffer(commands, from->buffer, to->buffer, 1, &region);
    return submit(d, commands);
}

/* Write one 32-bit word everywhere from an offset on; both are multiples of 4. */
EXPORT uint64_t foundry_vulkan_fill(Device *d, Buffer *to, uint64_t offset, uint64_t bytes, uint32_t word) {
    VkCommandBuffer commands = begin(d);
    if (!commands) return 0;
    vkCmdFillBuffer(commands, to->buffer, offset, bytes, word);
    return submit(d, commands);
}

/* Kernels. */

EXPORT void foundry_vulkan_drop(Device *d, Pipeline *p) {
    if (!p) return;
    if (p->pipeline) vkDestroyPipeline(d->device, p->pipeline, NULL);
    if (p->layout) vkDestroyPipelineLayout(d->device, p->layout, NULL);
    free(p);
}

EXPORT Pipeline *foundry_vulkan_pipeline(Device *d, const uint32_t *words, size_t bytes, const char *entry,
                                         uint32_t argument_bytes, uint32_t subgroup) {
    Pipeline *p = calloc(1, sizeof *p);
    p->bytes = argument_bytes;
    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, argument_bytes};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .pushConstantRangeCount = argument_bytes > 0,
                                         .pPushConstantRanges = &range};
    VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
    VkShaderModule module = VK_NULL_HANDLE;
    if (bad(vkCreatePipelineLayout(d->device, &layout, NULL, &p->layout), "the layout of a kernel's arguments") ||
        bad(vkCreateShaderModule(d->device, &code, NULL, &module), "the SPIR-V of a kernel"))
        return foundry_vulkan_drop(d, p), NULL;
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = subgroup};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = d->describes ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = subgroup ? &size : NULL,
                  .flags = subgroup ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = entry},
        .layout = p->layout};
    VkResult result = vkCreateComputePipelines(d->device, d->cache, 1, &info, NULL, &p->pipeline);
    vkDestroyShaderModule(d->device, module, NULL);
    if (bad(result, "the driver's compiler")) return foundry_vulkan_drop(d, p), NULL;
    return p;
}

/* What the driver's compiler made of a kernel, such as "Register Count: 40", a line each. Returns the number of bytes. */
EXPORT int foundry_vulkan_describe(Device *d, const Pipeline *p, char *text, int bytes) {
    int at = 0;
    text[0] = 0;
    if (!d->describes) return 0;
    VkPipelineInfoKHR pipeline = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = p->pipeline};
    uint32_t parts = 0;
    if (vkGetPipelineExecutablePropertiesKHR(d->device, &pipeline, &parts, NULL) < 0) return 0;
    for (uint32_t part = 0; part < parts; part++) {
        VkPipelineExecutableInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
                                            .pipeline = p->pipeline,
                                            .executableIndex = part};
        VkPipelineExecutableStatisticKHR all[32];
        uint32_t count = 32;
        for (int i = 0; i < 32; i++)
            all[i] = (VkPipelineExecutableStatisticKHR){.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR};
        vkGetPipelineExecutableStatisticsKHR(d->device, &info, &count, all);
        for (uint32_t i = 0; i < count && at < bytes - 320; i++) {
            if (all[i].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR)
                at += snprintf(text + at, (size_t)(bytes - at), "%s: %g\n", all[i].name, all[i].value.f64);
            else
                at += snprintf(text + at, (size_t)(bytes - at), "%s: %llu\n", all[i].name,
                               (unsigned long long)all[i].value.u64);
        }
    }
    return at;
}

/* Launch a kernel; returns the number of the submission. */
EXPORT uint64_t foundry_vulkan_launch(Device *d, const Pipeline *p, uint32_t x, uint32_t y, uint32_t z, const void *arguments) {
    VkCommandBuffer commands = begin(d);
    if (!commands) return 0;
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    if (p->bytes) vkCmdPushConstants(commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, p->bytes, arguments);
    vkCmdDispatch(commands, x, y, z);
    return submit(d, commands);
}

/* Times. A stamp is taken when everything before it is finished; the last STAMPS of them can be read. */

EXPORT int64_t foundry_vulkan_stamp(Device *d) {
    VkCommandBuffer commands = begin(d);
    if (!commands) return -1;
    uint32_t slot = (uint32_t)(d->next_stamp % STAMPS);
    vkCmdResetQueryPool(commands, d->stamps, slot, 1);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, d->stamps, slot);
    return submit(d, commands) ? (int64_t)d->next_stamp++ : -1;
}

EXPORT int foundry_vulkan_read_stamp(Device *d, int64_t stamp, uint64_t *ticks) {
    if (stamp < 0 || (uint64_t)stamp >= d->next_stamp || d->next_stamp - (uint64_t)stamp > STAMPS)
        return failed("this time is not kept any more"), 0;
    return !bad(vkGetQueryPoolResults(d->device, d->stamps, (uint32_t)(stamp % STAMPS), 1, sizeof *ticks, ticks, sizeof *ticks,
                                      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT), "a time");
}

/* The driver's compiled kernels, to keep on disk. With a null pointer, returns how many bytes there are. */
EXPORT size_t foundry_vulkan_cache(Device *d, void *data, size_t bytes) {
    return bad(vkGetPipelineCacheData(d->device, d->cache, &bytes, data), "the pipeline cache") ? 0 : bytes;
}
