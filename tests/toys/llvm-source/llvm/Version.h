// The version of the made-up LLVM, with its commit.
const char *llvm_version();
