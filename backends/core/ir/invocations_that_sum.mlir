// A sum is done in registers, then among the lanes of a subgroup, then among subgroups through workgroup memory, with one
// barrier: its place is not the one that was read last. The partial sums are read as one vector. One invocation stores the result.

// SIMT: Load v4f32
// SIMT: FAdd
// SIMT: GroupNonUniformShuffleXor f32 3 %{{[0-9]+}} 1
// SIMT-NEXT: FAdd
// SIMT-NEXT: GroupNonUniformShuffleXor f32 3 %{{[0-9]+}} 2
// SIMT-NEXT: FAdd
// SIMT-NEXT: GroupNonUniformShuffleXor f32 3 %{{[0-9]+}} 4
// SIMT-NEXT: FAdd
// SIMT-NOT: = Select
// SIMT-NOT: ControlBarrier
// SIMT: AccessChain Workgroup
// SIMT-NEXT: Store
// SIMT: ControlBarrier
// SIMT: Load v2f32
// SIMT-NOT: ControlBarrier
// SIMT: %[[SUM:[0-9]+]] = FAdd
// SIMT: LogicalAnd
// SIMT: BranchConditional
// SIMT: Store %{{[0-9]+}} %[[SUM]] 34 4

// Where the compiler is slow, the partial sums of the subgroups are added in a loop that stays one.
// SLOW: ControlBarrier
// SLOW: LoopMerge %{{[0-9]+}} %{{[0-9]+}} 2
// SLOW: Load f32
// SLOW-NEXT: FAdd
// SLOW-NOT: FAdd

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @sums(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked>
    %1 = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked>
    %2 = tt.addptr %1, %0 : tensor<64x!tt.ptr<f32>, #blocked>, tensor<64xi32, #blocked>
    %3 = tt.load %2 : tensor<64x!tt.ptr<f32>, #blocked>
    %4 = tt.reshape %3 allow_reorder : tensor<64xf32, #blocked> -> tensor<64xf32, #blocked1>
    %5 = "tt.reduce"(%4) <{axis = 0 : i32}> ({
    ^bb0(%arg2: f32, %arg3: f32):
      %6 = arith.addf %arg2, %arg3 : f32
      tt.reduce.return %6 : f32
    }) : (tensor<64xf32, #blocked1>) -> f32
    tt.store %out, %5 : !tt.ptr<f32>
    tt.return
  }
}
