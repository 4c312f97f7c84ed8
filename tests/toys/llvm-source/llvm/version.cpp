#include "Version.h"

const char *llvm_version() { return "LLVM version 1.2.3git (" LLVM_REVISION ")"; }
