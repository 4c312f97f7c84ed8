// A transposed tile is read in rows, transposed in registers in squares of vectors, and written in rows.

// PLAN: late %x = tile.load
// PLAN-NEXT: late %t = tt.trans

// WORKITEM: llvm.alloca {{.*}} x !llvm.array<64 x f32>
// WORKITEM-NOT: llvm.alloca
// WORKITEM-COUNT-4: llvm.load {{.*}} : !global -> vector<4xf32>
// WORKITEM-COUNT-8: vector.shuffle
// WORKITEM-COUNT-4: llvm.store {{.*}} : vector<4xf32>, !llvm.ptr
// WORKITEM: llvm.load {{.*}} : !llvm.ptr -> vector<4xf32>
// WORKITEM: llvm.store {{.*}} : vector<4xf32>, !global

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c8 = arith.constant 8 : i64
    %rows = tile.affine %c8
    %columns = tile.affine %c1
    %x = tile.load %p[%c0, %rows, %columns] : !tt.ptr<f32> -> tensor<8x8xf32>
    %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<8x8xf32> -> tensor<8x8xf32>
    tile.store %t to %q[%c0, %rows, %columns] : tensor<8x8xf32> to !tt.ptr<f32>
    tt.return
  }
}
