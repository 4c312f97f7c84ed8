"""Cases for DPUs only: any number of DPUs, arrays larger than one DPU's share, and TritonPIM's three flows.

The flows run the command lines that TritonPIM documents, in a copy of its folder (backends/dpu/tritonpim), which the
container has at /mnt/host_cwd. Results are compared with NumPy.

    python e2e/dpu.py [--only TEXT]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import matmul
import numpy as np
import triton
import vec_add
from foundry_core.tensor import Tensor
from guarded import Guarded
from report import Case, run_command, run_script

HOST_CWD = Path("/mnt/host_cwd")
# A divisor of the work, its neighbours, primes, a rank.
DPUS = (1, 2, 3, 7, 16, 33, 64)
# Three float arrays of this length need three times a DPU's MRAM.
LARGE = 2**24


def add_on(dpus: int, n: int, block: int) -> float:
    """Run vec_add in f32 on a number of DPUs, and return the error, which must be 0."""
    x, y = vec_add.operands(n, np.float32)
    output = Guarded((n,), np.float32, fence=block)
    vec_add.add_kernel[(triton.cdiv(n, block),)](
        Tensor(x), Tensor(y), Tensor(output.array), n, BLOCK_SIZE=block, num_dpus=dpus
    )
    output.check_fences("output")
    np.testing.assert_array_equal(output.array, vec_add.expected_sum(x, y))
    launch = triton.runtime.driver.active.last_launch
    assert launch.dpus == min(dpus, triton.cdiv(n, block)), f"it ran on {launch.dpus} DPUs"
    if n == LARGE:
        assert launch.rounds > 1, "arrays larger than MRAM were there at once"
    return 0.0


def multiply_on(dpus: int) -> float:
    """Run matmul on a number of DPUs that need not divide its 63 programs; return the error as a share of its bound."""
    m, n, k = 100, 130, 70
    a, b = (np.random.default_rng(dpus).uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = Guarded((m, n), np.float32, fence=4096, padding=3)
    with_dpus(dpus, lambda: matmul.launch(a, b, c.array, (16, 16, 32), 2))
    c.check_fences("C")
    return matmul.check_product(a, b, c.array)


def with_dpus(dpus: int, launch: Callable[[], None]) -> None:
    """Launch with TRITON_DPU_NUM_DPUS set, the third way to give the number of DPUs."""
    os.environ["TRITON_DPU_NUM_DPUS"] = str(dpus)
    try:
        launch()
    finally:
        del os.environ["TRITON_DPU_NUM_DPUS"]
    assert triton.runtime.driver.active.last_launch.dpus == min(dpus, 63)


def lines(text: str, folder: Path) -> str:
    """Run command lines in a folder that replaces /mnt/host_cwd, and return their output."""
    done = run_command("bash", "-ec", text.replace(str(HOST_CWD), str(folder)), folder=folder)
    return done.stdout + done.stderr


def in_a_copy(flow: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "cwd")
        shutil.copytree(HOST_CWD, folder, symlinks=True)
        flow(folder)


FLOW_A = """
third_party/upmem_llvm/llvm-project/build/bin/mlir-opt dpu/vec_add.mlir --convert-dpu-to-llvm -o bin/vec_add_llvm.mlir
third_party/upmem_llvm/llvm-project/build/bin/mlir-translate --mlir-to-llvmir bin/vec_add_llvm.mlir -o bin/vec_add.ll
dpu-upmem-dpurte-clang -O2 -g0 -x ir -c /mnt/host_cwd/bin/vec_add.ll -o /mnt/host_cwd/bin/vec_add.o
dpu-upmem-dpurte-clang -O2 -g0 -c /mnt/host_cwd/dpu/vec_add_args.c -o /mnt/host_cwd/bin/vec_add_args.o
/upmem-sdk-2023.1.0/bin/llvm-objcopy --remove-section=.eh_frame /mnt/host_cwd/bin/vec_add.o
/upmem-sdk-2023.1.0/bin/llvm-objcopy --remove-section=.eh_frame /mnt/host_cwd/bin/vec_add_args.o
dpu-upmem-dpurte-clang /mnt/host_cwd/bin/vec_add.o /mnt/host_cwd/bin/vec_add_args.o -o /mnt/host_cwd/bin/vec_add
cc -O2 -std=c11 -Wall -Wextra -o bin/vec_add_host host/vec_add_host.c `dpu-pkg-config --cflags --libs dpu` -DNR_DPUS=3
bin/vec_add_host
bin/vec_add_host 50
bin/vec_add_host 100003
"""


def flow_a(folder: Path) -> None:
    """Run a program in the dpu dialect; its host program checks each element and the memory behind the result."""
    (folder / "bin").mkdir(exist_ok=True)
    said = lines(FLOW_A, folder)
    assert said.count("100003") >= 1 and "warning" not in said, said


def flow_b(folder: Path) -> None:
    """Run a Triton kernel from its LLVM IR."""
    lines("./scripts/host_triton_ir.sh", folder)
    said = lines("cd /mnt/host_cwd\nNR_DPUS=5 ./scripts/container_triton_run.sh 100003", folder)
    assert said == "C = A + B: 100003 elements, 3126 programs on 5 of 5 DPUs, all right\n", said


def flow_c(folder: Path) -> None:
    """Run a Triton kernel as an artifact, on data from files."""
    lines("./scripts/host_triton_pack.py --artifact-dir ./artifacts/add --out-indices 2", folder)
    a, b = (np.random.default_rng(seed).random(100_003, np.float32) for seed in (1, 2))
    a.tofile(folder / "a.bin")
    b.tofile(folder / "b.bin")
    lines(
        "ARTIFACT_DIR=/mnt/host_cwd/artifacts/add ./scripts/container_artifact_run.sh --nr-dpus 4 --arg 3=100003 "
        "--in 0=a.bin --in 1=b.bin --out 2=c.bin",
        folder,
    )
    np.testing.assert_array_equal(np.fromfile(folder / "c.bin", np.float32), a + b)


# The llvm dialect as LLVM 11 to 14 write it: pointers have types in MLIR as well.
TYPED = """
func @twice(%pointer: !llvm.ptr<i32>) {
  %value = llvm.load %pointer : !llvm.ptr<i32>
  %sum = llvm.add %value, %value : i32
  llvm.store %sum, %pointer : !llvm.ptr<i32>
  return
}
"""
TYPED_LINES = """
mlir-opt --convert-std-to-llvm twice.mlir -o twice_llvm.mlir
echo 'target triple = "dpu-upmem-dpurte"' >twice.ll
mlir-translate --mlir-to-llvmir twice_llvm.mlir >>twice.ll
opt -dpu-legalize -S twice.ll -o legal.ll
opt -O2 -S legal.ll -o -
"""


def typed_llvm(bin: Path) -> str:
    """Run mlir-opt, mlir-translate and opt of a typed-pointer LLVM in turn, and return that LLVM's version."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "twice.mlir").write_text(TYPED)
        said = lines(f"PATH={bin}:$PATH\n{TYPED_LINES}", Path(scratch))
    assert "store i32 %" in said and "i32* " in said, said
    assert "shl i32 %" in said, f"opt -O2 left the addition as it was:\n{said}"
    version = subprocess.run([bin / "opt", "--version"], capture_output=True, text=True, check=True).stdout
    return next(line.strip() for line in version.splitlines() if "LLVM version" in line)


def cases() -> Iterator[Case]:
    for dpus in DPUS:
        yield Case("dpus", f"vec_add n=100003 block=256 on {dpus} DPUs", lambda dpus=dpus: add_on(dpus, 100_003, 256))  # type: ignore[misc]
        yield Case("dpus", f"matmul 100x130x70 block=16x16x32 on {dpus} DPUs", lambda dpus=dpus: multiply_on(dpus))  # type: ignore[misc]
    yield Case("dpus", f"vec_add n={LARGE}, three times a DPU's MRAM, on one", lambda: add_on(1, LARGE, 2048))
    opt = Path(os.environ["UPMEM_OPT"])
    if (opt.parent / "mlir-opt").is_file():
        # This LLVM was built from source; its opt legalises all kernels of this report.
        yield Case("upmem-llvm", "mlir-opt, mlir-translate and opt with dpu-legalize", lambda: typed_llvm(opt.parent))
    for name, flow in (("A", flow_a), ("B", flow_b), ("C", flow_c)):
        yield Case("flows", f"TritonPIM's flow {name}", lambda flow=flow: in_a_copy(flow))  # type: ignore[misc]


if __name__ == "__main__":
    run_script("dpu", cases)
