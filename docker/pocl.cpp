// Lets PoCL read its library of functions lazily: 25,000 functions, 9 MB of LLVM's bitcode, of which a kernel calls a few.
// PoCL 6 parses all of them in each process that compiles a kernel, for 0.4 s; LLVM can parse one when it is asked for.
//
// Two of LLVM's functions that PoCL calls are replaced. The dynamic loader takes these before LLVM's, because
// foundry_core/runtime/pocl.py loads this library first, for all; and only for PoCL, because nobody else asks for names of this
// version of LLVM. PoCL finds each function that it copies by getFunction, before it looks at the body (lib/llvmopencl/
// linker.cpp). What it compiles is the same to the byte.
//
// With mangled names and without headers, as mlir.c. In C++, because C has no objects with destructors: where one that is
// returned is written to is the first argument on x86-64, but in a register of its own on AArch64 (x8). LLVM is not linked,
// else its names, too, would be there for all.

using size_t = decltype(sizeof 0);
extern "C" void *dlopen(const char *path, int flags);
extern "C" void *dlvsym(void *library, const char *name, const char *version);
extern "C" int dprintf(int file, const char *format, ...);
extern "C" [[noreturn]] void abort();
// Linux's RTLD_LAZY | RTLD_NOLOAD: find a library, but do not load it.
#define LOADED (1 | 4)

#define VERSION "LLVM_18.1"
#define PARSE "_ZN4llvm11parseIRFileENS_9StringRefERNS_12SMDiagnosticERNS_11LLVMContextENS_15ParserCallbacksE"
#define PARSE_LAZILY "_ZN4llvm19getLazyIRFileModuleENS_9StringRefERNS_12SMDiagnosticERNS_11LLVMContextEb"
#define GET "_ZNK4llvm6Module11getFunctionENS_9StringRefE"
#define PARSE_BODY "_ZN4llvm11GlobalValue11materializeEv"

// What LLVM returns: a std::unique_ptr of a module, or an Error. Both are one pointer, and not destroyed here.
struct Object {
    void *pointer;
    ~Object() {}
};

// An LLVM StringRef is passed as its two members; callbacks, which have a destructor, by their address.
using Parse = Object(const char *path, size_t length, void *error, void *context, void *callbacks);
using ParseLazily = Object(const char *path, size_t length, void *error, void *context, bool lazy_metadata);
using Get = void *(const void *module, const char *name, size_t length);
using ParseBody = Object(void *function);

// Returns a function of the LLVM that PoCL has loaded.
template <typename Function> static Function *of_llvm(const char *name) {
    void *llvm = dlopen("libLLVM-18.so.18.1", LOADED);
    void *found = llvm ? dlvsym(llvm, name, VERSION) : 0;
    if (!found) {
        dprintf(2, "pocl.cpp: PoCL's LLVM has no %s\n", name);
        abort();
    }
    return reinterpret_cast<Function *>(found);
}

// Returns whether the last part of a path begins with "kernel-", as PoCL's libraries do and the programs in its cache do not.
static bool is_library(const char *path, size_t length) {
    size_t start = length;
    while (start && path[start - 1] != '/')
        --start;
    return length - start > 7 && __builtin_memcmp(path + start, "kernel-", 7) == 0;
}

Parse parse __asm__("parse");
Object parse(const char *path, size_t length, void *error, void *context, void *callbacks) {
    if (is_library(path, length))
        return of_llvm<ParseLazily>(PARSE_LAZILY)(path, length, error, context, false);
    return of_llvm<Parse>(PARSE)(path, length, error, context, callbacks);
}

Get get __asm__("get");
void *get(const void *module, const char *name, size_t length) {
    void *function = of_llvm<Get>(GET)(module, name, length);
    if (function) {
        // Does nothing if it has been done, or if the module was read whole.
        Object failure = of_llvm<ParseBody>(PARSE_BODY)(function);
        // The lowest bit of an LLVM Error says only whether it was looked at.
        if ((size_t)failure.pointer & ~(size_t)1) {
            dprintf(2, "pocl.cpp: PoCL's library has a damaged function: %.*s\n", (int)length, name);
            abort();
        }
    }
    return function;
}

__asm__(".symver parse, " PARSE "@" VERSION ", remove");
__asm__(".symver get, " GET "@" VERSION ", remove");
