// A function that does not commute gets elements in the order of the axis: of two lanes, each combines the lower one's
// with the upper one's.

// SIMT: %[[UPPER:[0-9]+]] = INotEqual bool
// SIMT-NEXT: %[[OTHER:[0-9]+]] = GroupNonUniformShuffleXor f32 3 %[[MINE:[0-9]+]] 1
// SIMT-NEXT: Select f32 %[[UPPER]] %[[OTHER]] %[[MINE]]
// SIMT-NEXT: Select f32 %[[UPPER]] %[[MINE]] %[[OTHER]]

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @last(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked>
    %1 = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked>
    %2 = tt.addptr %1, %0 : tensor<64x!tt.ptr<f32>, #blocked>, tensor<64xi32, #blocked>
    %3 = tt.load %2 : tensor<64x!tt.ptr<f32>, #blocked>
    %4 = "tt.reduce"(%3) <{axis = 0 : i32}> ({
    ^bb0(%arg2: f32, %arg3: f32):
      tt.reduce.return %arg3 : f32
    }) : (tensor<64xf32, #blocked>) -> f32
    tt.store %out, %4 : !tt.ptr<f32>
    tt.return
  }
}
