// The sum of a pair is used by itself, too. So it stays a reduction, and no step.

// TILE: tt.reduce
// TILE-NOT: tile.pairs

module {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %j = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
    %base = tt.splat %p : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
    %pair = tt.splat %p : !tt.ptr<i32> -> tensor<2x!tt.ptr<i32>>
    %at = tt.addptr %base, %i : tensor<4x!tt.ptr<i32>>, tensor<4xi32>
    %to = tt.addptr %pair, %j : tensor<2x!tt.ptr<i32>>, tensor<2xi32>
    %x = tt.load %at : tensor<4x!tt.ptr<i32>>
    %y = tt.reshape %x : tensor<4xi32> -> tensor<1x2x1x2xi32>
    %a = "tt.reduce"(%y) <{axis = 3 : i32}> ({
    ^bb0(%l: i32, %r: i32):
      %lr = arith.addi %l, %r : i32
      tt.reduce.return %lr : i32
    }) : (tensor<1x2x1x2xi32>) -> tensor<1x2x1xi32>
    %a1 = tt.expand_dims %a {axis = 3 : i32} : tensor<1x2x1xi32> -> tensor<1x2x1x1xi32>
    %a2 = tt.broadcast %a1 : tensor<1x2x1x1xi32> -> tensor<1x2x1x2xi32>
    %z = arith.subi %y, %a2 : tensor<1x2x1x2xi32>
    %flat = tt.reshape %z : tensor<1x2x1x2xi32> -> tensor<4xi32>
    tt.store %at, %flat : tensor<4x!tt.ptr<i32>>
    %sums = tt.reshape %a : tensor<1x2x1xi32> -> tensor<2xi32>
    tt.store %to, %sums : tensor<2x!tt.ptr<i32>>
    tt.return
  }
}
