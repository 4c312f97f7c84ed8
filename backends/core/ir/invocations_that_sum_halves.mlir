// Numbers of f16 are summed in f32 in registers, among lanes and through workgroup memory, and rounded at the end.

// SIMT: FAdd f32
// SIMT-NOT: FConvert
// SIMT: GroupNonUniformShuffleXor f32
// SIMT-NOT: FConvert
// SIMT: Load v2f32
// SIMT-NOT: FConvert
// SIMT: %[[SUM:[0-9]+]] = FAdd f32
// SIMT-NEXT: FConvert f16 %[[SUM]]

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @sums(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f16> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked>
    %1 = tt.splat %x : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>, #blocked>
    %2 = tt.addptr %1, %0 : tensor<64x!tt.ptr<f16>, #blocked>, tensor<64xi32, #blocked>
    %3 = tt.load %2 : tensor<64x!tt.ptr<f16>, #blocked>
    %4 = tt.reshape %3 allow_reorder : tensor<64xf16, #blocked> -> tensor<64xf16, #blocked1>
    %5 = "tt.reduce"(%4) <{axis = 0 : i32}> ({
    ^bb0(%arg2: f16, %arg3: f16):
      %6 = arith.addf %arg2, %arg3 : f16
      tt.reduce.return %6 : f16
    }) : (tensor<64xf16, #blocked1>) -> f16
    tt.store %out, %5 : !tt.ptr<f16>
    tt.return
  }
}
