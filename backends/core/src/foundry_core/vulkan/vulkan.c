/* What a Triton launch needs of Vulkan, as one C library without Python in it.
 *
 * A launch on the hot path is one call: it records the arguments and the dispatch into a command buffer, the open batch.
 * vkQueueSubmit takes longer than that, so a thread of ours calls it: it submits the open batch as soon as fewer than
 * IN_FLIGHT batches are on their way, and so takes more launches at once the busier the device is. Whoever waits submits
 * the open batch itself; and so does whoever records the first command after a wait for everything, because to wake our
 * thread takes longer than that. There is one queue; a barrier between two commands, and one at the end of each batch, make
 * them run in order. A timeline semaphore counts batches: waiting for a number waits for that batch and all before it.
 *
 * A device rests between two batches, longer than many kernels take. So that a time that is measured does not contain this,
 * our thread leaves a batch with a time in it open for HOLD nanoseconds after the last one.
 *
 * Any thread may call these functions; `lock` makes them take turns.
 *
 * The loader, libvulkan.so.1, is opened when a process first asks for devices, so that this library can be loaded where
 * there is none. Functions return 0 or a null pointer after an error; foundry_vulkan_error() then says what was wrong.
 */
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
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

/* Headers before 1.3.290 do not know it. */
#ifndef VK_NV_shader_atomic_float16_vector
#define VK_NV_SHADER_ATOMIC_FLOAT16_VECTOR_EXTENSION_NAME "VK_NV_shader_atomic_float16_vector"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT16_VECTOR_FEATURES_NV ((VkStructureType)1000563000)
typedef struct {
    VkStructureType sType;
    void *pNext;
    VkBool32 shaderFloat16VectorAtomics;
} VkPhysicalDeviceShaderAtomicFloat16VectorFeaturesNV;
#endif

/* A packed kernel's library (backends/packed) has these functions for itself. */
#ifndef EXPORT
#define EXPORT __attribute__((visibility("default")))
#endif
#define SLOTS 16
#define IN_FLIGHT 4
/* Commands in a batch, and bytes of arguments that are too many to be pushed. */
#define MOST_COMMANDS 512
#define MOST_ARGUMENTS (256 << 10)
#define STAMPS 1024
#define STAMP_POOLS 1024
#define SECOND 1000000000ull
#define HOLD 1000000ull
/* How many nanoseconds a thread looks whether a GPU has finished before it sleeps: to be woken takes some 30 us. */
#define LOOK 200000ull

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
    X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR) X(GetPhysicalDeviceExternalBufferProperties)
#define DEVICE_FUNCTIONS(X) \
    X(GetDeviceQueue) X(CreateCommandPool) X(AllocateCommandBuffers) X(CreateSemaphore) X(CreatePipelineLayout) \
    X(CreateShaderModule) X(DestroyShaderModule) X(CreateComputePipelines) X(DestroyPipeline) X(CreatePipelineCache) \
    X(GetPipelineCacheData) X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(AllocateMemory) \
    X(FreeMemory) X(BindBufferMemory) X(MapMemory) X(GetBufferDeviceAddress) X(BeginCommandBuffer) X(EndCommandBuffer) \
    X(CmdBindPipeline) X(CmdPushConstants) X(CmdDispatch) X(CmdPipelineBarrier) X(CmdCopyBuffer) X(CmdFillBuffer) \
    X(QueueSubmit) X(WaitSemaphores) X(GetSemaphoreCounterValue) X(DeviceWaitIdle) X(CreateQueryPool) \
    X(CmdResetQueryPool) X(ResetQueryPool) X(CmdWriteTimestamp) X(GetQueryPoolResults) X(DestroyDevice) X(DestroyPipelineLayout) \
    X(DestroyCommandPool) X(DestroySemaphore) X(DestroyQueryPool) X(DestroyPipelineCache) \
    X(GetPipelineExecutablePropertiesKHR) X(GetPipelineExecutableStatisticsKHR) X(GetMemoryHostPointerPropertiesEXT) \
    X(GetMemoryFdKHR)
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

/* What a kernel or the runtime may ask of a device. One structure, so that Python reads it with one call, from these lines
 * (library.py). A feature has Vulkan's name. */
typedef struct Properties {
    char name[256], driver[512];
    uint8_t uuid[16];
    uint32_t api, vendor, type, subgroup, least_subgroup, most_subgroup, workgroup_bytes, push_bytes, invocations, most_subgroups;
    uint32_t shaderInt8, shaderInt16, shaderInt64, shaderFloat16, shaderFloat64, shaderBufferInt64Atomics,
        storageBuffer8BitAccess, storageBuffer16BitAccess, storagePushConstant8, storagePushConstant16,
        workgroupMemoryExplicitLayout8BitAccess, workgroupMemoryExplicitLayout16BitAccess, bufferDeviceAddress,
        vulkanMemoryModel, subgroupSizeControl, shaderSubgroupExtendedTypes;
    uint32_t bfloat16, explicit_layout, cooperative, float_atomics, float_atomic_add64, shuffle, denorm16, denorm32,
        denorm64, special16, special32, special64, nearest16, nearest32, nearest64, timestamps, driver_version, allocations,
        exports, half_atomics;
    float timestamp_ns;
    uint64_t memory_bytes, grid[3], host_alignment, most_buffer, most_allocation;
} Properties;

typedef struct {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceVulkan13Features v13;
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR layout;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative;
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomics;
    VkPhysicalDeviceShaderAtomicFloat16VectorFeaturesNV halves;
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
    f->halves.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT16_VECTOR_FEATURES_NV;
    if (has_extension(physical, VK_NV_SHADER_ATOMIC_FLOAT16_VECTOR_EXTENSION_NAME))
        *next = &f->halves, next = &f->halves.pNext;
    f->bfloat16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
    if (has_extension(physical, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME))
        *next = &f->bfloat16, next = &f->bfloat16.pNext;
    vkGetPhysicalDeviceFeatures2(physical, &f->base);
}

#define BUFFER_USAGE (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | \
                      VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)
enum { EXPORTS = 1, EXPORTS_DEDICATED = 2 };

/* Return whether another API may map memory of the device: 0, EXPORTS, or EXPORTS_DEDICATED if each allocation must be
 * one buffer's. */
static uint32_t exports(VkPhysicalDevice physical) {
    VkPhysicalDeviceExternalBufferInfo info = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
                                               .usage = BUFFER_USAGE,
                                               .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkExternalBufferProperties all = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    if (!has_extension(physical, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) return 0;
    vkGetPhysicalDeviceExternalBufferProperties(physical, &info, &all);
    VkExternalMemoryFeatureFlags can = all.externalMemoryProperties.externalMemoryFeatures;
    if (!(can & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT)) return 0;
    return can & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT ? EXPORTS_DEDICATED : EXPORTS;
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
    VkPhysicalDeviceMaintenance3Properties limit3 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
                                                     .pNext = &driver};
    VkPhysicalDeviceMaintenance4Properties limit4 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
                                                     .pNext = &limit3};
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT external = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT, .pNext = &limit4};
    int imports = has_extension(physical, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = imports ? (void *)&external : (void *)&limit4};
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
    // Kernels ask for a subgroup size, and such workgroups have no more subgroups than this.
    p->most_subgroups = sizes.maxComputeWorkgroupSubgroups;
    uint64_t most = (uint64_t)p->most_subgroups * subgroup.subgroupSize;
    p->invocations = most < limits->maxComputeWorkGroupInvocations ? (uint32_t)most : limits->maxComputeWorkGroupInvocations;
#define FEATURE(place, name) p->name = f.place.name;
    FEATURE(v12, shaderInt8) FEATURE(base.features, shaderInt16) FEATURE(base.features, shaderInt64)
    FEATURE(v12, shaderFloat16) FEATURE(base.features, shaderFloat64) FEATURE(v12, shaderBufferInt64Atomics)
    FEATURE(v12, storageBuffer8BitAccess) FEATURE(v11, storageBuffer16BitAccess)
    FEATURE(v12, storagePushConstant8) FEATURE(v11, storagePushConstant16)
    FEATURE(layout, workgroupMemoryExplicitLayout8BitAccess) FEATURE(layout, workgroupMemoryExplicitLayout16BitAccess)
    FEATURE(v12, bufferDeviceAddress) FEATURE(v12, shaderSubgroupExtendedTypes)
    p->vulkanMemoryModel = f.v12.vulkanMemoryModel && f.v12.vulkanMemoryModelDeviceScope;
    // A device whose subgroups have one size, such as AMD's before RDNA, need not let kernels ask for it.
    p->subgroupSizeControl = f.v13.subgroupSizeControl && f.v13.computeFullSubgroups &&
                             (sizes.minSubgroupSize == sizes.maxSubgroupSize ||
                              sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
    p->explicit_layout = f.layout.workgroupMemoryExplicitLayout;
    p->cooperative = f.cooperative.cooperativeMatrix;
    p->bfloat16 = f.bfloat16.shaderBFloat16Type && f.bfloat16.shaderBFloat16CooperativeMatrix;
    p->float_atomics = f.atomics.shaderBufferFloat32AtomicAdd, p->float_atomic_add64 = f.atomics.shaderBufferFloat64AtomicAdd;
    p->half_atomics = f.halves.shaderFloat16VectorAtomics;
    p->shuffle = (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
    p->denorm16 = floats.shaderDenormPreserveFloat16, p->denorm32 = floats.shaderDenormPreserveFloat32;
    p->denorm64 = floats.shaderDenormPreserveFloat64;
    p->special16 = floats.shaderSignedZeroInfNanPreserveFloat16, p->nearest16 = floats.shaderRoundingModeRTEFloat16;
    p->special32 = floats.shaderSignedZeroInfNanPreserveFloat32, p->nearest32 = floats.shaderRoundingModeRTEFloat32;
    p->special64 = floats.shaderSignedZeroInfNanPreserveFloat64, p->nearest64 = floats.shaderRoundingModeRTEFloat64;
    p->driver_version = all.properties.driverVersion, p->allocations = limits->maxMemoryAllocationCount;
    p->host_alignment = imports ? external.minImportedHostPointerAlignment : 0;
    p->exports = exports(physical);
    p->most_buffer = limit4.maxBufferSize, p->most_allocation = limit3.maxMemoryAllocationSize;
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
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t address, size, allocated;
    void *mapped;
} Buffer;

/* Commands that are submitted together. `arguments` is memory for those that are too many to be pushed. */
typedef struct {
    VkCommandBuffer commands;
    Buffer *arguments;
    uint32_t count, argument_bytes;
} Batch;

enum { WELL, LOST, GIVEN_UP, FORKED };

typedef struct {
    VkDevice device;
    VkQueue queue;
    VkPhysicalDeviceMemoryProperties memory;
    VkCommandPool pool;
    VkSemaphore timeline;
    VkQueryPool stamps[STAMP_POOLS];
    /* The last batch with each stamp. */
    uint64_t *stamped[STAMP_POOLS];
    uint64_t stamp_mask, most_groups[3], host_alignment, timeout;
    uint32_t exports;
    int describes, resets, one_size;
    uint64_t look;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int threaded, ends;
    /* The open batch has the number closed + 1, and our thread leaves it open until the time `held`. While `submitting`,
     * the batch `closed` is with vkQueueSubmit. */
    Batch batches[SLOTS];
    int open, submitting;
    /* How many threads wait for `submitting`; and whether the device has finished everything, as somebody saw. */
    int queued, rests;
    uint64_t closed, submitted, held;
    VkPipeline bound;
    /* LOST, or GIVEN_UP: the batch `watched` did not end in time. It became the oldest at `since`. */
    int state;
    char reason[sizeof error_text];
    uint64_t watched, since;
} Device;

typedef struct {
    VkPipeline pipeline;
    VkPipelineLayout layout;
    VkPipelineCache cache;
    uint32_t bytes;
    int by_address;
} Pipeline;

static void *submit_batches(void *device);
static int shut(Device *d);

/* A child of fork() has neither our thread nor the driver's. */
static int forked;

/* Mesa registered a handler that waits for the driver's threads when a process ends. Those that are registered later are
 * called earlier, and Python has ended by then. */
static void end_child(int status, void *unused) {
    (void)unused;
    fflush(NULL);
    _exit(status);
}

static void note_fork(void) {
    forked = 1;
    on_exit(end_child, NULL);
}

static int lives(void) {
    if (forked) failed("this process was forked from one that had opened the device");
    return !forked;
}

static int enter(Device *d) {
    if (!lives()) return 0;
    pthread_mutex_lock(&d->lock);
    return 1;
}

/* Submit what is open and end our thread. The device stays, because others may still have its memory. */
EXPORT void foundry_vulkan_close(Device *d) {
    if (!enter(d)) return;
    if (d->state == WELL) shut(d);
    d->ends = 1;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (d->threaded) pthread_join(d->thread, NULL);
    d->threaded = 0;
}

static void destroy(Device *d) {
    if (d->device) {
        vkDestroySemaphore(d->device, d->timeline, NULL);
        vkDestroyCommandPool(d->device, d->pool, NULL);
        vkDestroyDevice(d->device, NULL);
    }
    free(d);
}

/* Open a device. A batch whose commands take longer than `timeout` nanoseconds each is given up. */
EXPORT Device *foundry_vulkan_open(int index, uint64_t timeout) {
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
                            VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME,
                            VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                            VK_NV_SHADER_ATOMIC_FLOAT16_VECTOR_EXTENSION_NAME};
    enum { WANTED = sizeof wanted / sizeof *wanted };
    const char *extensions[WANTED];
    uint32_t count = 0;
    for (int i = 0; i < WANTED; i++)
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
#ifndef FIND_DEVICE
#define FIND_DEVICE(name) vk##name = (PFN_vk##name)vkGetDeviceProcAddr(d->device, "vk" #name);
#endif
    DEVICE_FUNCTIONS(FIND_DEVICE)
    Properties known;
    foundry_vulkan_properties(index, &known);
    memcpy(d->most_groups, known.grid, sizeof known.grid);
    d->host_alignment = known.host_alignment, d->timeout = timeout;
    d->exports = known.exports;
    d->describes = f.executables.pipelineExecutableInfo;
    d->one_size = known.least_subgroup == known.most_subgroup;
    d->resets = f.v12.hostQueryReset;
    /* A thread that looks takes time from the kernels of a CPU. */
    d->look = known.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 0 : LOOK;
    d->stamp_mask = queues[family].timestampValidBits < 64 ? (1ull << queues[family].timestampValidBits) - 1 : UINT64_MAX;
    vkGetDeviceQueue(d->device, family, 0, &d->queue);
    vkGetPhysicalDeviceMemoryProperties(physical, &d->memory);
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = family};
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    VkCommandBufferAllocateInfo buffers = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           .commandBufferCount = SLOTS};
    VkCommandBuffer made[SLOTS];
    if (bad(vkCreateCommandPool(d->device, &pool, NULL, &d->pool), "the command pool") ||
        bad(vkCreateSemaphore(d->device, &semaphore, NULL, &d->timeline), "the timeline"))
        return destroy(d), NULL;
    buffers.commandPool = d->pool;
    if (bad(vkAllocateCommandBuffers(d->device, &buffers, made), "the command buffers")) return destroy(d), NULL;
    for (int i = 0; i < SLOTS; i++) d->batches[i].commands = made[i];
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&d->changed, &clock);
    pthread_atfork(NULL, NULL, note_fork);
    /* Without the thread, every command is submitted at once. */
    d->threaded = !pthread_create(&d->thread, NULL, submit_batches, d);
    return d;
}

/* Batches. `lock` is held in these functions; those that wait release it meanwhile. */

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static int lost(Device *d, VkResult result, const char *what) {
    if (!bad(result, what)) return 0;
    if (d->state != LOST) memcpy(d->reason, error_text, sizeof error_text);
    d->state = LOST;
    return 1;
}

/* The number of the last batch that the device has finished. */
static uint64_t finished(Device *d) {
    uint64_t number = 0;
    if (lost(d, vkGetSemaphoreCounterValue(d->device, d->timeline, &number), "the state of the device")) return 0;
    return number;
}

/* Wait a moment for a batch that was submitted. Returns 1, 0 after an error, or -1 if it has not finished yet. */
static int await(Device *d, uint64_t number, uint64_t nanoseconds) {
    uint64_t done = finished(d);
    if (d->state == LOST) return 0;
    if (done >= number) return 1;
    uint64_t oldest = done + 1, time = now();
    if (d->watched != oldest) d->watched = oldest, d->since = time;
    uint32_t count = d->batches[oldest % SLOTS].count;
    uint64_t allowed = d->timeout * (count ? count : 1);
    if (time - d->since >= allowed) {
        d->state = GIVEN_UP;
        return failed("a kernel did not end within %g s", (double)d->timeout / 1e9), 0;
    }
    uint64_t rest = allowed - (time - d->since);
    if (nanoseconds > rest) nanoseconds = rest;
    VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &d->timeline,
                                .pValues = &oldest};
    pthread_mutex_unlock(&d->lock);
    VkResult result = VK_SUCCESS;
    for (uint64_t until = time + d->look; result == VK_SUCCESS && done < number && now() < until;)
        result = vkGetSemaphoreCounterValue(d->device, d->timeline, &done);
    if (result == VK_SUCCESS && done < number) {
        result = vkWaitSemaphores(d->device, &wait, nanoseconds);
        if (result == VK_SUCCESS && done < oldest) done = oldest;
    }
    pthread_mutex_lock(&d->lock);
    if (lost(d, result, "waiting for the device")) return 0;
    return done >= number ? 1 : -1;
}

/* Return whether the device takes commands. One that was given up does again once it has finished after all. */
static int usable(Device *d) {
    if (d->state == WELL) return 1;
    if (d->state == GIVEN_UP && finished(d) >= d->watched) {
        d->state = WELL;
        pthread_cond_broadcast(&d->changed);
        return 1;
    }
    if (d->state == LOST) return failed("%s", d->reason), 0;
    return failed("a kernel that did not end within %g s still runs", (double)d->timeout / 1e9), 0;
}

/* Return the command buffer of the open batch. */
static VkCommandBuffer open_batch(Device *d) {
    if (!usable(d)) return NULL;
    while (!d->open) {
        uint64_t number = d->closed + 1;
        if (number > SLOTS) {
            /* The batch that had this command buffer: at most the last but one, so it was submitted. */
            int done = await(d, number - SLOTS, SECOND);
            if (!done) return NULL;
            if (done < 0 || d->open || d->closed + 1 != number) continue;
        }
        Batch *batch = &d->batches[number % SLOTS];
        VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                         .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
        if (bad(vkBeginCommandBuffer(batch->commands, &info), "a command buffer")) return NULL;
        batch->count = batch->argument_bytes = 0;
        d->bound = VK_NULL_HANDLE;
        d->open = 1;
    }
    return d->batches[(d->closed + 1) % SLOTS].commands;
}

/* Let all later commands, also those of later batches, wait for all earlier ones, and see what these wrote. */
static void separate(VkCommandBuffer commands, VkPipelineStageFlags host, VkAccessFlags reads) {
    VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | reads};
    VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    vkCmdPipelineBarrier(commands, stages, stages | host, 0, 1, &barrier, 0, NULL, 0, NULL);
}

/* Return the command buffer of the open batch: what was recorded before is finished and visible. The batch before ends
 * with a barrier, so that a batch of one launch has one. */
static VkCommandBuffer record(Device *d) {
    VkCommandBuffer commands = open_batch(d);
    if (commands && d->batches[(d->closed + 1) % SLOTS].count) separate(commands, 0, 0);
    return commands;
}

/* Close the open batch and submit it, after another thread has submitted the one before. Returns 0 after an error. */
static int shut(Device *d) {
    if (d->submitting && d->look) {
        pthread_mutex_unlock(&d->lock);
        for (uint64_t until = now() + d->look; __atomic_load_n(&d->submitting, __ATOMIC_RELAXED) && now() < until;) {}
        pthread_mutex_lock(&d->lock);
    }
    d->queued++;
    while (d->submitting) pthread_cond_wait(&d->changed, &d->lock);
    d->queued--;
    if (!d->open || d->state == LOST) return d->state != LOST;
    uint64_t number = ++d->closed;
    VkCommandBuffer commands = d->batches[number % SLOTS].commands;
    d->open = d->rests = 0, d->held = 0;
    /* The host reads what was written once it has waited for the batch. */
    separate(commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    if (lost(d, vkEndCommandBuffer(commands), "a command buffer")) return 0;
    VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                              .signalSemaphoreValueCount = 1,
                                              .pSignalSemaphoreValues = &number};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &d->timeline};
    d->submitting = 1;
    pthread_mutex_unlock(&d->lock);
    VkResult result = vkQueueSubmit(d->queue, 1, &info, VK_NULL_HANDLE);
    pthread_mutex_lock(&d->lock);
    __atomic_store_n(&d->submitting, 0, __ATOMIC_RELAXED);
    if (d->queued || d->open) pthread_cond_broadcast(&d->changed);
    if (lost(d, result, "a launch")) return 0;
    d->submitted = number;
    return 1;
}

/* Count a command that was recorded, and release the lock. Returns the number of its batch. */
static uint64_t recorded(Device *d) {
    uint64_t number = d->closed + 1;
    uint32_t count = ++d->batches[number % SLOTS].count;
    int fine = 1, begins = count == 1;
    if (!d->threaded || count == MOST_COMMANDS || (count == 1 && d->rests && !d->held))
        begins = 0, fine = shut(d);
    pthread_mutex_unlock(&d->lock);
    /* Not before: our thread would wake up to wait for the lock. */
    if (begins) pthread_cond_broadcast(&d->changed);
    return fine ? number : 0;
}

static uint64_t not_recorded(Device *d) {
    pthread_mutex_unlock(&d->lock);
    return 0;
}

static void *submit_batches(void *device) {
    Device *d = device;
    pthread_mutex_lock(&d->lock);
    while (!d->ends) {
        if (!d->open || d->submitting || d->state != WELL || !d->batches[(d->closed + 1) % SLOTS].count) {
            pthread_cond_wait(&d->changed, &d->lock);
        } else if (now() < d->held) {
            struct timespec until = {(time_t)(d->held / SECOND), (long)(d->held % SECOND)};
            pthread_cond_timedwait(&d->changed, &d->lock, &until);
        } else if (d->submitted >= IN_FLIGHT && finished(d) <= d->submitted - IN_FLIGHT) {
            uint64_t awaited = d->submitted - IN_FLIGHT + 1;
            VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                        .semaphoreCount = 1,
                                        .pSemaphores = &d->timeline,
                                        .pValues = &awaited};
            pthread_mutex_unlock(&d->lock);
            VkResult result = vkWaitSemaphores(d->device, &wait, SECOND / 10);
            pthread_mutex_lock(&d->lock);
            lost(d, result, "waiting for the device");
        } else {
            shut(d);
        }
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* Submit everything, and wait a moment for a batch; for all of them if the number is 0.
 * Returns 1, 0 after an error, or -1 if it has not finished yet: call again, until it is finished or given up. */
EXPORT int foundry_vulkan_wait(Device *d, uint64_t number, uint64_t nanoseconds) {
    if (!enter(d)) return 0;
    int result = usable(d);
    if (result && (!number || number > d->submitted)) result = shut(d);
    if (result) result = await(d, number && number < d->submitted ? number : d->submitted, nanoseconds);
    if (result > 0 && !d->open && (!number || number >= d->submitted)) d->rests = 1;
    pthread_mutex_unlock(&d->lock);
    return result;
}

/* The number of the last batch that has a command, of the last that was submitted, and of the last that has finished. */
EXPORT uint64_t foundry_vulkan_recorded(Device *d) {
    if (!enter(d)) return 0;
    uint64_t number = d->closed + (d->open != 0);
    pthread_mutex_unlock(&d->lock);
    return number;
}

EXPORT uint64_t foundry_vulkan_submitted(Device *d) { return d->submitted; }

EXPORT uint64_t foundry_vulkan_finished(Device *d) {
    if (!enter(d)) return 0;
    uint64_t number = finished(d);
    pthread_mutex_unlock(&d->lock);
    return number;
}

/* WELL; LOST; GIVEN_UP, if a kernel did not end in time; FORKED, in a child of the process that opened the device. */
EXPORT int foundry_vulkan_state(Device *d) { return forked ? FORKED : d->state; }

/* Memory. */

static int memory_type(const Device *d, uint32_t allowed, VkMemoryPropertyFlags flags) {
    for (uint32_t i = 0; i < d->memory.memoryTypeCount; i++)
        if (allowed >> i & 1 && (d->memory.memoryTypes[i].propertyFlags & flags) == flags) return (int)i;
    return -1;
}

EXPORT void foundry_vulkan_free(Device *d, Buffer *b) {
    if (!b || forked) return;
    if (b->buffer) vkDestroyBuffer(d->device, b->buffer, NULL);
    if (b->memory) vkFreeMemory(d->device, b->memory, NULL);
    free(b);
}

static VkBufferCreateInfo buffer_info(uint64_t bytes) {
    return (VkBufferCreateInfo){.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .size = bytes,
                                .usage = BUFFER_USAGE};
}

/* Give a buffer its memory, of one of the allowed types. `next` says more of the allocation. */
static int bind(Device *d, Buffer *b, uint64_t size, int type, const void *next) {
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .pNext = next,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .pNext = &flags,
                                     .allocationSize = size,
                                     .memoryTypeIndex = (uint32_t)type};
    char what[64];
    snprintf(what, sizeof what, "%llu bytes", (unsigned long long)size);
    if (bad(vkAllocateMemory(d->device, &allocate, NULL, &b->memory), what) ||
        bad(vkBindBufferMemory(d->device, b->buffer, b->memory, 0), what))
        return 0;
    VkBufferDeviceAddressInfo asked = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = b->buffer};
    b->address = vkGetBufferDeviceAddress(d->device, &asked), b->allocated = size;
    return 1;
}

/* Allocate memory: of the device (0), of the host where the device reaches it, mapped (1), or of the device, to be
 * exported (2). */
EXPORT Buffer *foundry_vulkan_allocate(Device *d, uint64_t bytes, int kind) {
    const int of_host = kind == 1, exported = kind == 2;
    if (!lives()) return NULL;
    if (exported && !d->exports) return failed("the device exports no memory (VK_KHR_external_memory_fd)"), NULL;
    Buffer *b = calloc(1, sizeof *b);
    VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                 .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkBufferCreateInfo info = buffer_info(bytes);
    info.pNext = exported ? &external : NULL;
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
    VkMemoryDedicatedAllocateInfo dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = b->buffer};
    VkExportMemoryAllocateInfo handles = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                          .pNext = d->exports == EXPORTS_DEDICATED ? &dedicated : NULL,
                                          .handleTypes = external.handleTypes};
    if (!bind(d, b, needed.size, type, exported ? &handles : NULL)) return foundry_vulkan_free(d, b), NULL;
    if (of_host && bad(vkMapMemory(d->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->mapped), "memory of the host"))
        return foundry_vulkan_free(d, b), NULL;
    b->size = info.size;
    return b;
}

/* Let the device see memory of the process. Address and size are multiples of the device's alignment for this. */
EXPORT Buffer *foundry_vulkan_share(Device *d, void *pointer, uint64_t bytes) {
    const VkExternalMemoryHandleTypeFlagBits kind = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    if (!lives()) return NULL;
    if (!d->host_alignment) return failed("the device has no VK_EXT_external_memory_host"), NULL;
    VkMemoryHostPointerPropertiesEXT properties = {.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    if (bad(vkGetMemoryHostPointerPropertiesEXT(d->device, kind, pointer, &properties), "memory of the process")) return NULL;
    Buffer *b = calloc(1, sizeof *b);
    VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                 .handleTypes = kind};
    VkBufferCreateInfo info = buffer_info(bytes);
    info.pNext = &external;
    if (bad(vkCreateBuffer(d->device, &info, NULL, &b->buffer), "a buffer")) return foundry_vulkan_free(d, b), NULL;
    VkMemoryRequirements needed;
    vkGetBufferMemoryRequirements(d->device, b->buffer, &needed);
    /* Written by the host without a flush, and read without an invalidation. */
    int type = memory_type(d, needed.memoryTypeBits & properties.memoryTypeBits, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    if (type < 0 || needed.size > bytes)
        return failed("the device has no coherent memory for arrays of the process"), foundry_vulkan_free(d, b), NULL;
    VkImportMemoryHostPointerInfoEXT import = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
                                               .handleType = kind,
                                               .pHostPointer = pointer};
    if (!bind(d, b, bytes, type, &import)) return foundry_vulkan_free(d, b), NULL;
    b->mapped = pointer, b->size = bytes;
    return b;
}

/* Return a file descriptor of memory that was allocated to be exported, and its size; the caller closes it, or who takes
 * it. -1 after an error. */
EXPORT int foundry_vulkan_export(Device *d, const Buffer *b, uint64_t *bytes) {
    if (!lives()) return -1;
    VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                 .memory = b->memory,
                                 .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    int found = -1;
    *bytes = b->allocated;
    return bad(vkGetMemoryFdKHR(d->device, &info, &found), "a handle of memory") ? -1 : found;
}

EXPORT uint64_t foundry_vulkan_address(const Buffer *b) { return b->address; }
EXPORT void *foundry_vulkan_mapped(const Buffer *b) { return b->mapped; }

EXPORT uint64_t foundry_vulkan_copy(Device *d, Buffer *to, uint64_t to_offset, Buffer *from, uint64_t from_offset,
                                    uint64_t bytes) {
    if (!enter(d)) return 0;
    VkCommandBuffer commands = record(d);
    if (!commands) return not_recorded(d);
    VkBufferCopy region = {from_offset, to_offset, bytes};
    vkCmdCopyBuffer(commands, from->buffer, to->buffer, 1, &region);
    return recorded(d);
}

/* Write one 32-bit word everywhere from an offset on; both are multiples of 4. */
EXPORT uint64_t foundry_vulkan_fill(Device *d, Buffer *to, uint64_t offset, uint64_t bytes, uint32_t word) {
    if (!enter(d)) return 0;
    VkCommandBuffer commands = record(d);
    if (!commands) return not_recorded(d);
    vkCmdFillBuffer(commands, to->buffer, offset, bytes, word);
    return recorded(d);
}

/* Kernels. */

static void drop(Device *d, Pipeline *p) {
    if (!p) return;
    if (p->pipeline) vkDestroyPipeline(d->device, p->pipeline, NULL);
    if (p->layout) vkDestroyPipelineLayout(d->device, p->layout, NULL);
    if (p->cache) vkDestroyPipelineCache(d->device, p->cache, NULL);
    free(p);
}

/* Compile a kernel. If its arguments are more than `most_pushed` bytes, as many as the device takes where it was compiled
 * for that, it takes their address instead.
 * `cache` is what foundry_vulkan_cache said of the same kernel on the same device, or null. */
EXPORT Pipeline *foundry_vulkan_pipeline(Device *d, const uint32_t *words, size_t bytes, const char *entry,
                                         uint32_t argument_bytes, uint32_t most_pushed, uint32_t subgroup,
                                         const void *cache, size_t cache_bytes) {
    if (!lives()) return NULL;
    Pipeline *p = calloc(1, sizeof *p);
    p->bytes = argument_bytes, p->by_address = argument_bytes > most_pushed;
    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, p->by_address ? 8 : argument_bytes};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .pushConstantRangeCount = argument_bytes > 0,
                                         .pPushConstantRanges = &range};
    VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
    VkPipelineCacheCreateInfo cached = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                        .initialDataSize = cache_bytes,
                                        .pInitialData = cache};
    VkShaderModule module = VK_NULL_HANDLE;
    if (bad(vkCreatePipelineCache(d->device, &cached, NULL, &p->cache), "the pipeline cache") ||
        bad(vkCreatePipelineLayout(d->device, &layout, NULL, &p->layout), "the layout of a kernel's arguments") ||
        bad(vkCreateShaderModule(d->device, &code, NULL, &module), "the SPIR-V of a kernel"))
        return drop(d, p), NULL;
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = subgroup};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = d->describes ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = subgroup && !d->one_size ? &size : NULL,
                  .flags = subgroup ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = entry},
        .layout = p->layout};
    VkResult result = vkCreateComputePipelines(d->device, p->cache, 1, &info, NULL, &p->pipeline);
    vkDestroyShaderModule(d->device, module, NULL);
    if (bad(result, "the driver's compiler")) return drop(d, p), NULL;
    return p;
}

/* What the driver's compiler made of a kernel, such as "Register Count: 40", a line each. Returns the number of bytes.
 * What a driver says is not believed: neither that a name ends, nor how many statistics there are. */
EXPORT int foundry_vulkan_describe(Device *d, const Pipeline *p, char *text, int bytes) {
    int at = 0;
    text[0] = 0;
    if (!d->describes) return 0;
    VkPipelineInfoKHR pipeline = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = p->pipeline};
    uint32_t parts = 0;
    if (vkGetPipelineExecutablePropertiesKHR(d->device, &pipeline, &parts, NULL) < 0) return 0;
    for (uint32_t part = 0; part < parts && part < 16; part++) {
        VkPipelineExecutableInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
                                            .pipeline = p->pipeline,
                                            .executableIndex = part};
        VkPipelineExecutableStatisticKHR all[32];
        uint32_t count = 32;
        for (int i = 0; i < 32; i++)
            all[i] = (VkPipelineExecutableStatisticKHR){.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR};
        if (vkGetPipelineExecutableStatisticsKHR(d->device, &info, &count, all) < 0) continue;
        for (uint32_t i = 0; i < count && i < 32 && at < bytes - 320; i++) {
            VkPipelineExecutableStatisticFormatKHR format = all[i].format;
            double number = format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR   ? all[i].value.b32 != 0
                            : format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR  ? (double)all[i].value.i64
                            : format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR ? (double)all[i].value.u64
                                                                                           : all[i].value.f64;
            at += snprintf(text + at, (size_t)(bytes - at), "%.255s: %.17g\n", all[i].name, number);
        }
    }
    return at;
}

/* The driver's compiled kernel, to keep on disk. With a null pointer, returns how many bytes there are. */
EXPORT size_t foundry_vulkan_cache(Device *d, const Pipeline *p, void *data, size_t bytes) {
    return bad(vkGetPipelineCacheData(d->device, p->cache, &bytes, data), "the pipeline cache") ? 0 : bytes;
}

/* Copy arguments to where the device reads them until the open batch has finished. Returns their address, or 0. */
static uint64_t place_arguments(Device *d, const void *arguments, uint32_t bytes) {
    Batch *batch = &d->batches[(d->closed + 1) % SLOTS];
    if (!batch->arguments) batch->arguments = foundry_vulkan_allocate(d, MOST_ARGUMENTS, 1);
    if (!batch->arguments) return 0;
    uint64_t at = batch->argument_bytes;
    memcpy((char *)batch->arguments->mapped + at, arguments, bytes);
    batch->argument_bytes += (bytes + 15) & ~15u;
    return batch->arguments->address + at;
}

/* Record one dispatch. Returns 0 after an error. */
static int dispatch(Device *d, const Pipeline *p, uint32_t x, uint32_t y, uint32_t z, const void *arguments) {
    int by_address = p->by_address;
    if (by_address && d->open && d->batches[(d->closed + 1) % SLOTS].argument_bytes + p->bytes > MOST_ARGUMENTS && !shut(d))
        return 0;
    VkCommandBuffer commands = record(d);
    if (!commands) return 0;
    uint64_t address = by_address ? place_arguments(d, arguments, p->bytes) : 0;
    if (by_address && !address) return 0;
    if (d->bound != p->pipeline) vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    d->bound = p->pipeline;
    if (p->bytes)
        vkCmdPushConstants(commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, by_address ? sizeof address : p->bytes,
                           by_address ? &address : arguments);
    vkCmdDispatch(commands, x, y, z);
    return 1;
}

/* What a caller packs for a launch, and behind it the block of arguments: ctypes takes half a microsecond for four numbers. */
typedef struct Launch {
    const Pipeline *pipeline;
    uint32_t x, y, z, unused;
} Launch;

/* Launch a kernel; returns the number of its batch. If the device takes fewer workgroups along x than a grid may have,
 * the last argument is the number of the first one, an int32, and a large grid is launched in parts. */
EXPORT uint64_t foundry_vulkan_launch(Device *d, Launch *launch) {
    const Pipeline *p = launch->pipeline;
    uint32_t x = launch->x;
    void *arguments = launch + 1;
    if (p->bytes > MOST_ARGUMENTS) return failed("a kernel has %u bytes of arguments", p->bytes), 0;
    if (!enter(d)) return 0;
    uint32_t most = d->most_groups[0] < INT32_MAX ? (uint32_t)d->most_groups[0] : INT32_MAX;
    for (uint32_t first = 0; first < x; first += most) {
        if (first) memcpy((char *)arguments + p->bytes - sizeof first, &first, sizeof first);
        if (!dispatch(d, p, x - first < most ? x - first : most, launch->y, launch->z, arguments)) return not_recorded(d);
    }
    return recorded(d);
}

/* Times, in slots that the caller counts. A stamp is taken when everything before it has finished. */

EXPORT uint64_t foundry_vulkan_stamp(Device *d, uint32_t slot) {
    if (slot >= STAMPS * STAMP_POOLS) return failed("there are too many events"), 0;
    if (!enter(d)) return 0;
    VkQueryPool *pool = &d->stamps[slot / STAMPS];
    VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                  .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                  .queryCount = STAMPS};
    uint64_t **batches = &d->stamped[slot / STAMPS];
    if (!*pool && (bad(vkCreateQueryPool(d->device, &info, NULL, pool), "the timestamps") ||
                   !(*batches = calloc(STAMPS, sizeof **batches))))
        return not_recorded(d);
    uint64_t *last = &(*batches)[slot % STAMPS];
    /* The device would rest some 10 us to reset it, between two times that are compared. */
    int reset = d->resets && *last <= finished(d);
    VkCommandBuffer commands = reset ? open_batch(d) : record(d);
    if (!commands) return not_recorded(d);
    if (reset)
        vkResetQueryPool(d->device, *pool, slot % STAMPS, 1);
    else
        vkCmdResetQueryPool(commands, *pool, slot % STAMPS, 1);
    /* Taken when everything before it has finished, without a barrier. */
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, *pool, slot % STAMPS);
    *last = d->closed + 1;
    d->held = now() + HOLD;
    return recorded(d);
}

/* Read a stamp whose batch has finished, in ticks. */
EXPORT int foundry_vulkan_read_stamp(Device *d, uint32_t slot, uint64_t *ticks) {
    VkResult result = vkGetQueryPoolResults(d->device, d->stamps[slot / STAMPS], slot % STAMPS, 1, sizeof *ticks, ticks,
                                            sizeof *ticks, VK_QUERY_RESULT_64_BIT);
    *ticks &= d->stamp_mask;
    if (result == VK_NOT_READY) return failed("the device took no time"), 0;
    return !bad(result, "a time");
}
