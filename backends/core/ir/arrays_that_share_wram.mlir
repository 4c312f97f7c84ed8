// A tile that is read last, element for element, where another is stored gives its place to it; pieces of rows that are
// not needed at the same time have one place. So %x and %power take 2048 bytes together, and two pieces 520.

// TASKLET: %wram = llvm.alloca {{.*}} x !llvm.array<2568 x i8>
// TASKLET-NEXT: llvm.getelementptr %wram[0]
// TASKLET-NEXT: llvm.getelementptr %wram[2048]
// TASKLET-NEXT: llvm.getelementptr %wram[2048]
// TASKLET-NEXT: scf.for

module {
  tt.func public @k(%x_ptr: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %axis = tile.affine %c1
    %x = tile.load %x_ptr[%c0, %axis] : !tt.ptr<f32> -> tensor<512xf32>
    %largest = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.maxnumf %a, %b : f32
      tt.reduce.return %m : f32
    }) : (tensor<512xf32>) -> f32
    %all = tt.splat %largest : f32 -> tensor<512xf32>
    %centred = arith.subf %x, %all : tensor<512xf32>
    %power = math.exp %centred : tensor<512xf32>
    %total = "tt.reduce"(%power) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<512xf32>) -> f32
    %totals = tt.splat %total : f32 -> tensor<512xf32>
    %y = arith.divf %power, %totals : tensor<512xf32>
    tile.store %y to %out[%c0, %axis] : tensor<512xf32> to !tt.ptr<f32>
    tt.return
  }
}
