// A scan is done in the buffer of its result: each element with the one before it. Work-items share the rows.

// WORKITEM: llvm.alloca {{.*}}!llvm.array<32 x f32>
// WORKITEM: scf.for
// WORKITEM: scf.for
// WORKITEM: [[SUM:%v[0-9]+]] = arith.addf {{.*}} : f32
// WORKITEM: llvm.store [[SUM]], {{.*}} : f32, !llvm.ptr

// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"
// WORKGROUP: scf.for
// WORKGROUP: scf.for
// WORKGROUP: [[SUM:%v[0-9]+]] = arith.addf {{.*}} : f32
// WORKGROUP: llvm.store [[SUM]], {{.*}} : f32, !llvm.ptr<3>
// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"

// TASKLET: "llvm.intr.memcpy"
// TASKLET: scf.for
// TASKLET: [[SUM:%v[0-9]+]] = arith.addf {{.*}} : f32
// TASKLET: llvm.store [[SUM]], {{.*}} : f32, !llvm.ptr

module {
  tt.func public @k(%p: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i64
    %c8 = arith.constant 8 : i64
    %c1 = arith.constant 1 : i64
    %down = tile.affine %c8
    %across = tile.affine %c1
    %x = tile.load %p[%c0, %down, %across] : !tt.ptr<f32> -> tensor<4x8xf32>
    %sums = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %ab = arith.addf %a, %b : f32
      tt.scan.return %ab : f32
    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    tile.store %sums to %p[%c0, %down, %across] : tensor<4x8xf32> to !tt.ptr<f32>
    tt.return
  }
}
