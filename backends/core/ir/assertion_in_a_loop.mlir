// What follows an assertion is under its result: in the iteration, in the iterations after it, and behind the loop.
// Triton's own check for overflow ends nothing.

// TILE: scf.for {{.*}}-> (i1)
// TILE-NEXT: scf.if
// TILE-NEXT: tile.load
// TILE: tile.check 0 : i32 of {{.*}} : i1
// TILE: %[[OK:[0-9]+]] = tile.check 1 : i32 of {{.*}} {ends} : i1
// TILE-NEXT: scf.if %[[OK]]
// TILE-NEXT: tile.store
// TILE: scf.yield {{.*}} : i1
// TILE: scf.if
// TILE-NEXT: tile.store
// TILE: } else {
// TILE-NEXT: }
// TILE-NEXT: tt.return

module {
  tt.func public @k(%p: !tt.ptr<i32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %j = %zero to %n step %one : i32 {
      %x = tt.load %p : !tt.ptr<i32>
      %c = arith.cmpi slt, %x, %n : i32
      tt.assert %c, "int32 overflow detected for operation add" : i1
      tt.assert %c, "too large" : i1
      tt.store %p, %one : !tt.ptr<i32>
    }
    tt.store %p, %zero : !tt.ptr<i32>
    tt.return
  }
}
