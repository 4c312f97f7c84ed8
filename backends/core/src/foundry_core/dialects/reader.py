"""xDSL's parser with two shortcuts for what a kernel's text repeats in every line: locations and types.

They take half the time of reading a kernel in xDSL's parser, which reads each one token by token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import TypeAttribute
from xdsl.parser import Parser

_ALIAS = re.compile(r"loc\((#loc\d*)\)")
# A type without strings and functions, with up to two nested brackets, as tensor<8x!tt.ptr<f32>>.
_TYPE = re.compile(r"!?[A-Za-z_][\w.]*(?:<(?:[^<>()\"]|<[^<>()\"]*>)*>)?(?![<\w.])")


class Reader(Parser):
    """Parses the text of a module.

    Args:
        context: the known dialects.
        text: the module, without the definitions of `locations`.
        locations: what the names of locations, such as `#loc1`, mean.
    """

    def __init__(self, context: Context, text: str, locations: Mapping[str, LocationAttr]) -> None:
        super().__init__(context, text)
        self.attribute_aliases |= locations
        self._text = text
        self._locations = locations
        self._types: dict[str, TypeAttribute] = {}

    def parse_optional_location(self) -> LocationAttr | None:
        found = _ALIAS.match(self._text, self.pos)
        if found is None or found[1] not in self._locations:
            return super().parse_optional_location()
        self._resume_from(found.end())
        return self._locations[found[1]]

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
