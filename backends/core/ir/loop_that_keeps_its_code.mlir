// A loop with disable_licm: MLIR hoists nothing out of a region that it may not inline, and LLVM gets the hint.
// TILE: scf.for
// TILE: } {foundry.keeps_code}
// WORKITEM: scf.for
// WORKITEM-NEXT: [[NEXT:%v[0-9]+]] = scf.execute_region -> (i32) no_inline {
// WORKITEM-NEXT: arith.muli %x_1
// WORKITEM: scf.yield [[NEXT]] : i32
// WORKITEM-NEXT: } {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
// TASKLET: scf.execute_region -> (i32) no_inline {
// TASKLET: } {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
#loop_licm = #llvm.loop_licm<disable = true>
#loop_annotation = #llvm.loop_annotation<licm = #loop_licm>
module {
  tt.func public @keeps(%out: !tt.ptr<i32>, %x: i32, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%total = %c0) -> (i32)  : i32 {
      %square = arith.muli %x, %x : i32
      %next = arith.addi %total, %square : i32
      scf.yield %next : i32
    } {llvm.loop_annotation = #loop_annotation}
    tt.store %out, %sum : !tt.ptr<i32>
    tt.return
  }
}
