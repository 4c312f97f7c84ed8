// A product is kept in matrices while a loop multiplies it by a number for each row: the numbers are a matrix whose
// columns have the distance 0 in workgroup memory. Rows there are 8 elements longer than the tile's, 3 vectors of 16
// bytes. The result is rounded to f16 as matrices, and read back for the store.

// MATRIX: Capability CooperativeMatrixKHR
// MATRIX: %[[LEFT:[0-9]+]] = CooperativeMatrixLoad matrix0.f16.8x8 %{{[0-9]+}} 0 3 32
// MATRIX-NOT: CooperativeMatrixStore
// MATRIX: %[[TOTAL:[0-9]+]] = Phi matrix2.f32.8x8
// MATRIX: LoopMerge %{{[0-9]+}} %{{[0-9]+}} 2
// MATRIX: %[[FACTOR:[0-9]+]] = CooperativeMatrixLoad matrix2.f32.8x8 %{{[0-9]+}} 1 0 32
// MATRIX: %[[SCALED:[0-9]+]] = FMul matrix2.f32.8x8 %[[TOTAL]] %[[FACTOR]]
// MATRIX: %[[RIGHT:[0-9]+]] = CooperativeMatrixLoad matrix1.f16.8x8 %{{[0-9]+}} 0 3 32
// MATRIX-NEXT: CooperativeMatrixMulAdd matrix2.f32.8x8 %[[LEFT]] %[[RIGHT]] %[[SCALED]]
// MATRIX-NOT: CooperativeMatrixStore
// MATRIX: %[[ROUNDED:[0-9]+]] = FConvert matrix2.f16.8x8 %[[TOTAL]]
// MATRIX: CooperativeMatrixStore %{{[0-9]+}} %[[ROUNDED]] 0 3 32
// MATRIX: Store %{{[0-9]+}} %{{[0-9]+}} 34 16

// On a device without matrices, the same kernel multiplies numbers.
// SIMT-NOT: CooperativeMatrix
// SIMT: FMul f32

#blocked = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 2], warpsPerCTA = [1, 1], order = [1, 0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [2, 4], warpsPerCTA = [1, 1], order = [0, 1]}>
#blocked3 = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [8], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @scaled(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg3: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg4: !tt.ptr<f16> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %cst = arith.constant dense<0.000000e+00> : tensor<16x16xf32, #blocked>
    %c1_i32 = arith.constant 1 : i32
    %c3_i32 = arith.constant 3 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst_0 = arith.constant dense<16> : tensor<16x1xi32, #blocked1>
    %cst_1 = arith.constant dense<16> : tensor<1x16xi32, #blocked2>
    %0 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #blocked3>
    %1 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %2 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #blocked2}>>
    %3 = tt.expand_dims %1 {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<16x1xi32, #blocked1>
    %4 = tt.expand_dims %2 {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #blocked2}>> -> tensor<16x1xi32, #blocked2>
    %5 = arith.muli %3, %cst_0 : tensor<16x1xi32, #blocked1>
    %6 = tt.splat %arg0 : !tt.ptr<f16> -> tensor<16x1x!tt.ptr<f16>, #blocked1>
    %7 = tt.addptr %6, %5 : tensor<16x1x!tt.ptr<f16>, #blocked1>, tensor<16x1xi32, #blocked1>
    %8 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
    %9 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked2}>>
    %10 = tt.expand_dims %8 {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked1}>> -> tensor<1x16xi32, #blocked1>
    %11 = tt.expand_dims %9 {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked2}>> -> tensor<1x16xi32, #blocked2>
    %12 = tt.broadcast %7 : tensor<16x1x!tt.ptr<f16>, #blocked1> -> tensor<16x16x!tt.ptr<f16>, #blocked1>
    %13 = tt.broadcast %10 : tensor<1x16xi32, #blocked1> -> tensor<16x16xi32, #blocked1>
    %14 = tt.addptr %12, %13 : tensor<16x16x!tt.ptr<f16>, #blocked1>, tensor<16x16xi32, #blocked1>
    %15 = tt.load %14 : tensor<16x16x!tt.ptr<f16>, #blocked1>
    %16 = ttg.local_alloc %15 : (tensor<16x16xf16, #blocked1>) -> !ttg.memdesc<16x16xf16, #shared, #smem>
    %17 = arith.muli %11, %cst_1 : tensor<1x16xi32, #blocked2>
    %18 = tt.splat %arg1 : !tt.ptr<f16> -> tensor<1x16x!tt.ptr<f16>, #blocked2>
    %19 = tt.addptr %18, %17 : tensor<1x16x!tt.ptr<f16>, #blocked2>, tensor<1x16xi32, #blocked2>
    %20 = tt.broadcast %19 : tensor<1x16x!tt.ptr<f16>, #blocked2> -> tensor<16x16x!tt.ptr<f16>, #blocked2>
    %21 = tt.broadcast %4 : tensor<16x1xi32, #blocked2> -> tensor<16x16xi32, #blocked2>
    %22 = tt.addptr %20, %21 : tensor<16x16x!tt.ptr<f16>, #blocked2>, tensor<16x16xi32, #blocked2>
    %23 = tt.load %22 : tensor<16x16x!tt.ptr<f16>, #blocked2>
    %24 = ttg.local_alloc %23 : (tensor<16x16xf16, #blocked2>) -> !ttg.memdesc<16x16xf16, #shared1, #smem>
    %25 = ttg.memdesc_trans %24 {order = array<i32: 1, 0>} : !ttg.memdesc<16x16xf16, #shared1, #smem> -> !ttg.memdesc<16x16xf16, #shared, #smem>
    %26 = tt.splat %arg3 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #blocked3>
    %27 = tt.addptr %26, %0 : tensor<16x!tt.ptr<f32>, #blocked3>, tensor<16xi32, #blocked3>
    %28 = tt.load %27 : tensor<16x!tt.ptr<f32>, #blocked3>
    %29 = scf.for %arg5 = %c0_i32 to %c3_i32 step %c1_i32 iter_args(%arg6 = %cst) -> (tensor<16x16xf32, #blocked>)  : i32 {
      %36 = ttg.convert_layout %28 : tensor<16xf32, #blocked3> -> tensor<16xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
      %37 = tt.expand_dims %36 {axis = 1 : i32} : tensor<16xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<16x1xf32, #blocked>
      %38 = tt.broadcast %37 : tensor<16x1xf32, #blocked> -> tensor<16x16xf32, #blocked>
      %39 = arith.mulf %arg6, %38 : tensor<16x16xf32, #blocked>
      %40 = ttg.local_load %16 : !ttg.memdesc<16x16xf16, #shared, #smem> -> tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
      %41 = ttg.local_load %25 : !ttg.memdesc<16x16xf16, #shared, #smem> -> tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
      %42 = tt.dot %40, %41, %39, inputPrecision = tf32 : tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
      scf.yield %42 : tensor<16x16xf32, #blocked>
    }
    %30 = tt.splat %arg4 : !tt.ptr<f16> -> tensor<16x1x!tt.ptr<f16>, #blocked1>
    %31 = tt.addptr %30, %5 : tensor<16x1x!tt.ptr<f16>, #blocked1>, tensor<16x1xi32, #blocked1>
    %32 = tt.broadcast %31 : tensor<16x1x!tt.ptr<f16>, #blocked1> -> tensor<16x16x!tt.ptr<f16>, #blocked1>
    %33 = tt.addptr %32, %13 : tensor<16x16x!tt.ptr<f16>, #blocked1>, tensor<16x16xi32, #blocked1>
    %34 = arith.truncf %29 : tensor<16x16xf32, #blocked> to tensor<16x16xf16, #blocked>
    %35 = ttg.convert_layout %34 : tensor<16x16xf16, #blocked> -> tensor<16x16xf16, #blocked1>
    tt.store %33, %35 : tensor<16x16x!tt.ptr<f16>, #blocked1>
    tt.return
  }
}
