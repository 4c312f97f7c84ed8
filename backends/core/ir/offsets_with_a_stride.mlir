// A range times a scalar is an axis with a stride; the program's first element is the start.

// TILE: [[S:%[0-9]+]] = arith.extsi %s : i32 to i64
// TILE: [[AXIS:%[0-9]+]] = tile.affine [[S]]
// TILE: tile.load %p[{{%[0-9]+}}, [[AXIS]]] :
// TILE-NOT: tile.indexed

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %s: i32) {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %to = tt.addptr %qs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %ss = tt.splat %s : i32 -> tensor<64xi32>
    %o = arith.muli %range, %ss : tensor<64xi32>
    %from = tt.addptr %ps, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %from : tensor<64x!tt.ptr<f32>>
    tt.store %to, %x : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
