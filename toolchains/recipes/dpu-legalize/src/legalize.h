// The steps of dpu-legalize, in the order in which they are taken.
#pragma once

#include "llvm/IR/Module.h"

namespace legalize {

// 0. The module's data layout must be the DPU's; one that has none gets it.
void adoptLayout(llvm::Module &module);

// 1. Program ids and grid sizes become loads: `__triton_program_id(axis)` of row llvm.dpu.tid.i32 of
// `@__triton_program = external global [24 x [4 x i32]]`, `__triton_num_programs(axis)` of
// `@__triton_grid = external global [3 x i32]`. The axis must be a constant, 0 to 2.
void lowerPrograms(llvm::Module &module);

// 2. If the stack slots of a function take more than 64 bytes together, they move to a variable in WRAM:
// `@__triton_scratch_NAME = internal global [TASKLETS x [BYTES x i8]] undef, align 8`, a row for each tasklet. Smaller
// ones stay on the stack. All are aligned to 8 bytes, as DMA wants them.
void moveSlots(llvm::Module &module, unsigned tasklets);

// 3. Copies between MRAM and WRAM of any length and alignment (llvm.memcpy and llvm.memmove between address spaces 0
// and 255) become DMAs: llvm.dpu.ldma and llvm.dpu.sdma of 8 to 2048 bytes, multiples of 8, both addresses aligned
// to 8. Where length or alignment is not known, functions of copies.ll decide at run time.
void lowerCopies(llvm::Module &module);

// 4. The module gets the DPU's triple if it has none; attributes that LLVM 12 does not know are removed.
void keepDialect(llvm::Module &module);

// Steps 0 to 4.
void run(llvm::Module &module, unsigned tasklets);

// Prints "dpu-legalize: in FUNCTION: MESSAGE" and ends opt with status 1.
[[noreturn]] void refuse(const llvm::Function &function, const llvm::Twine &message);

// The DPU's intrinsics. To LLVM 12 to 14 they are ordinary functions.
llvm::FunctionCallee taskletIntrinsic(llvm::Module &module); // i32 ()
llvm::FunctionCallee readIntrinsic(llvm::Module &module);    // void (i8* wram, i8 addrspace(255)* mram, i32 bytes)
llvm::FunctionCallee writeIntrinsic(llvm::Module &module);   // the same

constexpr unsigned Wram = 0;
constexpr unsigned Mram = 255;

} // namespace legalize
