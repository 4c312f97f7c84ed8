"""Errors of tensor descriptors: of a pass that fails, of arrays that may not be written, of paddings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.backend.compiler import PassError, run_passes
from foundry_core.runtime.arguments import ArgumentError
from triton._C.libtriton import ir, passes

tools = pytest.importorskip("triton.tools.tensor_descriptor", reason="3.2 has no tensor descriptors")
TensorDescriptor = tools.TensorDescriptor


@triton.jit(noinline=True)
def doubled(descriptor, i, j):
    return descriptor.load([i, j]) * 2


@triton.jit
def copies(a, pair, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M
    out = pair[0]
    for j in range(0, n, N):
        out.store([i, j], doubled(a, i, j) + pair[1][1])


# Triton's pass cannot rewrite a function that returns a descriptor and has an unreachable block.
KEPT = """
module {
  tt.func private @kept(%a: TYPE) -> TYPE {
    tt.return %a : TYPE
  ^bb1:
    %p = ub.poison : TYPE
    tt.return %p : TYPE
  }
}
"""


def test_a_module_whose_pass_fails_goes_to_the_file_that_the_error_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    context = ir.context()
    ir.load_dialects(context)
    inner = "16x16xf32" if triton.__version__ >= "3.9" else "tensor<16x16xf32>"
    (tmp_path / "kept.ttir").write_text(KEPT.replace("TYPE", f"!tt.tensordesc<{inner}>"))
    module = ir.parse_mlir_module(str(tmp_path / "kept.ttir"), context)
    manager = ir.pass_manager(context)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    with pytest.raises(PassError, match=r"stage make_ttir(?s:.*)its passes: (.*)") as failed:
        run_passes(manager, module, {"hash": "ab"}, "make_ttir")
    file = Path(str(failed.value).rpartition(": ")[2])
    assert file.is_relative_to(tmp_path) and "tt.func private @kept" in file.read_text()
    assert "rewrite-tensor-descriptor" in file.read_text()
    said = capfd.readouterr().err
    assert "'tt.return' op has 1 operands" in said and "tt.func" not in said


def test_a_descriptor_is_written_to_as_an_array_is() -> None:
    x = np.zeros((8, 16), np.float32)
    readonly = np.zeros((8, 16), np.float32)
    readonly.flags.writeable = False
    a = TensorDescriptor.from_tensor(x, [8, 16])
    with pytest.raises(ArgumentError, match="copies writes to pair, which is read-only"):
        copies[(1,)](a, (TensorDescriptor.from_tensor(readonly, [8, 16]), (None, 3)), 16, M=8, N=16)
    with pytest.raises(ArgumentError, match=r"copies writes to pair, whose(?s:.*)strides \[0, 1\]"):
        copies[(1,)](a, (TensorDescriptor(x, [8, 16], [0, 1], [8, 16]), (None, 3)), 16, M=8, N=16)
    assert not x.any()


def test_a_descriptor_of_integers_has_no_nan() -> None:
    with pytest.raises(AssertionError, match="floating point"):
        TensorDescriptor.from_tensor(np.zeros((8, 16), np.int32), [8, 16], padding="nan")
