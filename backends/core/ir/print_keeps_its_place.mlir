// A print shows the memory as it is at its place. Each of its values is a record with a place of its own in the log, which
// is the last parameter. A kernel without prints takes none (see any other of these kernels).

// TILE: tile.record 0 : i32 of
// TILE-NEXT: tile.record 1 : i32 of %n
// TILE-NEXT: tile.store
// TILE: tile.record 2 : i32 of
// TILE-NEXT: tile.record 3 : i32

// WORKITEM: llvm.func{{.*}}@k({{.*}}%grid_z: i32, %log: !global)
// WORKITEM-NOT: llvm.store {{.*}}vector
// WORKITEM: llvm.atomicrmw add %log
// WORKITEM: llvm.atomicrmw add %log
// WORKITEM: llvm.store {{.*}}vector
// WORKITEM: llvm.atomicrmw add %log
// WORKITEM: llvm.atomicrmw add %log
// WORKITEM: llvm.return

module {
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant dense<0.000000e+00> : tensor<4xf32>
    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %b = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %a = tt.addptr %b, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %x = tt.load %a : tensor<4x!tt.ptr<f32>>
    tt.print " before: " {hex = false, isSigned = array<i32: 0, 1>} : %x, %n : tensor<4xf32>, i32
    tt.store %a, %zero : tensor<4x!tt.ptr<f32>>
    %y = tt.load %a : tensor<4x!tt.ptr<f32>>
    tt.print " behind: " {hex = true, isSigned = array<i32: 0>} : %y : tensor<4xf32>
    tt.print " end" {hex = false, isSigned = array<i32>}
    tt.return
  }
}
