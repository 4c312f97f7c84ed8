// Another layout through workgroup memory: rows of 8 elements are written with 16 bytes each, and are 4 elements longer
// than the tile's. One barrier is between writing and reading.

// SIMT: Load v4f32
// SIMT-NOT: ControlBarrier
// SIMT: %[[ROW:[0-9]+]] = ShiftRightLogical i32 %[[INDEX:[0-9]+]] 3
// SIMT-NEXT: %[[MORE:[0-9]+]] = IMul i32 %[[ROW]] 4
// SIMT-NEXT: IAdd i32 %[[INDEX]] %[[MORE]]
// SIMT: AccessChain Workgroup*v4f32
// SIMT: ControlBarrier
// SIMT: Load f32
// SIMT-NOT: ControlBarrier
// SIMT: Store %{{[0-9]+}} %{{[0-9]+}} 34 16

#blocked = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [2, 4], warpsPerCTA = [1, 1], order = [0, 1]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 2], warpsPerCTA = [1, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @moved(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %cst = arith.constant dense<8> : tensor<1x8xi32, #blocked>
    %v = arith.constant dense<8> : tensor<8x1xi32, #blocked1>
    %v_0 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %v_1 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %v_2 = tt.expand_dims %v_0 {axis = 1 : i32} : tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<8x1xi32, #blocked1>
    %v_3 = tt.expand_dims %v_1 {axis = 1 : i32} : tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<8x1xi32, #blocked>
    %v_4 = arith.muli %v_2, %v : tensor<8x1xi32, #blocked1>
    %v_5 = tt.splat %x : !tt.ptr<f32> -> tensor<8x1x!tt.ptr<f32>, #blocked1>
    %v_6 = tt.addptr %v_5, %v_4 : tensor<8x1x!tt.ptr<f32>, #blocked1>, tensor<8x1xi32, #blocked1>
    %v_7 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
    %v_8 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %v_9 = tt.expand_dims %v_7 {axis = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #blocked1}>> -> tensor<1x8xi32, #blocked1>
    %v_10 = tt.expand_dims %v_8 {axis = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x8xi32, #blocked>
    %v_11 = tt.broadcast %v_6 : tensor<8x1x!tt.ptr<f32>, #blocked1> -> tensor<8x8x!tt.ptr<f32>, #blocked1>
    %v_12 = tt.broadcast %v_9 : tensor<1x8xi32, #blocked1> -> tensor<8x8xi32, #blocked1>
    %v_13 = tt.addptr %v_11, %v_12 : tensor<8x8x!tt.ptr<f32>, #blocked1>, tensor<8x8xi32, #blocked1>
    %v_14 = tt.load %v_13 : tensor<8x8x!tt.ptr<f32>, #blocked1>
    %0 = tt.splat %out : !tt.ptr<f32> -> tensor<8x1x!tt.ptr<f32>, #blocked>
    %1 = tt.addptr %0, %v_3 : tensor<8x1x!tt.ptr<f32>, #blocked>, tensor<8x1xi32, #blocked>
    %2 = arith.muli %v_10, %cst : tensor<1x8xi32, #blocked>
    %3 = tt.broadcast %1 : tensor<8x1x!tt.ptr<f32>, #blocked> -> tensor<8x8x!tt.ptr<f32>, #blocked>
    %4 = tt.broadcast %2 : tensor<1x8xi32, #blocked> -> tensor<8x8xi32, #blocked>
    %5 = tt.addptr %3, %4 : tensor<8x8x!tt.ptr<f32>, #blocked>, tensor<8x8xi32, #blocked>
    %6 = ttg.convert_layout %v_14 : tensor<8x8xf32, #blocked1> -> tensor<8x8xf32, #blocked>
    tt.store %5, %6 : tensor<8x8x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
