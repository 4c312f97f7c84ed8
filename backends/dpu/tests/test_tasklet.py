"""The lowering of a kernel for a DPU, read from its MLIR and LLVM IR: its calls, its copies, and its sizes."""

from __future__ import annotations

import re

import pytest
from foundry_core.codegen.pipeline import to_structured, to_tasklet_mlir, to_typed_llvm
from foundry_core.codegen.typed import check_text
from foundry_core.errors import LoweringError
from foundry_core.mapping.base.target import TaskletTarget
from foundry_core.mapping.tasklet.program import TaskletKernel

# Every access of one element. A load or store of structured rows must not contain any.
ELEMENTWISE = re.compile(r"^.*(?:load|store) .*addrspace\(255\)\*.*$", re.MULTILINE)


def lower(body: str, length: int = 1024, elem: str = "f32") -> TaskletKernel:
    """Lower a kernel. Its body may use %x and %out (a tile of pointers each), %i (indices) and %n_inside (i < n)."""
    tile = f"tensor<{length}x"
    return to_tasklet_mlir(
        to_structured(f"""
module {{ tt.func public @kernel(%xp: !tt.ptr<{elem}>, %op: !tt.ptr<{elem}>, %n: i32) {{
  %pid = tt.get_program_id x : i32
  %length = arith.constant {length} : i32
  %first = arith.muli %pid, %length : i32
  %range = tt.make_range {{end = {length} : i32, start = 0 : i32}} : {tile}i32>
  %firsts = tt.splat %first : i32 -> {tile}i32>
  %i = arith.addi %firsts, %range : {tile}i32>
  %ns = tt.splat %n : i32 -> {tile}i32>
  %n_inside = arith.cmpi slt, %i, %ns : {tile}i32>
  %xs = tt.splat %xp : !tt.ptr<{elem}> -> {tile}!tt.ptr<{elem}>>
  %os = tt.splat %op : !tt.ptr<{elem}> -> {tile}!tt.ptr<{elem}>>
  %x = tt.addptr %xs, %i : {tile}!tt.ptr<{elem}>>, {tile}i32>
  %out = tt.addptr %os, %i : {tile}!tt.ptr<{elem}>>, {tile}i32>
{body}
  tt.return
}} }}""")
    )


COPY = """
  %value = tt.load %x, %n_inside : tensor<1024x!tt.ptr<{elem}>>
  tt.store %out, %value, %n_inside : tensor<1024x!tt.ptr<{elem}>>
"""


def llvm(lowered: TaskletKernel) -> str:
    """Return the LLVM IR, after the installed LLVMs with typed pointers have read it."""
    text = to_typed_llvm(lowered.text)
    check_text(text)
    return text


@pytest.mark.parametrize(
    ("elem", "pointer"),
    [
        ("i8", "i8"),
        ("i32", "i32"),
        ("i64", "i64"),
        ("f32", "float"),
        ("f16", "i16"),
        ("bf16", "i16"),
        ("f64", "double"),
    ],
)
def test_a_kernel_is_called_as_tritonpim_calls_one(elem: str, pointer: str) -> None:
    text = llvm(lower(COPY.format(elem=elem), elem=elem))
    kind = rf"{pointer} addrspace\(255\)\*"
    internal = r"i8 addrspace\(1\)\*[^,)]*"
    assert re.search(rf"define void @kernel\({kind} %xp, {kind} %op, i32 %n, {internal}, {internal}\)", text)
    assert 'target triple = "dpu-upmem-dpurte"' in text
    assert re.search(r'target datalayout = "e-m:e-p:32:32-.*-n32"', text)


def test_rows_come_and_go_by_copies() -> None:
    text = llvm(lower(COPY.format(elem="f32")))
    assert not ELEMENTWISE.findall(text)
    assert "call void @llvm.memcpy.p0i8.p255i8.i32" in text
    assert "call void @llvm.memcpy.p255i8.p0i8.i32" in text


def test_a_gather_reads_element_by_element() -> None:
    """This shows that the pattern of the test above can match."""
    text = llvm(
        lower("""
  %index = arith.muli %i, %i : tensor<1024xi32>
  %there = tt.addptr %xs, %index : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %value = tt.load %there, %n_inside : tensor<1024x!tt.ptr<f32>>
  tt.store %out, %value, %n_inside : tensor<1024x!tt.ptr<f32>>
""")
    )
    assert len(ELEMENTWISE.findall(text)) == 1


def test_a_narrow_element_is_scattered_under_the_lock_and_a_word_is_not() -> None:
    body = """
  %index = arith.muli %i, %i : tensor<1024xi32>
  %there = tt.addptr %os, %index : tensor<1024x!tt.ptr<{elem}>>, tensor<1024xi32>
  %value = tt.load %x, %n_inside : tensor<1024x!tt.ptr<{elem}>>
  tt.store %there, %value, %n_inside : tensor<1024x!tt.ptr<{elem}>>
"""
    narrow = llvm(lower(body.format(elem="i32"), elem="i32"))
    assert re.search(r"call void @__triton_mram_lock\(\)\n.*store .*\n.*call void @__triton_mram_unlock\(\)", narrow)
    assert "__triton_mram_lock" not in llvm(lower(body.format(elem="i64"), elem="i64"))


def buffers(text: str) -> int:
    """Return the bytes of tiles and pieces in a kernel's MLIR."""
    arrays = re.findall(r"llvm\.array<(\d+) x [if](\d+)>", text)
    assert arrays
    return sum(int(count) * int(bits) // 8 for count, bits in arrays)


def test_long_blocks_stay_in_pieces_of_one_dma() -> None:
    lowered = lower(COPY.format(elem="f32").replace("1024", "65536"), length=65536)
    assert buffers(lowered.text) <= 2 * (2048 + 16)
    assert lowered.num_tasklets >= 11


KEEP = """
  %value = tt.load %x : tensor<{n}x!tt.ptr<f32>>
  %again = arith.mulf %value, %value : tensor<{n}xf32>
  tt.store %out, %again : tensor<{n}x!tt.ptr<f32>>
  tt.store %x, %value : tensor<{n}x!tt.ptr<f32>>
"""


@pytest.mark.parametrize("length", [256, 512, 1024, 2048, 4096, 8192])
def test_tiles_and_stacks_of_all_tasklets_fit_wram(length: int) -> None:
    target = TaskletTarget()
    lowered = lower(KEEP.format(n=length), length=length)
    assert buffers(lowered.text) >= 4 * length

    def needed(tasklets: int, stack: int) -> int:
        return tasklets * (buffers(lowered.text) + stack) + target.reserved_bytes

    assert lowered.stack_bytes >= target.stack_bytes
    assert needed(lowered.num_tasklets, lowered.stack_bytes) <= target.wram_bytes
    if lowered.num_tasklets < target.most_tasklets:
        # Tasklets beyond those that fill the pipeline must have the largest stack.
        filled = lowered.num_tasklets >= target.enough_tasklets
        stack = target.most_stack_bytes if filled else target.stack_bytes
        assert needed(lowered.num_tasklets + 1, stack) > target.wram_bytes


def test_more_tiles_than_wram_are_refused_with_both_numbers() -> None:
    message = r"keeps (\d+) bytes of tiles in WRAM, of which a DPU has 60416 bytes"
    with pytest.raises(LoweringError, match=message) as error:
        lower(KEEP.format(n=16384), length=16384)
    assert int(re.findall(r"keeps (\d+)", str(error.value))[0]) >= 65536


def test_a_function_is_in_the_module_once_however_often_it_is_used() -> None:
    text = llvm(
        lower("""
  %value = tt.load %x : tensor<1024x!tt.ptr<f32>>
  %sine = math.sin %value : tensor<1024xf32>
  %both = math.sin %sine : tensor<1024xf32>
  tt.store %out, %both : tensor<1024x!tt.ptr<f32>>
""")
    )
    assert len(re.findall(r"define internal float @__foundry_sin_f32", text)) == 1
    assert len(re.findall(r"call float @__foundry_sin_f32", text)) >= 2


@pytest.mark.parametrize(("stride", "fetched_apart"), [(2, False), (16, False), (17, True)])
def test_a_row_with_a_short_stride_is_read_with_all_that_it_spans(stride: int, fetched_apart: bool) -> None:
    text = llvm(
        lower(f"""
  %stride = arith.constant dense<{stride}> : tensor<1024xi32>
  %index = arith.muli %i, %stride : tensor<1024xi32>
  %there = tt.addptr %xs, %index : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %value = tt.load %there, %n_inside : tensor<1024x!tt.ptr<f32>>
  tt.store %out, %value, %n_inside : tensor<1024x!tt.ptr<f32>>
""")
    )
    assert bool(ELEMENTWISE.findall(text)) == fetched_apart
