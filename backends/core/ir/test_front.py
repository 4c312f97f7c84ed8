"""What the front derives from addresses and masks, read from the structured form."""

from __future__ import annotations

import re

import pytest
from foundry_core.codegen.pipeline import to_structured
from foundry_core.errors import LoweringError, UnsupportedOperation, source_lines
from foundry_core.front.masks import sufficient
from foundry_core.front.scalars import constant_value
from foundry_core.ir.arith import CmpiOp, ConstantOp
from foundry_core.ir.parse import parse
from foundry_core.ir.tile import LoadOp

HEAD = """
tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %i: !tt.ptr<i32>, %n: i32, %s: i32) {
  %pid = tt.get_program_id x : i32
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %firsts = tt.splat %first : i32 -> tensor<64xi32>
  %ns = tt.splat %n : i32 -> tensor<64xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %offsets = arith.addi %firsts, %range : tensor<64xi32>
"""
TAIL = """
  %where = tt.addptr %qs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %where, %value : tensor<64x!tt.ptr<f32>>
  tt.return
}
"""


def load(address: str, mask: str = "") -> str:
    """Return the structured form of a load from p + address; `address` (and `mask`) are lines that define it."""
    offset, *masks = [re.findall(r"%\w+(?= = )", lines)[-1] for lines in (address, mask) if lines]
    text = (
        f"{HEAD}{address}\n{mask}\n"
        f"  %from = tt.addptr %ps, {offset} : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
        f"  %value = tt.load {', '.join(['%from', *masks])} : tensor<64x!tt.ptr<f32>>\n{TAIL}"
    )
    return to_structured(f"module {{ {text} }}")


def definition(text: str, name: str) -> str:
    """Return the operation that defines a value, with constants and casts of arguments in place of their names."""
    found = re.search(rf"^ *{re.escape(name)} = (.*)$", text, re.MULTILINE)
    if found is None:
        return name
    constant = re.match(r"arith.constant (-?\d+) : i64", found[1])
    if constant:
        return constant[1]
    return found[1].removesuffix(" : i64")


def parts(text: str) -> tuple[str, list[str], list[str]]:
    """Return (start, axes, ranges) of the only load, as the operations that define them."""
    found = re.search(r"tile.load %p\[(%\w+)((?:, %\w+)*)\](?: in \[([^\]]*)\])?", text)
    assert found, text
    axes = [definition(text, name) for name in re.findall(r"%\w+", found[2])]
    ranges = [definition(text, name) for name in re.findall(r"%\w+", found[3] or "")]
    return definition(text, found[1]), axes, ranges


def operands(text: str, operation: str) -> list[str]:
    return [definition(text, name) for name in re.findall(r"%\w+", operation)]


def test_block_of_a_program_is_contiguous() -> None:
    text = load("%o = arith.addi %firsts, %range : tensor<64xi32>")
    start, (axis,), _ = parts(text)
    assert start == "arith.extsi %first : i32 to i64"
    assert operands(text, axis) == ["1"]


def test_multiplying_by_a_scalar_gives_its_stride() -> None:
    text = load("%ss = tt.splat %s : i32 -> tensor<64xi32>\n%o = arith.muli %offsets, %ss : tensor<64xi32>")
    _, (axis,), _ = parts(text)
    assert operands(text, axis) == ["arith.extsi %s : i32 to i64"]


def test_remainder_of_a_block_wraps() -> None:
    text = load("%o = arith.remsi %offsets, %ns : tensor<64xi32>")
    _, (axis,), _ = parts(text)
    assert axis.startswith("tile.wrapped")
    assert operands(text, axis) == ["arith.extsi %first : i32 to i64", "arith.extsi %n : i32 to i64", "1"]


def test_numbers_from_memory_are_an_index() -> None:
    text = load(
        "%is = tt.splat %i : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>\n"
        "%ip = tt.addptr %is, %range : tensor<64x!tt.ptr<i32>>, tensor<64xi32>\n"
        "%loaded = tt.load %ip : tensor<64x!tt.ptr<i32>>\n"
        "%o = arith.addi %loaded, %firsts : tensor<64xi32>"
    )
    start, (axis,), _ = parts(text)
    assert axis == "tile.indexed %loaded : tensor<64xi32>"
    assert start == "arith.extsi %first : i32 to i64"


@pytest.mark.parametrize(
    ("predicate", "operand_order", "low", "high"),
    [
        ("slt", "%offsets, %ns", "0", "n - first"),
        ("sgt", "%ns, %offsets", "0", "n - first"),
        ("sle", "%offsets, %ns", "0", "n - first + 1"),
        ("sge", "%offsets, %ns", "n - first", "64"),
        ("sgt", "%offsets, %ns", "n - first + 1", "64"),
    ],
)
def test_comparison_with_a_scalar_is_a_range(predicate: str, operand_order: str, low: str, high: str) -> None:
    text = load(
        "%o = arith.addi %firsts, %range : tensor<64xi32>",
        f"%m = arith.cmpi {predicate}, {operand_order} : tensor<64xi32>",
    )
    _, _, (range_,) = parts(text)
    ends = re.match(r"tile.range (%\w+) to (%\w+)", range_)
    assert ends and " where " not in text

    def shown(name: str) -> str:
        """Return the arithmetic of a range's end, without the clamp to the tile."""
        what = definition(text, name)
        clamp = re.match(r"arith.(?:minsi|maxsi) (%\w+), ", what)
        if clamp:
            return shown(clamp[1])
        term = re.match(r"arith.(addi|subi) (%\w+), (%\w+)", what)
        if term:
            return f"{shown(term[2])} {'+' if term[1] == 'addi' else '-'} {shown(term[3])}"
        return what.replace("arith.extsi %", "").removesuffix(" : i32 to i64")

    assert (shown(ends[1]), shown(ends[2])) == (low, high)


FROM_ANYWHERE = "%ss = tt.splat %s : i32 -> tensor<64xi32>\n%o = arith.addi %ss, %range : tensor<64xi32>"


@pytest.mark.parametrize("start", ["%aligned", "%counted", "%carried"])
def test_a_tile_that_starts_at_a_multiple_of_its_extent_ends_before_the_largest_integer(start: str) -> None:
    text = to_structured(f"""module {{ {HEAD}
      %c0 = arith.constant 0 : i32
      %c192 = arith.constant 192 : i32
      %odd = arith.muli %n, %s : i32
      %aligned = arith.muli %odd, %c192 : i32
      %end = scf.for %counted = %first to %n step %c192 iter_args(%carried = %aligned) -> (i32) : i32 {{
        %starts = tt.splat {start} : i32 -> tensor<64xi32>
        %o = arith.addi %range, %starts : tensor<64xi32>
        %m = arith.cmpi slt, %o, %ns : tensor<64xi32>
        %from = tt.addptr %ps, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
        %value = tt.load %from, %m : tensor<64x!tt.ptr<f32>>
        %to = tt.addptr %qs, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
        tt.store %to, %value : tensor<64x!tt.ptr<f32>>
        %next = arith.addi %carried, %c192 : i32
        scf.yield %next : i32
      }}
      tt.return }} }}""")
    assert re.search(r"tile.load .* in \[", text) and " where " not in text


def test_a_tile_that_starts_anywhere_keeps_its_mask_for_where_integers_end() -> None:
    text = load(FROM_ANYWHERE, "%m = arith.cmpi slt, %o, %ns : tensor<64xi32>")
    access = next(op for op in parse(text).walk() if isinstance(op, LoadOp))
    assert access.mask is not None
    (whole,) = sufficient(access.mask) or []
    assert isinstance(whole.owner, CmpiOp) and whole.owner.predicate_name == "sle"
    assert constant_value(whole.owner.operands[1]) == 2**31 - 64


def test_sums_before_a_remainder_wrap_around_before_they_are_extended() -> None:
    names = (("%w", "%o"), ("%ns64", "%ns"))
    wide = "".join(f"{name} = arith.extsi {of} : tensor<64xi32> to tensor<64xi64>\n" for name, of in names)
    text = load(
        f"{FROM_ANYWHERE}\n{wide}%r = arith.remsi %w, %ns64 : tensor<64xi64>\n"
        "%t = arith.trunci %r : tensor<64xi64> to tensor<64xi32>"
    )
    assert "tile.wrapped" not in text
    text = load("%o = arith.remsi %offsets, %ns : tensor<64xi32>")
    assert re.search(r"tile.wrapped .* : i32$", text, re.MULTILINE)


def test_comparison_that_is_no_range_stays_a_mask() -> None:
    text = load(
        "%o = arith.addi %firsts, %range : tensor<64xi32>",
        "%odd = arith.andi %range, %ns : tensor<64xi32>\n%m = arith.cmpi ne, %odd, %firsts : tensor<64xi32>",
    )
    assert re.search(r"tile.load .* where %m", text)


def test_pointers_that_a_loop_moves_evenly_become_a_number() -> None:
    text = to_structured(f"""module {{ {HEAD}
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %zero = arith.constant dense<0.0> : tensor<64xf32>
      %from = tt.addptr %ps, %offsets : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %step = tt.splat %s : i32 -> tensor<64xi32>
      %end, %value = scf.for %k = %c0 to %n step %c1 iter_args(%at = %from, %sum = %zero)
          -> (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) : i32 {{
        %x = tt.load %at : tensor<64x!tt.ptr<f32>>
        %more = arith.addf %sum, %x : tensor<64xf32>
        %next = tt.addptr %at, %step : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
        scf.yield %next, %more : tensor<64x!tt.ptr<f32>>, tensor<64xf32>
      }} {TAIL} }}""")
    assert "-> (i64, tensor<64xf32>)" in text
    assert "tensor<64x!tt.ptr" not in text


def test_structured_form_reads_back_as_it_was_written() -> None:
    text = load(
        "%o = arith.remsi %offsets, %ns : tensor<64xi32>", "%m = arith.cmpi slt, %offsets, %ns : tensor<64xi32>"
    )
    assert str(parse(text)) + "\n" == text


def constant_bits(literal: str) -> list[int]:
    """Return the bits of a constant's elements. Its text is parsed again in between, as in the next stage."""
    text = f"module {{ tt.func public @k() {{ %c = arith.constant {literal} tt.return }} }}"
    first, second = parse(text), parse(str(parse(text)))
    ops = [next(op for op in module.walk() if isinstance(op, ConstantOp)) for module in (first, second)]
    assert ops[0].bits == ops[1].bits and ops[0].result.type == ops[1].result.type
    return [item.data for item in ops[0].bits]


@pytest.mark.parametrize(
    ("literal", "bits"),
    [
        ("dense<0xFF800000> : tensor<4xf32>", [0xFF800000]),
        ("dense<0x7FC00000> : tensor<4xf32>", [0x7FC00000]),
        ("dense<0x7FA00001> : tensor<4xf32>", [0x7FA00001]),
        ("dense<0xFFC0> : tensor<2x4xbf16>", [0xFFC0]),
        ("dense<0x7E01> : tensor<4xf16>", [0x7E01]),
        ("dense<0x7FF8000000000001> : tensor<4xf64>", [0x7FF8000000000001]),
        ("dense<0x7E> : tensor<4xf8E5M2>", [0x7E]),
        ("dense<-0.000000e+00> : tensor<4xf8E5M2>", [0x80]),
        ("0x7FA00001 : f32", [0x7FA00001]),
        ("0x7C01 : f16", [0x7C01]),
        ("-0.000000e+00 : f64", [1 << 63]),
        # The nearest bf16 is above the decimal. Truncation would give 0x3E99.
        ("3.007810e-01 : bf16", [0x3E9A]),
        ("dense<3.007810e-01> : tensor<4xbf16>", [0x3E9A]),
        ("1.401300e-45 : f32", [1]),
        ("5.960460e-08 : f16", [1]),
        # Just above the middle of 1 and the next f32. The nearest f64 is the middle itself.
        ("1.00000005960464477540 : f32", [0x3F800001]),
        ("true", [1]),
        ("dense<true> : tensor<4xi1>", [1]),
        ("dense<[true, false]> : tensor<2xi1>", [1, 0]),
        ("dense<-1> : tensor<4xi8>", [0xFF]),
        ("-9223372036854775808 : i64", [1 << 63]),
        ("dense<[[1, -2], [3, 4]]> : tensor<2x2xi16>", [1, 0xFFFE, 3, 4]),
        ("dense<[1.000000e+00, 0x7FC00000]> : tensor<2xf32>", [0x3F800000, 0x7FC00000]),
        ('dense<"0x0000807F0100C0FF"> : tensor<2xf32>', [0x7F800000, 0xFFC00001]),
        ("dense<> : tensor<0xf32>", []),
    ],
)
def test_constants_keep_their_bits(literal: str, bits: list[int]) -> None:
    assert constant_bits(literal) == bits


@pytest.mark.parametrize(
    ("type", "numbers"),
    [("f16", range(0, 1 << 16, 31)), ("bf16", range(5, 1 << 16, 31)), ("f8E5M2", range(1 << 8))],
)
def test_numbers_of_a_narrow_type_are_read_and_printed_exactly(type: str, numbers: range) -> None:
    literals = ", ".join(f"0x{bits:X}" for bits in numbers)
    assert constant_bits(f"dense<[{literals}]> : tensor<{len(numbers)}x{type}>") == list(numbers)


@pytest.mark.parametrize("literal", ["1 : f32", "0x1FFFF : f16", "dense<[1, 2]> : tensor<3xi32>", "300 : i8"])
def test_malformed_constant_is_refused(literal: str) -> None:
    with pytest.raises(LoweringError):
        constant_bits(literal)


# The aliases are after the module, where Triton prints them.
UNKNOWN = """module {
  tt.func public @k(%p: !tt.ptr<f32>) {
    "tt.unknown"(%p) ({
      %inner = tt.something %p : i32
    }) : (!tt.ptr<f32>) -> () loc(#loc3)
    tt.return
  }
}
#loc1 = loc("library.py":5:1)
#loc2 = loc("mine.py":7:1)
#loc3 = loc(callsite(#loc1 at #loc2))
"""


def test_an_unknown_operation_is_named_with_the_line_that_called_it() -> None:
    with pytest.raises(UnsupportedOperation) as refused:
        parse(UNKNOWN)
    assert (refused.value.operation, refused.value.place) == ("tt.unknown", "mine.py:7")


@pytest.mark.parametrize(
    ("location", "lines"),
    [
        ('"k.py":3:9', ["k.py:3"]),
        ('"x"(#loc7)', ["k.py:7"]),
        ("callsite(#loc5 at #loc7)", ["lib.py:5", "k.py:7"]),
        ("callsite(#loc9 at #loc7)", ["lib.py:5", "k.py:9", "k.py:7"]),
        ("fused[#loc1, #loc5, #loc7]", ["lib.py:5"]),
        (r'"a \22b\22 \\C \C3\A9.py":3:9', ['a "b" \\C é.py:3']),
        (r'"\C3\A9"(#loc7)', ["k.py:7"]),
        ('"k.py":3:9 to :11', None),
        ("unknown", []),
    ],
)
def test_location_has_the_lines_that_called_it(location: str, lines: list[str] | None) -> None:
    text = f"""module {{ tt.func public @k(%p: !tt.ptr<f32> loc("\\C3\\A9"(#loc7))) {{
      %c = arith.constant 1 : i32 loc(#loc)
      tt.return
    }} }}
#loc = loc({location})
#loc9 = loc(callsite(#loc5 at #loc8))
#loc8 = loc("k.py":9:1)
#loc7 = loc("k.py":7:1)
#loc5 = loc("lib.py":5:1)
#loc1 = loc(unknown)
"""
    if lines is None:
        with pytest.raises(LoweringError):
            parse(text)
        return
    op = next(op for op in parse(text).walk() if isinstance(op, ConstantOp))
    assert [f"{line.filename.data}:{line.line.data}" for line in source_lines(op.location)] == lines


NUMBERED = """
module { tt.func public @k(%p: !tt.ptr<f32>) {
  %a = arith.constant 1 : i32
  %a_1 = tt.addptr %p, %a : !tt.ptr<f32>, i32
  %a_1_0 = tt.addptr %a_1, %a : !tt.ptr<f32>, i32
  %a_1_1 = tt.load %a_1_0 : !tt.ptr<f32>
  tt.store %a_1, %a_1_1 : !tt.ptr<f32>
  tt.return
} }
"""


def test_names_that_end_in_numbers_stay_different_when_they_are_printed() -> None:
    """Values of a kernel's variable a_1 are named a_1, a_1_0 and a_1_1. xDSL removes one number, and adds one."""
    text = str(parse(NUMBERED))
    assert str(parse(text)) == text
    defined = re.findall(r"(%\w+) = ", text)
    assert len(set(defined)) == len(defined) == 4
    assert str(parse(to_structured(NUMBERED)))


def test_a_file_whose_name_is_not_ascii_is_read_again_from_structured_form() -> None:
    text = to_structured(r"""module { tt.func public @k(%p: !tt.ptr<f32> loc("\C3\A9"(#loc))) {
      %x = tt.load %p : !tt.ptr<f32> loc(#loc)
      tt.store %p, %x : !tt.ptr<f32> loc(#loc)
      tt.return
    } }
#loc = loc("jos\C3\A9\\k.py":3:1)
""")
    load = next(op for op in parse(text).walk() if isinstance(op, LoadOp))
    assert [line.filename.data for line in source_lines(load.location)] == [r"josé\k.py"]


@pytest.mark.parametrize(
    "text",
    [
        "#loc = loc(#loc)\n",
        '#loc = loc("\\ff":1:1)\nmodule {\n}\n',
        f'module attributes {{"{"a" * 99}\n = 1 : i32}} {{\n}}\n',
        f'module attributes {{"{"a" * 99}\\q" = 1 : i32}} {{\n}}\n',
    ],
    ids=["a location that names itself", "no UTF-8", "a string without an end", "an unknown escape"],
)
def test_text_that_nobody_printed_is_refused_like_other_malformed_text(text: str) -> None:
    with pytest.raises(LoweringError, match="cannot read this IR"):
        parse(text)
