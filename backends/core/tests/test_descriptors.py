"""Tensor descriptors from the host, over NumPy arrays: in tuples and functions, padded, gathered, of ranks 1 to 5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.backend.compiler import PassError, run_passes
from foundry_core.runtime.arguments import ArgumentError
from foundry_core.tensor import Tensor
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


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16])
def test_tiles_reach_over_the_edges_of_descriptors(dtype: Any) -> None:
    x = np.arange(13 * 48, dtype=np.float32).reshape(13, 48).astype(dtype)
    whole = np.full((16, 64), 77).astype(dtype)
    # Descriptors of parts; the type int8 wraps around.
    a = TensorDescriptor(x, [13, 40], [48, 1], [8, 16])
    out = TensorDescriptor.from_tensor(Tensor(whole[1:14, :48]), [8, 16])
    copies[(2,)](a, (out, (None, 3)), 48, M=8, N=16)
    expected = np.full((16, 64), 77).astype(dtype)
    expected[1:14, :40] = x[:, :40] * dtype(2) + dtype(3)
    expected[1:14, 40:48] = 3
    np.testing.assert_array_equal(whole, expected)


@triton.jit
def shifted(a, b, out, RANK: tl.constexpr):
    if RANK == 1:
        out.store([0], a.load([3]) + b.load([-2]))
    elif RANK == 3:
        out.store([0, 0, 0], a.load([1, -1, 3]) + b.load([0, 0, -2]))
    else:
        out.store([0, 0, 0, 0, 0], a.load([0, 1, 0, -1, 3]) + b.load([0, 0, 0, 0, -2]))


@pytest.mark.parametrize("shape", [(16,), (2, 4, 16), (1, 2, 1, 2, 16)])
def test_descriptors_of_every_rank_and_padding(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = np.full(shape, -77, np.float32)
    a, b = (TensorDescriptor.from_tensor(x, list(shape), padding=padding) for padding in ("nan", "zero"))
    shifted[(1,)](a, b, TensorDescriptor.from_tensor(out, list(shape)), RANK=len(shape))
    start = {1: [3], 3: [1, -1, 3], 5: [0, 1, 0, -1, 3]}[len(shape)]

    def tile(start: list[int], other: float) -> np.ndarray:
        found = np.full(shape, other, np.float32)
        for index in np.ndindex(*shape):
            at = tuple(i + s for i, s in zip(index, start, strict=True))
            if all(0 <= i < n for i, n in zip(at, shape, strict=True)):
                found[index] = x[at]
        return found

    np.testing.assert_array_equal(out, tile(start, np.nan) + tile([0] * (len(shape) - 1) + [-2], 0))


@triton.jit
def described(source, shape, strides, block: tl.constexpr):
    if isinstance(source, tl.tensor_descriptor):
        return source
    else:  # noqa: RET505  as in Triton's tutorials
        return tl.make_tensor_descriptor(source, shape, strides, block)


kept = triton.jit(noinline=True)(described.fn)


@triton.jit
def negated(a, out, m, n, M: tl.constexpr, N: tl.constexpr):
    a = described(a, [m, n], [n, 1], [M, N])
    out = kept(out, [m, n], [n, 1], [M, N])
    for j in range(0, n, N):
        out.store([0, j], -a.load([0, j]))


@pytest.mark.parametrize("host", [True, False], ids=["of the host", "of the kernel"])
def test_a_function_returns_a_descriptor(host: bool) -> None:
    x, out = np.arange(12 * 40, dtype=np.float32).reshape(12, 40), np.full((16, 40), np.nan, np.float32)
    passed = [TensorDescriptor.from_tensor(array, [16, 16]) for array in (x, out[:12])] if host else [x, out]
    negated[(1,)](*passed, 12, 40, M=16, N=16)
    np.testing.assert_array_equal(out[:12], -x)
    assert np.isnan(out[12:]).all()


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


@triton.jit
def rows(x, out, index, n, N: tl.constexpr):
    i = tl.load(index + tl.arange(0, 8))
    out.scatter(x.gather(i, 4), i, n)


def test_rows_are_gathered_and_scattered() -> None:
    x, out = np.arange(16 * 8, dtype=np.int32).reshape(16, 8), np.full((16, 16), -1, np.int32)
    index = np.array([3, 1, 15, 0, 7, 9, 2, 20], np.int32)  # row 20 does not exist
    rows[(1,)](*(TensorDescriptor.from_tensor(array, [1, 8]) for array in (x, out)), index, 12, N=8)
    expected = np.full((16, 16), -1, np.int32)
    expected[index[:-1], 12:] = x[index[:-1], 4:]
    np.testing.assert_array_equal(out, expected)


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
