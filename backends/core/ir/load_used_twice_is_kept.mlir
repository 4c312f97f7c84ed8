// What is computed from memory for two stores is computed once and kept: memory is read once.

// PLAN: late %x = tile.load
// PLAN-NEXT: memory %y = arith.addf

// WORKITEM: [[KEPT:%p[0-9]+]] = llvm.alloca
// WORKITEM-NOT: llvm.alloca
// WORKITEM: llvm.load {{.*}} : !global -> vector<4xf32>
// WORKITEM-NEXT: arith.addf
// WORKITEM-NEXT: llvm.getelementptr [[KEPT]]
// WORKITEM-NEXT: llvm.store {{.*}} : vector<4xf32>, !llvm.ptr
// WORKITEM-NOT: {{arith.addf|!global -> }}
// WORKITEM: llvm.getelementptr %q
// WORKITEM-NEXT: llvm.store
// WORKITEM-NOT: {{arith.addf|!global -> }}
// WORKITEM: llvm.getelementptr %o
// WORKITEM-NEXT: llvm.store

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %x = tile.load %p[%c0, %axis] : !tt.ptr<f32> -> tensor<4xf32>
    %y = arith.addf %x, %x : tensor<4xf32>
    tile.store %y to %q[%c0, %axis] : tensor<4xf32> to !tt.ptr<f32>
    tile.store %y to %o[%c0, %axis] : tensor<4xf32> to !tt.ptr<f32>
    tt.return
  }
}
