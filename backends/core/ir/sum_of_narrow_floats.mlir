// Sums and products of narrow floats are in f32, and rounded once, at the end. What is no plain sum is rounded each time.

// TILE: %sum, %most = "tt.reduce"(%x, %x)
// TILE: ^bb0(%a: f32, %b: bf16, %c: f32, %d: bf16):
// TILE: arith.addf {{.*}} : f32
// TILE: arith.maxnumf {{.*}} : bf16
// TILE: }) : (tensor<64xbf16>, tensor<64xbf16>) -> (f32, bf16)
// TILE: [[SUM:%sum_[0-9]+]] = tile.round %sum : f32 to bf16
// TILE: tile.store [[SUM]]
// TILE: "tt.reduce"(%x)
// TILE: arith.addf {{.*}} : bf16

module {
  tt.func public @k(%p: !tt.ptr<bf16>) {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %base = tt.splat %p : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
    %places = tt.addptr %base, %range : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
    %x = tt.load %places : tensor<64x!tt.ptr<bf16>>
    %sum, %most = "tt.reduce"(%x, %x) <{axis = 0 : i32}> ({
    ^bb0(%a: bf16, %b: bf16, %c: bf16, %d: bf16):
      %ac = arith.addf %a, %c : bf16
      %bd = arith.maxnumf %b, %d : bf16
      tt.reduce.return %ac, %bd : bf16, bf16
    }) : (tensor<64xbf16>, tensor<64xbf16>) -> (bf16, bf16)
    tt.store %p, %sum : !tt.ptr<bf16>
    tt.store %p, %most : !tt.ptr<bf16>
    %twice = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: bf16, %b: bf16):
      %ab = arith.addf %a, %b : bf16
      %abb = arith.addf %ab, %b : bf16
      tt.reduce.return %abb : bf16
    }) : (tensor<64xbf16>) -> bf16
    tt.store %p, %twice : !tt.ptr<bf16>
    tt.return
  }
}
