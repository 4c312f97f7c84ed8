"""Triton's interpreter (TRITON_INTERPRET=1) accepts a Tensor, and works on the array itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from foundry_core.tensor import Tensor
from image import python

# A kernel's definition decides whether it is interpreted. For Triton's own functions, the import of Triton decides.
SCRIPT = """
import ml_dtypes
import numpy as np
import triton
from image import python
import triton.language as tl
from foundry_core.tensor import Tensor


@triton.jit
def kernel(x, out, total, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i * stride, mask=i < n, other=-1.0).to(tl.float32)
    tl.store(out + i, v * 2, mask=i < n)
    tl.store(total + tl.program_id(0), tl.sum(v, 0))


for dtype in (np.float32, ml_dtypes.bfloat16):
    whole = np.arange(40).astype(dtype)
    x = whole[3:33:3]  # every third element, from the fourth one on
    fenced = np.full(20, np.nan, np.float32)
    out, total = fenced[5:15], np.full(2, np.nan, np.float32)
    kernel[(2,)](Tensor(x), Tensor(out), Tensor(total), 10, Tensor(x).stride(0), BLOCK=8)
    assert out.tolist() == [2.0 * each for each in range(3, 33, 3)], out
    assert np.isnan(fenced[:5]).all() and np.isnan(fenced[15:]).all()
    assert total.tolist() == [sum(range(3, 27, 3)), 27 + 30 - 6], total
    assert (whole == np.arange(40)).all()
kernel[(1,)](Tensor(np.zeros(0, np.float32)), Tensor(np.zeros(0, np.float32)), Tensor(total), 0, 1, BLOCK=8)
assert total[0] == -8
print("interpreted")
"""


@pytest.mark.any_release
def test_the_interpreter_reads_and_writes_views_of_arrays(tmp_path: Path) -> None:
    script = tmp_path / "interpreted.py"
    script.write_text(SCRIPT)
    done = python(script, TRITON_INTERPRET="1")
    assert (done.returncode, done.stdout) == (0, "interpreted\n"), done.stderr


def test_a_tensor_set_to_the_storage_of_another_is_the_same_view() -> None:
    base = np.arange(24, dtype=np.int16).reshape(4, 6)
    view = Tensor(base[1:, ::2])
    again = view.new_empty(0).set_(view.untyped_storage(), view.storage_offset(), view.size(), view.stride())
    assert again.data_ptr() == view.data_ptr()
    assert again.numpy().tolist() == base[1:, ::2].tolist()
    again.numpy()[0, 0] = -1
    assert base[1, 0] == -1


def test_a_storage_takes_over_the_bytes_of_another() -> None:
    one, other = np.arange(4, dtype=np.float32), np.full(4, np.nan, np.float32)
    Tensor(other).untyped_storage().copy_(Tensor(one).untyped_storage())
    assert other.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="could not broadcast"):
        Tensor(other).untyped_storage().copy_(Tensor(np.zeros(3, np.float32)).untyped_storage())


def test_a_tensor_is_on_the_host_and_goes_nowhere_else() -> None:
    tensor = Tensor(np.zeros((2, 3)))
    assert tensor.to(tensor.device) is tensor.cpu() is tensor.data
    with pytest.raises(ValueError, match="cannot go to 'cuda'"):
        tensor.to("cuda")
