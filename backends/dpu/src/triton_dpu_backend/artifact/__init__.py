"""What stands between a kernel in LLVM IR and a program that a DPU runs: entry point, arguments, build, host runner."""

# What the SDK gives a tasklet by default. Tiles are not on the stack: dpu-legalize moves them to WRAM of their own.
STACK_BYTES = 1024
