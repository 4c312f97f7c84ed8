// One invocation claims the places of all 64 records, so that they are in the order of the elements. An assertion is
// checked by all; what follows it is done if none has failed.

// SIMT: AtomicIAdd i32 %{{[0-9]+}} 1 0 64
// SIMT: Store
// SIMT: ControlBarrier
// SIMT: FOrdGreaterThan
// SIMT: ControlBarrier
// SIMT: AtomicIAdd i32 %{{[0-9]+}} 2 0 1
// SIMT: ControlBarrier
// SIMT: %[[FAILED:[0-9]+]] = INotEqual bool
// SIMT: BranchConditional %[[FAILED]]
// SIMT: LoopMerge
// SIMT: AtomicIAdd i32 %{{[0-9]+}} 1 0 1
// SIMT: %[[PASSED:[0-9]+]] = LogicalNotEqual bool %[[FAILED]] true
// SIMT: BranchConditional %[[PASSED]]
// SIMT: Store %{{[0-9]+}} %{{[0-9]+}} 34 16

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @said(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %cst = arith.constant dense<1.000000e+00> : tensor<64xf32, #blocked>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<64xf32, #blocked>
    %v = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked>
    %v_1 = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked>
    %v_2 = tt.addptr %v_1, %v : tensor<64x!tt.ptr<f32>, #blocked>, tensor<64xi32, #blocked>
    %v_3 = tt.load %v_2 : tensor<64x!tt.ptr<f32>, #blocked>
    %v_4 = ttg.convert_layout %v_3 : tensor<64xf32, #blocked> -> tensor<64xf32, #blocked1>
    tt.print " v: " {hex = false, isSigned = array<i32: 0>} : %v_4 : tensor<64xf32, #blocked1>
    %0 = arith.cmpf ogt, %v_3, %cst_0 : tensor<64xf32, #blocked>
    tt.assert %0, "positive" : tensor<64xi1, #blocked>
    %1 = arith.addf %v_3, %cst : tensor<64xf32, #blocked>
    tt.store %v_2, %1 : tensor<64x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
