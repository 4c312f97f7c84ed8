; A program in LLVM IR, as a compiler hands it to dpu-upmem-dpurte-clang: typed pointers, MRAM in address space 255, the
; intrinsics for tasklet and DMA. Each of four tasklets adds `arguments.n` to one 8-byte word of MRAM.
target datalayout = "e-m:e-p:32:32-i1:8:32-i8:8:32-i16:16:32-i32:32:32-i64:64:64-n32"
target triple = "dpu-upmem-dpurte"

%struct.arguments = type { i8 addrspace(255)*, i32, i64 }
@arguments = external global %struct.arguments, align 8
@buffer = internal global [4 x i64] undef, align 8

declare i32 @llvm.dpu.tid.i32()
declare void @llvm.dpu.ldma(i8*, i8 addrspace(255)*, i32)
declare void @llvm.dpu.sdma(i8*, i8 addrspace(255)*, i32)

define i32 @main() {
entry:
  %tasklet = call i32 @llvm.dpu.tid.i32()
  %base_field = getelementptr %struct.arguments, %struct.arguments* @arguments, i32 0, i32 0
  %base = load i8 addrspace(255)*, i8 addrspace(255)** %base_field, align 8
  %n_field = getelementptr %struct.arguments, %struct.arguments* @arguments, i32 0, i32 1
  %n = load i32, i32* %n_field, align 4
  %wide = zext i32 %n to i64
  %offset = shl i32 %tasklet, 3
  %mram = getelementptr i8, i8 addrspace(255)* %base, i32 %offset
  %slot = getelementptr [4 x i64], [4 x i64]* @buffer, i32 0, i32 %tasklet
  %wram = bitcast i64* %slot to i8*
  call void @llvm.dpu.ldma(i8* %wram, i8 addrspace(255)* %mram, i32 8)
  %value = load i64, i64* %slot, align 8
  %sum = add i64 %value, %wide
  store i64 %sum, i64* %slot, align 8
  call void @llvm.dpu.sdma(i8* %wram, i8 addrspace(255)* %mram, i32 8)
  ret i32 0
}
