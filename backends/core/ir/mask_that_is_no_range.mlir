// A mask that is no comparison of a block with a scalar is computed for each element.

// TILE: %odd = arith.andi %range, %one
// TILE: %m = arith.cmpi ne, %odd, %zero
// TILE: [[ALL:%[0-9]+]] = tile.range
// TILE: tile.load %p[{{.*}}] in {{\[}}[[ALL]]{{\]}} where %m else %other :
// TILE: tile.store %x to %q[{{.*}}] :

// WORKITEM: arith.andi
// WORKITEM: scf.if
// WORKITEM: llvm.load

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %s: i32) {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %to = tt.addptr %qs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %one = arith.constant dense<1> : tensor<64xi32>
    %zero = arith.constant dense<0> : tensor<64xi32>
    %other = arith.constant dense<7.000000e+00> : tensor<64xf32>
    %odd = arith.andi %range, %one : tensor<64xi32>
    %m = arith.cmpi ne, %odd, %zero : tensor<64xi32>
    %from = tt.addptr %ps, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %from, %m, %other : tensor<64x!tt.ptr<f32>>
    tt.store %to, %x : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
