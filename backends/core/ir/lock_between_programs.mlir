// PoCL compiles an atomic instruction to a call that accesses its argument only. Fences keep the load of %q behind the
// one that takes the lock, and the store before the one that gives it back. A load that waits is volatile.

// TILE: tile.atomic cas
// TILE: tile.volatile_load
// TILE: tile.atomic exch

// WORKITEM: scf.while
// WORKITEM-NEXT: llvm.fence release
// WORKITEM: llvm.cmpxchg
// WORKITEM: llvm.fence acquire
// WORKITEM: scf.while
// WORKITEM: llvm.load volatile
// WORKITEM: llvm.fence acquire
// WORKITEM: llvm.load
// WORKITEM: llvm.store
// WORKITEM: llvm.fence release
// WORKITEM-NEXT: llvm.getelementptr
// WORKITEM-NEXT: llvm.atomicrmw xchg

module {
  tt.func public @k(%p: !tt.ptr<i32>, %flag: !tt.ptr<i32>, %q: !tt.ptr<f32>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %true = arith.constant true
    scf.while : () -> () {
      ttg.barrier all
      %old = tt.atomic_cas acquire, gpu, %p, %zero, %one : (!tt.ptr<i32>, i32, i32) -> i32
      %more = arith.cmpi eq, %old, %one : i32
      scf.condition(%more)
    } do {
      scf.yield
    }
    scf.while : () -> () {
      ttg.barrier all
      %seen = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
      %less = arith.cmpi eq, %seen, %zero : i32
      scf.condition(%less)
    } do {
      scf.yield
    }
    %x = tt.load %q : !tt.ptr<f32>
    %y = arith.addf %x, %x : f32
    tt.store %q, %y : !tt.ptr<f32>
    %left = tt.atomic_rmw exch, release, gpu, %p, %zero, %true : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return
  }
}
