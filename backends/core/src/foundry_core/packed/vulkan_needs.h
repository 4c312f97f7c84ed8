/* What a kernel's SPIR-V needs of a Vulkan device, read from the module itself: nobody has to keep a list of it true.
 *
 * Included behind vulkan.c, whose Properties say what a device has.
 */

enum { OP_EXTENSION = 10, OP_ENTRY_POINT = 15, OP_EXECUTION_MODE = 16, OP_CAPABILITY = 17, OP_TYPE_INT = 21, OP_TYPE_FLOAT = 22,
       OP_CONSTANT = 43, OP_TYPE_MATRIX = 4456, OP_MULTIPLY_ADD = 4459 };
enum { MODE_LOCAL_SIZE = 17, MODE_DENORM_PRESERVE = 4459, MODE_SPECIAL_PRESERVE = 4461, MODE_ROUND_TO_NEAREST = 4462 };
enum { SPIRV_MAGIC = 0x07230203, MOST_IDS = 1 << 22, COMPONENT_BFLOAT16 = 1000141000 };

/* A capability of SPIR-V, the member of Properties that says whether a device has it, and what Vulkan calls that. */
typedef struct {
    uint32_t capability;
    size_t member;
    const char *feature;
} Feature;
#define NEEDS(number, member, name) {number, offsetof(Properties, member), name}
#define NEEDS_FEATURE(number, name) NEEDS(number, name, #name)
static const Feature known_features[] = {
    NEEDS_FEATURE(9, shaderFloat16),
    NEEDS_FEATURE(10, shaderFloat64),
    NEEDS_FEATURE(11, shaderInt64),
    NEEDS_FEATURE(12, shaderBufferInt64Atomics),
    NEEDS_FEATURE(22, shaderInt16),
    NEEDS_FEATURE(39, shaderInt8),
    NEEDS(65, shuffle, "subgroup shuffles"),
    NEEDS(4428, explicit_layout, "VK_KHR_workgroup_memory_explicit_layout"),
    NEEDS_FEATURE(4429, workgroupMemoryExplicitLayout8BitAccess),
    NEEDS_FEATURE(4430, workgroupMemoryExplicitLayout16BitAccess),
    NEEDS_FEATURE(4433, storageBuffer16BitAccess),
    NEEDS_FEATURE(4435, storagePushConstant16),
    NEEDS_FEATURE(4448, storageBuffer8BitAccess),
    NEEDS_FEATURE(4450, storagePushConstant8),
    NEEDS(5116, bfloat16, "VK_KHR_shader_bfloat16"),
    NEEDS(5118, bfloat16, "VK_KHR_shader_bfloat16"),
    NEEDS_FEATURE(5345, vulkanMemoryModel),
    NEEDS_FEATURE(5346, vulkanMemoryModel),
    NEEDS_FEATURE(5347, bufferDeviceAddress),
    NEEDS(5404, half_atomics, "VK_NV_shader_atomic_float16_vector"),
    NEEDS(6022, cooperative, "VK_KHR_cooperative_matrix"),
    NEEDS(6033, float_atomics, "shaderBufferFloat32AtomicAdd"),
    NEEDS(6034, float_atomic_add64, "shaderBufferFloat64AtomicAdd"),
    /* The others are Vulkan 1.3 itself: Shader, GroupNonUniform; what modes say of floats is asked with its width. */
    {1, SIZE_MAX, ""}, {61, SIZE_MAX, ""}, {4464, SIZE_MAX, ""}, {4466, SIZE_MAX, ""}, {4467, SIZE_MAX, ""},
};

static uint32_t property(const Properties *p, size_t member) {
    uint32_t value;
    memcpy(&value, (const char *)p + member, sizeof value);
    return value;
}

/* Return whether the device can do what a mode asks of floats with this width. */
static int keeps_floats(const Properties *p, uint32_t mode, uint32_t width) {
#define OF_WIDTH(name) (width == 16 ? p->name##16 : width == 32 ? p->name##32 : width == 64 ? p->name##64 : 0)
    return mode == MODE_DENORM_PRESERVE    ? OF_WIDTH(denorm)
           : mode == MODE_SPECIAL_PRESERVE ? OF_WIDTH(special)
           : mode == MODE_ROUND_TO_NEAREST ? OF_WIDTH(nearest)
                                           : 0;
}

/* What is known of an id: a number's type as VkComponentTypeKHR, a constant, a type of matrices, or a matrix. */
typedef struct {
    enum { UNKNOWN, NUMBER, CONSTANT, MATRIX_TYPE, MATRIX } what;
    /* CONSTANT and NUMBER: the first. MATRIX_TYPE: component, rows, columns. MATRIX: the id of its type. */
    uint32_t value[3];
} Id;

static uint32_t component_of_int(uint32_t width) { return width == 8 ? VK_COMPONENT_TYPE_SINT8_KHR : VK_COMPONENT_TYPE_SINT32_KHR; }

static uint32_t component_of_float(uint32_t width, int bfloat16) {
    return bfloat16      ? COMPONENT_BFLOAT16
           : width == 16 ? VK_COMPONENT_TYPE_FLOAT16_KHR
           : width == 32 ? VK_COMPONENT_TYPE_FLOAT32_KHR
                         : VK_COMPONENT_TYPE_FLOAT64_KHR;
}

/* Return whether subgroups of the device multiply such matrices; else say which they are. */
static int multiplies(int device, const Id *left, const Id *right, const Id *total) {
    uint32_t wanted[] = {left->value[1], right->value[2], left->value[2], left->value[0], total->value[0]};
    uint32_t shapes[256][5];
    int count = foundry_vulkan_fragments(device, shapes, 256);
    for (int i = 0; i < count; i++)
        if (!memcmp(shapes[i], wanted, sizeof wanted)) return 1;
    return failed("its subgroups do not multiply matrices of %u x %u by %u x %u (VkComponentTypeKHR %u, sums %u)", wanted[0],
                  wanted[2], wanted[2], wanted[1], wanted[3], wanted[4]), 0;
}

/* Return whether a device has all that a module needs; if not, foundry_vulkan_error() says what. `threads` becomes the
 * number of invocations of a workgroup. A module that is no SPIR-V, or ends in an instruction, is refused. */
static int device_fits(int device, const Properties *p, const uint32_t *words, size_t count, uint32_t *threads) {
    if (count < 5 || words[0] != SPIRV_MAGIC || words[3] > MOST_IDS) return failed("the module is damaged: its header is none of SPIR-V"), 0;
    const uint32_t bound = words[3];
    Id *ids = calloc(bound ? bound : 1, sizeof *ids);
    if (!ids) return failed("no memory is left to read a module"), 0;
    int fits = 1;
    *threads = 0;
    for (size_t at = 5; fits && at < count; at += words[at] >> 16) {
        const uint32_t *w = &words[at], length = w[0] >> 16;
        if (!length || length > count - at) {
            fits = 0;
            failed("the module is damaged: no instruction ends at its end");
            break;
        }
#define IS(opcode, least) ((w[0] & 0xFFFF) == (opcode) && length >= (least))
#define ID(place) (w[place] < bound ? &ids[w[place]] : &ids[0])
        if (IS(OP_CAPABILITY, 2)) {
            const Feature *found = NULL;
            for (size_t i = 0; i < sizeof known_features / sizeof *known_features; i++)
                if (known_features[i].capability == w[1]) found = &known_features[i];
            if (!found)
                fits = 0, failed("the kernel needs the capability %u of SPIR-V, which this library does not know", w[1]);
            else if (found->member != SIZE_MAX && !property(p, found->member))
                fits = 0, failed("it lacks %s", found->feature);
        } else if (IS(OP_EXECUTION_MODE, 6) && w[2] == MODE_LOCAL_SIZE) {
            uint64_t all = (uint64_t)w[3] * w[4];
            if (all > UINT32_MAX || all * w[5] > UINT32_MAX) all = UINT32_MAX;
            else all *= w[5];
            *threads = (uint32_t)all;
            if (all > p->invocations)
                fits = 0, failed("its workgroups have %u invocations at most, and the kernel needs %u", p->invocations, *threads);
        } else if (IS(OP_EXECUTION_MODE, 4) && !keeps_floats(p, w[2], w[3])) {
            fits = 0;
            failed("its floats of %u bits do not %s", w[3],
                   w[2] == MODE_DENORM_PRESERVE    ? "keep subnormal numbers"
                   : w[2] == MODE_SPECIAL_PRESERVE ? "keep signed zeros, infinities and NaNs"
                                                   : "round to nearest");
        } else if (IS(OP_TYPE_INT, 4)) {
            *ID(1) = (Id){NUMBER, {component_of_int(w[2])}};
        } else if (IS(OP_TYPE_FLOAT, 3)) {
            *ID(1) = (Id){NUMBER, {component_of_float(w[2], length > 3)}};
        } else if (IS(OP_CONSTANT, 4)) {
            *ID(2) = (Id){CONSTANT, {w[3]}};
        } else if (IS(OP_TYPE_MATRIX, 7)) {
            *ID(1) = (Id){MATRIX_TYPE, {ID(2)->value[0], ID(4)->value[0], ID(5)->value[0]}};
        } else if (length >= 3 && ID(1)->what == MATRIX_TYPE) {
            *ID(2) = (Id){MATRIX, {w[1]}};
            if (IS(OP_MULTIPLY_ADD, 6) && ID(3)->what == MATRIX && ID(4)->what == MATRIX)
                fits = multiplies(device, &ids[ID(3)->value[0]], &ids[ID(4)->value[0]], ID(1));
        }
    }
    free(ids);
    if (fits && !*threads) return failed("the module is damaged: it has no workgroup size"), 0;
    return fits;
}
