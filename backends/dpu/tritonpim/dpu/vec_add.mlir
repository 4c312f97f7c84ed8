// C = A + B on one DPU, for n 32-bit integers, any n, spread over all tasklets.
//
// Each tasklet takes every NR_TASKLETS-th block: brings the block of A and of B to WRAM by one DMA each, adds, writes the
// result by one DMA. Blocks are as large as WRAM allows, 2048 bytes at most. DMAs move words of 8 bytes, two elements:
// where n is odd, the last word of C is read, changed and written, so that what stands behind C stays as it was.
//
// The arguments are those of vec_add_args.c: addresses of A, B and C in MRAM, multiples of 8, and n.
module {
  // WRAM for the blocks, shared out among the tasklets.
  llvm.mlir.global internal @blocks() {addr_space = 0 : i32, alignment = 8 : i64} : !llvm.array<32768 x i8>

  // The linker defines this symbol: its address is the number of tasklets (-DNR_TASKLETS=16).
  llvm.mlir.global external @NR_TASKLETS() {addr_space = 0 : i32} : i8

  func.func @main() -> i32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %word = arith.constant 8 : i32

    %tid = dpu.tid : i32
    %tasklets_at = llvm.mlir.addressof @NR_TASKLETS : !llvm.ptr
    %tasklets = llvm.ptrtoint %tasklets_at : !llvm.ptr to i32

    %args = dpu.input_args {sym = "DPU_INPUT_ARGUMENTS"} : !llvm.ptr
    %a = func.call @argument(%args, %c0) : (!llvm.ptr, i32) -> i32
    %b = func.call @argument(%args, %c1) : (!llvm.ptr, i32) -> i32
    %c = func.call @argument(%args, %c2) : (!llvm.ptr, i32) -> i32
    %n = func.call @argument(%args, %c3) : (!llvm.ptr, i32) -> i32

    // Half of the tasklet's share of @blocks, in whole words.
    %wram = arith.constant 32768 : i32
    %most = arith.constant 2048 : i32
    %not_7 = arith.constant -8 : i32
    %share = arith.divui %wram, %tasklets : i32
    %half = arith.shrui %share, %c1 : i32
    %bounded = arith.minui %half, %most : i32
    %block_bytes = arith.andi %bounded, %not_7 : i32
    %block = arith.shrui %block_bytes, %c2 : i32

    %blocks = llvm.mlir.addressof @blocks : !llvm.ptr
    %pair_bytes = arith.shli %block_bytes, %c1 : i32
    %own = arith.muli %tid, %pair_bytes : i32
    %x = llvm.getelementptr %blocks[%own] : (!llvm.ptr, i32) -> !llvm.ptr, i8
    %y = llvm.getelementptr %x[%block_bytes] : (!llvm.ptr, i32) -> !llvm.ptr, i8

    %first = arith.muli %tid, %block : i32
    %step = arith.muli %tasklets, %block : i32
    scf.for %at = %first to %n step %step : i32 {
      %left = arith.subi %n, %at : i32
      %count = arith.minsi %left, %block : i32
      %offset = arith.shli %at, %c2 : i32
      %bytes = arith.shli %count, %c2 : i32

      // Read up to the end of the last word: its other half is not used.
      %seven = arith.constant 7 : i32
      %up = arith.addi %bytes, %seven : i32
      %words = arith.andi %up, %not_7 : i32
      %a_at = func.call @mram(%a, %offset) : (i32, i32) -> !llvm.ptr<255>
      %b_at = func.call @mram(%b, %offset) : (i32, i32) -> !llvm.ptr<255>
      dpu.ldma %x, %a_at, %words : !llvm.ptr, !llvm.ptr<255>, i32
      dpu.ldma %y, %b_at, %words : !llvm.ptr, !llvm.ptr<255>, i32

      scf.for %i = %c0 to %count step %c1 : i32 {
        %x_i = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        %y_i = llvm.getelementptr inbounds %y[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        %x_v = llvm.load %x_i : !llvm.ptr -> i32
        %y_v = llvm.load %y_i : !llvm.ptr -> i32
        %sum = arith.addi %x_v, %y_v : i32
        llvm.store %sum, %x_i : i32, !llvm.ptr
      }

      %whole = arith.andi %bytes, %not_7 : i32
      %any = arith.cmpi ne, %whole, %c0 : i32
      scf.if %any {
        %c_at = func.call @mram(%c, %offset) : (i32, i32) -> !llvm.ptr<255>
        dpu.sdma %x, %c_at, %whole : !llvm.ptr, !llvm.ptr<255>, i32
      }
      %odd = arith.cmpi ne, %whole, %bytes : i32
      scf.if %odd {
        %last = arith.addi %offset, %whole : i32
        %last_at = func.call @mram(%c, %last) : (i32, i32) -> !llvm.ptr<255>
        %x_last = llvm.getelementptr %x[%whole] : (!llvm.ptr, i32) -> !llvm.ptr, i8
        %sum = llvm.load %x_last : !llvm.ptr -> i32
        dpu.ldma %y, %last_at, %word : !llvm.ptr, !llvm.ptr<255>, i32
        llvm.store %sum, %y : i32, !llvm.ptr
        dpu.sdma %y, %last_at, %word : !llvm.ptr, !llvm.ptr<255>, i32
      }
    }
    func.return %c0 : i32
  }

  // A field of DPU_INPUT_ARGUMENTS.
  func.func private @argument(%args: !llvm.ptr, %index: i32) -> i32
      attributes {llvm.linkage = #llvm.linkage<internal>} {
    %at = llvm.getelementptr inbounds %args[%index] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %value = llvm.load %at : !llvm.ptr -> i32
    func.return %value : i32
  }

  // The MRAM pointer to a number of bytes behind an address.
  func.func private @mram(%base: i32, %offset: i32) -> !llvm.ptr<255>
      attributes {llvm.linkage = #llvm.linkage<internal>} {
    %address = arith.addi %base, %offset : i32
    %at = llvm.inttoptr %address : i32 to !llvm.ptr<255>
    func.return %at : !llvm.ptr<255>
  }
}
