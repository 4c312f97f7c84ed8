// An invocation has four neighbours, and four more at a distance: one condition and one access of 16 bytes serve four. A
// load under a mask reads the spare address instead, without a branch; a store has a branch.

// SIMT: ExecutionMode 17 16 1 1
// SIMT: %[[INSIDE:[0-9]+]] = SLessThan bool
// SIMT: %[[BEHIND:[0-9]+]] = SLessThan bool
// SIMT-NOT: SLessThan
// SIMT: %[[PLACE:[0-9]+]] = Select i64 %[[INSIDE]] %{{[0-9]+}} %[[SPARE:[0-9]+]]
// SIMT: ConvertUToPtr PhysicalStorageBuffer*v4f32 %[[PLACE]]
// SIMT-NEXT: Load v4f32 %{{[0-9]+}} 34 16
// SIMT: Select i64 %[[BEHIND]] %{{[0-9]+}} %[[SPARE]]
// SIMT: Load v4f32
// SIMT: Select i64 %[[INSIDE]] %{{[0-9]+}} %[[SPARE]]
// SIMT: Load v4f32
// SIMT: Load v4f32
// SIMT-NOT: Load
// SIMT: BranchConditional %[[INSIDE]]
// SIMT: Store %{{[0-9]+}} %{{[0-9]+}} 34 16
// SIMT: BranchConditional %[[BEHIND]]
// SIMT: Store %{{[0-9]+}} %{{[0-9]+}} 34 16
// SIMT-NOT: Store

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %i = arith.constant 128 : i32
    %i_0 = tt.get_program_id x : i32
    %i_1 = arith.muli %i_0, %i : i32
    %i_2 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked>
    %i_3 = tt.splat %i_1 : i32 -> tensor<128xi32, #blocked>
    %i_4 = arith.addi %i_3, %i_2 : tensor<128xi32, #blocked>
    %0 = tt.splat %n : i32 -> tensor<128xi32, #blocked>
    %1 = arith.cmpi slt, %i_4, %0 : tensor<128xi32, #blocked>
    %2 = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
    %3 = tt.addptr %2, %i_4 : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
    %4 = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
    %5 = tt.addptr %4, %i_4 : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
    %6 = tt.load %5, %1 : tensor<128x!tt.ptr<f32>, #blocked>
    %7 = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #blocked>
    %8 = tt.addptr %7, %i_4 : tensor<128x!tt.ptr<f32>, #blocked>, tensor<128xi32, #blocked>
    %9 = tt.load %8, %1 : tensor<128x!tt.ptr<f32>, #blocked>
    %10 = arith.addf %6, %9 : tensor<128xf32, #blocked>
    tt.store %3, %10, %1 : tensor<128x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
