; Copies of which nothing is known, as dpu-legalize gets them.
target datalayout = "e-m:e-p:32:32-i1:8:32-i8:8:32-i16:16:32-i32:32:32-i64:64:64-n32"
target triple = "dpu-upmem-dpurte"

declare void @llvm.memcpy.p0i8.p255i8.i32(i8*, i8 addrspace(255)*, i32, i1)
declare void @llvm.memcpy.p255i8.p0i8.i32(i8 addrspace(255)*, i8*, i32, i1)

define void @copy_in(i8* %w, i8 addrspace(255)* %m, i32 %n) {
  call void @llvm.memcpy.p0i8.p255i8.i32(i8* %w, i8 addrspace(255)* %m, i32 %n, i1 false)
  ret void
}

define void @copy_out(i8* %w, i8 addrspace(255)* %m, i32 %n) {
  call void @llvm.memcpy.p255i8.p0i8.i32(i8 addrspace(255)* %m, i8* %w, i32 %n, i1 false)
  ret void
}

define void @copy_in_words(i8* %w, i8 addrspace(255)* %m, i32 %n) {
  %bytes = shl i32 %n, 3
  call void @llvm.memcpy.p0i8.p255i8.i32(i8* align 8 %w, i8 addrspace(255)* align 8 %m, i32 %bytes, i1 false)
  ret void
}

define void @copy_out_words(i8* %w, i8 addrspace(255)* %m, i32 %n) {
  %bytes = shl i32 %n, 3
  call void @llvm.memcpy.p255i8.p0i8.i32(i8 addrspace(255)* align 8 %m, i8* align 8 %w, i32 %bytes, i1 false)
  ret void
}
