"""The arguments of a launch: tuples are flattened as in Triton, arrays must be writable, options must be valid."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.backend.compiler import OptionError, ProgramOptions
from foundry_core.runtime.arguments import ArgumentError, Parameters
from foundry_core.runtime.launches import GridError
from foundry_core.spans import strides_overlap
from foundry_core.tensor import Tensor
from image import RELEASE
from shared_kernels import imported

tuples = pytest.mark.skipif(RELEASE < (3, 3), reason="Triton before 3.3 takes no tuples")
Pair = namedtuple("Pair", ["a", "b"])


@triton.jit
def sums(out, shape: tl.constexpr, v, w, last):
    tl.store(out, v[0])
    tl.store(out + 1, v[1])
    tl.store(out + 2, shape[0] * 100 + shape[1])
    tl.store(out + 3, w[0][1])
    tl.store(out + 4, w[1])
    tl.store(out + 5, last)


@tuples
@pytest.mark.parametrize(("v", "w"), [((20, 30), ((7, 8), 9)), ((1, 30), ((None, 8), 9)), ((20, 1), ((1, 1), 9))])
def test_a_constexpr_tuple_beside_other_tuples(v: tuple[int, int], w: tuple[tuple[object, int], int]) -> None:
    # None and 1 are compiled in as constants.
    out = np.full(6, -1, np.int32)
    sums[(1,)](Tensor(out), (5, 6), v, w, 40)
    assert out.tolist() == [*v, 506, w[0][1], w[1], 40]


@triton.jit
def named(pair, out, shape: tl.constexpr, rest, last):
    tl.store(out, pair.a)
    tl.store(out + 1, pair.b)
    tl.store(out + 2, tl.load(rest[0]))
    tl.store(out + 3, rest[1] + last)


@tuples
@pytest.mark.parametrize("shape", [Pair(5, 6), ((1, 2), (None, 3))])
def test_named_tuples_and_tensors_in_tuples(shape: tuple[Any, ...]) -> None:
    out, one = np.full(4, -1, np.int32), np.full(1, 77, np.int32)
    named[(1,)](Pair(2, 3), Tensor(out), shape, (Tensor(one), tl.constexpr(4)), 40)
    assert out.tolist() == [2, 3, 77, 44]


@triton.jit
def sequence(out, *values):
    tl.store(out, values[0])
    tl.store(out + 1, values[1] * 2)
    tl.store(out + 2, values[2] * 3)


@pytest.mark.skipif(RELEASE < (3, 9), reason="a kernel has no *arguments before 3.9")
def test_a_kernel_with_any_number_of_arguments() -> None:
    out = np.full(3, -1, np.int32)
    sequence[(1,)](Tensor(out), 1, 20, 30)
    assert out.tolist() == [1, 40, 90]


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def halves(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) >> 1, mask=i < n)


def test_a_tensor_that_is_reinterpreted_is_read_and_written() -> None:
    x, base = np.array([-1, -2, 7, np.iinfo(np.int32).min], np.int32), np.full(8, -77, np.int32)
    x_as, out_as = (triton.reinterpret(Tensor(array), tl.uint32) for array in (x, base[2:6]))
    halves[(1,)](x_as, out_as, 4, BLOCK=4)
    np.testing.assert_array_equal(base, [-77, -77, *(x.view(np.uint32) >> 1), -77, -77])
    x.flags.writeable = False
    with pytest.raises(ArgumentError, match="halves writes to out, which is read-only"):
        halves[(1,)](out_as, x_as, 4, BLOCK=4)
    with pytest.raises(ArgumentError, match="halves writes to out, whose elements share memory"):
        halves[(1,)](
            x_as, triton.reinterpret(Tensor(np.lib.stride_tricks.as_strided(base, (4,), (0,))), tl.uint32), 4, BLOCK=4
        )


@triton.jit
def chosen(x, out, n, first):
    # A pointer that a selection and a loop forward.
    here = out
    if first:
        here = x
    for k in range(n):
        tl.store(here, k)
        here += 1


def test_kernel_reads_a_read_only_array() -> None:
    x = np.frombuffer(np.arange(8, dtype=np.float32).tobytes(), np.float32)
    out = np.full(8, np.nan, np.float32)
    copy[(1,)](Tensor(x), Tensor(out), 8, BLOCK=8)
    np.testing.assert_array_equal(out, x)
    same = np.full(8, np.nan, np.float32)
    copy[(1,)](Tensor(np.broadcast_to(x, (3, 8))), Tensor(same), 8, BLOCK=8)
    np.testing.assert_array_equal(same, x)


def test_an_array_that_is_read_only_is_not_written_to() -> None:
    x, out = np.arange(8, dtype=np.float32), np.frombuffer(bytes(32), np.float32)
    with pytest.raises(ArgumentError, match="copy writes to out, which is read-only"):
        copy[(1,)](Tensor(x), Tensor(out), 8, BLOCK=8)
    np.testing.assert_array_equal(out, 0)


def test_a_pointer_that_a_kernel_chooses_counts_as_written() -> None:
    x, out = np.arange(8, dtype=np.int32), np.full(8, -1, np.int32)
    x.flags.writeable = False
    with pytest.raises(ArgumentError, match="chosen writes to x, which is read-only"):
        chosen[(1,)](Tensor(x), Tensor(out), 8, 0)


@pytest.mark.parametrize(
    "view",
    [
        lambda base: np.lib.stride_tricks.as_strided(base, (4, 8), (0, 4)),
        lambda base: np.lib.stride_tricks.sliding_window_view(base, 4, writeable=True),
        lambda base: np.lib.stride_tricks.as_strided(base, (8,), (2,)),
    ],
)
def test_a_view_that_aliases_itself_is_not_written_to(view: Any) -> None:
    base = np.zeros(8, np.float32)
    with pytest.raises(ArgumentError, match="copy writes to out, whose elements share memory"):
        copy[(1,)](Tensor(np.ones(8, np.float32)), Tensor(view(base)), 8, BLOCK=8)
    np.testing.assert_array_equal(base, 0)


@triton.jit
def count(out, rows, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add((out + i * columns)[:, None] + tl.program_id(0) * rows, 1.0)


def test_elements_that_share_memory_may_be_changed_by_atomic_operations() -> None:
    base = np.array([1, 2, 3, 4, 5, 6, 7, 8, 77], np.float32)
    view = np.lib.stride_tricks.as_strided(base, (4, 8), (0, 4))
    count[(4,)](Tensor(view), 0, 1, BLOCK=8)
    np.testing.assert_array_equal(base, [5, 6, 7, 8, 9, 10, 11, 12, 77])


def test_a_numpy_array_is_read_and_written_as_the_tensor_over_it_is() -> None:
    x, base = np.arange(8, dtype=np.float32), np.full(20, np.nan, np.float32)
    copy[(1,)](x, base[6:14], 8, BLOCK=8)
    np.testing.assert_array_equal(base[6:14], x)
    assert np.isnan(base[:6]).all() and np.isnan(base[14:]).all()
    # Other element types, together with a Tensor.
    for dtype in (np.int64, ml_dtypes.bfloat16, bool):
        x, out = np.array([0, 1, 1, 0, 1, 0, 0, 1], dtype), np.full(8, 1, dtype)
        copy[(1,)](x, Tensor(out), 7, BLOCK=8)
        assert out.tolist() == [*x[:7].tolist(), dtype(1)]


@tuples
@pytest.mark.parametrize("rest", [lambda one: (one, 4), lambda one: Pair(one, 4), lambda one: ((one,), 4)])
def test_a_numpy_array_in_a_tuple_is_one_too(rest: Any) -> None:
    out, one = np.full(1, -1, np.int32), np.full(1, 77, np.int32)
    passed = rest(one)
    kernel = nested if isinstance(passed[0], tuple) else paired
    kernel[(1,)](out, passed)
    assert out.tolist() == [81]


@triton.jit
def paired(out, pair):
    tl.store(out, tl.load(pair[0]) + pair[1])


@triton.jit
def nested(out, pair):
    tl.store(out, tl.load(pair[0][0]) + pair[1])


def test_a_numpy_array_is_refused_as_the_tensor_over_it_is() -> None:
    x, readonly = np.arange(8, dtype=np.float32), np.frombuffer(bytes(32), np.float32)
    with pytest.raises(ArgumentError, match="copy writes to out, which is read-only"):
        copy[(1,)](x, readonly, 8, BLOCK=8)
    shared = np.zeros(8, np.float32)
    with pytest.raises(ArgumentError, match="copy writes to out, whose elements share memory"):
        copy[(1,)](x, np.lib.stride_tricks.as_strided(shared, (4, 8), (0, 4)), 8, BLOCK=8)
    assert not shared.any()
    with pytest.raises(TypeError, match="real and imaginary"):
        copy[(1,)](x.astype(np.complex64), x, 8, BLOCK=8)
    with pytest.raises(TypeError, match=r"masked array(?s:.*)filled"):
        copy[(1,)](np.ma.masked_greater(x, 3), x, 8, BLOCK=8)
    # A read-only or overlapping array may be an argument that is only read.
    out = np.full(8, np.nan, np.float32)
    copy[(1,)](np.broadcast_to(x, (3, 8)), out, 8, BLOCK=8)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("number", [np.int64(8), np.float32(8), np.bool_(True)])
def test_a_number_of_numpys_is_refused_with_the_next_step(number: Any) -> None:
    x = np.arange(8, dtype=np.float32)
    with pytest.raises(TypeError, match=rf"numpy.{type(number).__name__}(?s:.*)\.item\(\)"):
        copy[(1,)](x, x, number, BLOCK=8)


@pytest.mark.skipif(RELEASE < (3, 3), reason="3.2 asks the backend of each launch")
def test_arrays_of_another_backends_launches_are_left_alone() -> None:
    from triton.backends.compiler import BaseBackend
    from triton.runtime import jit

    copy[(1,)](np.zeros(8, np.float32), np.zeros(8, np.float32), 8, BLOCK=8)
    with pytest.raises(TypeError, match=r"specialize argument of type: (numpy\.)?ndarray"):
        jit.native_specialize_impl(BaseBackend, np.zeros(8, np.float32), False, True, True)


def test_views_without_overlap_are_written_to() -> None:
    for view in (lambda a: a[::-1], lambda a: a.reshape(4, 4).T, lambda a: a[::2], lambda a: a[8:8]):
        base = np.zeros(16, np.float32)
        first = view(base).ravel()[:1].size
        copy[(1,)](Tensor(np.ones(8, np.float32)), Tensor(view(base)), first, BLOCK=8)
        assert base.sum() == view(base).ravel()[:1].sum() == first


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((3, 2), (2, 3)),
        ((4, 3), (3, 4)),
        ((2, 2, 2), (1, 1, 4)),
        ((3, 4), (4, -1)),
        ((5, 7), (7, 5)),
        ((1, 9), (0, 1)),
        ((2, 3), (1, 2)),
        ((6, 2), (2, 5)),
        ((0, 4), (0, 0)),
        ((9, 3), (3, 14)),
    ],
)
def test_strides_overlap_where_two_indices_have_one_place(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    places = [int(np.dot(index, strides)) for index in np.ndindex(*shape)]
    assert strides_overlap(shape, strides) == (len(set(places)) < len(places))


def test_a_torch_tensor_that_is_expanded_is_not_written_to() -> None:
    source = SimpleNamespace(signature={"x": "*fp32", "out": "*fp32"})
    expanded = SimpleNamespace(shape=(4, 8), stride=lambda: (0, 1))
    plain = SimpleNamespace(shape=(4, 8), stride=lambda: (8, 1))
    parameters = Parameters(source, "copy", [[1], [1]])
    assert parameters.pick([expanded, plain]) == [expanded, plain]
    with pytest.raises(ArgumentError, match="copy writes to out"):
        parameters.pick([plain, expanded])
    # Only atomic operations write through it.
    assert Parameters(source, "copy", [[1], []]).pick([plain, expanded]) == [plain, expanded]
    # If the kernel could not be analysed, any argument may be written.
    with pytest.raises(ArgumentError, match="copy writes to x"):
        Parameters(source, "copy", None).pick([expanded, plain])


@triton.jit
def through_const(x: tl.const, y: tl.const, out, n, which, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    from_ = x if which else y
    total = tl.load(from_ + i, mask=i < n, other=0.0)
    for k in range(3):
        total += tl.load(x + i + k * BLOCK)
    tl.store(out + i, total)


def test_const_pointers_are_read() -> None:
    x, y, out = np.arange(24, dtype=np.float32), np.full(8, 100, np.float32), np.full(8, np.nan, np.float32)
    x.flags.writeable = False
    through_const[(1,)](Tensor(x), Tensor(y), Tensor(out), 8, 0, BLOCK=8)
    np.testing.assert_array_equal(out, y + x.reshape(3, 8).sum(0))


@triton.jit
def to_const(x, out: tl.const):
    tl.store(out, tl.load(x))


def test_nothing_is_stored_through_a_const_pointer() -> None:
    out = np.full(1, 7, np.float32)
    with pytest.raises(triton.compiler.errors.CompilationError, match="const"):
        to_const[(1,)](Tensor(np.zeros(1, np.float32)), Tensor(out))
    assert out[0] == 7


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [
        (np.complex64, "real and imaginary"),
        (np.complex128, "real and imaginary"),
        ("M8[s]", "numpy.int64"),
        ("m8[ns]", "numpy.int64"),
        ("U4", "convert"),
        ("S4", "convert"),
        ([("a", "f4"), ("b", "i4")], r"\['a'\]"),
        (object, "numpy.asarray"),
        (np.dtype(np.float32).newbyteorder(), "newbyteorder"),
        (np.longdouble, "convert"),
        (ml_dtypes.int4, "convert"),
        (ml_dtypes.float8_e3m4, "convert"),
    ],
)
def test_array_of_a_type_that_triton_lacks_is_refused(dtype: Any, hint: str) -> None:
    array = np.zeros(3, dtype)
    with pytest.raises(TypeError, match=hint) as refused:
        Tensor(array)
    assert str(array.dtype) in str(refused.value) and "(3,)" in str(refused.value)
    if array.dtype.isnative:
        assert "bfloat16, float32" in str(refused.value)


@pytest.mark.parametrize(
    "option",
    [
        {"num_warps": 3},
        {"num_warps": -4},
        {"num_warps": 2.5},
        {"num_warps": True},
        {"num_warps": False},
        {"num_ctas": -1},
        {"launch_cooperative_grid": True},
        {"ir_override": "kernel.ptx"},
        {"num_stages": -1},
        {"num_stages": "two"},
        {"num_threads": 4},
        {"maxnreg": 0},
    ],
)
def test_options_without_a_meaning_are_refused_by_name(option: dict[str, Any]) -> None:
    ((name, value),) = option.items()
    with pytest.raises(OptionError, match=re.escape(f"{name}={value!r}")):
        ProgramOptions(**option)
    x, out = np.ones(8, np.float32), np.full(8, 7, np.float32)
    with pytest.raises(OptionError, match=re.escape(f"{name}={value!r}")):
        copy[(1,)](Tensor(x), Tensor(out), 8, BLOCK=8, **option)
    np.testing.assert_array_equal(out, 7)


@pytest.mark.parametrize(("name", "near"), [("num_wraps", "num_warps"), ("BLOK", "BLOCK"), ("zzz", "num_stages")])
def test_unknown_option_is_refused_with_the_nearest_name(name: str, near: str) -> None:
    x, out = np.ones(8, np.float32), np.full(8, 7, np.float32)
    with pytest.raises(OptionError, match=f"no option {name}(?s:.*){near}"):
        copy[(1,)](Tensor(x), Tensor(out), n=8, BLOCK=8, **{name: 4})
    np.testing.assert_array_equal(out, 7)


def test_options_of_gpus_change_nothing() -> None:
    out = np.full(8, np.nan, np.float32)
    options: dict[str, Any] = {"num_warps": 8, "num_stages": 0, "num_threads": 0, "num_ctas": 2, "maxnreg": 32}
    options |= {"launch_pdl": True, "matrix_instr_nonkdim": 16, "waves_per_eu": 2, "kpack": 2}
    options |= {"schedule_hint": "none", "grf_mode": "large"}
    libraries = {"libdevice": __file__}
    copy[(1,)](Tensor(np.ones(8, np.float32)), Tensor(out), 8, BLOCK=8, extern_libs=libraries, **options)
    np.testing.assert_array_equal(out, 1)


def test_no_warps_and_no_ctas_are_the_default() -> None:
    assert ProgramOptions(num_warps=0, num_ctas=0) == ProgramOptions()
    out = np.full(8, np.nan, np.float32)
    kernel = copy[(1,)](Tensor(np.ones(8, np.float32)), Tensor(out), 8, BLOCK=8, num_warps=0, num_ctas=0)
    np.testing.assert_array_equal(out, 1)
    assert kernel.metadata.num_ctas == 1


def test_scripts_can_compute_how_many_programs_a_device_executes() -> None:
    out = np.full(8, np.nan, np.float32)
    kernel = copy[(1,)](Tensor(np.ones(8, np.float32)), Tensor(out), 8, BLOCK=8, num_warps=8)
    kernel._init_handles()
    known = triton.runtime.driver.active.utils.get_device_properties(0)
    assert known["max_num_regs"] // (kernel.n_regs * known["warpSize"] * 8) >= 1
    assert known["max_shared_mem"] // kernel.metadata.shared >= 1
    assert known["multiprocessor_count"] >= 1 and known["max_threads_per_sm"] >= known["warpSize"]


def test_a_library_that_cannot_be_linked_is_refused() -> None:
    out = np.full(8, 7, np.float32)
    with pytest.raises(OptionError, match=r"extern_libs names mine(?s:.*)only libdevice"):
        copy[(1,)](out, out, 8, BLOCK=8, extern_libs={"libdevice": "", "mine": "/no/mine.bc"})
    with pytest.raises(OptionError, match=r"extern_libs names /no/libdevice\.bc, which does not exist(?s:.*)built in"):
        copy[(1,)](out, out, 8, BLOCK=8, extern_libs={"libdevice": "/no/libdevice.bc"})
    np.testing.assert_array_equal(out, 7)
    copy[(1,)](np.ones(8, np.float32), out, 8, BLOCK=8, extern_libs={"libdevice": ""})
    np.testing.assert_array_equal(out, 1)


def once(call: Callable[[], None], quantiles: object) -> list[float]:
    call()
    return [1.0, 1.0, 1.0]


@triton.autotune(
    [triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16}, num_warps=2)],
    key=["n"],
    reset_to_zero=["total"],
    restore_value=["x"],
    do_bench=once,
)
@triton.heuristics({"EVEN": lambda arguments: arguments["n"] % 2 == 0})
@triton.jit
def adding(x, total, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n) + (1 if EVEN else 2)
    tl.store(x + i, v, mask=i < n)
    tl.store(total + i, tl.load(total + i, mask=i < n) + v, mask=i < n)


@pytest.mark.parametrize(("passed", "n"), [(Tensor, 20), (np.asarray, 21)])
def test_autotune_resets_and_restores_arrays_and_tensors(passed: Callable[[np.ndarray], object], n: int) -> None:
    x, total = np.arange(24, dtype=np.float32), np.full(24, 77, np.float32)
    adding[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](passed(x), passed(total), n)
    inside, step = np.arange(24) < n, 1 if n % 2 == 0 else 2
    np.testing.assert_array_equal(x, np.arange(24) + step * inside)
    np.testing.assert_array_equal(total, x * inside)


@triton.jit
def numbered(out, n):
    at = tl.program_id(0) + n * (tl.program_id(1) + tl.program_id(2))
    tl.store(out + at, at)


@pytest.mark.parametrize("grid", [(3,), [3], (3, 1), [1, 3, 1], lambda _: [1, 1, 3], (np.int64(3),), (3, 0), (1, 1, 0)])
def test_grids_of_one_to_three_sides(grid: object) -> None:
    out = np.full(8, -1, np.int32)
    numbered[grid](out, 1)
    found = [grid] if callable(grid) else list(grid)  # type: ignore[call-overload]
    assert out.tolist() == [-1] * 8 if 0 in found else [0, 1, 2, *[-1] * 5]


@pytest.mark.parametrize("grid", [(-1,), (2**31,), (1, 2**40), (2**16, 2**16), (2.5,), ("3",)])
def test_a_grid_that_no_launch_can_have_is_refused(grid: tuple[Any, ...]) -> None:
    out = np.full(8, -1, np.int32)
    with pytest.raises(GridError, match=r"kernel numbered is launched on a grid of .* x 1 programs\n  why:"):
        numbered[grid](out, 1)
    assert (out == -1).all()


DECLARED = """import triton, triton.language as tl

@triton.jit
def declared(out, n: tl.{type}):
    tl.store(out, n)
"""


@pytest.mark.parametrize("type", ["int8", "uint8", "int32", "uint32"])
def test_a_number_beyond_its_declared_type_is_refused_with_the_range(type: str, tmp_path: Path) -> None:
    declared = imported(tmp_path / "declared.py", DECLARED.format(type=type)).declared
    low, high = np.iinfo(type).min, np.iinfo(type).max
    found = np.full(1, -7)
    for out in (found, Tensor(found)):
        for number in (low, high, 1, True):
            declared[(1,)](out, number)
            assert found[0] == number
        for wrong in (low - 1, high + 1, 1.5, None):
            with pytest.raises(ArgumentError) as refused:
                declared[(1,)](out, wrong)
            said = f"kernel declared cannot take n={wrong}\n  why:  the parameter is declared as tl.{type}, and takes "
            assert str(refused.value).startswith(f"{said}integers of {low} to {high}\n")
            assert found[0] == 1


@pytest.mark.skipif(RELEASE < (3, 3), reason="3.2 passes floats as f32 and None as a constant, whatever is declared")
@pytest.mark.parametrize(("type", "large"), [("float32", 1e300), ("float16", 1e6)])
@pytest.mark.filterwarnings("error")
def test_a_number_beyond_a_declared_float_is_infinite_as_in_c(type: str, large: float, tmp_path: Path) -> None:
    declared = imported(tmp_path / "declared.py", DECLARED.format(type=type)).declared
    out = np.full(1, -7, np.float32)
    for number, wanted in ((large, np.inf), (-large, -np.inf), (3, 3), (-0.0, 0)):
        declared[(1,)](out, number)
        assert out[0] == wanted
    assert np.signbit(out[0])
    declared[(1,)](out, float("nan"))
    assert np.isnan(out[0])
    with pytest.raises(ArgumentError, match=f"n=None(?s:.*)tl.{type}, and takes numbers"):
        declared[(1,)](out, None)
