// A function of a row is computed once for a row, and not once for each element that it is repeated for.

// PLAN: memory %e = math.exp
// PLAN: late %wide = tt.broadcast

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c8 = arith.constant 8 : i64
    %rows = tile.affine %c8
    %columns = tile.affine %c1
    %x = tile.load %p[%c0, %rows, %columns] : !tt.ptr<f32> -> tensor<8x1xf32>
    %e = math.exp %x : tensor<8x1xf32>
    %wide = tt.broadcast %e : tensor<8x1xf32> -> tensor<8x8xf32>
    tile.store %wide to %q[%c0, %rows, %columns] : tensor<8x8xf32> to !tt.ptr<f32>
    tt.return
  }
}
