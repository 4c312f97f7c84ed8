"""The lexer that reads IR (ir/parse.py) has the tokens of xDSL's, which it asks for few of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from foundry_core.emit.mlir import Reg
from foundry_core.ir.parse import Lexer
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind

FOLDER = Path(__file__).parent
TEXTS = sorted([*FOLDER.glob("*.mlir"), *(FOLDER.parent / "tests" / "texts").glob("*.tt*ir")])
ODD = (
    "{-# a: 1 #-} {",
    "// a comment\n%a = -1.5e3 : f32 // another",
    "0x1F 0x 4x8xf32 12 12.5 3.e4 7_8",
    '"s\\"t" @f @"g" ^bb0 !tt.ptr<f32> -> - ... /',
    "%0#1 %a-b %a->%b %_x1:2 %1a %",
    "#loc1 #-} #a-b#-} #a-}",
    "a.b$c aé",
    "%aé",
    "a \u00a0b",
    "é",
    "",
)


def tokens(lexer: MLIRLexer) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    while not found or found[-1][0] is not MLIRTokenKind.EOF:
        try:
            token = lexer.lex()
        except ParseError as error:
            return [*found, (str(error), lexer.pos)]
        found.append((token.kind, token.span.start, token.span.end))
    return found


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_have_the_tokens_and_the_errors_of_xdsl(text: str) -> None:
    assert tokens(Lexer(Input(text, ""))) == tokens(MLIRLexer(Input(text, "")))


def test_xdsl_is_asked_for_few_of_a_kernels_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    native, asked, count = MLIRLexer.lex, [0], 0

    def lex(self: MLIRLexer) -> MLIRToken:
        asked[0] += 1
        return native(self)

    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        whole = tokens(MLIRLexer(Input(text, "")))
        with monkeypatch.context() as patch:
            patch.setattr(MLIRLexer, "lex", lex)
            assert tokens(Lexer(Input(text, ""))) == whole, path.name
        count += len(whole)
    assert asked[0] < count / 8


def test_a_register_is_hashed_and_compared_without_python() -> None:
    assert Reg.__hash__ is tuple.__hash__ and Reg.__eq__ is tuple.__eq__
