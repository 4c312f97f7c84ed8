// What is cheap and reads no memory is computed for each store.

// PLAN-NOT: memory

// WORKITEM-NOT: llvm.alloca
// WORKITEM-COUNT-2: arith.addf {{.*}} : vector<4xf32>
// WORKITEM-NOT: arith.addf
// WORKITEM: llvm.store

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %f = arith.sitofp %i : tensor<64xi32> to tensor<64xf32>
    %y = arith.addf %f, %f : tensor<64xf32>
    tile.store %y to %q[%c0, %axis] : tensor<64xf32> to !tt.ptr<f32>
    tile.store %y to %o[%c0, %axis] : tensor<64xf32> to !tt.ptr<f32>
    tt.return
  }
}
