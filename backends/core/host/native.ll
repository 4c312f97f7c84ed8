; What the code of llvm.py calls for an access: `reach` makes a pointer of an address in global memory, `private` lets one
; into private memory pass, and copies are between the two. The first fault stays in @fault (native.py).
;
; @spans has a row for each array: its first address, the address behind it, where its bytes are, the first byte that was
; read and the byte behind the last, and those that were written. @owned has the first and last address of each alloca.
@spans = global [ROWS x [7 x i64]] zeroinitializer
@owned = global [OWNED x [2 x i64]] zeroinitializer
@fault = global i64 0
@scratch = global [65536 x i8] zeroinitializer, align 64
@program = global [7 x i32] zeroinitializer
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)
define internal void @fail(i1 %is, i64 %number) {
  %before = load i64, ptr @fault
  %none = icmp eq i64 %before, 0
  %first = and i1 %is, %none
  %after = select i1 %first, i64 %number, i64 %before
  store i64 %after, ptr @fault
  ret void
}
define internal void @divided(i1 %by_zero) {
  call void @fail(i1 %by_zero, i64 5)
  ret void
}
define internal ptr @reach(ptr %pointer, i64 %size, i64 %alignment, i32 %how) {
entry:
  %address = ptrtoint ptr %pointer to i64
  %rest = urem i64 %address, %alignment
  %crooked = icmp ne i64 %rest, 0
  call void @fail(i1 %crooked, i64 2)
  %last = add i64 %address, %size
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %more]
  %end = icmp eq i64 %k, ROWS
  br i1 %end, label %bad, label %look
look:
  %row = getelementptr [7 x i64], ptr @spans, i64 %k
  %high.p = getelementptr i64, ptr %row, i64 1
  %low = load i64, ptr %row
  %high = load i64, ptr %high.p
  %above = icmp uge i64 %address, %low
  %below = icmp ule i64 %last, %high
  %inside = and i1 %above, %below
  br i1 %inside, label %found, label %more
more:
  %next = add i64 %k, 1
  br label %loop
bad:
  call void @fail(i1 true, i64 1)
  ret ptr @scratch
found:
  %offset = sub i64 %address, %low
  %behind = add i64 %offset, %size
  %read.b = and i32 %how, 1
  %read = icmp ne i32 %read.b, 0
  call void @note(ptr %row, i64 3, i64 %offset, i64 %behind, i1 %read)
  %written.b = and i32 %how, 2
  %written = icmp ne i32 %written.b, 0
  call void @note(ptr %row, i64 5, i64 %offset, i64 %behind, i1 %written)
  %real.p = getelementptr i64, ptr %row, i64 2
  %real = load ptr, ptr %real.p
  %made = getelementptr i8, ptr %real, i64 %offset
  ret ptr %made
}
define internal ptr @reach_if(i1 %is, ptr %pointer, i64 %size, i64 %alignment, i32 %how) {
entry:
  br i1 %is, label %there, label %not
there:
  %made = call ptr @reach(ptr %pointer, i64 %size, i64 %alignment, i32 %how)
  ret ptr %made
not:
  ret ptr @scratch
}
define internal void @note(ptr %row, i64 %place, i64 %first, i64 %behind, i1 %is) {
  %low.p = getelementptr i64, ptr %row, i64 %place
  %high.p = getelementptr i64, ptr %low.p, i64 1
  %low = load i64, ptr %low.p
  %high = load i64, ptr %high.p
  %less.c = icmp ult i64 %first, %low
  %less = and i1 %less.c, %is
  %low.n = select i1 %less, i64 %first, i64 %low
  store i64 %low.n, ptr %low.p
  %more.c = icmp ugt i64 %behind, %high
  %more = and i1 %more.c, %is
  %high.n = select i1 %more, i64 %behind, i64 %high
  store i64 %high.n, ptr %high.p
  ret void
}
define internal ptr @own(ptr %pointer, i64 %size, i32 %number) {
  %row = getelementptr [2 x i64], ptr @owned, i32 %number
  %low = ptrtoint ptr %pointer to i64
  %high = add i64 %low, %size
  %high.p = getelementptr i64, ptr %row, i64 1
  store i64 %low, ptr %row
  store i64 %high, ptr %high.p
  call ptr @memset(ptr %pointer, i32 171, i64 %size)
  ret ptr %pointer
}
define internal ptr @private(ptr %pointer, i64 %size, i64 %alignment) {
entry:
  %address = ptrtoint ptr %pointer to i64
  %last = add i64 %address, %size
  %rest = urem i64 %address, %alignment
  %crooked = icmp ne i64 %rest, 0
  call void @fail(i1 %crooked, i64 2)
  ; Threads have private memory each, and the table has room for one.
  br i1 IS_GROUP, label %found, label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %more]
  %end = icmp eq i64 %k, OWNED
  br i1 %end, label %bad, label %look
look:
  %row = getelementptr [2 x i64], ptr @owned, i64 %k
  %high.p = getelementptr i64, ptr %row, i64 1
  %low = load i64, ptr %row
  %high = load i64, ptr %high.p
  %above = icmp uge i64 %address, %low
  %below = icmp ule i64 %last, %high
  %inside = and i1 %above, %below
  br i1 %inside, label %found, label %more
more:
  %next = add i64 %k, 1
  br label %loop
bad:
  call void @fail(i1 true, i64 4)
  ret ptr @scratch
found:
  ret ptr %pointer
}
define internal i64 @copied(ptr %near, ptr %far, i32 %size, i64 %alignment) {
  %negative = icmp slt i32 %size, 0
  call void @fail(i1 %negative, i64 6)
  %length = select i1 %negative, i32 0, i32 %size
  %near.a = ptrtoint ptr %near to i64
  %far.a = ptrtoint ptr %far to i64
  %wide = zext i32 %length to i64
  %any.1 = or i64 %near.a, %far.a
  %any = or i64 %any.1, %wide
  %rest = and i64 %any, 7
  %off = icmp ne i64 %rest, 0
  %dma = icmp uge i64 %alignment, 8
  %wrong = and i1 %off, %dma
  call void @fail(i1 %wrong, i64 3)
  ret i64 %wide
}
define internal void @copy_in(ptr %near, ptr %far, i32 %size, i64 %alignment) {
  %length = call i64 @copied(ptr %near, ptr %far, i32 %size, i64 %alignment)
  %to = call ptr @private(ptr %near, i64 %length, i64 1)
  %from = call ptr @reach(ptr %far, i64 %length, i64 1, i32 1)
  call ptr @memcpy(ptr %to, ptr %from, i64 %length)
  ret void
}
define internal void @copy_out(ptr %far, ptr %near, i32 %size, i64 %alignment) {
  %length = call i64 @copied(ptr %near, ptr %far, i32 %size, i64 %alignment)
  %from = call ptr @private(ptr %near, i64 %length, i64 1)
  %to = call ptr @reach(ptr %far, i64 %length, i64 1, i32 2)
  call ptr @memcpy(ptr %to, ptr %from, i64 %length)
  ret void
}
; Which program runs, how many there are along each axis, and the slice of the program.
define internal i32 @number(i32 %place) {
  %at = getelementptr i32, ptr @program, i32 %place
  %found = load i32, ptr %at
  ret i32 %found
}
define i32 @__triton_program_id(i32 %axis) {
  %found = call i32 @number(i32 %axis)
  ret i32 %found
}
define i32 @__triton_num_programs(i32 %axis) {
  %place = add i32 %axis, 3
  %found = call i32 @number(i32 %place)
  ret i32 %found
}
define i32 @__triton_slice() {
  %found = call i32 @number(i32 6)
  ret i32 %found
}
define i64 @_Z12get_group_idj(i32 %axis) {
  %found = call i32 @number(i32 %axis)
  %wide = zext i32 %found to i64
  ret i64 %wide
}
; Tasklets run one after the other.
define void @__triton_mram_lock() {
  ret void
}
define void @__triton_mram_unlock() {
  ret void
}
; The functions of OpenCL that the C library lacks.
declare float @sqrtf(float)
declare double @sqrt(double)
define float @rsqrtf(float %x) {
  %root = call float @sqrtf(float %x)
  %result = fdiv float 1.0, %root
  ret float %result
}
define double @rsqrt(double %x) {
  %root = call double @sqrt(double %x)
  %result = fdiv double 1.0, %root
  ret double %result
}
