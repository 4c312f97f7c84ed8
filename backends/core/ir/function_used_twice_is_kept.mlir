// A function that costs much is computed once and kept, as is what a function of it would need again.

// PLAN: late %x = tile.load
// PLAN-NEXT: memory %y = math.exp
// PLAN-NEXT: late %z = arith.addf

// WORKITEM: llvm.func spir_funccc @"[[EXP:[^"]*exp[^"]*]]"
// WORKITEM: llvm.call {{.*}}[[EXP]]
// WORKITEM-NOT: llvm.call {{.*}}[[EXP]]

module {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %x = tile.load %p[%c0, %axis] : !tt.ptr<f32> -> tensor<64xf32>
    %y = math.exp %x : tensor<64xf32>
    %z = arith.addf %y, %y : tensor<64xf32>
    tile.store %y to %q[%c0, %axis] : tensor<64xf32> to !tt.ptr<f32>
    tile.store %z to %o[%c0, %axis] : tensor<64xf32> to !tt.ptr<f32>
    tt.return
  }
}
