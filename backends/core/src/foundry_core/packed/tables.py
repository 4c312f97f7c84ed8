"""Writes the C of a packed folder: the tables (NAME.c), a typed function for each kernel (NAME.h), and the example."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ..scalars import pointer_element
from ..strings import c_string
from .forms import Kernel, Parameter, Variant, constant_text, packed_type
from .recording import ArrayUse, Launch
from .roads import PackError, Road

# Words of C and C++, and names that the functions use themselves.
_WORDS = """
alignas alignof and asm auto bool break case catch char class compl const constexpr continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not nullptr operator or private protected public register restrict return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename typeof union
unsigned using virtual void volatile wchar_t while xor linux unix pack grid arguments chosen status errno stdin stdout
stderr NULL int64_t uint32_t uint64_t
"""
_TAKEN = frozenset(_WORDS.split())
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# What a typed function takes, and the member of foundry_argument that has it.
_TYPES = {
    "array": ("foundry_array *", ".value.array"),
    "int": ("int64_t ", ".value.integer"),
    "uint": ("uint64_t ", ".value.bits"),
    "bool": ("int ", ".value.boolean"),
    "float": ("double ", ".value.number"),
    "text": ("const char *", ".value.text"),
    "any": ("foundry_argument ", ""),
}


@dataclass(frozen=True)
class PackedFile:
    """A file of a kernel: its path in the folder."""

    path: str
    content: bytes

    @property
    def c(self) -> str:
        digest = ", ".join(f"0x{byte:02x}" for byte in hashlib.sha256(self.content).digest())
        return f"{{{c_string(self.path)}, {len(self.content)}, {{{digest}}}}}"


def identifier(name: str) -> str:
    """Return a name in C.

    Raises:
        PackError: it cannot be one.
    """
    if not _IDENTIFIER.match(name) or len(name) > 100:
        raise PackError(
            f"{name!r} cannot be a name in C",
            why="a kernel, its parameters and the folder are names in C: ASCII letters, digits and _",
            next="give it another name",
        )
    return f"{name}_" if name in _TAKEN or name.lower().startswith("foundry_") else name


def kernel_files(kernel: Kernel) -> list[list[PackedFile]]:
    """Return the files of each form."""
    return [
        [
            PackedFile(f"kernels/{kernel.name}.{number}.{suffix}", content)
            for suffix, content in variant.form.files.items()
        ]
        for number, variant in enumerate(kernel.variants)
    ]


def kind(kernel: Kernel, name: str) -> str:
    """Return what a typed function takes for a parameter; "" for nothing: it is None, or autotune chooses it."""
    return "" if kernel.names[name].constant == 2 else _kind_of_all(kernel, name)


def _kind_of_all(kernel: Kernel, name: str) -> str:
    kinds = {_kind(variant.parameters[name]) for variant in kernel.variants}
    if "array" in kinds:
        kinds.discard("none")
    if kinds == {"none"}:
        return ""
    return kinds.pop() if len(kinds) == 1 else "any"


def _kind(parameter: Parameter) -> str:
    type = parameter.type
    if type:
        known = {"*": "array", "f": "float", "b": "float"}.get(type[0], "int")
        return {"i1": "bool", "u64": "uint"}.get(type, known)
    text = parameter.constant
    if parameter.one or re.fullmatch(r"-?\d+", text):
        return "uint" if not parameter.one and int(text) >= 1 << 63 else "int"
    if text in ("True", "False", "None"):
        return "none" if text == "None" else "bool"
    return "float" if re.fullmatch(r"-?(\d.*[.e].*|inf|nan)", text) else "text"


def tables(name: str, version: str, target: str, kernels: Sequence[Kernel], road: Road) -> str:
    """Return NAME.c."""
    parts = [_template("tables.c.in").replace("@HEAD@", road.head)]
    reaches: dict[str, str] = {}
    for number, kernel in enumerate(kernels):
        parts.append(_kernel(number, kernel, reaches))
    rows = ",\n".join(
        f"    {{{c_string(kernel.name)}, names_{i}, {len(kernel.names)}, variants_{i}, {len(kernel.variants)}, "
        f"{f'choices_{i}' if kernel.choices else 'NULL'}, {len(kernel.choices)}}}"
        for i, kernel in enumerate(kernels)
    )
    parts.append(f"static const struct packed_kernel kernels[] = {{\n{rows},\n}};\n")
    parts.append(
        f"PACKED_EXPORT foundry_module {identifier(name)}_module;\n"
        f"const foundry_module {identifier(name)}_module = {{\n"
        f"    .format = {version_format()},\n    .name = {c_string(name)},\n    .version = {c_string(version)},\n"
        f"    .target = {c_string(target)},\n    .place = {c_string(f'share/{name}')},\n    .kernels = kernels,\n"
        f"    .kernel_count = {len(kernels)},\n    .road = &{road.name}_road,\n}};\n"
    )
    return "\n".join(parts)


def version_format() -> int:
    """Return the format of the folder, which the header says."""
    found = re.search(r"FOUNDRY_PACKED_FORMAT (\d+)", _template("foundry_packed.h"))
    assert found is not None, "the header has the format"
    return int(found[1])


def _template(name: str) -> str:
    return files(__package__).joinpath(name).read_text()


def _kernel(number: int, kernel: Kernel, reaches: dict[str, str]) -> str:
    lines = [f"/* ---- {kernel.name} */\n"]
    names = ", ".join(
        f"{{{c_string(name)}, {int(known.declared)}, {known.constant}}}" for name, known in kernel.names.items()
    )
    lines.append(f"static const struct packed_name names_{number}[] = {{{names}}};")
    rows = []
    for at, (variant, taken) in enumerate(zip(kernel.variants, kernel_files(kernel), strict=True)):
        label = f"{number}_{at}"
        lines.append(f"static const struct packed_parameter parameters_{label}[] = {{")
        offsets = iter(variant.form.offsets)
        for parameter in variant.parameters.values():
            lines.append(f"    {_parameter(parameter, next(offsets, 0) if parameter.type else 0)},")
        lines.append("};")
        lines.append(f"static const struct packed_file files_{label}[] = {{")
        lines += [f"    {file.c}," for file in taken]
        lines.append("};")
        if variant.reach is not None and variant.reach not in reaches:
            reaches[variant.reach] = f"reach_{label}"
            body = "".join(f"    {line}\n" for line in variant.reach.splitlines())
            lines.append(f"REACH(reach_{label})\n{{\n    REACH_USES;\n{body}}}")
        if variant.form.extra:
            lines.append(variant.form.extra.replace("NAME", f"extra_{label}"))
        rows.append(
            _variant(variant, label, reaches.get(variant.reach or "", "NULL") if variant.reach is not None else "NULL")
        )
    lines.append(f"static const struct packed_variant variants_{number}[] = {{\n" + "".join(rows) + "};")
    if kernel.choices:
        lines.append(_choices(number, kernel))
    return "\n".join(lines) + "\n"


def _parameter(parameter: Parameter, offset: int) -> str:
    if not parameter.type:
        return f"{{PACKED_CONSTANT, 0, 1, 0, 0, {c_string(parameter.constant)}}}"
    how = "PACKED_POINTER" if parameter.type.startswith("*") else "PACKED_NUMBER"
    type = parameter.type.removeprefix("*").upper()
    return f"{{{how}, FOUNDRY_{type}, {parameter.divisor}, {int(parameter.is_written)}, {offset}, NULL}}"


def _variant(variant: Variant, label: str, reach: str) -> str:
    form = variant.form
    return (
        f"    {{parameters_{label}, {c_string(form.symbol)}, files_{label}, {len(form.files)}, {form.threads}, "
        f"{form.buffers}, {form.argument_bytes}, {c_string(form.needs)}, {reach}, "
        f"{f'&extra_{label}' if form.extra else 'NULL'}}},\n"
    )


def _choices(number: int, kernel: Kernel) -> str:
    lines, rows = [], []

    def texts(values: Mapping[str, str]) -> str:
        return ", ".join(c_string(values[name]) if name in values else "NULL" for name in kernel.names)

    for at, (key, constants) in enumerate(kernel.choices):
        lines.append(f"static const char *const key_{number}_{at}[] = {{{texts(key)}}};")
        lines.append(f"static const char *const constants_{number}_{at}[] = {{{texts(constants)}}};")
        rows.append(f"{{key_{number}_{at}, constants_{number}_{at}}}")
    lines.append(f"static const struct packed_choice choices_{number}[] = {{{', '.join(rows)}}};")
    return "\n".join(lines)


# ---- The header


def header(name: str, kernels: Sequence[Kernel]) -> str:
    """Return NAME.h."""
    return (
        _template("header.h.in")
        .replace("@NAME@", identifier(name))
        .replace("@GUARD@", f"{identifier(name)}_H".upper())
        .replace("@KERNELS@", "\n".join(map(_functions, kernels)))
    )


def _functions(kernel: Kernel) -> str:
    called = identifier(kernel.name)
    taken = [f"{_TYPES[k][0]}{identifier(each)}" for each in kernel.names if (k := kind(kernel, each))]
    first = ["foundry_pack *pack", "const uint32_t grid[3]"]
    lines = [f"/* {comment(line)} */" for line in _described(kernel)]
    count = len(kernel.names)
    lines.append(f"static inline foundry_status {called}_launch({', '.join(first + taken)})\n{{")
    lines.append(f"    const foundry_argument arguments[] = {{{_made(kernel)}}};")
    lines.append(f"    return foundry_launch(pack, {c_string(kernel.name)}, grid, arguments, {count});\n}}\n")
    if kernel.choices:
        chosen = {
            each: _TYPES[k]
            for each, known in kernel.names.items()
            if known.constant == 2 and (k := _kind_of_all(kernel, each))
        }
        lines.append("/* Say what triton.autotune chose for such arguments, for a grid that depends on it. */")
        lines.append(f"struct {called}_chosen {{")
        lines += [f"    {type}{identifier(each)};" for each, (type, _) in chosen.items()]
        head = ["foundry_pack *pack", *taken, f"struct {called}_chosen *chosen"]
        lines.append(f"}};\nstatic inline foundry_status {called}_choose({', '.join(head)})\n{{")
        lines.append(f"    foundry_argument arguments[] = {{{_made(kernel)}}};")
        lines.append(f"    foundry_status status = foundry_choose(pack, {c_string(kernel.name)}, arguments, {count});")
        numbers = list(kernel.names)
        lines += [
            f"    if (!status)\n        chosen->{identifier(each)} = arguments[{numbers.index(each)}]{member};"
            for each, (_, member) in chosen.items()
        ]
        lines.append("    return status;\n}\n")
    return "\n".join(lines)


def comment(text: str) -> str:
    """Return text that can be in a comment of C."""
    return re.sub(r"\*/|/\*|[^ -~]", "?", text)


def _described(kernel: Kernel) -> list[str]:
    """Return lines that say what a kernel takes."""
    lines = [f"Launch {kernel.name}. Packed are:"]
    for variant in kernel.variants:
        shown = []
        for name, parameter in variant.parameters.items():
            if parameter.type:
                shown.append(f"{name}: {parameter.type}" + " / 16" * (parameter.divisor > 1))
            else:
                shown.append(f"{name} = {parameter.constant}")
        lines.append(f"  {', '.join(shown)}")
    return lines


def _made(kernel: Kernel) -> str:
    made = []
    for name, known in kernel.names.items():
        passed = "foundry_pass_chosen(0)" if known.constant == 2 else _NONE
        made.append(_pass(k, identifier(name)) if (k := kind(kernel, name)) else passed)
    # An array of C has an element at least.
    return ", ".join(made or [_NONE])


_NONE = "foundry_pass_array(NULL)"


def _pass(k: str, value: str) -> str:
    return value if k == "any" else f"foundry_pass_{k}({value})"


# ---- The example


def example(name: str, kernels: Sequence[Kernel]) -> tuple[str, dict[str, bytes]]:
    """Return the example in C, and the recorded files that it reads, by path."""
    functions, calls = [], []
    recorded: dict[str, bytes] = {}
    number = 0
    for kernel in kernels:
        for launch in kernel.launches:
            if launch.memories is None:
                continue
            functions.append(_example(number, kernel, launch, recorded))
            calls.append(f"    wrong += example_{number}(pack);")
            number += 1
    text = (
        _template("example.c.in")
        .replace("@NAME@", identifier(name))
        .replace("@EXAMPLES@", "\n".join(functions))
        .replace("@CALLS@", "\n".join(calls))
        .replace("@COUNT@", str(number))
    )
    return text, recorded


def _element(type: str) -> tuple[str, int]:
    """Return the elements' type in C, and their bytes, of a pointer's type."""
    return f"FOUNDRY_{packed_type(type)[1:].upper()}", pointer_element(type).bytes


def _example(number: int, kernel: Kernel, launch: Launch, recorded: dict[str, bytes]) -> str:
    assert launch.memories is not None, "launches without contents are left out"
    lines = [f"static int example_{number}(foundry_pack *pack)\n{{"]
    lines.append(f"    const uint32_t grid[3] = {{{', '.join(map(str, launch.grid))}}};")
    checks, releases = [], []
    for at, memory in enumerate(launch.memories):
        uses = (use for use in launch.values.values() if isinstance(use, ArrayUse) and use.memory == at)
        type, bytes = _element(next(uses).type)
        path = f"recorded/{number}.{at}"
        recorded[f"{path}.before"] = memory.before
        after = f"{path}.before"
        if memory.after != memory.before:
            after = f"{path}.after"
            recorded[after] = memory.after
        count = len(memory.before) // bytes
        lines.append(f'    foundry_array *memory_{at} = recorded(pack, {type}, {count}, "{path}.before");')
        checks.append(f'    wrong += differences(memory_{at}, {type}, {count}, "{after}");')
        releases.append(f"    foundry_array_release(memory_{at});")
    values: list[str] = []
    parts: list[str] = []
    for name in kernel.names:
        k = kind(kernel, name)
        if k:
            values.append(_value(k, name, launch, lines, parts))
    lines.append(
        f"    int wrong = 0;\n    check({identifier(kernel.name)}_launch({', '.join(['pack', 'grid', *values])}));"
    )
    lines += checks
    lines += [f"    foundry_array_release({part});" for part in parts]
    lines += releases
    grid = " x ".join(map(str, launch.grid))
    lines.append(
        f'    printf("%s on %s: {comment(kernel.name)}, {grid} programs\\n", wrong ? "WRONG" : "as recorded",\n'
        "           foundry_device(pack));"
    )
    lines.append("    return wrong;\n}\n")
    return "\n".join(lines)


def _value(k: str, name: str, launch: Launch, lines: list[str], parts: list[str]) -> str:
    value = launch.values.get(name)
    if isinstance(value, ArrayUse):
        made = _array(name, value, lines, parts)
        return _pass("array", made) if k == "any" else made
    if value is None:
        return _NONE if k == "any" else "NULL"
    if k == "any":
        exact = _kind(Parameter(constant=constant_text(value)))
        return _pass(exact, _literal(exact, value))
    return _literal(k, value)


def _literal(k: str, value: Any) -> str:
    if k in ("int", "uint"):
        number = int(value)
        return "INT64_MIN" if number == -(1 << 63) else f"{'U' * (k == 'uint')}INT64_C({number})"
    if k == "bool":
        return str(int(value))
    if k == "float":
        real = float(value)
        return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(repr(real), real.hex())
    return c_string(constant_text(value))


def _array(name: str, use: ArrayUse, lines: list[str], parts: list[str]) -> str:
    type, bytes = _element(use.type)
    made = f"array_{name}"
    if use.memory < 0:
        lines.append(f"    foundry_array *{made} = NULL;\n    check(foundry_array_create(pack, {type}, 0, &{made}));")
        parts.append(made)
        return made
    whole = f"memory_{use.memory}"
    rank = len(use.shape)
    is_dense = math.prod(use.shape) * bytes == use.bytes and 1 < rank <= 8
    if not use.first and not is_dense:
        return whole
    lines.append(f"    foundry_array *{made} = NULL;")
    lines.append(f"    check(foundry_array_part({whole}, {use.first // bytes}, {use.bytes // bytes}, &{made}));")
    if is_dense:
        lines.append(
            f"    check(foundry_array_shape({made}, {rank}, (const uint64_t[]){{{', '.join(map(str, use.shape))}}}));"
        )
    parts.append(made)
    return made
