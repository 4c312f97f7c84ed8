// One invocation loads a scalar that the kernel stores, and tells the others; none loads another array's so.

// SIMT: %[[LANE:.*]] = BitwiseAnd i32 {{.*}} 7
// SIMT: IEqual bool %[[LANE]] 0
// SIMT: BranchConditional
// SIMT: Load f32
// SIMT: ControlBarrier
// SIMT: BranchConditional
// SIMT: Store
// SIMT-NOT: BranchConditional
// SIMT-NOT: ControlBarrier
// SIMT: Load f32
// SIMT: Return

module attributes {"ttg.num-warps" = 1 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
    %x = tt.load %p : !tt.ptr<f32>
    %y = arith.addf %x, %x : f32
    tt.store %p, %y : !tt.ptr<f32>
    %z = tt.load %q : !tt.ptr<f32>
    %r = arith.addf %z, %y : f32
    tt.store %p, %r : !tt.ptr<f32>
    tt.return
  }
}
