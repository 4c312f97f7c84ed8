"""What a launch does on every backend. Each plugin's tests run these cases, as a subclass of LaunchCases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.errors import UnsupportedOperation
from foundry_core.runtime.arguments import ArgumentError
from foundry_core.tensor import Tensor
from image import RELEASE, python
from results import poisoned
from shared_kernels import place_kernel, tuple_kernel, vec_add
from triton.compiler import CompiledKernel

BLOCK = 64
rng = np.random.default_rng(0)


@triton.jit
def integers_kernel(out, flag: tl.int1, a: tl.int8, b: tl.int16, c, d: tl.int64, e, f: tl.uint8, g: tl.uint64, h):
    tl.store(out + 0, flag.to(tl.int64))
    tl.store(out + 1, a.to(tl.int64))
    tl.store(out + 2, b.to(tl.int64))
    tl.store(out + 3, c.to(tl.int64))
    tl.store(out + 4, d)
    tl.store(out + 5, e.to(tl.int64))
    tl.store(out + 6, f.to(tl.int64))
    tl.store(out + 7, (g >> 1).to(tl.int64))
    tl.store(out + 8, (h * 1024).to(tl.int64))


@triton.jit
def floats_kernel(out, half: tl.float16, brain: tl.bfloat16, single, double: tl.float64, number):
    tl.store(out + 0, half.to(tl.float64))
    tl.store(out + 1, brain.to(tl.float64))
    tl.store(out + 2, single.to(tl.float64))
    tl.store(out + 3, double)
    tl.store(out + 4, (single * number).to(tl.float64))


@triton.jit
def increment_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def assembly_kernel(x):
    value = tl.load(x)
    tl.store(x, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [value], tl.float32, is_pure=True, pack=1))


_KERNELS = (vec_add, place_kernel, tuple_kernel, integers_kernel, floats_kernel, increment_kernel)


def add(x: Any, y: Any, out: Any, n: int, **options: Any) -> Any:
    """Add n elements; NumPy's arrays are passed as tensors. Return the compiled kernel."""
    arrays = [Tensor(array) if isinstance(array, np.ndarray) else array for array in (x, y, out)]
    return vec_add[(triton.cdiv(n, BLOCK),)](*arrays, n, BLOCK=BLOCK, **options)


def integers(*shape: int, dtype: Any = np.int32) -> np.ndarray:
    """Return random numbers of which every type of integers has the sums."""
    return rng.integers(-50, 50, shape).astype(dtype)


def forget(*kernels: Any) -> None:
    """Make the next launches of kernels of this and of other modules load them again: a process keeps them."""
    for kernel in (*_KERNELS, *kernels):
        (kernel.device_caches if hasattr(kernel, "device_caches") else kernel.cache).clear()  # the latter on 3.2


@contextmanager
def _hooks(enter: Callable[[Any], None], leave: Callable[[Any], None]) -> Iterator[None]:
    """Call two functions before and after every launch."""
    if not hasattr(triton, "knobs"):
        with pytest.MonkeyPatch.context() as patch:  # 3.2
            patch.setattr(CompiledKernel, "launch_enter_hook", enter)
            patch.setattr(CompiledKernel, "launch_exit_hook", leave)
            yield
        return
    runtime = triton.knobs.runtime
    runtime.launch_enter_hook.add(enter)
    runtime.launch_exit_hook.add(leave)
    try:
        yield
    finally:
        runtime.launch_enter_hook.remove(enter)
        runtime.launch_exit_hook.remove(leave)


class Foreign:
    """A tensor of another library: only what a launch needs of it."""

    def __init__(self, array: np.ndarray) -> None:
        self._tensor = Tensor(array)
        self.dtype, self.shape = array.dtype, array.shape
        self.data_ptr, self.untyped_storage = self._tensor.data_ptr, self._tensor.untyped_storage


# Three arrays that end where the next page is not accessible.
_AT_THE_EDGE = """
from launch_cases import add
from results import before_a_closed_page

for n in (1, 7, 100, 255, 257, 1000):
    x, y, out = before_a_closed_page(n), before_a_closed_page(n), before_a_closed_page(n)
    x[:], y[:] = 2, 4
    add(x, y, out, n)
    assert (out == 6).all()
"""

_FROM_THE_CACHE = """
import subprocess, sys
from pathlib import Path
begin, started = subprocess.Popen.__init__, []

def note(self, line, *rest, **more):
    started.append(Path(line[0]).name)
    begin(self, line, *rest, **more)

subprocess.Popen.__init__ = note
import numpy as np
from foundry_core.tensor import Tensor
from shared_kernels import place_kernel
out = np.full(2, -1, np.int32)
place_kernel[(1,)](Tensor(out))
assert out.tolist() == [0, -1]
print("xdsl" in sys.modules, TOOL in started)
"""


class LaunchCases:
    """The cases. A subclass may run them in several ways, by a fixture that each test uses.

    Attributes:
        stages: those that Triton's cache shows after the source.
        tool: a program that compiles kernels.
        reads_kernels: whether a launch reads a kernel's structured form, with the modules of the lowering.
        refusal: the error of a kernel that cannot be lowered, and what it says; its place is in it, too.
        has_f64: whether the device has 64-bit floats.
        turns: how often each thread launches a kernel.
    """

    stages: ClassVar[list[str]]
    tool: ClassVar[str]
    reads_kernels: ClassVar[bool] = False
    refusal: ClassVar[tuple[type[Exception], str]] = UnsupportedOperation, "tt.elementwise_inline_asm at "
    has_f64: ClassVar[bool] = True
    turns: ClassVar[int] = 50

    def options(self, number: int) -> dict[str, Any]:
        """Return the options of the launches of a thread by its number."""
        return {}

    # ---- arrays

    def test_an_array_may_be_input_and_output(self) -> None:
        x = np.arange(1000, dtype=np.int32)
        add(x, x, x, 1000)
        assert np.array_equal(x, 2 * np.arange(1000))

    def test_two_views_of_an_array_keep_what_lies_between_them(self) -> None:
        base, expected = np.arange(4096, dtype=np.int32), np.arange(4096, dtype=np.int32)
        add(base[:1000], integers(1000) * 0 + 7, base[2048:3048], 1000)
        expected[2048:3048] = expected[:1000] + 7
        assert np.array_equal(base, expected)

    @pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
    def test_a_view_that_starts_at_any_element_is_taken(self, dtype: Any) -> None:
        for first in range(1, 9):
            x, y, out = integers(1020, dtype=dtype), integers(1000, dtype=dtype), integers(1020, dtype=dtype)
            expected = out.copy()
            expected[first + 1 : first + 1001] = x[first : first + 1000] + y
            add(x[first:], y, out[first + 1 :], 1000)
            assert np.array_equal(out, expected)

    def test_tensors_without_elements_are_taken(self) -> None:
        empty, out = np.empty(0, np.int32), poisoned(3, dtype=np.int32)
        for arrays in ((empty, empty, out), (out, out, empty)):
            vec_add[(1,)](*map(Tensor, arrays), 0, BLOCK=BLOCK)
        assert np.array_equal(out, poisoned(3, dtype=np.int32))

    @pytest.mark.skipif(RELEASE < (3, 3), reason="Triton before 3.3 takes no tuples")
    def test_tensors_inside_a_tuple(self) -> None:
        x, y = np.arange(10, dtype=np.int32), np.zeros(10, np.int32)
        tuple_kernel[(1,)]((Tensor(x), Tensor(y)), 10, BLOCK=16)
        assert np.array_equal(y, x + 1)

    def test_a_foreign_tensor_is_taken(self) -> None:
        x, y, out = integers(300), integers(300), poisoned(300, dtype=np.int32)
        add(Foreign(x), Foreign(y), Foreign(out), 300)
        assert np.array_equal(out, x + y)

    def test_torch_tensors_are_taken(self) -> None:
        torch = pytest.importorskip("torch")
        x, y, out = torch.arange(1000), torch.arange(1000) * 3, torch.zeros(1010, dtype=torch.int64)
        add(x, y, out[10:], 1000)
        assert torch.equal(out[10:], x + y)
        assert not out[:10].any()

    def test_memory_beside_an_array_is_not_touched(self) -> None:
        """Use a separate process, because a launch that reads or writes past an array is killed."""
        done = python("-c", _AT_THE_EDGE)
        assert done.returncode == 0, done.stderr

    # ---- numbers and grids

    def test_every_integer_type_arrives(self) -> None:
        out = np.full(9, -1, np.int64)
        values = [True, -7, -30000, 123456789, -(2**40), -5, 200]
        integers_kernel[(1,)](Tensor(out), *values, 2**64 - 1, 1.5)
        assert out.tolist() == [1, *values[1:], 2**63 - 1, 1536]

    def test_a_number_that_does_not_fit_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match=r"cannot take .*=300(?s:.*)integers of -128 to 127"):
            integers_kernel[(1,)](Tensor(np.zeros(9, np.int64)), True, 300, 0, 5, 5, 5, 5, 5, 5.5)

    def test_floats_arrive_rounded_to_their_type(self) -> None:
        if not self.has_f64:
            pytest.skip("the device has no f64")
        out = np.full(5, np.nan)
        # Triton 3.2 supports annotations of integers only: a float is an f32.
        is_annotated = RELEASE >= (3, 3)
        wide = 1e300 if is_annotated else 1e30
        floats_kernel[(1,)](Tensor(out), 1.0004, 1.005, 0.1, wide, -3.5)
        half, brain, double = (
            (np.float16(1.0004), 1.0078125, wide) if is_annotated else map(np.float32, (1.0004, 1.005, wide))
        )
        assert out.tolist() == [half, brain, np.float32(0.1), double, np.float32(0.1) * np.float32(-3.5)]

    @pytest.mark.parametrize("grid", [(2, 3, 4), (5, 3, 4)])
    def test_a_grid_of_three_dimensions(self, grid: tuple[int, int, int]) -> None:
        out = np.full(grid[::-1], -1, np.int32)
        place_kernel[grid](Tensor(out))
        z, y, x = np.indices(out.shape)
        assert np.array_equal(out, x + 10 * y + 100 * z)

    @pytest.mark.parametrize("grid", [(0,), (2, 0), (2, 1, 0)])
    def test_an_empty_grid_launches_nothing(self, grid: tuple[int, ...]) -> None:
        out = np.full(4, -1, np.int32)
        place_kernel[grid](Tensor(out))
        assert out.tolist() == [-1] * 4

    # ---- Triton's runtime

    def test_threads_may_launch_at_the_same_time(self) -> None:
        arrays = [(integers(1000), integers(1000), poisoned(1000, dtype=np.int32)) for _ in range(8)]
        add(*arrays[0], 1000, **self.options(0))  # compiled once, before the race

        def work(number: int) -> None:
            x, y, out = arrays[number]
            for _ in range(self.turns):
                out.fill(0)
                add(x, y, out, 1000, **self.options(number))
                assert (out == x + y).all()

        with ThreadPoolExecutor(len(arrays)) as pool:
            list(pool.map(work, range(len(arrays))))

    def test_launch_hooks_surround_a_launch(self) -> None:
        x = np.zeros(10, np.float32)
        seen: list[tuple[str, str, float]] = []
        enter, leave = (
            lambda metadata, when=when: seen.append((when, metadata.get()["name"], x[0])) for when in ("enter", "exit")
        )
        with _hooks(enter, leave):
            increment_kernel[(1,)](Tensor(x), 10, BLOCK=BLOCK)
        assert seen == [("enter", "increment_kernel", 0.0), ("exit", "increment_kernel", 1.0)]

    def test_autotuning_picks_a_config_and_leaves_the_right_result(self) -> None:
        tuned = triton.autotune(
            configs=[triton.Config({"BLOCK": 64}, num_warps=8), triton.Config({"BLOCK": 256}, num_stages=4)],
            key=["n"],
            restore_value=["x"],
            do_bench=lambda call, quantiles: triton.testing.do_bench(call, warmup=1, rep=2, quantiles=quantiles),
        )(increment_kernel)
        x = np.zeros(1000, np.float32)
        tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](Tensor(x), 1000)
        assert tuned.best_config.kwargs["BLOCK"] in (64, 256)
        assert (x == 1).all()

    def test_every_stage_is_in_the_cache(self) -> None:
        kernel = add(integers(100), integers(100), integers(100), 100)
        # The first stage is Triton's own IR before its passes; 3.2 does not keep it.
        assert [stage for stage in kernel.asm if stage != "source"] == self.stages

    def test_a_kernel_out_of_the_cache_is_not_lowered_again(self, tmp_path: Path) -> None:
        script = _FROM_THE_CACHE.replace("TOOL", repr(self.tool))
        runs = [python("-c", script, TRITON_CACHE_DIR=str(tmp_path)) for _ in range(2)]
        assert [run.stdout for run in runs] == ["True True\n", f"{self.reads_kernels} False\n"], runs

    def test_an_unsupported_operation_is_refused_with_its_line(self) -> None:
        error, said = self.refusal
        with pytest.raises(error) as caught:
            assembly_kernel[(1,)](Tensor(np.zeros(1, np.float32)))
        assert said in str(caught.value)
        assert f"{Path(__file__).name}:{assembly_kernel.starting_line_number + 3}" in str(caught.value)
