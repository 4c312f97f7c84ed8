; Copies between MRAM and WRAM of any length and alignment, made of DMAs. The pass adds the functions that a module
; calls to it, as internal functions.
;
; A DMA moves 8 to 2048 bytes, a multiple of 8, between addresses that are multiples of 8.

declare void @llvm.dpu.ldma(i8*, i8 addrspace(255)*, i32)
declare void @llvm.dpu.sdma(i8*, i8 addrspace(255)*, i32)
declare void @__triton_mram_lock()
declare void @__triton_mram_unlock()

; Both addresses and the length are multiples of 8; the length may be 0 or more than 2048.
define void @__triton_copy_in_words(i8* %wram, i8 addrspace(255)* %mram, i32 %bytes) #0 {
entry:
  %none = icmp eq i32 %bytes, 0
  br i1 %none, label %done, label %piece

piece:
  %to = phi i8* [ %wram, %entry ], [ %to.next, %piece ]
  %from = phi i8 addrspace(255)* [ %mram, %entry ], [ %from.next, %piece ]
  %left = phi i32 [ %bytes, %entry ], [ %left.next, %piece ]
  %small = icmp ult i32 %left, 2048
  %size = select i1 %small, i32 %left, i32 2048
  call void @llvm.dpu.ldma(i8* %to, i8 addrspace(255)* %from, i32 %size)
  %to.next = getelementptr i8, i8* %to, i32 %size
  %from.next = getelementptr i8, i8 addrspace(255)* %from, i32 %size
  %left.next = sub i32 %left, %size
  %last = icmp eq i32 %left.next, 0
  br i1 %last, label %done, label %piece

done:
  ret void
}

; As above, to MRAM.
define void @__triton_copy_out_words(i8* %wram, i8 addrspace(255)* %mram, i32 %bytes) #0 {
entry:
  %none = icmp eq i32 %bytes, 0
  br i1 %none, label %done, label %piece

piece:
  %from = phi i8* [ %wram, %entry ], [ %from.next, %piece ]
  %to = phi i8 addrspace(255)* [ %mram, %entry ], [ %to.next, %piece ]
  %left = phi i32 [ %bytes, %entry ], [ %left.next, %piece ]
  %small = icmp ult i32 %left, 2048
  %size = select i1 %small, i32 %left, i32 2048
  call void @llvm.dpu.sdma(i8* %from, i8 addrspace(255)* %to, i32 %size)
  %from.next = getelementptr i8, i8* %from, i32 %size
  %to.next = getelementptr i8, i8 addrspace(255)* %to, i32 %size
  %left.next = sub i32 %left, %size
  %last = icmp eq i32 %left.next, 0
  br i1 %last, label %done, label %piece

done:
  ret void
}

; Moves bytes within WRAM to a lower address, or between areas that do not overlap. Uses words of 4 bytes if both
; addresses and the length are multiples of 4.
define void @__triton_move(i8* %to, i8* %from, i32 %bytes) #0 {
entry:
  %to.bits = ptrtoint i8* %to to i32
  %from.bits = ptrtoint i8* %from to i32
  %both = or i32 %to.bits, %from.bits
  %all = or i32 %both, %bytes
  %low = and i32 %all, 3
  %whole = icmp eq i32 %low, 0
  %none = icmp eq i32 %bytes, 0
  br i1 %none, label %done, label %choose

choose:
  %to.words = bitcast i8* %to to i32*
  %from.words = bitcast i8* %from to i32*
  %words = lshr i32 %bytes, 2
  br i1 %whole, label %word, label %byte

word:
  %i = phi i32 [ 0, %choose ], [ %i.next, %word ]
  %word.from = getelementptr i32, i32* %from.words, i32 %i
  %word.to = getelementptr i32, i32* %to.words, i32 %i
  %word.value = load i32, i32* %word.from, align 4
  store i32 %word.value, i32* %word.to, align 4
  %i.next = add i32 %i, 1
  %word.more = icmp ult i32 %i.next, %words
  br i1 %word.more, label %word, label %done

byte:
  %j = phi i32 [ 0, %choose ], [ %j.next, %byte ]
  %byte.from = getelementptr i8, i8* %from, i32 %j
  %byte.to = getelementptr i8, i8* %to, i32 %j
  %byte.value = load i8, i8* %byte.from, align 1
  store i8 %byte.value, i8* %byte.to, align 1
  %j.next = add i32 %j, 1
  %byte.more = icmp ult i32 %j.next, %bytes
  br i1 %byte.more, label %byte, label %done

done:
  ret void
}

; Any addresses and length. A piece is read together with the whole words around it, to the first aligned place in the
; destination that is not before its own place, and is then moved down. If there is no such place, or if one word is
; enough, the copy goes through an aligned word.
define void @__triton_copy_in(i8* %wram, i8 addrspace(255)* %mram, i32 %bytes) #0 {
entry:
  %word = alloca i64, align 8
  %word.bytes = bitcast i64* %word to i8*
  %wram.bits = ptrtoint i8* %wram to i32
  %mram.bits = ptrtoint i8 addrspace(255)* %mram to i32
  br label %check

check:
  %to = phi i32 [ %wram.bits, %entry ], [ %to.next, %advance ]
  %from = phi i32 [ %mram.bits, %entry ], [ %from.next, %advance ]
  %left = phi i32 [ %bytes, %entry ], [ %left.next, %advance ]
  %none = icmp eq i32 %left, 0
  br i1 %none, label %done, label %piece

piece:
  %to.negated = sub i32 0, %to
  %gap = and i32 %to.negated, 7
  %before = and i32 %from, 7
  %start = sub i32 %from, %before
  %start.pointer = inttoptr i32 %start to i8 addrspace(255)*
  %beyond = icmp ugt i32 %left, %gap
  %room = sub i32 %left, %gap
  %room.words = and i32 %room, -8
  %fitting = select i1 %beyond, i32 %room.words, i32 0
  %small = icmp ult i32 %fitting, 2048
  %size = select i1 %small, i32 %fitting, i32 2048
  %wanted = icmp ugt i32 %size, %before
  %rest = sub i32 %size, %before
  %useful = select i1 %wanted, i32 %rest, i32 0
  %distance = add i32 %gap, %before
  %in.phase = icmp eq i32 %distance, 8
  %short = icmp ult i32 %useful, 8
  %by.word = or i1 %in.phase, %short
  br i1 %by.word, label %one, label %many

one:
  call void @llvm.dpu.ldma(i8* %word.bytes, i8 addrspace(255)* %start.pointer, i32 8)
  %after = sub i32 8, %before
  %ends = icmp ult i32 %left, %after
  %part = select i1 %ends, i32 %left, i32 %after
  %one.from = getelementptr i8, i8* %word.bytes, i32 %before
  %one.to = inttoptr i32 %to to i8*
  call void @__triton_move(i8* %one.to, i8* %one.from, i32 %part)
  br label %advance

many:
  %place = add i32 %to, %gap
  %place.pointer = inttoptr i32 %place to i8*
  call void @llvm.dpu.ldma(i8* %place.pointer, i8 addrspace(255)* %start.pointer, i32 %size)
  %there = icmp eq i32 %distance, 0
  br i1 %there, label %advance, label %down

down:
  %many.from = getelementptr i8, i8* %place.pointer, i32 %before
  %many.to = inttoptr i32 %to to i8*
  call void @__triton_move(i8* %many.to, i8* %many.from, i32 %useful)
  br label %advance

advance:
  %moved = phi i32 [ %part, %one ], [ %useful, %many ], [ %useful, %down ]
  %to.next = add i32 %to, %moved
  %from.next = add i32 %from, %moved
  %left.next = sub i32 %left, %moved
  br label %check

done:
  ret void
}

; Any addresses and length. A word that is written in part is read, changed and written under the lock, because other
; tasklets may write the rest of it. Whole words are written from where they are if that is aligned, and otherwise
; through an aligned buffer of 64 bytes.
define void @__triton_copy_out(i8* %wram, i8 addrspace(255)* %mram, i32 %bytes) #0 {
entry:
  %buffer = alloca [8 x i64], align 8
  %buffer.bytes = bitcast [8 x i64]* %buffer to i8*
  %wram.bits = ptrtoint i8* %wram to i32
  %mram.bits = ptrtoint i8 addrspace(255)* %mram to i32
  br label %check

check:
  %from = phi i32 [ %wram.bits, %entry ], [ %from.next, %advance ]
  %to = phi i32 [ %mram.bits, %entry ], [ %to.next, %advance ]
  %left = phi i32 [ %bytes, %entry ], [ %left.next, %advance ]
  %none = icmp eq i32 %left, 0
  br i1 %none, label %done, label %piece

piece:
  %from.pointer = inttoptr i32 %from to i8*
  %before = and i32 %to, 7
  %start = sub i32 %to, %before
  %start.pointer = inttoptr i32 %start to i8 addrspace(255)*
  %inside = icmp ne i32 %before, 0
  %short = icmp ult i32 %left, 8
  %partial = or i1 %inside, %short
  br i1 %partial, label %one, label %many

one:
  %after = sub i32 8, %before
  %ends = icmp ult i32 %left, %after
  %part = select i1 %ends, i32 %left, i32 %after
  %one.to = getelementptr i8, i8* %buffer.bytes, i32 %before
  call void @__triton_mram_lock()
  call void @llvm.dpu.ldma(i8* %buffer.bytes, i8 addrspace(255)* %start.pointer, i32 8)
  call void @__triton_move(i8* %one.to, i8* %from.pointer, i32 %part)
  call void @llvm.dpu.sdma(i8* %buffer.bytes, i8 addrspace(255)* %start.pointer, i32 8)
  call void @__triton_mram_unlock()
  br label %advance

many:
  %words = and i32 %left, -8
  %from.low = and i32 %from, 7
  %direct = icmp eq i32 %from.low, 0
  br i1 %direct, label %straight, label %bounced

straight:
  %straight.small = icmp ult i32 %words, 2048
  %straight.size = select i1 %straight.small, i32 %words, i32 2048
  call void @llvm.dpu.sdma(i8* %from.pointer, i8 addrspace(255)* %start.pointer, i32 %straight.size)
  br label %advance

bounced:
  %bounced.small = icmp ult i32 %words, 64
  %bounced.size = select i1 %bounced.small, i32 %words, i32 64
  call void @__triton_move(i8* %buffer.bytes, i8* %from.pointer, i32 %bounced.size)
  call void @llvm.dpu.sdma(i8* %buffer.bytes, i8 addrspace(255)* %start.pointer, i32 %bounced.size)
  br label %advance

advance:
  %moved = phi i32 [ %part, %one ], [ %straight.size, %straight ], [ %bounced.size, %bounced ]
  %from.next = add i32 %from, %moved
  %to.next = add i32 %to, %moved
  %left.next = sub i32 %left, %moved
  br label %check

done:
  ret void
}

attributes #0 = { noinline nounwind }
