// mlir-opt and mlir-translate, which of them by the end of the name that it is called by (dpu-mlir-translate). Debian's own (mlir-22-tools, 82 MB) have
// parts of MLIR compiled in again, for tests of MLIR; libMLIR, which they are linked with too, has all that these need.
//
// In C and with mangled names, because the image has a compiler (PoCL links with it), and headers of neither C++ nor MLIR.
// The linker refuses a name that another libMLIR does not have.

#define NAMED(name) __asm__(name)
// What --help begins with.
#define TITLE "MLIR of the image"

extern void construct(void *registry) NAMED("_ZN4mlir15DialectRegistryC1Ev");
extern void register_dialects(void *registry) NAMED("_ZN4mlir19registerAllDialectsERNS_15DialectRegistryE");
extern void register_extensions(void *registry) NAMED("_ZN4mlir21registerAllExtensionsERNS_15DialectRegistryE");
extern void register_passes(void) NAMED("_ZN4mlir17registerAllPassesEv");
extern void from_llvm(void) NAMED("_ZN4mlir29registerFromLLVMIRTranslationEv");
extern void from_spirv(void) NAMED("_ZN4mlir28registerFromSPIRVTranslationEv");
extern void from_wasm(void) NAMED("_ZN4mlir27registerFromWasmTranslationEv");
extern void irdl_to_cpp(void) NAMED("_ZN4mlir28registerIRDLToCppTranslationEv");
extern void to_cpp(void) NAMED("_ZN4mlir24registerToCppTranslationEv");
extern void to_llvm(void) NAMED("_ZN4mlir27registerToLLVMIRTranslationEv");
extern void to_spirv(void) NAMED("_ZN4mlir26registerToSPIRVTranslationEv");
extern void to_smtlib(void) NAMED("_ZN4mlir3smt31registerExportSMTLIBTranslationEv");
static void (*const translations[])(void) = {from_llvm, from_spirv, from_wasm, irdl_to_cpp,
                                             to_cpp,    to_llvm,    to_spirv,  to_smtlib};

// An LLVM StringRef is passed as its two members, and a LogicalResult, true for success, is returned as its one.
extern _Bool optimize(int count, char **words, const char *title, unsigned long length, void *registry)
    NAMED("_ZN4mlir11MlirOptMainEiPPcN4llvm9StringRefERNS_15DialectRegistryE");
extern _Bool translate(int count, char **words, const char *title, unsigned long length)
    NAMED("_ZN4mlir17mlirTranslateMainEiPPcN4llvm9StringRefE");

// A mlir::DialectRegistry: a map, a set and a vector, less than a tenth of this. It lives until the process ends.
static _Alignas(64) char registry[4096];

int main(int count, char **words) {
    const char suffix[] = "translate";
    unsigned long length = __builtin_strlen(words[0]);
    if (length >= sizeof suffix - 1 && __builtin_strcmp(words[0] + length - (sizeof suffix - 1), suffix) == 0) {
        for (unsigned each = 0; each < sizeof translations / sizeof *translations; ++each)
            translations[each]();
        return !translate(count, words, TITLE, sizeof TITLE - 1);
    }
    construct(registry);
    register_dialects(registry);
    register_extensions(registry);
    register_passes();
    return !optimize(count, words, TITLE, sizeof TITLE - 1, registry);
}
