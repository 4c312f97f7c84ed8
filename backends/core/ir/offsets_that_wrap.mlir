// A block modulo a scalar wraps around: an axis that knows its first element, the modulus and the stride.

// TILE: tile.wrapped {{%[0-9]+}}, {{%[0-9]+}}, {{%[0-9]+}} : i32

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %s: i32) {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %to = tt.addptr %qs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %o = arith.remsi %range, %ns : tensor<64xi32>
    %from = tt.addptr %ps, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %from : tensor<64x!tt.ptr<f32>>
    tt.store %to, %x : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
