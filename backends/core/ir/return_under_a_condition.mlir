// A return in a branch becomes the other branch around what follows.

// TILE-NOT: {{[^s]}}cf.
// TILE: scf.if
// TILE-NEXT: } else {
// TILE-NEXT: tile.store
// TILE-NEXT: }
// TILE-NEXT: tt.return
// TILE-NEXT: }

module {
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1.000000e+00 : f32
    %empty = arith.cmpi eq, %n, %zero : i32
    cf.cond_br %empty, ^bb1, ^bb2
  ^bb1:
    tt.return
  ^bb2:
    tt.store %p, %one : !tt.ptr<f32>
    tt.return
  }
}
