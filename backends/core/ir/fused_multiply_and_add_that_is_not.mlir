// A multiply and add that this device rounds twice is refused, by its line.

// SIMT: refused: math.fma at kernels.py:7 is not supported: on f64: this device rounds the product before it adds

module attributes {"ttg.num-warps" = 1 : i32} {
  tt.func public @k(%p: !tt.ptr<f64>) {
    %x = tt.load %p : !tt.ptr<f64> loc(#loc1)
    %y = math.fma %x, %x, %x : f64 loc(#loc2)
    tt.store %p, %y : !tt.ptr<f64> loc(#loc2)
    tt.return
  }
}
#loc1 = loc("kernels.py":5:3)
#loc2 = loc("kernels.py":7:9)
