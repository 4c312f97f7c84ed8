// Offsets that were loaded are an index, in memory, because the loop over the elements reads each once.

// TILE: %loaded = tile.load %i
// TILE: [[AXIS:%[0-9]+]] = tile.indexed %loaded : tensor<64xi32>
// TILE: tile.load %p[{{%[0-9]+}}, [[AXIS]]] :

// PLAN: %loaded = tile.load
// PLAN: %x = tile.load

// TASKLET: "llvm.intr.memcpy"

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %i: !tt.ptr<i32>, %n: i32, %s: i32) {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %to = tt.addptr %qs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %is = tt.splat %i : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %ip = tt.addptr %is, %range : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %loaded = tt.load %ip : tensor<64x!tt.ptr<i32>>
    %from = tt.addptr %ps, %loaded : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %from : tensor<64x!tt.ptr<f32>>
    tt.store %to, %x : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
