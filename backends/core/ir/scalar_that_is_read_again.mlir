// All invocations load a scalar before one of them stores it. What one stores twice, and another array, need no barrier.

// SIMT: Load f32
// SIMT: ControlBarrier
// SIMT-NOT: ControlBarrier
// SIMT: BranchConditional
// SIMT: Store
// SIMT-NOT: BranchConditional
// SIMT: Load f32
// SIMT: BranchConditional
// SIMT: Store
// SIMT-NOT: ControlBarrier
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
