#include <llvm/Version.h>

extern "C" const char *triton_llvm() { return llvm_version(); }
