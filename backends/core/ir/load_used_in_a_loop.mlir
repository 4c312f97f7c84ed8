// What a loop needs in each turn is read once, before it.

// PLAN: memory %x = tile.load

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %x = tile.load %p[%c0, %axis] : !tt.ptr<f32> -> tensor<64xf32>
    %c0_32 = arith.constant 0 : i32
    %c1_32 = arith.constant 1 : i32
    scf.for %k = %c0_32 to %n step %c1_32 : i32 {
      %w = arith.extsi %k : i32 to i64
      tile.store %x to %q[%w, %axis] : tensor<64xf32> to !tt.ptr<f32>
    }
    tt.return
  }
}
