// A `while` that only reads is kept: another program may end it. A barrier in it says so, and becomes tile.keep.

// TILE: scf.while
// TILE-NEXT: tile.keep
// TILE-NEXT: tile.load %p
// TILE: scf.condition

module {
  tt.func public @k(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    scf.while : () -> () {
      gpu.barrier
      %flag = tt.load %p : !tt.ptr<i32>
      %more = arith.cmpi eq, %flag, %zero : i32
      scf.condition(%more)
    } do {
      scf.yield
    }
    tt.store %q, %zero : !tt.ptr<i32>
    tt.return
  }
}
