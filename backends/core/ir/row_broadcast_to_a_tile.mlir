// A tile that is stored is in the order of the tiles it is computed from, not of the rows that are broadcast to it,
// however many they are. In the other order, vectors would be collected element by element.

// PLAN: memory %e = math.exp

// WORKITEM-NOT: vector.insert
// WORKITEM: llvm.store {{.*}} : vector<4xf32>, !llvm.ptr
// WORKITEM-NOT: vector.insert
// WORKITEM: llvm.store {{.*}}, !global

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c16 = arith.constant 16 : i64
    %rows = tile.affine %c16
    %columns = tile.affine %c1
    %x = tile.load %p[%c0, %rows, %columns] : !tt.ptr<f32> -> tensor<16x16xf32>
    %a = tile.load %q[%c0, %columns] : !tt.ptr<f32> -> tensor<16xf32>
    %b = tile.load %q[%c16, %columns] : !tt.ptr<f32> -> tensor<16xf32>
    %a1 = tt.expand_dims %a {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
    %b1 = tt.expand_dims %b {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
    %a2 = tt.broadcast %a1 : tensor<16x1xf32> -> tensor<16x16xf32>
    %b2 = tt.broadcast %b1 : tensor<16x1xf32> -> tensor<16x16xf32>
    %y = arith.subf %x, %a2 : tensor<16x16xf32>
    %z = arith.subf %y, %b2 : tensor<16x16xf32>
    %e = math.exp %z : tensor<16x16xf32>
    %s = "tt.reduce"(%e) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %t = arith.addf %l, %r : f32
      tt.reduce.return %t : f32
    }) : (tensor<16x16xf32>) -> tensor<16xf32>
    tile.store %s to %o[%c0, %columns] : tensor<16xf32> to !tt.ptr<f32>
    tile.store %e to %o[%c16, %rows, %columns] : tensor<16x16xf32> to !tt.ptr<f32>
    tt.return
  }
}
