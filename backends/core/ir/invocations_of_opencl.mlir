// The sum of a block, added atomically, for OpenCL: pointers and numbers are parameters of the kernel, followed by the
// grid. Where a device has no subgroup shuffles, a lane's register goes to another through workgroup memory.

// KERNEL: Capability Kernel
// KERNEL-NOT: Capability GroupNonUniform
// KERNEL: ExecutionMode 17 8 1 1
// KERNEL-NEXT: ExecutionMode 31
// KERNEL: Variable Workgroup*v4i32[2] 4
// KERNEL-NEXT: function(void,CrossWorkgroup*i8,CrossWorkgroup*i8,i32,i32,i32,i32,CrossWorkgroup*i8)
// KERNEL: ConvertUToPtr CrossWorkgroup*v4f32
// KERNEL-NEXT: Load v4f32 %{{[0-9]+}} 2 16
// KERNEL: %[[OTHER:[0-9]+]] = BitwiseXor i32 %[[LANE:[0-9]+]] 1
// KERNEL-NOT: ControlBarrier
// KERNEL: PtrAccessChain Workgroup*f32
// KERNEL-NEXT: Store
// KERNEL-NEXT: ControlBarrier 2 2 776
// KERNEL-NEXT: %[[PLACE:[0-9]+]] = IAdd i32 %[[OTHER]]
// KERNEL-NEXT: Bitcast
// KERNEL-NEXT: PtrAccessChain Workgroup*f32 %{{[0-9]+}} %[[PLACE]]
// KERNEL-NEXT: Load f32
// KERNEL-NEXT: FAdd
// KERNEL: ControlBarrier 2 2 776
// KERNEL: Store
// KERNEL: MemoryBarrier 1 520
// KERNEL: AtomicIAdd i32 %{{[0-9]+}} 1 0
// KERNEL: MemoryBarrier 1 520

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @total(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<i32>, %n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %c32_i32 = arith.constant 32 : i32
    %true = arith.constant true
    %p = tt.get_program_id x : i32
    %first = arith.muli %p, %c32_i32 : i32
    %0 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #blocked>
    %1 = tt.splat %first : i32 -> tensor<32xi32, #blocked>
    %2 = arith.addi %1, %0 : tensor<32xi32, #blocked>
    %3 = tt.splat %n : i32 -> tensor<32xi32, #blocked>
    %4 = arith.cmpi slt, %2, %3 : tensor<32xi32, #blocked>
    %5 = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #blocked>
    %6 = tt.addptr %5, %2 : tensor<32x!tt.ptr<f32>, #blocked>, tensor<32xi32, #blocked>
    %7 = tt.load %6, %4 : tensor<32x!tt.ptr<f32>, #blocked>
    %8 = "tt.reduce"(%7) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<32xf32, #blocked>) -> f32
    %9 = arith.fptosi %8 : f32 to i32
    %10 = tt.atomic_rmw add, acq_rel, gpu, %out, %9, %true : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return
  }
}
