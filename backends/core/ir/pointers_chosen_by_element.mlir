// Pointers without a common base stay a tensor, and are followed one by one: as addresses, in registers of 64 bits.

// TILE: arith.select {{.*}} tensor<64x!tt.ptr<f32>>
// TILE: tile.load %both[{{.*}}] : tensor<64x!tt.ptr<f32>> -> tensor<64xf32>
// TILE: tile.store %x to %q

// WORKITEM: llvm.ptrtoint {{.*}} : !global to i64
// WORKITEM: arith.select {{.*}} i64
// WORKITEM: llvm.inttoptr {{.*}} : i64 to !global

// A pointer to MRAM has 32 bits.
// TASKLET: llvm.ptrtoint {{.*}} : !global to i32
// TASKLET: llvm.inttoptr {{.*}} : i32 to !global

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32) {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %first = arith.cmpi slt, %range, %ns : tensor<64xi32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %one = tt.addptr %ps, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %other = tt.addptr %qs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %both = arith.select %first, %one, %other : tensor<64xi1>, tensor<64x!tt.ptr<f32>>
    %x = tt.load %both : tensor<64x!tt.ptr<f32>>
    tt.store %other, %x : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
