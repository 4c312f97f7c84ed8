// A store next to where its own tile was loaded would change what later elements read: the load is kept.

// PLAN: memory %x = tile.load

// WORKITEM: llvm.store {{.*}}, !llvm.ptr
// WORKITEM: scf.for
// WORKITEM: llvm.store {{.*}}, !global

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %x = tile.load %p[%c0, %axis] : !tt.ptr<f32> -> tensor<64xf32>
    tile.store %x to %p[%c1, %axis] : tensor<64xf32> to !tt.ptr<f32>
    tt.return
  }
}
