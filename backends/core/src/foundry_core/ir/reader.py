"""xDSL's parser with two shortcuts for what a kernel's text repeats in every line: locations and types.

They take half the time of reading a kernel in xDSL's parser, which reads each one token by token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr
from xdsl.ir import TypeAttribute
from xdsl.parser import Parser

from ..strings import llvm_text

STRING = r'"(?:[^"\\]|\\.)*"'
PLACE = re.compile(rf"({STRING}):(\d+):(\d+)")
_LOCATION = re.compile(rf"loc\((?:{STRING}\((#loc\d*)\)|(#loc\d*)|{PLACE.pattern})\)")
# A string as xDSL's lexer takes it, a comment, or the quotation mark of what is no string.
_QUOTED = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"|//.*|(")')
# A type without strings and functions, with up to two nested brackets, as tensor<8x!tt.ptr<f32>>.
_TYPE = re.compile(r"!?[A-Za-z_][\w.]*(?:<(?:[^<>()\"]|<[^<>()\"]*>)*>)?(?![<\w.])")


def read_place(file: str, line: str, column: str) -> FileLineColLoc:
    """Return the location of `file:line:column`, each as in the text."""
    return FileLineColLoc(StringAttr(llvm_text(file[1:-1])), IntAttr(int(line)), IntAttr(int(column)))


class TextParser(Parser):
    """xDSL's parser, except that a string may have characters that are not ASCII. xDSL takes it for bytes."""

    def parse_optional_str_literal(self) -> str | None:
        found = super().parse_optional_str_literal()
        if found is None and (read := self.parse_optional_bytes_literal()) is not None:
            return read.decode()
        return found


class Reader(TextParser):
    """Parses the text of a module.

    Args:
        context: the known dialects.
        text: the module, without the definitions of `locations`.
        locations: what the names of locations, such as `#loc1`, mean. Names of values, `"x"(#loc1)`, are left out.

    Raises:
        ValueError: a string does not end on its line, or has an escape that MLIR lacks. xDSL's lexer would take time
            that doubles with each of its characters (xDSL 0.74).
    """

    def __init__(self, context: Context, text: str, locations: Mapping[str, LocationAttr]) -> None:
        # First: the lexer reads a token when it is made.
        if wrong := next((found for found in _QUOTED.finditer(text) if found[1]), None):
            line = text.count("\n", 0, wrong.start()) + 1
            raise ValueError(f"line {line} has a string that does not end, or has an unknown escape")
        super().__init__(context, text)
        self.attribute_aliases |= locations
        self._text = text
        self._locations = locations
        self._types: dict[str, TypeAttribute] = {}

    def parse_optional_location(self) -> LocationAttr | None:
        found = _LOCATION.match(self._text, self.pos)
        if found is None:
            return super().parse_optional_location()
        named, alias, *place = found.groups()
        location = read_place(*place) if place[0] else self._locations.get(named or alias)
        if location is None:
            return super().parse_optional_location()
        self._resume_from(found.end())
        return location

    def parse_optional_type(self) -> TypeAttribute | None:
        found = _TYPE.match(self._text, self.pos)
        if found is None:
            return super().parse_optional_type()
        known = self._types.get(found[0])
        if known is not None:
            self._resume_from(found.end())
            return known
        start = self.pos
        parsed = super().parse_optional_type()
        if parsed is not None and self._text[start : self.pos].rstrip() == found[0]:
            self._types[found[0]] = parsed
        return parsed
