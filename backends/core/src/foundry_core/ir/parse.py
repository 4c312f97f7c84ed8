"""Parses TTIR text, as Triton prints it, to an xDSL module."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    Builtin,
    CallSiteLoc,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.cf import BranchOp, ConditionalBranchOp
from xdsl.dialects.math import Math
from xdsl.dialects.scf import Scf
from xdsl.ir import Attribute, Dialect, Operation, SSAValue, TypeAttribute
from xdsl.parser import Parser
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.lexer import Span, Token
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRToken, MLIRTokenKind

from ..errors import LoweringError, UnsupportedOperation, source_line
from ..strings import llvm_text
from .arith import LLVM, ArithOnTensors
from .effects import KEEPS_CODE, refuse_undeclared
from .tile import Tile
from .tt import TT
from .ttg import TTG

STRING = r'"(?:[^"\\]|\\.)*"'
PLACE = re.compile(rf"({STRING}):(\d+):(\d+)")
_LOCATION = re.compile(rf"loc\((?:{STRING}\((#loc\d*)\)|(#loc\d*)|{PLACE.pattern})\)")
# A string as xDSL's lexer takes it, a comment, or the quotation mark of what is no string.
_QUOTED = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"|//.*|(")')
# A type without strings and functions, with up to two nested brackets, as tensor<8x!tt.ptr<f32>>.
_TYPE = re.compile(r"!?[A-Za-z_][\w.]*(?:<(?:[^<>()\"]|<[^<>()\"]*>)*>)?(?![<\w.])")


@functools.lru_cache(1 << 14)
def read_place(file: str, line: str, column: str) -> FileLineColLoc:
    """Return the location of `file:line:column`, each as in the text."""
    return FileLineColLoc(StringAttr(llvm_text(file[1:-1])), IntAttr(int(line)), IntAttr(int(column)))


# The tokens that most of a module consists of, each behind white space. Others are left to xDSL: numbers of several
# parts, strings, comments, and `-`, `{-#` and characters that are not ASCII.
_TOKEN = re.compile(
    r"\s*(?:(?P<BARE_IDENT>[a-zA-Z_][\w.$]*)|(?P<PERCENT_IDENT>%(?:[0-9]+|[a-zA-Z$._-][\w$.-]*))|"
    r"(?P<HASH_IDENT>#(?!-\})(?:[0-9]+|[a-zA-Z$._-][\w$.-]*))|(?P<INTEGER_LIT>[0-9]+(?![\w.]))|"
    r"(?P<punctuation>->|[:,()}\[\]<>=+*?|]|\{(?!-#)))",
    re.ASCII,
)
_KINDS = {name: MLIRTokenKind[name] for name in _TOKEN.groupindex if name != "punctuation"}


class Lexer(MLIRLexer):
    """xDSL's lexer, with one regular expression for most tokens instead of three or four for each."""

    def lex(self) -> MLIRToken:
        found = _TOKEN.match(self.input.content, self.pos)
        if found is None:
            return super().lex()
        name = found.lastgroup
        assert name is not None
        start, self.pos = found.span(name)
        kind = _KINDS.get(name) or KIND_BY_PUNCTUATION_SPELLING[found[name]]
        return Token(kind, Span(start, self.pos, self.input))


class TextParser(Parser):
    """xDSL's parser, except that a string may have characters that are not ASCII. xDSL takes it for bytes."""

    def parse_optional_str_literal(self) -> str | None:
        found = super().parse_optional_str_literal()
        if found is None and (read := self.parse_optional_bytes_literal()) is not None:
            return read.decode()
        return found


# A value, or what may be an alias of an attribute or a type.
_NAME = re.compile(r"(%(?:[0-9]+|[a-zA-Z$._-][\w$.-]*)(?:#[0-9]+)?|[#!]\w+(?![\w.]))", re.ASCII)


class _Line(NamedTuple):
    """A line with an operation and its location.

    Attributes:
        key: its text without the location and the name of the result, with numbers for values and with what aliases
            stand for.
        result: the name of the result; empty if there is none.
        values: the values that it names, once each.
        end: where it ends.
    """

    key: tuple[str | int, ...]
    result: str
    values: list[SSAValue]
    location: LocationAttr
    end: int


class _Parsed(NamedTuple):
    """What the key of a line says of its operation.

    Attributes:
        order: for each operand, which of the line's values it is.
    """

    kind: type[Operation]
    order: Sequence[int]
    operand_types: Sequence[Attribute]
    result_types: Sequence[Attribute]
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]


# The lines that were parsed in this process, by their keys.
_parsed: dict[tuple[str | int, ...], _Parsed] = {}
_MOST_PARSED = 1 << 15


class Reader(TextParser):
    """Parses the text of a module.

    The kernels of a process have many lines in common, but for the names of values. xDSL parses the first of them, and
    the next ones become copies of its operation. This is done for lines that end with a location, because an operation
    ends with it.

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
        self._parser_state = ParserState(Lexer(self.lexer.input))
        self.attribute_aliases |= locations
        self._text = text
        self._locations = locations
        self._types: dict[str, TypeAttribute] = {}
        # What each alias stands for, without other aliases.
        self._meanings: dict[str, str] = {}

    def _parse_alias_def(self) -> None:
        start = self.pos
        super()._parse_alias_def()  # type: ignore[no-untyped-call]
        name, *meaning = _NAME.split(self._text[start : self.pos])[1:]
        self._meanings[name] = "".join(self._meanings.get(piece, piece) for piece in meaning)

    def parse_optional_operation(self) -> Operation | None:
        start, line = self.pos, self._line()
        if line is None:
            return super().parse_optional_operation()
        known = _parsed.get(line.key)
        if known is not None:
            operands = [line.values[number] for number in known.order]
            if [operand.type for operand in operands] == known.operand_types:
                op = known.kind.create(
                    operands=operands,
                    result_types=known.result_types,
                    properties=known.properties,
                    attributes=known.attributes,
                    location=line.location,
                )
                if line.result:
                    span = Span(start, start + len(line.result), self.lexer.input)
                    self._register_ssa_definition(line.result[1:], op.results, span)
                self._resume_from(line.end)
                return op
        read = super().parse_optional_operation()
        is_line = read is not None and not read.regions and not read.successors and read.location == line.location
        if is_line and not self._text[line.end : self.pos].strip() and len(set(line.values)) == len(line.values):
            assert read is not None
            if len(_parsed) >= _MOST_PARSED:
                _parsed.clear()
            _parsed[line.key] = _Parsed(
                type(read),
                [line.values.index(operand) for operand in read.operands],
                [operand.type for operand in read.operands],
                [result.type for result in read.results],
                dict(read.properties),
                dict(read.attributes),
            )
        return read

    def _line(self) -> _Line | None:
        """Return the rest of this line, if it may be an operation with a location whose values are known."""
        start = self.pos
        end = self._text.find("\n", start)
        body = self._text[start:end].rpartition(" loc(")[0]
        found = _LOCATION.match(self._text, start + len(body) + 1)
        # What looks like a value in a string is none.
        if not body or '"' in body or found is None or found.end() != end:
            return None
        location = self._read_location(found)
        key: list[str | int] = [*_NAME.split(body)]
        result = ""
        if key[0] == "" and str(key[2]).startswith(" = "):
            result = str(key[1])
            key[1] = "%"
        names: dict[str, int] = {}
        for at in range(3 if result else 1, len(key), 2):
            name = str(key[at])
            meaning = names.setdefault(name, len(names)) if name[0] == "%" else self._meanings.get(name)
            if meaning is None:
                return None
            key[at] = meaning
        values: list[SSAValue] = []
        for name in names:
            base, _, number = name.partition("#")
            several = self.ssa_values.get(base[1:], ())
            if int(number or 0) >= len(several):
                return None
            values.append(several[int(number or 0)])
        return None if location is None else _Line(tuple(key), result, values, location, end)

    def _read_location(self, found: re.Match[str]) -> LocationAttr | None:
        named, alias, *place = found.groups()
        return read_place(*place) if place[0] else self._locations.get(named or alias)

    def parse_optional_location(self) -> LocationAttr | None:
        found = _LOCATION.match(self._text, self.pos)
        location = found and self._read_location(found)
        if found is None or location is None:
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


# A return under a condition is written as branches (front/returns.py).
_CF = Dialect("cf", [BranchOp, ConditionalBranchOp], [])
DIALECTS = (Builtin, ArithOnTensors, Math, Scf, _CF, LLVM, TT, TTG, Tile)

_OPERATION = re.compile(r'^\s*(?:%[\w:$.\-, %#]+ = )?"?([a-z_]+\.[a-z_0-9.]+)"?')
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_USED = re.compile(r"#loc\d*")
_NAMED = re.compile(rf"{STRING}\((#loc\d*)\)")
_CALLED = re.compile(r"callsite\((#loc\d*) at (#loc\d*)\)")
_USED_ALIAS = re.compile(r"loc\((#loc\d*)\)\s*$")
# Barriers: tl.debug_barrier, and those that backend/compiler.py puts into loops. Until Triton 3.6, in the GPU dialect.
# Why an operation is not among the dialects, and what to do.
_WHY = {
    "tt.elementwise_inline_asm": "its text is assembly of one kind of GPU\n"
    "  next: write it with functions of tl, or of triton.language.extra.libdevice"
}
_BARRIER = re.compile(r"^( *)(?:gpu|ttg)\.barrier\b.*\n", re.MULTILINE)
# MLIR omits the parentheses if a loop carries nothing; xDSL 0.74 requires them.
_CARRIES_NOTHING = re.compile(r"^( *scf\.while) : ", re.MULTILINE)
# The hint of tl.range(disable_licm=True) and tl.condition, the only one that Triton gives LLVM's passes. It is an
# attribute of a dialect that xDSL lacks.
_LOOP_ALIAS = re.compile(r"^#loop_(?:annotation|licm)\d* = .*\n", re.MULTILINE)
_LOOP_HINT = re.compile(r"llvm\.loop_annotation = #loop_annotation\d*")
_NUMBERED = re.compile(r"_\d+$")


def context() -> Context:
    """Build an xDSL context with the dialects of TTIR and structured form."""
    made = Context()
    for dialect in DIALECTS:
        made.load_dialect(dialect)
    return made


def _locations(text: str, known: Context) -> dict[str, LocationAttr]:
    """Return what each `#locN = loc(...)` means. MLIR prints most of them below the module, in no order.

    Names of values, `"x"(#loc1)`, are left out.
    """
    defined = dict(_ALIAS.findall(text))
    found: dict[str, LocationAttr] = {}

    def visit(name: str) -> LocationAttr:
        if name not in found:
            found[name] = read(defined.get(name, "unknown"))
        return found[name]

    def read(location: str) -> LocationAttr:
        if place := PLACE.fullmatch(location):
            return read_place(*place.groups())
        if named := _NAMED.fullmatch(location):
            return visit(named[1])
        if called := _CALLED.fullmatch(location):
            return CallSiteLoc(visit(called[1]), visit(called[2]))
        for name in _USED.findall(location):
            visit(name)
        return Reader(known, f"loc({location})", found).parse_optional_location() or UNKNOWN_LOC

    for name in defined:
        visit(name)
    return found


def _refuse_unknown(text: str, known: set[str], locations: Mapping[str, LocationAttr]) -> None:
    """Refuse the first operation that no dialect here has, with its source line; the parser would name neither."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = _OPERATION.match(line)
        if found and found[1] not in known:
            # MLIR prints the location of an operation with a region after the region, on the line that closes it.
            indent = len(line) - len(line.lstrip())
            ends = (at for at in lines[number:] if at[:indent].isspace() and not at[indent].isspace())
            used = next((hit for at in ends if (hit := _USED_ALIAS.search(at))), None)
            place = source_line(locations.get(used[1])) if used else None
            at = f"{place.filename.data}:{place.line.data}" if place else ""
            raise UnsupportedOperation(found[1], at, _WHY.get(found[1], "")) from None


def parse(text: str) -> ModuleOp:
    """Parse TTIR or structured form to a module.

    Raises:
        UnsupportedOperation: the text has an operation that the lowering does not know, or whose effects on memory are
            not declared.
        LoweringError: the text is not well-formed: a defect of ours, or new syntax of a new Triton.
    """
    known = context()
    try:
        locations = _locations(text, known)
        text = _LOOP_HINT.sub(KEEPS_CODE, _LOOP_ALIAS.sub("", _ALIAS.sub("", text)))
        # Every mapping keeps Triton's order of a program's loads and stores, so a barrier changes nothing. Inductor
        # and users insert barriers because a GPU backend does not keep that order. The effect remains, because a loop
        # with a barrier is not deleted.
        text = _CARRIES_NOTHING.sub(r"\1 () : ", _BARRIER.sub(r"\1tile.keep\n", text))
        try:
            module = Reader(known, text, locations).parse_module()
        except Exception:
            _refuse_unknown(text, {op.name for dialect in DIALECTS for op in dialect.operations}, locations)
            raise
    except LoweringError:
        raise
    except Exception as error:
        # For malformed text, xDSL raises ParseError or whatever error its own code runs into.
        raise LoweringError(f"cannot read this IR: {error or type(error).__name__}") from error
    refuse_undeclared(module)
    for op in module.walk():
        for value in (*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)):
            # xDSL removes one number from the end of a name, and its printer appends one that may exist already. With a
            # variable `a_1` in the kernel, MLIR names values a_1, a_1_0 and a_1_1, and two would be printed as a_1.
            while value.name_hint is not None and _NUMBERED.search(value.name_hint):
                value.name_hint = value.name_hint
    return module


class _Last(threading.local):
    """The module that this thread read last. All stages of a kernel run in one thread; two kernels may run in two."""

    read: tuple[str, ModuleOp] | None = None


_last = _Last()


def remember(text: str, module: ModuleOp) -> None:
    """Keep the module of which `text` was printed, so that `read_structured` need not parse the text again."""
    _last.read = text, module


def read_structured(text: str) -> ModuleOp:
    """Return the module of a text in structured form, which nobody may change: the remembered one, or parse it.

    Reading a kernel takes longer than anything else that is done with it in Python, and every stage after `tile` reads
    the same text. Only the last kernel of a thread is remembered.

    Raises:
        UnsupportedOperation, LoweringError: see parse.
    """
    last = _last.read
    if last is not None and last[0] == text:
        return last[1]
    module = parse(text)
    remember(text, module)
    return module
