"""The dpu dialect of MLIR, for DPU programs written by hand, and the two programs that take it to LLVM IR.

    dpu-mlir-opt vec_add.mlir --convert-dpu-to-llvm -o vec_add_llvm.mlir
    dpu-mlir-translate --mlir-to-llvmir vec_add_llvm.mlir -o vec_add.ll

On the command line they are mlir-opt and mlir-translate of LLVM 22 with additions. operations.py has the operations,
syntax.py their assembly syntax, convert.py their conversion to the LLVM dialect. opt.py and translate.py are the two
programs.
"""
