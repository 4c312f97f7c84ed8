"""The dpu dialect of MLIR, for DPU programs written by hand, and two programs that lower it to LLVM IR.

    dpu-mlir-opt vec_add.mlir --convert-dpu-to-llvm -o vec_add_llvm.mlir
    dpu-mlir-translate --mlir-to-llvmir vec_add_llvm.mlir -o vec_add.ll

The two programs have the command lines of LLVM 22's mlir-opt and mlir-translate, with additions. operations.py has the
operations, syntax.py their assembly syntax, convert.py their conversion to the LLVM dialect. opt.py and translate.py
are the two programs.
"""
