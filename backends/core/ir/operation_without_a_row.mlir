// An operation that no dialect has is refused with the line of the kernel that called it.

// TILE: refused: tt.unheard_of at kernels.py:7 is not supported

module {
  tt.func public @k(%p: !tt.ptr<f32>) {
    %x = tt.unheard_of %p : !tt.ptr<f32> loc(#loc3)
    tt.return
  }
}
#loc1 = loc("library.py":5:1)
#loc2 = loc("kernels.py":7:1)
#loc3 = loc(callsite(#loc1 at #loc2))
