"""From a kernel's IR to what a device's compiler reads: the stages, the programs that they call, typed pointers.

Input: TTIR as text. Output: MLIR, LLVM IR, SPIR-V, LLVM IR with typed pointers; it calls LLVM's tools.
"""
