"""Compiles what was launched: as it was specialised, and in more general forms, so that a call has a choice.

Triton specialises a kernel for arguments that are 1, and for numbers and addresses that are divisible by 16. A recorded
launch is compiled in three forms: as it was launched; with addresses as they were and any numbers; with any of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import LoweringError
from ..runtime.arguments import Parameters
from ..scalars import passed, pointer_element
from .recording import ArrayUse, Choice, Launch
from .roads import Form, PackError, Road

# Options that a triton.Config may have, and that may change the binary.
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
DIVISOR = 16


@dataclass(frozen=True)
class Parameter:
    """How a form takes a parameter of the Python function.

    Attributes:
        type: Triton's type: "*fp32", "i32"; "" if it is compiled in.
        constant: the compiled-in value, as constant_text writes it.
        one: whether it is compiled in because it was 1.
        divisor: 16 or 1.
    """

    type: str = ""
    constant: str = ""
    one: bool = False
    divisor: int = 1
    is_written: bool = False

    @property
    def specialised(self) -> int:
        """Return how much is assumed of the argument: 1 is more than a divisor."""
        return 2 * self.one + (self.divisor > 1)


@dataclass
class Variant:
    """A compiled form of a kernel; reach is C code (footprint.code), or None."""

    parameters: dict[str, Parameter]
    form: Form
    reach: str | None


@dataclass
class Name:
    """A parameter: whether the function declares its type, and 1 for a constant, 2 for one that autotune chooses."""

    declared: bool = False
    constant: int = 0


@dataclass
class Kernel:
    """A kernel with its forms, the most specialised first.

    Attributes:
        choices: for each choice of autotune the texts of its key, and of the constants, by parameter.
        launches: those that are recorded.
    """

    name: str
    names: dict[str, Name]
    variants: list[Variant]
    choices: list[tuple[dict[str, str], dict[str, str]]]
    launches: list[Launch]


def constant_text(value: Any) -> str:
    """Return a constant as the tables have it: numbers and None as Python's repr, others by their name."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return str(getattr(value, "__name__", value))


def packed_type(type: str) -> str:
    """Return the tables' name of one of Triton's types: Booleans have one, and a tl.const is as any pointer."""
    row = pointer_element(type) if type.startswith("*") else passed(type)
    return "*" * type.startswith("*") + ("i1" if row.name == "u1" else row.name)


def compile_kernels(found: Sequence[Launch], choices: Sequence[Choice], road: Road, device: Any = None) -> list[Kernel]:
    """Compile all forms of the recorded launches, for the device of each, or for another one (a GPUTarget).

    Raises:
        PackError: a kernel cannot be packed.
    """
    by_name: dict[str, list[Launch]] = {}
    for launch in found:
        by_name.setdefault(launch.source.name, []).append(launch)
    return [_kernel(name, launches, choices, road, device) for name, launches in sorted(by_name.items())]


def _kernel(name: str, launches: Sequence[Launch], choices: Sequence[Choice], road: Road, device: Any) -> Kernel:
    first = launches[0]
    functions = {launch.source.fn.cache_key for launch in launches}
    if len(functions) > 1:
        raise PackError(
            f"{len(functions)} kernels have the name {name}",
            why="a packed kernel is called by its name",
            next="give them different names",
        )
    params = {param.name: param for param in first.source.fn.params}
    names = {each: Name(bool(params[each].annotation_type), int(params[each].is_constexpr)) for each in params}
    variants: dict[tuple[Any, ...], Variant] = {}
    for launch in launches:
        for source in _sources(launch, params):
            variant = _compiled(source, launch, road, device)
            key = (*variant.parameters.items(), *variant.form.files.items(), variant.form.needs)
            variants.setdefault(key, variant)
    mine = [choice for choice in choices if choice.launch.source.name == name]
    kept = _needed_options(list(variants.values()))
    rows = _choices(mine, [*names, *kept])
    chosen = {each for _, constants in rows for each in constants}
    names |= {option: Name(constant=1) for option in kept}
    for each in chosen:
        names[each].constant = 2
    for variant in variants.values():
        variant.parameters = {each: variant.parameters[each] for each in names}
    distinct: dict[tuple[Any, ...], Variant] = {}
    for variant in variants.values():
        if distinct.setdefault((*variant.parameters.items(),), variant).form.files != variant.form.files:
            raise PackError(
                f"the kernel {name} was compiled to different binaries for the same arguments",
                why="its launches differ in an option, or in constants of one name, which a call cannot tell apart",
                next="pack these launches in folders of their own",
            )
    ordered = sorted(distinct.values(), key=lambda each: -sum(p.specialised for p in each.parameters.values()))
    for launch in launches:
        launch.values |= {option: getattr(launch.metadata, option, None) for option in kept}
    return Kernel(name, names, ordered, rows, list(launches))


def _sources(launch: Launch, params: dict[str, Any]) -> Iterator[Any]:
    """Yield Triton's sources of the forms, the one that was launched first."""
    source = launch.source
    make = type(source)
    yield source
    signature, constants = dict(source.signature), dict(source.constants)
    for position, (name, type_) in enumerate(source.signature.items()):
        if type_ == "constexpr" and _is_one(params[name], constants[(position,)]):
            signature[name] = params[name].annotation_type or "i32"
            del constants[(position,)]
    of_arrays = {path: how for path, how in source.attrs.items() if signature[_name(source, path)].startswith("*")}
    for attrs in (of_arrays, {}):
        yield make(source.fn, signature, constants, attrs)


def _name(source: Any, path: tuple[int, ...]) -> str:
    return str(list(source.signature)[path[0]])


def _is_one(param: Any, value: Any) -> bool:
    return not param.is_constexpr and type(value) is int and value == 1


def _compiled(source: Any, launch: Launch, road: Road, device: Any) -> Variant:
    import triton
    from triton.compiler.compiler import make_backend

    known = launch.metadata
    target = device or known.target
    backend = make_backend(target)
    options = {name: getattr(known, name) for name in backend.parse_options({}).__dict__ if hasattr(known, name)}
    compiled = triton.compile(source, target=target, options=options)
    taken = Parameters(source, source.name, compiled.metadata.written)
    outputs, number, parameters = set(taken.outputs), 0, {}
    for position, (name, type_) in enumerate(source.signature.items()):
        if type_ == "constexpr":
            value = source.constants[(position,)]
            one = _is_one(source.fn.params[position], value)
            parameters[name] = Parameter(constant=constant_text(value), one=one)
            continue
        type_ = taken.types[number]
        divides = any(how[0] == "tt.divisibility" for how in source.attrs.get((position,), ()))
        parameters[name] = Parameter(
            type=packed_type(type_),
            divisor=DIVISOR if divides else 1,
            is_written=number in outputs,
        )
        number += 1
    for option in OPTIONS:
        parameters[option] = Parameter(constant=constant_text(getattr(compiled.metadata, option, None)))
    return Variant(parameters, road.form(compiled), _reach(compiled))


def _reach(compiled: Any) -> str | None:
    from ..codegen.pipeline import to_structured
    from ..footprint.code import reach_code
    from ..ir.depth import deep_expressions

    try:
        with deep_expressions():
            return reach_code(to_structured(str(compiled.asm["ttir"]))).code
    except LoweringError:
        return None


def _needed_options(variants: Sequence[Variant]) -> list[str]:
    """Return the options without which two different binaries would have the same parameters."""
    kept = list(OPTIONS)
    for option in OPTIONS:
        rest = [each for each in kept if each != option]
        binaries: dict[Any, set[Any]] = {}
        for variant in variants:
            key = tuple((name, p) for name, p in variant.parameters.items() if name not in OPTIONS or name in rest)
            binaries.setdefault(key, set()).add(tuple(variant.form.files.items()))
        if all(len(found) == 1 for found in binaries.values()):
            kept = rest
    return kept


def _choices(choices: Sequence[Choice], names: Sequence[str]) -> list[tuple[dict[str, str], dict[str, str]]]:
    rows = []
    for choice in choices:
        key = {}
        for name, value in choice.launch.values.items():
            if isinstance(value, ArrayUse):
                key[name] = packed_type(value.type)
            elif name in choice.key:
                key[name] = constant_text(value)
        constants = {name: constant_text(value) for name, value in choice.constants.items() if name in names}
        if constants and (key, constants) not in rows:
            rows.append((key, constants))
    return rows
