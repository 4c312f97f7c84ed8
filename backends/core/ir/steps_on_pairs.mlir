// A flip of four elements, as Triton writes it: two steps that swap the elements of pairs. They become one operation,
// and that becomes a loop over the steps around a loop over the pairs, whose iterations work-items share.

// TILE: "tile.pairs"(%x) <{bits = array<i64: 1, 0>, flips = array<i64: -1, -1>}> ({
// TILE-NEXT: ^bb0(%[[LEFT:[0-9]+]]: i32, %[[RIGHT:[0-9]+]]: i32, %{{[0-9]+}}: i1):
// TILE-NEXT: tile.pairs_return %[[RIGHT]], %[[LEFT]] : i32, i32
// TILE-NOT: tt.reduce

// WORKITEM: scf.for
// WORKITEM: arith.shli
// WORKITEM: scf.for
// WORKITEM-NOT: scf.for {{.*}}iter_args

// WORKGROUP: scf.for
// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"
// WORKGROUP: scf.for
// WORKGROUP: llvm.store {{.*}} : i32, !llvm.ptr<3>
// WORKGROUP: llvm.call spir_funccc @"_Z7barrierj"

module {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %base = tt.splat %p : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
    %at = tt.addptr %base, %i : tensor<4x!tt.ptr<i32>>, tensor<4xi32>
    %x = tt.load %at : tensor<4x!tt.ptr<i32>>
    %y = tt.reshape %x : tensor<4xi32> -> tensor<2x2xi32>
    %a = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb0(%l: i32, %r: i32):
      %lr = arith.xori %l, %r : i32
      tt.reduce.return %lr : i32
    }) : (tensor<2x2xi32>) -> tensor<2xi32>
    %a1 = tt.expand_dims %a {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
    %a2 = tt.broadcast %a1 : tensor<1x2xi32> -> tensor<2x2xi32>
    %z = arith.xori %y, %a2 : tensor<2x2xi32>
    %b = "tt.reduce"(%z) <{axis = 1 : i32}> ({
    ^bb0(%l: i32, %r: i32):
      %lr = arith.xori %l, %r : i32
      tt.reduce.return %lr : i32
    }) : (tensor<2x2xi32>) -> tensor<2xi32>
    %b1 = tt.expand_dims %b {axis = 1 : i32} : tensor<2xi32> -> tensor<2x1xi32>
    %b2 = tt.broadcast %b1 : tensor<2x1xi32> -> tensor<2x2xi32>
    %w = arith.xori %z, %b2 : tensor<2x2xi32>
    %flat = tt.reshape %w : tensor<2x2xi32> -> tensor<4xi32>
    tt.store %at, %flat : tensor<4x!tt.ptr<i32>>
    tt.return
  }
}
