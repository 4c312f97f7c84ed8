import sys, time, json
import numpy as np
which = sys.argv[1]
import triton, triton.language as tl
from triton.runtime import driver
if which == "vulkan":
    from triton_spirv_backend.vulkan import VulkanDriver
    driver.set_active(VulkanDriver())
    from foundry_core.vulkan.array import DeviceTensor
    from foundry_core.vulkan.device import opened
    from foundry_core.vulkan.library import library
    import ctypes
    dev = opened(); print(dev.ran())
    def put(a): return DeviceTensor.of(a)
    def empty(shape, dt): return DeviceTensor(shape, dt).fill_word(0x7fc00000)
    def get(t): return t.numpy()
    def stamp(): return library().stamp(dev.handle)
    def ms(a, b):
        x, y = ctypes.c_uint64(), ctypes.c_uint64(); dev.wait()
        library().read_stamp(dev.handle, a, ctypes.byref(x)); library().read_stamp(dev.handle, b, ctypes.byref(y))
        return (y.value - x.value) * dev.properties.timestamp_ns * 1e-6
    sync = dev.wait
else:
    import torch
    def put(a): return torch.from_numpy(a).cuda()
    def empty(shape, dt): return torch.full(shape, float("nan"), dtype={np.float32: torch.float32, np.float16: torch.float16}[dt], device="cuda")
    def get(t): return t.cpu().numpy()
    def stamp():
        e = torch.cuda.Event(enable_timing=True); e.record(); return e
    def ms(a, b): torch.cuda.synchronize(); return a.elapsed_time(b)
    sync = torch.cuda.synchronize
def timed(f, n=20, rounds=5):
    f(); sync()
    end = time.time() + 0.25
    while time.time() < end:
        for _ in range(10): f()
        sync()
    out = []
    for _ in range(rounds):
        a = stamp()
        for _ in range(n): f()
        b = stamp(); out.append(ms(a, b) / n)
    return sorted(out)[len(out)//2]
@triton.jit
def add(x,y,o,n,B: tl.constexpr):
    i=tl.program_id(0)*B+tl.arange(0,B); m=i<n
    tl.store(o+i, tl.load(x+i,mask=m)+tl.load(y+i,mask=m), mask=m)
@triton.jit
def softmax(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x + r*n + i, mask=m, other=-float('inf'))
    v = v - tl.max(v, 0)
    e = tl.exp(v)
    tl.store(o + r*n + i, e / tl.sum(e, 0), mask=m)
@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    nm = tl.cdiv(M, BM); nn = tl.cdiv(N, BN)
    g = 8 * nn; gi = pid // g; first = gi * 8; gs = min(nm - first, 8)
    pm = first + (pid % g) % gs; pn = (pid % g) // gs
    rm = pm*BM + tl.arange(0, BM); rn = pn*BN + tl.arange(0, BN); rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    ap = a + rm[:, None]*K + rk[None, :]
    bp = b + rk[:, None]*N + rn[None, :]
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(ap), tl.load(bp), acc, input_precision="ieee")
        ap += BK; bp += BK*N
    tl.store(c + rm[:, None]*N + rn[None, :], acc)
@triton.jit
def nothing(x): pass
rng = np.random.default_rng(0)
def run(name, f):
    try: f()
    except Exception as e: print(which, name, "FAILED", type(e).__name__, str(e)[:600], flush=True)
def t_add():
    n = 1 << 28
    a = rng.standard_normal(n, dtype=np.float32); b = a[::-1].copy()
    x, y, o = put(a), put(b), empty((n,), np.float32)
    for B, w in ((1024, 4), (2048, 4), (4096, 8)):
        t0 = time.time(); f = lambda: add[(triton.cdiv(n, B),)](x, y, o, n, B=B, num_warps=w); f(); sync(); t0 = time.time() - t0
        t = timed(f)
        print(which, "vec_add", B, w, f"{3*4*n/t*1e-6:.0f} GB/s", "exact" if (get(o) == a + b).all() else "WRONG", f"first {t0:.2f}s", flush=True)
def t_softmax():
    r, n = 32768, 4096
    a = rng.standard_normal((r, n), dtype=np.float32)
    x, o = put(a), empty((r, n), np.float32)
    for w in (4, 8, 16):
        f = lambda: softmax[(r,)](x, o, n, B=4096, num_warps=w)
        t = timed(f); got = get(o)[:64]
        e = np.exp(a[:64].astype(np.float64) - a[:64].max(1, keepdims=True)); e /= e.sum(1, keepdims=True)
        print(which, "softmax", w, f"{2*4*r*n/t*1e-6:.0f} GB/s", "rel err", float((abs(got - e) / e).max()), flush=True)
def t_matmul():
    M = N = K = 4096
    a = rng.standard_normal((M, K), dtype=np.float32); b = rng.standard_normal((K, N), dtype=np.float32)
    x, y, o = put(a), put(b), empty((M, N), np.float32)
    want = a[:64].astype(np.float64) @ b.astype(np.float64)
    for BM, BN, BK, w, s in ((64, 64, 16, 4, 3), (128, 64, 16, 4, 3), (128, 128, 16, 8, 3), (128, 128, 16, 8, 2), (128, 128, 8, 8, 2), (128,128,32,8,2)):
        def one():
            t0 = time.time(); f = lambda: matmul[((M//BM)*(N//BN),)](x, y, o, M, N, K, BM=BM, BN=BN, BK=BK, num_warps=w, num_stages=s); f(); sync(); t0 = time.time() - t0
            t = timed(f, 5, 3)
            print(which, "matmul", (BM, BN, BK, w, s), f"{2*M*N*K/t*1e-9:.1f} TFLOP/s", "err", float(abs(get(o)[:64] - want).max()), f"first {t0:.2f}s", flush=True)
        run(f"matmul {(BM,BN,BK,w,s)}", one)
def t_launch():
    x = put(np.zeros(16, np.float32))
    nothing[(1,)](x); sync()
    t0 = time.perf_counter()
    for _ in range(2000): nothing[(1,)](x)
    t1 = time.perf_counter(); sync(); t2 = time.perf_counter()
    print(which, "empty launch", f"{(t1-t0)/2000*1e6:.2f} us host, {(t2-t0)/2000*1e6:.2f} us all", flush=True)

@triton.jit
def add_plain(x,y,o,n,B: tl.constexpr):
    i=tl.program_id(0)*B+tl.arange(0,B)
    tl.store(o+i, tl.load(x+i)+tl.load(y+i))
@triton.jit
def copy_plain(x,o,n,B: tl.constexpr):
    i=tl.program_id(0)*B+tl.arange(0,B)
    tl.store(o+i, tl.load(x+i))
@triton.jit
def softmax2(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + r*B + i)
    v = v - tl.max(v, 0)
    e = tl.exp(v)
    tl.store(o + r*B + i, e / tl.sum(e, 0))
@triton.jit
def rowsum(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + r*B + i)
    tl.store(o + r*B + i, v - tl.max(v, 0))
@triton.jit
def justexp(x, o, n, B: tl.constexpr):
    i = tl.program_id(0)*B+tl.arange(0, B)
    tl.store(o + i, tl.exp(tl.load(x + i)))
def describe(k):
    if which == "vulkan": return {n: v for n, v in k.run._launcher._pipeline.describe().items() if v and n in ("Register Count", "Shared Memory Size", "Binary Size")}
    return dict(regs=k.n_regs, spills=k.n_spills)
def t_var():
    n = 1 << 28
    a = rng.standard_normal(n, dtype=np.float32)
    x, y, o = put(a), put(a), empty((n,), np.float32)
    for kern in (add, add_plain, copy_plain):
        for B, w in ((1024, 4), (1024, 8), (4096, 8), (512, 4)):
            args = (x, o, n) if kern is copy_plain else (x, y, o, n)
            f = lambda: kern[(n // B,)](*args, B=B, num_warps=w); k = f(); t = timed(f, 10, 3)
            print(which, kern.__name__, B, w, f"{(2 if kern is copy_plain else 3)*4*n/t*1e-6:.0f} GB/s", describe(k), flush=True)
    r = 32768
    for kern in (softmax2, rowsum, justexp):
        for w in (4, 8, 16):
            f = lambda: kern[(r,)](x, o, n, B=4096, num_warps=w); k = f(); t = timed(f, 10, 3)
            print(which, kern.__name__, w, f"{2*4*r*4096/t*1e-6:.0f} GB/s", describe(k), flush=True)
def t_host():
    x = put(np.zeros(16, np.float32)); k = nothing[(1,)](x); sync()
    L = k.run._launcher; lib = library(); blob = L._struct.pack(x.device_address)
    for label, f in (("C launch", lambda: lib.launch(dev.handle, L._pipeline.handle, 1, 1, 1, blob)), ("our launcher", lambda: L((1, 1, 1), [x])), ("all", lambda: nothing[(1,)](x)), ("device.launch", lambda: dev.launch(L._pipeline, (1,1,1), blob))):
        t0 = time.perf_counter()
        for _ in range(3000): f()
        t1 = time.perf_counter(); sync(); t2 = time.perf_counter()
        print("host", label, f"{(t1-t0)/3000*1e6:.2f} us, with wait {(t2-t0)/3000*1e6:.2f}", flush=True)
def t_mm():
    M = N = K = 4096
    a = rng.standard_normal((M, K), dtype=np.float32)
    x, y, o = put(a), put(a), empty((M, N), np.float32)
    for BM, BN, BK, w, s in ((64, 64, 16, 4, 2), (128, 128, 16, 8, 1), (128, 128, 16, 8, 2), (128, 128, 8, 8, 2), (128, 128, 32, 8, 2), (128,128,16,4,2), (64,128,16,4,2), (128,64,16,4,2), (128,128,16,8,3)):
        f = lambda: matmul[((M//BM)*(N//BN),)](x, y, o, M, N, K, BM=BM, BN=BN, BK=BK, num_warps=w, num_stages=s); k = f()
        t = timed(f, 5, 3)
        print(which, "matmul", (BM, BN, BK, w, s), f"{2*M*N*K/t*1e-9:.1f} TFLOP/s", describe(k), flush=True)
def warm():
    x = put(rng.standard_normal(1 << 26, dtype=np.float32)); o = empty((1 << 26,), np.float32)
    end = time.time() + 3
    while time.time() < end:
        for _ in range(20): copy_plain[((1 << 26) // 1024,)](x, o, 1 << 26, B=1024, num_warps=8)
        sync()
warm()
for name in sys.argv[2].split(","): run(name, globals()["t_" + name])
