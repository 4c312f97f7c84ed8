"""What stands between a kernel in LLVM IR and a program that a DPU runs: entry point, arguments, build, host runner."""
