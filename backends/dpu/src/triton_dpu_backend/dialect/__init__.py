"""The dpu dialect of MLIR, for DPU programs written by hand, and the two programs that take it to LLVM IR.

    dpu-mlir-opt vec_add.mlir --convert-dpu-to-llvm -o vec_add_llvm.mlir
    dpu-mlir-translate --mlir-to-llvmir vec_add_llvm.mlir -o vec_add.ll

They are mlir-opt and mlir-translate of LLVM 22 on the command line, with what a DPU needs beside: dialect.py has the
operations, syntax.py how they are written, convert.py what they become, opt.py and translate.py the programs.
"""
