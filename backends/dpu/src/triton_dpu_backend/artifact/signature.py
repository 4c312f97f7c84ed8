"""Read a kernel from its typed-pointer LLVM IR: what a host passes to it at which offsets, and facts about it.

Facts are stored in the IR as named metadata, which LLVM's tools keep:

    !triton.dpu = !{!0, !1}
    !0 = !{!"num_tasklets", !"16"}
    !1 = !{!"block", !"1024"}

This needs only Python, so that a wrapper can be generated on a machine without Triton and LLVM.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from foundry_core.scalars import PASSED
from foundry_core.strings import llvm_string, llvm_text

# The fact that a kernel takes the log of foundry_core.log after its other arguments.
LOG = "log"
# The fact that a program has so many slices (foundry_core.mapping.tasklet.split).
PARTS = "parts"
# MRAM's address space. The other one has pointers that Triton adds for itself and that a kernel here never uses.
MRAM = 255
INTERNAL = 1
# The struct of arguments ends with an unused uint64, so that its size is a multiple of 8 and never 0.
_PAD = 8
# C's type and size of an MRAM address, whatever it points to.
_ADDRESS = ("uint32_t", 4)
# Scalars by their LLVM type: C's type and bytes. LLVM's integers have no sign; C's signed types represent both.
_SCALARS = {row.llvm: (row.c_type, row.bytes) for row in PASSED.values() if not row.carrier.startswith("u")}
_POINTER = re.compile(r"(?P<element>[^*]+?)(?:\s*addrspace\((?P<space>\d{1,9})\))?\s*\*")
_DEFINE = re.compile(r'^define\b[^@\n]*@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[-\w.$]+))\s*\(', re.MULTILINE)
_OPAQUE = re.compile(r"(?<![\w%@.$\"-])ptr(?![\w.$\"-])")
_SCRATCH = re.compile(r"^@__triton_scratch_\S* = internal global \[(\d{1,9}) x ", re.MULTILINE)
_FACTS = "triton.dpu"
_NUMBERED = re.compile(r"^!(\d+) = ", re.MULTILINE)
_FACTS_NODE = re.compile(rf"^!{re.escape(_FACTS)} = !\{{(.*)\}}$", re.MULTILINE)
_FACT = re.compile(r'^!(\d+) = !\{!"([^"]*)", !"([^"]*)"\}$', re.MULTILINE)


class SignatureError(ValueError):
    """The LLVM IR has no callable kernel: it is truncated, not of the dialect, or lacks the requested kernel."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    Attributes:
        index: its position among the kernel's parameters, from 0: the 3 of `--arg 3=100`.
        llvm_type: as in the IR: `float addrspace(255)*`.
        addrspace: of a pointer; None for a scalar.
        element: the LLVM type that a pointer points to; None for a scalar.
        element_bytes: size of that type; 0 for a scalar.
        c_type: type of the field that carries it: a scalar's own type, uint32_t for an MRAM address.
        bytes: size of that field.
        field: its position among the fields of DPU_INPUT_ARGUMENTS; None if it is not passed.
        offset: of that field, in bytes from the start of DPU_INPUT_ARGUMENTS; None if it is not passed.
    """

    index: int
    llvm_type: str
    addrspace: int | None
    element: str | None
    element_bytes: int
    c_type: str
    bytes: int
    field: int | None
    offset: int | None

    @property
    def is_pointer(self) -> bool:
        """Whether it is a pointer, in any address space."""
        return self.addrspace is not None

    @property
    def is_passed(self) -> bool:
        """Whether the host passes a value for it. Triton's internal pointers are null."""
        return self.field is not None


@dataclass(frozen=True)
class Kernel:
    """A kernel.

    Attributes:
        name, parameters: as in the IR.
        arguments_bytes: size of DPU_INPUT_ARGUMENTS with the padding.
        parts: slices of a program, a power of 2. A call of the kernel runs one slice.
    """

    name: str
    parameters: tuple[Parameter, ...]
    arguments_bytes: int
    parts: int

    @property
    def host_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that the host passes values for, in the order of their fields."""
        return tuple(parameter for parameter in self.parameters if parameter.is_passed)


def parse(ir: str, name: str = "") -> Kernel:
    """Read a kernel's signature.

    Args:
        ir: typed-pointer LLVM IR.
        name: the kernel; may be empty if the IR defines exactly one function that is not internal.

    Raises:
        SignatureError: the IR is truncated, has opaque pointers or casts between address spaces, has no such kernel
            (the message names those that it has), or the kernel has a parameter that a host cannot pass.
    """
    # Each function that can be called from outside, and the position where its parameters start.
    functions = {
        match["quoted"] or match["plain"]: match.end()
        for match in _DEFINE.finditer(ir)
        if not re.search(r"\b(internal|private)\b", match[0].split("@")[0])
    }
    if not functions:
        raise SignatureError(
            f"the IR defines no function: it has {len(ir.splitlines())} lines. Where only a preview of it was saved, "
            "write the file with the script's --out"
        )
    if not name and len(functions) > 1:
        raise SignatureError(f"the IR defines several functions, name one of them: {', '.join(functions)}")
    name = name or next(iter(functions))
    if name not in functions:
        raise SignatureError(f"the IR has no kernel {name}; it defines: {', '.join(functions)}")
    text, end = _balanced(ir, functions[name])
    _check_whole(ir, name, end)
    _check_dialect(ir)
    parts = facts(ir).get(PARTS, "1")
    if not re.fullmatch("[1-9][0-9]{,8}", parts):
        raise SignatureError(f"the IR says that a program has {parts[:20]!r} slices; let the dpu backend write the IR")
    parameters, field, offset = [], 0, 0
    for index, declaration in enumerate(_split(text)):
        parameter = _parameter(name, index, declaration, field, offset)
        parameters.append(parameter)
        if parameter.offset is not None:
            field, offset = field + 1, parameter.offset + parameter.bytes
    return Kernel(name, tuple(parameters), _aligned(offset, _PAD) + _PAD, int(parts))


def tasklets(ir: str) -> int | None:
    """Return the number of tasklets that the IR has scratch memory for; None if it needs none (any number may run)."""
    scratch = _SCRATCH.search(ir)
    return int(scratch[1]) if scratch else None


def annotate(ir: str, facts: Mapping[str, str]) -> str:
    """Return the IR with these facts, by name. They replace all facts that it had."""
    ir = _FACTS_NODE.sub("", ir).rstrip()
    first = 1 + max((int(number) for number in _NUMBERED.findall(ir)), default=-1)
    nodes = [
        f"!{number} = !{{!{llvm_string(name)}, !{llvm_string(fact)}}}"
        for number, (name, fact) in enumerate(facts.items(), first)
    ]
    named = ", ".join(f"!{first + i}" for i in range(len(nodes)))
    return "\n".join([ir, "", f"!{_FACTS} = !{{{named}}}", "", *nodes, ""])


def facts(ir: str) -> dict[str, str]:
    """Return the facts that annotate() stored, by name; none if this project's compiler did not generate the IR."""
    named = _FACTS_NODE.search(ir)
    if named is None:
        return {}
    ours = set(re.findall(r"!(\d+)", named[1]))
    return {
        llvm_text(name, "replace"): llvm_text(fact, "replace")
        for number, name, fact in _FACT.findall(ir)
        if number in ours
    }


def _balanced(text: str, start: int) -> tuple[str, int]:
    """Return the text from `start` to the closing parenthesis, and the position after it."""
    depth = 1
    for match in re.compile(r'[()]|"[^"]*"').finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return text[start : match.start()], match.end()
    raise SignatureError("the IR ends within a list of parameters: the file is truncated; write it again with --out")


def _check_whole(ir: str, name: str, start: int) -> None:
    # In printed IR, only the end of a function is a line that starts with a closing brace.
    ends, follows = re.compile(r"^\}", re.MULTILINE).search(ir, start), _DEFINE.search(ir, start)
    if ends is None or (follows and follows.start() < ends.start()):
        raise SignatureError(
            f"the IR ends within the body of @{name}: the file is truncated (LLVM would say 'found end of file when "
            "expecting more instructions'). Where only a preview was saved, write the file with the script's --out"
        )


def _check_dialect(ir: str) -> None:
    for number, line in enumerate(ir.splitlines(), 1):
        code = re.sub(r'"[^"]*"', '""', line.split(";")[0])
        if _OPAQUE.search(code):
            raise SignatureError(
                f"line {number} has an opaque pointer, which LLVM 12 does not know ('expected type'): {line.strip()}. "
                "Let the dpu backend write the IR, with its legalisation on (TRITON_DPU_SKIP_LEGALIZE unset)"
            )
        if "addrspacecast" in code.split():
            raise SignatureError(
                f"line {number} casts between address spaces, which DPUs cannot ('Cast between addresses of different "
                f"address space is not supported'): {line.strip()}. Let the dpu backend write the IR"
            )


def _split(parameters: str) -> list[str]:
    """Split a list of parameters, each with its attributes and name, at the commas outside all brackets."""
    depth, parts = 0, [""]
    for token in re.findall(r'"[^"]*"|[(\[{<]|[)\]}>]|,|[^"(\[{<)\]}>,]+', parameters):
        depth += (token in "([{<") - (token in ")]}>")
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts if part.strip()]


def _parameter(kernel: str, index: int, text: str, field: int, end: int) -> Parameter:
    """Read one parameter. Its field, if it has one, is at or after `end`."""
    what = f"parameter {index} of @{kernel}, {text},"
    pointer = _POINTER.match(text)
    if pointer is None:
        type = re.split(r"\s", text)[0]
        if type not in _SCALARS:
            raise SignatureError(f"{what} cannot be passed: a scalar is one of {', '.join(_SCALARS)}")
        c_type, size = _SCALARS[type]
        return Parameter(index, type, None, None, 0, c_type, size, field, _aligned(end, size))
    element, space = pointer["element"].strip(), int(pointer["space"] or 0)
    llvm_type = f"{element} addrspace({space})*" if space else f"{element}*"
    if space == INTERNAL:
        return Parameter(index, llvm_type, space, element, _SCALARS.get(element, ("", 0))[1], *_ADDRESS, None, None)
    if space != MRAM:
        raise SignatureError(f"{what} points into address space {space}; a host can pass MRAM, addrspace({MRAM}), only")
    if element not in _SCALARS or text[pointer.end() :].lstrip().startswith(("*", "addrspace")):
        raise SignatureError(f"{what} points to what a host cannot fill: an element is one of {', '.join(_SCALARS)}")
    return Parameter(
        index, llvm_type, space, element, _SCALARS[element][1], *_ADDRESS, field, _aligned(end, _ADDRESS[1])
    )


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
