"""Parses TTIR text, as Triton prints it, to an xDSL module."""

from __future__ import annotations

import re

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.cf import BranchOp, ConditionalBranchOp
from xdsl.dialects.math import Math
from xdsl.dialects.scf import Scf
from xdsl.ir import Dialect, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from .dialects.arith import ArithOnTensors
from .dialects.llvm import LLVM
from .dialects.tile import Tile
from .dialects.tt import TT
from .effects import refuse_undeclared
from .errors import LoweringError, UnsupportedOperation

# A return under a condition is written as branches (front/returns.py).
_CF = Dialect("cf", [BranchOp, ConditionalBranchOp], [])
DIALECTS = (Builtin, ArithOnTensors, Math, Scf, _CF, LLVM, TT, Tile)

_OPERATION = re.compile(r'^\s*(?:%[\w:$.\-, %#]+ = )?"?([a-z_]+\.[a-z_0-9.]+)"?')
_ALIAS = re.compile(r"^#loc\d* = .*$", re.MULTILINE)
_USED_ALIAS = re.compile(r"loc\((#loc\d*)\)\s*$")
# Barriers: tl.debug_barrier, and those that compiling.py inserts into loops; in the GPU dialect until Triton 3.6.
_BARRIER = re.compile(r"^( *)(?:gpu|ttg)\.barrier\b.*\n", re.MULTILINE)
# MLIR omits the parentheses if a loop carries nothing; xDSL 0.74 requires them.
_CARRIES_NOTHING = re.compile(r"^( *scf\.while) : ", re.MULTILINE)
# Hints of tl.range(disable_licm=True) and tl.condition to LLVM's passes, in attributes of a dialect that xDSL lacks.
_LOOP_HINTS = re.compile(
    r"^#loop_(?:annotation|licm)\d* = .*\n|llvm\.loop_annotation = #loop_annotation\d*(?:, )?", re.MULTILINE
)
_NUMBERED = re.compile(r"_\d+$")
_PLACE = re.compile(r'"([^"]+)":(\d+):\d+')


def context() -> Context:
    """Build an xDSL context with the dialects of TTIR and structured form."""
    made = Context()
    for dialect in DIALECTS:
        made.load_dialect(dialect)
    return made


def _aliases_first(text: str) -> str:
    """Move `#locN = loc(...)` above the module, ordered so that each alias uses earlier ones only.

    MLIR prints most aliases below the module, but xDSL resolves an alias where it reads it.
    """
    aliases = {line.split(" = ", 1)[0]: line for line in _ALIAS.findall(text)}
    ordered: dict[str, str] = {}

    def visit(name: str) -> None:
        if name in ordered or name not in aliases:
            return
        for other in re.findall(r"#loc\d*", aliases[name].split(" = ", 1)[1]):
            visit(other)
        ordered[name] = aliases[name]

    for name in aliases:
        visit(name)
    return "\n".join([*ordered.values(), _ALIAS.sub("", text)])


def _without_barriers(text: str) -> str:
    """Replace barriers between the threads of a program by tile.keep, an operation that only has an effect.

    Every mapping keeps Triton's order of a program's loads and stores, so a barrier changes nothing. Inductor and users
    insert barriers because a GPU backend does not keep that order. The effect remains, because a loop with a barrier is
    not deleted.
    """
    return _BARRIER.sub(r"\1tile.keep\n", text)


def _refuse_unknown(text: str, known: set[str]) -> None:
    """Refuse the first operation that no dialect here has, with its source line; the parser would name neither."""
    places: dict[str, str] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("#loc"):
            alias, location = line.split(" = ", 1)
            # Take the last place: for `callsite(callee at caller)`, the caller.
            direct, inner = _PLACE.findall(location), re.findall(r"#loc\d*", location)
            places[alias] = ":".join(direct[-1]) if direct else places.get(inner[-1], "") if inner else ""
            continue
        found = _OPERATION.match(line)
        if found and found[1] not in known:
            # MLIR prints the location of an operation with a region after the region, on the line that closes it.
            indent = len(line) - len(line.lstrip())
            ends = (at for at in lines[number:] if at[:indent].isspace() and not at[indent].isspace())
            used = next((hit for at in ends if (hit := _USED_ALIAS.search(at))), None)
            raise UnsupportedOperation(found[1], places.get(used[1], "") if used else "")


def parse(text: str) -> ModuleOp:
    """Parse TTIR or structured form to a module.

    Raises:
        UnsupportedOperation: the text has an operation that the lowering does not know, or whose effects on memory are
            not declared.
        LoweringError: the text is not well-formed: a defect of ours, or new syntax of a new Triton.
    """
    text = _CARRIES_NOTHING.sub(r"\1 () : ", _without_barriers(_aliases_first(_LOOP_HINTS.sub("", text))))
    made = context()
    _refuse_unknown(text, {op.name for dialect in DIALECTS for op in dialect.operations})
    try:
        module = Parser(made, text).parse_module()
    except ParseError as error:
        raise LoweringError(f"cannot read this IR: {error}") from error
    refuse_undeclared(module)
    for op in module.walk():
        for value in (*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)):
            _shorten_name(value)
    return module


def _shorten_name(value: SSAValue) -> None:
    """Remove all numbers from the end of a value's name.

    xDSL removes one number, and its printer appends one that may exist already. With a variable `a_1` in the kernel,
    MLIR names values a_1, a_1_0 and a_1_1, and two of them would be printed as a_1.
    """
    while value.name_hint is not None and _NUMBERED.search(value.name_hint):
        value.name_hint = value.name_hint
