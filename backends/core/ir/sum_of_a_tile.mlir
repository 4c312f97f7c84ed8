// A reduction on a work-item is a loop over vectors and one over its lanes; on a work-group, partial results that
// all work-items wait for; on a DPU, a loop over what DMA brought.

// PLAN: late %x = tile.load
// PLAN-NOT: memory

// WORKITEM-NOT: vector.shuffle
// WORKITEM: scf.for
// WORKITEM: llvm.load {{.*}} : !global -> vector<{{[0-9]+}}xf32>
// WORKITEM: arith.addf {{.*}} : vector<{{[0-9]+}}xf32>
// WORKITEM: llvm.store {{.*}} : f32, !global

// WORKGROUP: _Z12get_local_idj
// WORKGROUP: scf.for
// WORKGROUP: arith.addf
// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"
// WORKGROUP: arith.addf
// WORKGROUP: llvm.store {{.*}} : f32, !global

// TASKLET: "llvm.intr.memcpy"({{.*}} : (!llvm.ptr, !global, i32) -> ()
// TASKLET: scf.for
// TASKLET: arith.addf {{.*}} : f32
// TASKLET-NOT: vector<

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %x = tile.load %p[%c0, %axis] : !tt.ptr<f32> -> tensor<64xf32>
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %ab = arith.addf %a, %b : f32
      tt.reduce.return %ab : f32
    }) : (tensor<64xf32>) -> f32
    tile.store %sum to %q[%c0] : f32 to !tt.ptr<f32>
    tt.return
  }
}
