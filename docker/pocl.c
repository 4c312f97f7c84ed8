// Lets PoCL read its library of functions lazily: 25,000 functions, 9 MB of LLVM's bitcode, of which a kernel calls a few.
// PoCL 6 parses all of them in each process that compiles a kernel, for 0.4 s; LLVM can parse one when it is asked for.
//
// Two of LLVM's functions that PoCL calls are replaced. The dynamic loader takes these before LLVM's, because
// foundry_core/runtime/pocl.py loads this library first, for all; and only for PoCL, because nobody else asks for names of this
// version of LLVM. PoCL finds each function that it copies by getFunction, before it looks at the body (lib/llvmopencl/
// linker.cpp). What it compiles is the same to the byte.
//
// In C, with mangled names and without headers, as mlir.c. LLVM is not linked, else its names, too, would be there for all.

typedef __SIZE_TYPE__ size_t;
extern void *dlopen(const char *path, int flags);
extern void *dlvsym(void *library, const char *name, const char *version);
extern int dprintf(int file, const char *format, ...);
extern _Noreturn void abort(void);
// Linux's RTLD_LAZY | RTLD_NOLOAD: find a library, but do not load it.
#define LOADED (1 | 4)

#define VERSION "LLVM_18.1"
#define PARSE "_ZN4llvm11parseIRFileENS_9StringRefERNS_12SMDiagnosticERNS_11LLVMContextENS_15ParserCallbacksE"
#define PARSE_LAZILY "_ZN4llvm19getLazyIRFileModuleENS_9StringRefERNS_12SMDiagnosticERNS_11LLVMContextEb"
#define GET "_ZNK4llvm6Module11getFunctionENS_9StringRefE"
#define PARSE_BODY "_ZN4llvm11GlobalValue11materializeEv"

// Returns a function of the LLVM that PoCL has loaded.
static void *of_llvm(const char *name) {
    void *llvm = dlopen("libLLVM-18.so.18.1", LOADED);
    void *found = llvm ? dlvsym(llvm, name, VERSION) : 0;
    if (!found) {
        dprintf(2, "pocl.c: PoCL's LLVM has no %s\n", name);
        abort();
    }
    return found;
}

// Returns whether the last part of a path begins with "kernel-", as PoCL's libraries do and the programs in its cache do not.
static _Bool is_library(const char *path, size_t length) {
    size_t start = length;
    while (start && path[start - 1] != '/')
        --start;
    return length - start > 7 && __builtin_memcmp(path + start, "kernel-", 7) == 0;
}

// An LLVM StringRef is passed as its two members; what is returned as an object is written to the first argument.
void parse(void **module, const char *path, size_t length, void *error, void *context, void *callbacks) {
    if (is_library(path, length)) {
        void (*lazily)(void **, const char *, size_t, void *, void *, _Bool) = of_llvm(PARSE_LAZILY);
        lazily(module, path, length, error, context, 0);
    } else {
        void (*whole)(void **, const char *, size_t, void *, void *, void *) = of_llvm(PARSE);
        whole(module, path, length, error, context, callbacks);
    }
}

void *get(const void *module, const char *name, size_t length) {
    void *(*of_module)(const void *, const char *, size_t) = of_llvm(GET);
    void (*parse_body)(void **, void *) = of_llvm(PARSE_BODY);
    void *function = of_module(module, name, length);
    if (function) {
        // Does nothing if it has been done, or if the module was read whole.
        void *failure = 0;
        parse_body(&failure, function);
        // The lowest bit of an LLVM Error says only whether it was looked at.
        if ((size_t)failure & ~(size_t)1) {
            dprintf(2, "pocl.c: PoCL's library has a damaged function: %.*s\n", (int)length, name);
            abort();
        }
    }
    return function;
}

__asm__(".symver parse, " PARSE "@" VERSION ", remove");
__asm__(".symver get, " GET "@" VERSION ", remove");
