"""Lines of IR that were parsed before become operations without xDSL's parser (ir/parse.py): the same operations."""

from __future__ import annotations

from pathlib import Path

import pytest
from foundry_core.errors import LoweringError
from foundry_core.ir import parse as reader
from foundry_core.ir.parse import parse
from xdsl.dialects.builtin import TensorType
from xdsl.parser import Parser

TEXTS = sorted((Path(__file__).parent.parent / "tests" / "texts").glob("*.tt*ir"))
LAYOUT = "#ttg.blocked<{sizePerThread = [%d], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"


def module(*lines: str, each: int = 1) -> str:
    body = "\n".join(f"    {line} loc(#loc)" for line in (*lines, "tt.return"))
    return (
        f"#blocked = {LAYOUT % each}\n#loc = loc(unknown)\nmodule {{\n"
        f"  tt.func public @f(%x: i32 loc(#loc), %y: i64 loc(#loc)) {{\n{body}\n  }} loc(#loc)\n}} loc(#loc)\n"
    )


def described(text: str) -> list[object]:
    """Return all that a module says of its operations, without what differs between two parses of it."""
    numbers: dict[object, int] = {}
    found: list[object] = []
    for op in parse(text).walk():
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    numbers[argument] = len(numbers)
        for result in op.results:
            numbers[result] = len(numbers)
        results = [(result.type, result.name_hint) for result in op.results]
        operands = [numbers.get(operand) for operand in op.operands]
        found.append((type(op), op.location, dict(op.properties), dict(op.attributes), results, operands))
    return found


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_text_that_is_read_again_gives_the_same_module(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text(encoding="utf-8")
    monkeypatch.setattr(reader, "_parsed", {})
    monkeypatch.setattr(reader.Reader, "_line", lambda self: None)
    by_xdsl = described(text)
    monkeypatch.undo()
    assert described(text) == by_xdsl
    assert described(text) == by_xdsl


def test_known_line_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    text = module("%a = arith.addi %x, %x : i32", "%b = arith.addi %a, %a : i32")
    parse(text)
    asked: list[str] = []
    native = Parser.parse_operation

    def parse_operation(self: Parser) -> object:
        asked.append(self._current_token.text)
        return native(self)

    monkeypatch.setattr(Parser, "parse_operation", parse_operation)
    parse(text)
    assert asked == ["module", "tt.func"]


def test_known_line_with_operands_of_another_type_is_refused() -> None:
    parse(module("%a = arith.addi %x, %x : i32"))
    with pytest.raises(LoweringError, match="operand is used with type i32"):
        parse(module("%a = arith.addi %y, %y : i32"))


def test_known_line_that_names_a_value_twice_is_not_one_that_names_two() -> None:
    same, two = (
        module("%z = arith.addi %x, %x : i32", f"%a = arith.subi {names} : i32") for names in ("%x, %x", "%x, %z")
    )
    for text in (same, two, same):
        (subtraction,) = [op for op in parse(text).walk() if op.name == "arith.subi"]
        assert (subtraction.operands[0] is subtraction.operands[1]) is (text is same)


def test_alias_means_what_its_module_says() -> None:
    line = "%a = tt.splat %x : i32 -> tensor<128xi32, #blocked>"
    types = []
    for each in (1, 2, 1):
        (splat,) = [op for op in parse(module(line, each=each)).walk() if op.name == "tt.splat"]
        types.append(splat.results[0].type)
    assert all(isinstance(type, TensorType) for type in types)
    assert types[0] == types[2] != types[1]


def test_known_line_cannot_define_a_name_again() -> None:
    parse(module("%a = arith.addi %x, %x : i32"))
    with pytest.raises(LoweringError, match="already defined"):
        parse(module(*["%a = arith.addi %x, %x : i32"] * 2))


def test_texts_of_strings_stay_their_own() -> None:
    lines = ['tt.assert %%a, "%s is wrong" : i1' % name for name in ("%a", "%b")]  # noqa: UP031
    text = module("%a = arith.constant true", "%b = arith.constant false", *lines)
    for _ in range(2):
        messages = [op.properties for op in parse(text).walk() if op.name == "tt.assert"]
        assert messages[0] != messages[1]
