// tl.dot packs its operands into memory itself, and adds to its accumulator there.

// PLAN-NOT: memory

// WORKITEM-COUNT-2: llvm.alloca
// WORKITEM: scf.for
// WORKITEM: scf.for
// WORKITEM: vector
// WORKITEM: llvm.store {{.*}}, !global

// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"
// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"
// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"

// TASKLET-COUNT-2: "llvm.intr.memcpy"({{.*}} : (!llvm.ptr, !global, i32) -> ()
// TASKLET: arith.mulf {{.*}} : f32
// TASKLET: arith.addf {{.*}} : f32
// TASKLET: "llvm.intr.memcpy"({{.*}} : (!global, !llvm.ptr, i32) -> ()

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c16 = arith.constant 16 : i64
    %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %rows = tile.affine %c16
    %columns = tile.affine %c1
    %a = tile.load %p[%c0, %rows, %columns] : !tt.ptr<f32> -> tensor<16x16xf32>
    %b = tile.load %q[%c0, %rows, %columns] : !tt.ptr<f32> -> tensor<16x16xf32>
    %c = tt.dot %a, %b, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    tile.store %c to %o[%c0, %rows, %columns] : tensor<16x16xf32> to !tt.ptr<f32>
    tt.return
  }
}
