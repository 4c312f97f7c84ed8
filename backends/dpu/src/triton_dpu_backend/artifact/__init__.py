"""Turn a kernel in LLVM IR into a program that a DPU runs: entry point, arguments, build, host runner."""

# The SDK's default stack of a tasklet, for IR that does not say how large it is. Tiles are elsewhere: dpu-legalize
# moves them to other WRAM.
STACK_BYTES = 1024
# The fact (annotation.py) that a kernel takes the log of foundry_core.log after its other arguments.
LOG = "log"
# The fact that a program has so many slices (foundry_core.mapping.tasklet.split).
PARTS = "parts"
