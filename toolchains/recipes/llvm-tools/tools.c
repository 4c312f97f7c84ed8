// mlir-opt, mlir-translate and llc, which of them by the name that the program is called by. Each has what the lowering
// uses: backends/core/src/foundry_core/codegen/tools.py, and for llc's x86-64 the command library of vsi-reference-sdk.
//
// In C and with mangled names, so that no headers of C++, LLVM and MLIR, 160 MB, are unpacked and compiled. The linker
// refuses a name that another release does not have.

typedef _Bool Success;
// A StringRef is passed as its two members.
#define TEXT(text) text, sizeof text - 1
#define NAMED(name) __asm__(name)

// libstdc++'s std::function, of a function that needs no data. `data` and `copy` are called by it.
typedef struct {
    const void *data[2];
    _Bool (*copy)(void *to, const void *from, int operation);
    void *call;
} Function;
static _Bool nothing_to_copy(void *to, const void *from, int operation) {
    (void)to, (void)from, (void)operation;
    return 0;
}
#define FUNCTION(function) (&(const Function){{0, 0}, nothing_to_copy, (void *)function})

// MLIR's C interface: a dialect, and a registry of dialects, each of which is a pointer.
typedef struct {
    void *pointer;
} Dialect, Registry;
extern Registry mlirDialectRegistryCreate(void);
extern void mlirDialectHandleInsertDialect(Dialect dialect, Registry registry);
extern Dialect mlirGetDialectHandle__arith__(void), mlirGetDialectHandle__cf__(void), mlirGetDialectHandle__func__(void),
    mlirGetDialectHandle__llvm__(void), mlirGetDialectHandle__scf__(void), mlirGetDialectHandle__vector__(void);
static Dialect (*const dialects[])(void) = {
    mlirGetDialectHandle__arith__, mlirGetDialectHandle__cf__,  mlirGetDialectHandle__func__,
    mlirGetDialectHandle__llvm__,  mlirGetDialectHandle__scf__, mlirGetDialectHandle__vector__,
};

// A unique_ptr is returned in memory of the caller, as C returns a structure that no registers hold.
typedef struct {
    void *pointer;
    const void *not_written[3];
} Returned;
extern void registerPass(const Function *make)
    NAMED("_ZN4mlir12registerPassERKSt8functionIFSt10unique_ptrINS_4PassESt14default_deleteIS2_EEvEE");
extern Returned canonicalize(void) NAMED("_ZN4mlir23createCanonicalizerPassEv"), cse(void) NAMED("_ZN4mlir13createCSEPassEv"),
    loop_invariant_code_motion(void) NAMED("_ZN4mlir33createLoopInvariantCodeMotionPassEv"),
    convert_vector_to_llvm(void) NAMED("_ZN4mlir29createConvertVectorToLLVMPassEv"),
    convert_scf_to_cf(void) NAMED("_ZN4mlir26createSCFToControlFlowPassEv"),
    convert_arith_to_llvm(void) NAMED("_ZN4mlir31createArithToLLVMConversionPassEv"),
    convert_cf_to_llvm(void) NAMED("_ZN4mlir34createConvertControlFlowToLLVMPassEv"),
    reconcile_unrealized_casts(void) NAMED("_ZN4mlir34createReconcileUnrealizedCastsPassEv"),
    ensure_debug_info_scope(void) NAMED("_ZN4mlir4LLVM30createDIScopeForLLVMFuncOpPassEv");
// std::function passes its data to each in front of the other arguments; a function without parameters does not read it.
static Returned (*const passes[])(void) = {
    canonicalize,          cse,
    convert_scf_to_cf,     loop_invariant_code_motion,
    convert_cf_to_llvm,    convert_vector_to_llvm,
    convert_arith_to_llvm, reconcile_unrealized_casts,
    ensure_debug_info_scope,
};

extern Success MlirOptMain(int count, char **words, const char *title, unsigned long length, void *registry)
    NAMED("_ZN4mlir11MlirOptMainEiPPcN4llvm9StringRefERNS_15DialectRegistryE");

static Success mlir_opt(int count, char **words) {
    Registry registry = mlirDialectRegistryCreate();
    for (unsigned each = 0; each < sizeof dialects / sizeof *dialects; ++each)
        mlirDialectHandleInsertDialect(dialects[each](), registry);
    for (unsigned each = 0; each < sizeof passes / sizeof *passes; ++each)
        registerPass(FUNCTION(passes[each]));
    return MlirOptMain(count, words, TEXT("what the lowering uses of MLIR"), registry.pointer);
}

typedef struct Context Context;
extern Context *LLVMContextCreate(void);
extern Returned translateModuleToLLVMIR(void *operation, Context *context, const char *name, unsigned long length,
                                        _Bool unverified)
    NAMED("_ZN4mlir23translateModuleToLLVMIREPNS_9OperationERN4llvm11LLVMContextENS2_9StringRefEb");
extern void removeDebugIntrinsicDeclarations(void *module)
    NAMED("_ZN4llvm6Module32removeDebugIntrinsicDeclarationsEv");
extern void print(const void *module, void *stream, void *annotations, _Bool use_list_order, _Bool debug)
    NAMED("_ZNK4llvm6Module5printERNS_11raw_ostreamEPNS_24AssemblyAnnotationWriterEbb");
extern void registerLLVMDialectTranslation(void *registry)
    NAMED("_ZN4mlir30registerLLVMDialectTranslationERNS_15DialectRegistryE");
extern void registerBuiltinDialectTranslation(void *registry)
    NAMED("_ZN4mlir33registerBuiltinDialectTranslationERNS_15DialectRegistryE");
extern void registerTranslation(void *self, const char *name, unsigned long name_length, const char *description,
                                unsigned long description_length, const Function *translate, const Function *dialects)
    NAMED("_ZN4mlir29TranslateFromMLIRRegistrationC1EN4llvm9StringRefES2_RKSt8functionIFNS1_13LogicalResultEPNS_"
          "9OperationERNS1_11raw_ostreamEEERKS3_IFvRNS_15DialectRegistryEEE");
extern Success mlirTranslateMain(int count, char **words, const char *title, unsigned long length)
    NAMED("_ZN4mlir17mlirTranslateMainEiPPcN4llvm9StringRefE");

// As registerToLLVMIRTranslation, which knows the dialects of all devices.
static Success to_llvm_ir(const void *data, void **operation, void *stream) {
    (void)data;
    void *module = translateModuleToLLVMIR(*operation, LLVMContextCreate(), TEXT("LLVMDialectModule"), 0).pointer;
    if (!module)
        return 0;
    removeDebugIntrinsicDeclarations(module);
    print(module, stream, 0, 0, 0);
    return 1;
}

static void translated_dialects(const void *data, void *registry) {
    (void)data;
    mlirDialectHandleInsertDialect(mlirGetDialectHandle__func__(), (Registry){registry});
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
}

static Success mlir_translate(int count, char **words) {
    // A TranslateFromMLIRRegistration has no members.
    char self;
    registerTranslation(&self, TEXT("mlir-to-llvmir"), TEXT("Translate MLIR to LLVMIR"), FUNCTION(to_llvm_ir),
                        FUNCTION(translated_dialects));
    return mlirTranslateMain(count, words, TEXT("what the lowering uses of MLIR"));
}

// LLVM's C interface, whose functions return true for a failure.
typedef int Failure;
typedef struct Buffer Buffer;
typedef struct Module Module;
typedef struct Target Target;
typedef struct Machine Machine;
enum { RETURN_STATUS = 2, DEFAULT = 0, PIC = 2, ASSEMBLY = 0, OBJECT = 1 };
extern Failure LLVMCreateMemoryBufferWithSTDIN(Buffer **buffer, char **why);
extern Failure LLVMParseIRInContext(Context *context, Buffer *buffer, Module **module, char **why);
extern Failure LLVMVerifyModule(Module *module, int action, char **why);
extern Failure LLVMGetTargetFromTriple(const char *triple, Target **target, char **why);
extern Machine *LLVMCreateTargetMachine(Target *target, const char *triple, const char *processor, const char *features,
                                        int level, int relocation, int code_model);
extern void LLVMSetTarget(Module *module, const char *triple);
extern Failure LLVMTargetMachineEmitToMemoryBuffer(Machine *machine, Module *module, int kind, char **why, Buffer **buffer);
extern const char *LLVMGetBufferStart(Buffer *buffer);
extern unsigned long LLVMGetBufferSize(Buffer *buffer);
extern void LLVMGetVersion(unsigned *major, unsigned *minor, unsigned *patch);
extern void LLVMInitializeSPIRVTargetInfo(void), LLVMInitializeSPIRVTarget(void), LLVMInitializeSPIRVTargetMC(void),
    LLVMInitializeSPIRVAsmPrinter(void), LLVMInitializeX86TargetInfo(void), LLVMInitializeX86Target(void),
    LLVMInitializeX86TargetMC(void), LLVMInitializeX86AsmPrinter(void);

// The C library's.
typedef struct File File;
extern File *stdout, *stderr;
extern File *fopen(const char *name, const char *mode);
extern unsigned long fwrite(const void *data, unsigned long size, unsigned long count, File *file);
extern int fclose(File *file), fprintf(File *file, const char *format, ...);
extern int strcmp(const char *one, const char *other), strncmp(const char *one, const char *other, unsigned long count);
extern unsigned long strlen(const char *text);

static Success refuse(const char *what, const char *why) {
    fprintf(stderr, "llc: error: %s%s\n", what, why);
    return 0;
}

static Success llc(int count, char **words) {
    const char *triple = "", *output = "-";
    int level = 2, relocation = DEFAULT, kind = ASSEMBLY;
    for (int each = 1; each < count; ++each) {
        const char *word = words[each];
        if (strcmp(word, "--version") == 0) {
            unsigned major, minor, patch;
            LLVMGetVersion(&major, &minor, &patch);
            return fprintf(stdout, "LLVM version %u.%u.%u, for SPIR-V and x86-64\n", major, minor, patch) > 0;
        }
        if (strncmp(word, TEXT("-mtriple=")) == 0)
            triple = word + sizeof "-mtriple=" - 1;
        else if (strncmp(word, TEXT("-O")) == 0 && '0' <= word[2] && word[2] <= '3' && !word[3])
            level = word[2] - '0';
        else if (strcmp(word, "-relocation-model=pic") == 0)
            relocation = PIC;
        else if (strcmp(word, "-filetype=obj") == 0)
            kind = OBJECT;
        else if (strcmp(word, "-o") == 0 && each + 1 < count)
            output = words[++each];
        else
            return refuse("this llc reads standard input and takes only --version, -mtriple=, -O0 to -O3, "
                          "-relocation-model=pic, -filetype=obj and -o, not ", word);
    }
    LLVMInitializeSPIRVTargetInfo(), LLVMInitializeSPIRVTarget();
    LLVMInitializeSPIRVTargetMC(), LLVMInitializeSPIRVAsmPrinter();
    LLVMInitializeX86TargetInfo(), LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC(), LLVMInitializeX86AsmPrinter();
    Buffer *source, *compiled;
    Module *module;
    Target *target;
    char *why = "";
    if (LLVMCreateMemoryBufferWithSTDIN(&source, &why) || LLVMParseIRInContext(LLVMContextCreate(), source, &module, &why) ||
        LLVMVerifyModule(module, RETURN_STATUS, &why) || LLVMGetTargetFromTriple(triple, &target, &why))
        return refuse("", why);
    LLVMSetTarget(module, triple);
    Machine *machine = LLVMCreateTargetMachine(target, triple, "", "", level, relocation, DEFAULT);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, kind, &why, &compiled))
        return refuse("", why);
    File *file = strcmp(output, "-") == 0 ? stdout : fopen(output, "w");
    unsigned long size = LLVMGetBufferSize(compiled);
    if (!file || fwrite(LLVMGetBufferStart(compiled), 1, size, file) != size || fclose(file) != 0)
        return refuse("cannot write to ", output);
    return 1;
}

// Return whether the name that the program was called by ends so; dpu-mlir-opt runs mlir-opt under its own name.
static _Bool called(const char *by, const char *name) {
    unsigned long length = strlen(by), ending = strlen(name);
    return length >= ending && strcmp(by + length - ending, name) == 0;
}

int main(int count, char **words) {
    if (called(words[0], "mlir-opt"))
        return !mlir_opt(count, words);
    if (called(words[0], "mlir-translate"))
        return !mlir_translate(count, words);
    return !llc(count, words);
}
