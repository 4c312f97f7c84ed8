// A load is kept if a store comes between it and its use, through whatever argument: it may be the same array.

// PLAN: late %x = tile.load
// PLAN-NEXT: memory %y = tile.load

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %x = tile.load %p[%c0, %axis] : !tt.ptr<f32> -> tensor<64xf32>
    %y = tile.load %q[%c0, %axis] : !tt.ptr<f32> -> tensor<64xf32>
    tile.store %x to %q[%c0, %axis] : tensor<64xf32> to !tt.ptr<f32>
    tile.store %y to %o[%c0, %axis] : tensor<64xf32> to !tt.ptr<f32>
    tt.return
  }
}
