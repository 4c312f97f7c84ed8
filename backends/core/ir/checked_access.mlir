// In the checked mode a kernel takes an array's first byte and size after its arguments, and of an array that it writes a
// shadow. An access without a mask gets one, and the pointer that a branch chooses is compared with the argument by its
// address.

// CHECKED: tt.func public @k(%x: !tt.ptr<f32>, %c: i1, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !tt.ptr<i32>, %{{.*}}: i64)
// CHECKED: [[INDEX:%[0-9]+]] = arith.extsi {{.*}} tensor<8xi64>
// CHECKED: [[INSIDE:%[0-9]+]] = arith.cmpi ult, {{.*}} tensor<8xi64>
// CHECKED: [[ALL:%[0-9]+]] = tile.check 0 : i32 of [[INSIDE]] with [[INDEX]] as tensor<8xi64> : tensor<8xi1>
// CHECKED: [[SPLAT:%[0-9]+]] = tt.splat [[ALL]]
// CHECKED: [[MASK:%[0-9]+]] = arith.ori [[SPLAT]], [[INSIDE]]
// CHECKED: %v = tile.load %x{{.*}} where [[MASK]] :
// CHECKED: arith.bitcast %v : tensor<8xf32> to tensor<8xi32>
// CHECKED: tile.check 1 : i32 of {{.*}} with [[INDEX]] as tensor<8xi64> : tensor<8xi1>
// CHECKED: tile.distance %q from %x
// CHECKED: [[PASSED:%[0-9]+]] = tile.check 2 : i32 of {{.*}} : i1
// CHECKED: tile.store {{.*}} where [[PASSED]] :
// CHECKED: tile.atomic exch {{.*}} : i32 at !tt.ptr<i32>
// CHECKED: tile.check 3

module {
  tt.func public @k(%x: !tt.ptr<f32>, %c: i1) {
    %one = arith.constant 1 : i32
    %i = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %p = tt.addptr %s, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %v = tt.load %p : tensor<8x!tt.ptr<f32>>
    %sum = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %r = arith.addf %a, %b : f32
      tt.reduce.return %r : f32
    }) : (tensor<8xf32>) -> f32
    %q = scf.if %c -> (!tt.ptr<f32>) {
      %next = tt.addptr %x, %one : !tt.ptr<f32>, i32
      scf.yield %next : !tt.ptr<f32>
    } else {
      scf.yield %x : !tt.ptr<f32>
    }
    tt.store %q, %sum : !tt.ptr<f32>
    tt.return
  }
}
