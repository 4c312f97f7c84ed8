// Arithmetic on bf16 is done in f32 and rounded once for each operation.

// WORKITEM: arith.addf {{.*}} : vector<{{[0-9]+}}xf32>
// WORKITEM-NOT: arith.addf {{.*}}bf16
// TASKLET: arith.addf {{.*}} : f32
// TASKLET-NOT: arith.addf {{.*}}bf16

module {
  tt.func public @k(%p: !tt.ptr<bf16>, %q: !tt.ptr<bf16>) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %x = tile.load %p[%c0, %axis] : !tt.ptr<bf16> -> tensor<64xbf16>
    %y = arith.addf %x, %x : tensor<64xbf16>
    tile.store %y to %q[%c0, %axis] : tensor<64xbf16> to !tt.ptr<bf16>
    tt.return
  }
}
