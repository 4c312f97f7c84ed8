// A sum that a loop carries is a vector in registers. While all elements exist, they are added without a test; then each
// vector is tested. Work-items that share a program's tiles share the sum, too: each adds its own part, between barriers.

// WORKITEM: scf.while
// WORKITEM: scf.condition
// WORKITEM-NOT: scf.if
// WORKITEM: scf.yield
// WORKITEM: scf.for
// WORKITEM: scf.if
// WORKGROUP-NOT: scf.while
// WORKGROUP: scf.for
// WORKGROUP: _Z7barrierj

module {
  tt.func public @k(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
    %wide = arith.extsi %n : i32 to i64
    %none = arith.constant dense<0.000000e+00> : tensor<8xf32>
    %low = arith.constant 0 : i32
    %step = arith.constant 8 : i32
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c8 = arith.constant 8 : i64
    %axis = tile.affine %c1
    %total = scf.for %first = %low to %n step %step iter_args(%sum = %none) -> (tensor<8xf32>) : i32 {
      %start = arith.extsi %first : i32 to i64
      %left = arith.subi %wide, %start : i64
      %positive = arith.maxsi %left, %c0 : i64
      %end = arith.minsi %positive, %c8 : i64
      %range = tile.range %c0 to %end
      %part = tile.load %x[%start, %axis] in [%range] : !tt.ptr<f32> -> tensor<8xf32>
      %next = arith.addf %sum, %part : tensor<8xf32>
      scf.yield %next : tensor<8xf32>
    }
    tile.store %total to %out[%c0, %axis] : tensor<8xf32> to !tt.ptr<f32>
    tt.return
  }
}
