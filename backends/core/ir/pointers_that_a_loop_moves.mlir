// A loop that adds the same scalar to all pointers carries one number instead of a tensor of pointers.

// TILE: scf.for {{.*}} iter_args(%{{[a-z0-9_]+}} = %{{[a-z0-9_]+}}, %sum = %zero) -> (i64, tensor<64xf32>)
// TILE: tile.load %p
// TILE: arith.addi {{.*}} : i64
// TILE: scf.yield {{%[a-z0-9_]+}}, %more : i64, tensor<64xf32>
// TILE-NOT: tensor<64x!tt.ptr

// The sum lives in memory, because a loop carries it.
// WORKITEM: llvm.alloca {{.*}} f32
// WORKITEM: scf.for
// WORKITEM: scf.for
// WORKITEM: arith.addf

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %s: i32) {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %to = tt.addptr %qs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64xf32>
    %from = tt.addptr %ps, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %step = tt.splat %s : i32 -> tensor<64xi32>
    %end, %value = scf.for %k = %c0 to %n step %c1 iter_args(%at = %from, %sum = %zero) -> (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) : i32 {
      %x = tt.load %at : tensor<64x!tt.ptr<f32>>
      %more = arith.addf %sum, %x : tensor<64xf32>
      %next = tt.addptr %at, %step : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      scf.yield %next, %more : tensor<64x!tt.ptr<f32>>, tensor<64xf32>
    }
    tt.store %to, %value : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
