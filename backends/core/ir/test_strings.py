"""String literals of other languages (strings.py), and the writers that a path of a user's reaches."""

from __future__ import annotations

import ast
import re

import pytest
from foundry_core.codegen.lines import mark
from foundry_core.codegen.typed import write_typed_llvm
from foundry_core.emit.mlir import Text
from foundry_core.ir.parse import read_place
from foundry_core.strings import c_string, llvm_string, llvm_text, spirv_string
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

ODD = [
    "plain.py",
    "añadir.py",
    "加法/🦙.py",
    "a\"b'c",
    "back\\slash\\",
    "\\22\\n\\0A",
    "a\nb\tc\r\x01\x7f\x85\u2028",
    "100%s %d ??/ ??' */ /* // ; # $HOME `id` {x}",
    "",
]
# What MLIR's and LLVM's lexers take for a string.
LITERAL = r'"(?:[ !#-\[\]-~]|\\[0-9A-F]{2})*"'


@pytest.mark.parametrize("text", ODD)
def test_a_string_literal_has_the_text_and_nothing_that_ends_it(text: str) -> None:
    written = llvm_string(text)
    assert re.fullmatch(LITERAL, written)
    assert llvm_text(written[1:-1]) == text
    # Octal escapes are the same in Python.
    in_c = c_string(text)
    assert ast.literal_eval("b" + in_c) == text.encode()
    assert in_c.isascii() and in_c.isprintable() and "?" not in in_c and "*" not in in_c
    words = spirv_string(text)
    assert len(words) % 4 == 0 and words.rstrip(b"\0") == text.encode() and words.endswith(b"\0")


def test_escapes_that_a_person_writes_in_mlir_are_read() -> None:
    assert llvm_text(r"a\"b\\c\C3\b1") == 'a"b\\cñ'
    assert llvm_text(r"\FF", "replace") == "\N{REPLACEMENT CHARACTER}"
    with pytest.raises(UnicodeDecodeError):
        llvm_text(r"\FF")


@pytest.mark.parametrize("path", ODD)
def test_a_path_survives_mlir_and_llvm_ir(path: str) -> None:
    text = Text()
    with text.location(FileLineColLoc(StringAttr(path), IntAttr(4), IntAttr(1))):
        text.integer(1)
        text.line("llvm.return")
    place = re.search(rf"^#at0 = loc\(({LITERAL}):4:1\)$", text.function("k", []), re.MULTILINE)
    assert place and read_place(place[1], "4", "1").filename.data == path

    generic = f""""builtin.module"() ({{
  "llvm.func"() <{{function_type = !llvm.func<void ()>, linkage = #llvm.linkage<external>, sym_name = "k"}}> ({{
    "llvm.return"() : () -> () loc({llvm_string(path)}:4:1)
  }}) : () -> () loc({llvm_string(path)}:3:1)
}}) : () -> ()
"""
    typed = write_typed_llvm(generic, triple="t", datalayout="d")
    _, file = mark(typed.replace("define void", "define spir_kernel void"))
    assert file == path
