// What is only moved is copied to WRAM and from there to MRAM, if both places have the same offset in a word. Elements
// are moved one by one only if they have not. Those that the load leaves out are written before either.

// TASKLET: "llvm.intr.memcpy"({{.*}} : (!llvm.ptr, !global, i32) -> ()
// TASKLET: scf.for
// TASKLET: llvm.store %c{{[0-9]+}}
// TASKLET: llvm.ptrtoint {{.*}} : !llvm.ptr to i32
// TASKLET: scf.if
// TASKLET-NOT: llvm.load
// TASKLET: "llvm.intr.memcpy"({{.*}} : (!global, !llvm.ptr, i32) -> ()
// TASKLET: else {
// TASKLET: llvm.load

module {
  tt.func public @k(%x_ptr: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i64) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %part = tile.range %c0 to %n
    %x = tile.load %x_ptr[%c0, %axis] in [%part] : !tt.ptr<f32> -> tensor<256xf32>
    tile.store %x to %out[%c0, %axis] : tensor<256xf32> to !tt.ptr<f32>
    tt.return
  }
}
