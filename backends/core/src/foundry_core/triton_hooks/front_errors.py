"""Errors of Triton's front end: adds the file and line to their messages, and what to do.

Triton's own message has a line that counts from the kernel's `def`, and often names a rule without the remedy. In
Triton 3.2 the rule is in another exception, the cause. `install` wraps the method that makes a kernel's IR; it acts
only for kernels of this project's backends.

Triton generates a function once for each set of argument types and constants. If that function calls itself, the front
end looks up its type too early and reports a bare KeyError. If each call has other constants and none ends, it reports
a RecursionError, after following twice as many errors for each call. `install_recursion` wraps the method that
generates a call, and names the recursion.
"""

from __future__ import annotations

import ast
import functools
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import triton
from triton.compiler.compiler import ASTSource
from triton.compiler.errors import CompilationError, UnsupportedLanguageConstruct

from .. import source_lines
from ..failure import nearest
from .grids import no_constant, replacement, resolve_reference, same_function


@dataclass(frozen=True)
class _Mistake:
    """An error in a kernel.

    Attributes:
        found: the parts of the rule's text in Triton's message.
        node: the part of the kernel that is wrong.
        constants: the values of the kernel's parameters that are compiled in, by name.
        passed: Triton's types of its other parameters, by name.
        globals: the names of the module that the kernel, or the function that it calls, is in.
    """

    found: re.Match[str]
    node: ast.AST
    constants: Mapping[str, Any]
    passed: Mapping[str, str]
    globals: Mapping[str, Any]

    def named(self, parameters: Mapping[str, Any]) -> list[str]:
        """Return the parameters in `parameters` that the wrong part of the kernel names."""
        names = {each.id for each in ast.walk(self.node) if isinstance(each, ast.Name)}
        return [name for name in parameters if name in names]


# Why, and what to do next. "" for why: Triton's own message says it.
Advice = tuple[str, str]
_Advise = Callable[[_Mistake], Advice]
# By a pattern of Triton's message; the first that matches counts.
_ADVICE: dict[str, _Advise] = {}


def _advises(pattern: str) -> Callable[[_Advise], _Advise]:
    """Decorate the function that gives advice on messages with this pattern."""

    def register(advise: _Advise) -> _Advise:
        _ADVICE[pattern] = advise
        return advise

    return register


@_advises(r"must be a power of (?:2|two)")
def _no_power_of_two(mistake: _Mistake) -> Advice:
    why, wanted = "the extents of a block are powers of two", "triton.next_power_of_2(...)"
    sizes = {name: value for name, value in mistake.constants.items() if type(value) is int and value & (value - 1)}
    for name in mistake.named(sizes) or sizes:
        why = f"{name}={sizes[name]}, and {why}"
        wanted = f"{name}={triton.next_power_of_2(sizes[name])}, which is triton.next_power_of_2({sizes[name]})"
        break
    return why, f"launch with {wanted}, and mask the elements beyond the end: tl.load(x + i, mask=i < n, other=0)"


@_advises(r"must be of type tl.constexpr|must have type `constexpr|is not a constexpr")
def _no_constexpr(mistake: _Mistake) -> Advice:
    if names := mistake.named(mistake.passed):
        why = f"{names[0]} is passed when the kernel is launched, and this number must be known when it is compiled"
        return why, f"declare the parameter as {names[0]}: tl.constexpr"
    wrong = {name: value for name, value in mistake.constants.items() if type(value) is not int}
    if names := mistake.named(wrong):
        name, value = names[0], wrong[names[0]]
        return f"{name}={reprlib.repr(value)} is of type {type(value).__name__}", f"pass an int: {name}=int(...)"
    why = "this number must be known when the kernel is compiled"
    return why, "make it of numbers and of parameters that are declared as tl.constexpr, such as BLOCK: tl.constexpr"


@_advises(r"invalid operands of type (pointer<\w+>|.*?) and (pointer<\w+>|[\w.]*)")
def _operands(mistake: _Mistake) -> Advice:
    pointer, other = (f"{type}".startswith("pointer<") for type in mistake.found.groups())
    if not pointer and not other:
        return "this operator takes integers", "convert the operands, x.to(tl.int32), or use another operator"
    if "float" in mistake.found[0] or "fp" in re.sub(r"pointer<\w*>", "", mistake.found[0]):
        return "an offset is an integer", "convert the offset: offset.to(tl.int32)"
    names = mistake.named({name: type for name, type in mistake.passed.items() if type.startswith("*")})
    which = f"{names[0]} is an array" if names else "one of them is an array"
    return f"{which}, and its elements are not loaded", "load them first, tl.load(x + i), or pass a number"


@_advises(r"Loop-carried variable (\w+) has initial type (.*?) but is re-assigned to (.*?) in loop")
def _loop_changes_type(mistake: _Mistake) -> Advice:
    name, _, type = mistake.found.groups()
    block = re.fullmatch(r"<\[(.*)\], (.*)>", type)
    extents = [extent.strip("' ") for extent in block[1].split(",")] if block else []
    shape = f"({', '.join(extents)}{',' * (len(extents) == 1)})"
    names = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
    element = f"tl.{names.get(block[2] if block else type, block[2] if block else type)}"
    if block:
        return "", f"give {name} this type before the loop: {name} = tl.zeros({shape}, {element})"
    return "", f"give {name} one type: convert it in the loop, or before it with .to({element})"


@_advises(r"Unsupported ptr type (.*?) in")
def _no_pointer(mistake: _Mistake) -> Advice:
    numbers = {name: type for name, type in mistake.passed.items() if not type.startswith("*")}
    names = mistake.named({**numbers, **mistake.constants})
    which = f"{names[0]} is a number" if names else "it is a number"
    return f"{which}, and what is accessed must be a pointer", "pass an array for it, and add the offsets to it: x + i"


# The errors of NumPy's and math's functions that get a tile.
@_advises(r"'NoneType' object has no attribute 'create_|must be real number, not tensor|define __\w+__ method")
def _function(mistake: _Mistake) -> Advice:
    called = resolve_reference(mistake.node.func, mistake.globals) if isinstance(mistake.node, ast.Call) else None
    if not callable(called) or str(getattr(called, "__module__", "")).startswith("triton"):
        return "", ""
    return "it is a function of Python", replacement(called)


@_advises(r"'NoneType' object has no attribute")
def _none_is_passed(mistake: _Mistake) -> Advice:
    names = mistake.named({name: value for name, value in mistake.constants.items() if value is None})
    if not names:
        return "", ""
    return f"the launch passes None for {names[0]}", f"pass a value, or test it first: if {names[0]} is not None:"


@_advises(r"Cannot access global variable (\w+)")
def _reads_global(mistake: _Mistake) -> Advice:
    name = mistake.found[1]
    if callable(mistake.globals.get(name)):
        return "it is a function of Python", f"decorate it with @triton.jit: def {name}(...)"
    return "", f"define it as {name} = tl.constexpr(...), or pass it as a parameter {name}: tl.constexpr"


@_advises(r"exceeds triton maximum tensor numel \((\d+)\)")
def _too_large(mistake: _Mistake) -> Advice:
    most = int(mistake.found[1])
    sizes = {name: value for name, value in mistake.constants.items() if type(value) is int and value > 1}
    size = next(iter(mistake.named(sizes) or sizes), "BLOCK")
    return (
        f"a block of Triton has at most {most} elements",
        f"launch with a smaller {size}, such as {size}=1024, and more programs: triton.cdiv(n, {size})",
    )


@_advises(r"(?:module 'triton\.language\S*'|'tensor' object) has no attribute '(\w+)'")
def _attribute(mistake: _Mistake) -> Advice:
    name = mistake.found[1]
    why = f"tl has no {name}"
    if same := same_function(name):
        return why, same
    near = nearest(name, (each for each in dir(triton.language) if not each.startswith("_")))
    return why, f"did you mean tl.{near}?" if near else "write it with functions of triton.language, or of libdevice"


@_advises(r"Did you forget to add @triton.jit")
def _indexes_pointer(mistake: _Mistake) -> Advice:
    if not isinstance(mistake.node, ast.Subscript):
        return _function(mistake)
    pointers = {name: type for name, type in mistake.passed.items() if type.startswith("*")}
    if names := mistake.named(pointers):
        return f"{names[0]} is a pointer, which has no elements", f"add the offset and load: tl.load({names[0]} + i)"
    return "only None and : index a tile", "load the element by itself: tl.load(x + i)"


# Triton 3.2.0 says only this.
@_advises(r"^AssertionError\(\)$")
@_advises(r"__setitem__ is not supported")
def _assigns_elements(mistake: _Mistake) -> Advice:
    if not isinstance(mistake.node, ast.Subscript | ast.Assign):
        return "", ""
    return "a tile cannot be changed", "make another one: tl.where(i == 0, 1.0, x)"


# What is always the same advice.
_FIXED: dict[str, Advice] = {
    r"Both operands must be same dtype. Got (\w+) and (\w+)": (
        "",
        "convert one of them to the type of the other: a.to(b.dtype)",
    ),
    r"Expected dtype \[.*?\] but got": ("", "convert the operand: x.to(tl.float32)"),
    r"Boolean value of Tensor with more than one value": (
        "`if` and `while` take one condition, and this has one for each element",
        "choose elements, tl.where(condition, a, b), or mask the store: mask=condition",
    ),
    r"unsupported AST node type: (?:Break|Continue)": (
        "a loop of a kernel cannot be left early",
        "write a while with this condition, or an if around the rest",
    ),
    r"unsupported tensor index": ("a pointer has no elements", "add the offset and load: tl.load(x + 0)"),
    r"incompatible dimensions": ("", "give both the same shape; an extent of 1, as of x[:, None], fits any other"),
    r"(?:Mask|Other|Value) argument cannot be block type": (
        "one pointer accesses one element",
        "make a block of pointers, x + tl.arange(0, BLOCK), or reduce the value first: tl.sum(value)",
    ),
    r"Mask must have boolean scalar type": ("a mask is a condition", "compare: mask=m != 0"),
}


def install(backends: Any) -> None:
    """Make Triton's front end name line and remedy, for kernels with these backends' options."""
    options = backends.options_type
    native = ASTSource.make_ir
    if hasattr(native, "names_lines"):
        return

    # What it takes depends on the release, and callers ask its signature.
    @functools.wraps(native)
    def make_ir(self: Any, *arguments: Any, **named: Any) -> Any:
        ours = any(isinstance(each, options) for each in (*arguments, *named.values()))
        for name, value in _parameters(self)[0].items() if ours else ():
            if hasattr(value, "data_ptr") or getattr(type(value), "__hash__", None) is None:
                raise no_constant(self.fn, name, value)
        try:
            return native(self, *arguments, **named)
        except CompilationError as error:
            if ours:
                _explain(error, self)
            raise

    make_ir.names_lines = True  # type: ignore[attr-defined]
    ASTSource.make_ir = make_ir


def _explain(error: CompilationError, source: Any) -> None:
    """Add place and advice to an error's message."""
    if not hasattr(error.node, "lineno"):
        return  # Triton takes no such name of a kernel, and says so
    chain = list(_chain(error, source.fn))
    users = [each for each in chain if source_lines.is_users(each[1])] or chain[:1]
    wrong, function = users[-1]
    last = chain[-1][0]
    message = str(last.__cause__ or last.error_message or "")
    # Above Triton's own message: tests of users read its last line.
    lines = [f"at:   {source_lines.line_of(function, wrong.node.lineno)}, in {function.__name__}"]
    lines += [
        f"      called at {source_lines.line_of(caller, call.node.lineno)}, in {caller.__name__}"
        for call, caller in reversed(users[:-1])
    ]
    lines.append(error.message)
    if "\n  next: " not in message:
        constants, passed = _parameters(source) if function is source.fn else ({}, {})
        why, next = "", ""
        for pattern, advice in (_ADVICE | _FIXED).items():
            if found := re.search(pattern, message):
                mistake = _Mistake(found, wrong.node, constants, passed, function.fn.__globals__)
                why, next = advice if isinstance(advice, tuple) else advice(mistake)
                break
        why = why or ("" if message in str(error) else message)
        lines += [f"  why:  {why}"] * bool(why) + [f"  next: {next}"] * bool(next)
    error.message = "\n".join(lines)


def _chain(error: CompilationError, function: Any) -> Iterator[tuple[CompilationError, Any]]:
    """Yield an error in a kernel, and those in the functions that it calls, with the function."""
    yield error, function
    while isinstance(error.__cause__, CompilationError) and hasattr(error.__cause__, "function"):
        error = error.__cause__
        yield error, error.function


def _parameters(source: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a kernel's compiled-in parameters with their values, and the others with their types, by name."""
    names = source.fn.arg_names
    constants = {}
    for key, value in source.constants.items():
        if isinstance(key, str):  # 3.2
            constants[key] = value
        elif len(key) == 1:
            constants[names[key[0]]] = value
    passed = {name: type for name, type in source.signature.items() if name not in constants and isinstance(type, str)}
    return constants, passed


_END_RECURSION = "  next: write a loop, or let a tl.constexpr parameter end the recursion: if n == 0: ... else: ..."


class RecursionRefused(UnsupportedLanguageConstruct):  # type: ignore[misc]
    """A function of a kernel calls itself."""


def install_recursion(_: type) -> None:
    """Make Triton's front end name a recursion; a second call does nothing."""
    from triton.compiler.code_generator import CodeGenerator

    native = CodeGenerator.call_JitFunction
    if hasattr(native, "names_recursion"):
        return

    def call_JitFunction(self: Any, fn: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return native(self, fn, *arguments, **named)
        except Exception as error:
            # Triton keeps its source only.
            if isinstance(error.__cause__, CompilationError):
                error.__cause__.function = fn
            found = _recursion(self, fn, error)
            if found is None:
                raise
        # Raised here, where no error is being handled, so that the callers' errors do not become its context.
        raise found.with_traceback(None)

    call_JitFunction.names_recursion = True  # type: ignore[attr-defined]
    CodeGenerator.call_JitFunction = call_JitFunction


def _recursion(generator: Any, fn: Any, error: Exception) -> RecursionRefused | None:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, RecursionRefused):
            return cause
        if isinstance(cause, RecursionError) or "RecursionError(" in str(cause):
            message = (
                f"{fn.__name__} calls itself without end\n  why:  each call has other constants, and none is the last"
            )
            return RecursionRefused(generator.jit_fn.src, generator.cur_node, f"{message}\n{_END_RECURSION}")
        cause = cause.__cause__
    if isinstance(error, KeyError) and isinstance(name := error.args[0], str) and generator.module.has_function(name):
        message = f"{fn.__name__} calls itself\n  why:  the compiled code has no stack for calls"
        return RecursionRefused(generator.jit_fn.src, generator.cur_node, f"{message}\n{_END_RECURSION}")
    return None
