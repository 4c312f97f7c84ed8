// Operands of a product in workgroup memory: the left one is transposed there, so that an invocation reads its part of
// either in vectors. The steps along K are a loop that the device's compiler unrolls; one barrier is before it, which
// orders global memory, too.

// SIMT: ExecutionMode 17 8 1 1
// SIMT: Store
// SIMT-NOT: ControlBarrier 2 2 24840
// SIMT: ControlBarrier 2 2 24904
// SIMT-NOT: ControlBarrier
// SIMT: LoopMerge %{{[0-9]+}} %{{[0-9]+}} 1
// SIMT: AccessChain Workgroup*v4f32
// SIMT-NEXT: Load v4f32
// SIMT: AccessChain Workgroup*v4f32
// SIMT-NEXT: Load v4f32
// SIMT-NOT: Load
// SIMT: FMul
// SIMT-NEXT: FAdd
// SIMT-NOT: LoopMerge
// SIMT: Store %{{[0-9]+}} %{{[0-9]+}} 34 16

// SLOW: LoopMerge %{{[0-9]+}} %{{[0-9]+}} 2
// SLOW-NOT: LoopMerge

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 2], warpsPerCTA = [1, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [4, 2], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @product(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %c = arith.constant dense<0.000000e+00> : tensor<8x8xf32, #blocked1>
    %row = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %column = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %eight = arith.constant dense<8> : tensor<8x1xi32, #blocked>
    %0 = tt.expand_dims %row {axis = 1 : i32} : tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<8x1xi32, #blocked>
    %1 = arith.muli %0, %eight : tensor<8x1xi32, #blocked>
    %2 = tt.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x8xi32, #blocked>
    %3 = tt.broadcast %1 : tensor<8x1xi32, #blocked> -> tensor<8x8xi32, #blocked>
    %4 = tt.broadcast %2 : tensor<1x8xi32, #blocked> -> tensor<8x8xi32, #blocked>
    %5 = arith.addi %3, %4 : tensor<8x8xi32, #blocked>
    %6 = tt.splat %x : !tt.ptr<f32> -> tensor<8x8x!tt.ptr<f32>, #blocked>
    %7 = tt.addptr %6, %5 : tensor<8x8x!tt.ptr<f32>, #blocked>, tensor<8x8xi32, #blocked>
    %8 = tt.load %7 : tensor<8x8x!tt.ptr<f32>, #blocked>
    %a = ttg.local_alloc %8 : (tensor<8x8xf32, #blocked>) -> !ttg.memdesc<8x8xf32, #shared, #smem>
    %b = ttg.local_alloc %8 : (tensor<8x8xf32, #blocked>) -> !ttg.memdesc<8x8xf32, #shared, #smem>
    %left = ttg.local_load %a : !ttg.memdesc<8x8xf32, #shared, #smem> -> tensor<8x8xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked1}>>
    %right = ttg.local_load %b : !ttg.memdesc<8x8xf32, #shared, #smem> -> tensor<8x8xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked1}>>
    %d = tt.dot %left, %right, %c, inputPrecision = ieee : tensor<8x8xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked1}>> * tensor<8x8xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked1}>> -> tensor<8x8xf32, #blocked1>
    %e = ttg.convert_layout %d : tensor<8x8xf32, #blocked1> -> tensor<8x8xf32, #blocked>
    %9 = tt.splat %out : !tt.ptr<f32> -> tensor<8x8x!tt.ptr<f32>, #blocked>
    %10 = tt.addptr %9, %5 : tensor<8x8x!tt.ptr<f32>, #blocked>, tensor<8x8xi32, #blocked>
    tt.store %10, %e : tensor<8x8x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
