"""Turn a kernel in LLVM IR into a program that a DPU runs: entry point, arguments, build, host runner."""
