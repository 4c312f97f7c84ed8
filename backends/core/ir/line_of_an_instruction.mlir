// Instructions say which line of the kernel they come from.

// WORKITEM: llvm.load {{.*}} loc(#at[[LOAD:[0-9]+]])
// WORKITEM-NEXT: arith.addf {{.*}} loc(#at[[STORE:[0-9]+]])
// WORKITEM: llvm.store {{.*}} loc(#at[[STORE]])
// WORKITEM: #at[[LOAD]] = loc("kernels.py":5:3)
// WORKITEM: #at[[STORE]] = loc("kernels.py":7:9)

// SIMT: Line "kernels.py" 5 3
// SIMT-NEXT: ConvertUToPtr
// SIMT-NEXT: Load f32
// SIMT: Line "kernels.py" 7 9
// SIMT-NEXT: FAdd
// SIMT-NOT: Line
// SIMT: Store

module attributes {"ttg.num-warps" = 1 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
    %x = tt.load %p : !tt.ptr<f32> loc(#loc1)
    %y = arith.addf %x, %x : f32 loc(#loc2)
    tt.store %q, %y : !tt.ptr<f32> loc(#loc2)
    tt.return
  }
}
#loc1 = loc("kernels.py":5:3)
#loc2 = loc("kernels.py":7:9)
