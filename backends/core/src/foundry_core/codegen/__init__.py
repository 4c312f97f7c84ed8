"""From a kernel's IR to what a device's compiler reads: the stages, the programs that they call, typed pointers.

Input: TTIR as text. Output: MLIR, LLVM IR or SPIR-V.
"""
