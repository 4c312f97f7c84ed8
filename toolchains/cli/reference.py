"""Write the generated parts of docs/: reference.md, the tables of keys in configuration.md and scripts.md, the schema
scripts.json, and the maps in design.md.

`python -m toolchains.cli.reference` writes all. tests/cli/test_reference.py compares them with the code.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from invoke.collection import Collection
from msgspec.inspect import BoolType, DictType, FloatType, StrType, StructType, VarTupleType

from toolchains.cli import scripts
from toolchains.cli.commandline import GROUPS
from toolchains.config import components, platforms, projects, vendors
from toolchains.system import paths
from toolchains.system.errors import FoundryError

REFERENCE = paths.ROOT / "docs" / "reference.md"
CONFIGURATION = paths.ROOT / "docs" / "configuration.md"
DESIGN = paths.ROOT / "docs" / "design.md"
# Lines around the generated part of configuration.md and scripts.md, and the last one around a map in design.md.
BEGIN, END = "<!-- generated: keys -->\n", "<!-- end -->\n"
_NOTE = (
    "<!-- Written by `python -m toolchains.cli.reference`. Edit the docstrings in tasks.py and errors.py instead. -->"
)
_OTHER_STATUSES = (
    ("0", "", "The verb did what was asked."),
    ("129, 130, 143", "", "The verb was ended by SIGHUP, Ctrl-C or SIGTERM, and cleaned up first."),
    ("141", "", "The program that read the output ended, such as `head`."),
)
# The classes for each kind of file, and for each table in it.
_FILES: tuple[tuple[str, Mapping[str, type[msgspec.Struct]]], ...] = (
    (
        "Targets: toolchains/targets/NAME.toml",
        {"A target": components.TargetFile, "A variant of a target": components.VariantFile},
    ),
    (
        "Components: toolchains/pins/NAME.toml",
        {
            "Debian packages": components.DebPin,
            "Patched files, `[patched]`": components.PatchedFiles,
            "A program linked with files of packages, `[linked]`": components.LinkedProgram,
            "Wheels": components.WheelPin,
            "Source distributions": components.SdistPin,
            "Releases of Triton": components.ReleasesPin,
            'A release, `[release."VERSION"]`': components.Release,
        },
    ),
    ("Builders: toolchains/builders/SUITE.toml", {"A builder": components.BuilderFile}),
    ("Platforms: toolchains/platforms/NAME.toml", {"A platform": platforms.Platform}),
    (
        "Upstream projects: toolchains/upstreams/NAME.toml",
        {
            "A project": projects.ProjectFile,
            "A profile, `[profile.NAME]`": projects.Profile,
            "More keys of a profile from git": projects.GitPin,
            "More keys of a profile from a Debian source package": projects.SourcePackagePin,
            "A profile from a folder of the user": projects.FolderPin,
        },
    ),
    ("Vendor SDKs: toolchains/sdks/NAME.toml", {"A vendor's SDK": vendors.VendorSdk}),
)
# How defaults are written that are not their own text.
_DEFAULTS = {"()": "none", "{}": "none", "''": "none", "None": "none", "False": "`false`"}
# Fields that are not keys of the file: the program takes their values from the file's name.
_NOT_KEYS = {
    platforms.Platform: {"name"},
    components.DebPin: {"name"},
    components.WheelPin: {"name"},
    components.SdistPin: {"name"},
    components.ReleasesPin: {"name"},
    projects.Profile: {"name", "source"},
    vendors.VendorSdk: {"key"},
}


def reference(verbs: Collection) -> str:
    """Return the text of docs/reference.md.

    Args:
        verbs: the tasks of tasks.py.
    """
    lines = ["# Reference: verbs and exit statuses", "", _NOTE, ""]
    lines += [
        "`./foundry help VERB` prints the same text on the terminal. The exit statuses are [below](#exit-statuses).",
        "",
    ]
    tasks = dict(sorted(verbs.tasks.items()))
    for group, title in GROUPS.items():
        lines += [f"## {title}", ""]
        for name, task in tasks.items():
            if task.body.group == group:
                lines += _verb(name, task)
    lines += ["## Exit statuses", ""]
    lines += [
        "Every failure prints what failed, why, and the next command to type. The exit status tells failures apart."
    ]
    lines += ["The exit status of `run` and `shell` is that of the script or the shell, if these ran.", ""]
    return "\n".join([*lines, *_table(("status", "class", "meaning"), _statuses())])


def configuration(text: str) -> str:
    """Return docs/configuration.md with new tables of keys."""
    return _replaced(text, keys())


def _replaced(text: str, tables: str) -> str:
    """Return a page with other tables between the lines BEGIN and END."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + tables + "\n" + END + after


def keys() -> str:
    """Return the tables of all keys of the TOML files."""
    parts = []
    for title, kinds in _FILES:
        parts += [f"## {title}", ""]
        for heading, kind in kinds.items():
            config = kind.__struct_config__
            parts += [f"### {heading}", "", _first(kind), ""]
            if config.tag_field:
                parts += [f'The key `{config.tag_field}` must be `"{config.tag}"`.', ""]
            parts += _table(("key", "value", "default", "meaning"), _keys(kind))
    return "\n".join(parts)


def design(text: str) -> str:
    """Return docs/design.md with new maps of packages."""
    start = r"(<!-- generated: packages of (\w+) -->\n)"
    return re.sub(f"{start}.*?{END}", lambda match: match[1] + "\n" + packages(match[2]) + "\n" + END, text, flags=re.S)


def packages(container: str) -> str:
    """Return the map of a package's parts: their layers in import-linter's contract, and what their docstrings say."""
    contracts = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (contract["layers"] for contract in contracts["contracts"] if contract.get("containers") == [container])
    places = [paths.ROOT, *paths.BACKENDS.glob("*/src")]
    (folder,) = (place / container for place in places if (place / container).is_dir())

    def rows() -> Iterator[tuple[str, ...]]:
        for number, layer in enumerate(layers):
            for name in re.findall(r"\w+", layer):
                file = folder / name / "__init__.py" if (folder / name).is_dir() else folder / f"{name}.py"
                docstring = " ".join((ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split())
                match = re.search(r"(?:Input: (.+?)\. )?Output: (.+?)\.(?: |$)", docstring)
                takes, gives = match.groups("") if match else ("", docstring.partition(". ")[0].rstrip("."))
                yield str(len(layers) - number), f"`{name}`", takes, gives

    return "\n".join(_table(("layer", "package", "input", "output"), rows()))


def described(kind: type) -> dict[str, str]:
    """Return the description of each attribute from a class's docstring."""
    _, _, text = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    attributes = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    return {name: " ".join(description.split()) for name, description in attributes}


def _verb(name: str, task: Any) -> Iterator[str]:
    """Yield the lines about one verb."""
    summary, _, rest = (inspect.getdoc(task) or "").partition("\n\n")
    places = [str(argument.name) for argument in task.get_arguments() if argument.positional]
    actions: Sequence[str] = getattr(task.body, "actions", ())
    words = ["|".join(actions) if place == "action" else place.upper() for place in places]
    usage = " ".join(["./foundry", name, *words])
    yield from (f"### {name}", "", " ".join(summary.split()), "")
    yield from ("```text", f"{usage} [options]" if len(task.get_arguments()) > len(places) else usage)
    if rest:
        yield from ("", rest)
    yield from ("```", "")


def _statuses() -> Iterator[tuple[str, str, str]]:
    """Yield a row for each exit status."""
    classes, statuses = [FoundryError], []
    while classes:
        each = classes.pop()
        classes += each.__subclasses__()
        # Tests may define more subclasses.
        if each.__module__ == FoundryError.__module__:
            statuses.append((each.exit_code, each.__name__, _first(each)))
    yield _OTHER_STATUSES[0]
    for status, name, meaning in sorted(statuses):
        yield str(status), f"`{name}`", meaning
    yield from _OTHER_STATUSES[1:]


def _keys(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each key of a file or a table."""
    descriptions, info = described(kind), msgspec.inspect.type_info(kind)
    assert isinstance(info, StructType)
    for field in info.fields:
        if field.name not in _NOT_KEYS.get(kind, set()):
            value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            default = "required" if field.required else _DEFAULTS.get(repr(value), f"`{value}`")
            yield f"`{field.encode_name}`", _shape(field.type), default, descriptions[field.name].rstrip(".")


def _shape(kind: msgspec.inspect.Type) -> str:
    """Return what a value looks like in the file."""
    match kind:
        case msgspec.inspect.Metadata(type=inner, extra_json_schema=extra):
            return str((extra or {}).get("description") or _shape(inner))
        case StrType():
            return "text"
        case BoolType():
            return "`true` or `false`"
        case FloatType():
            return "number"
        case VarTupleType(item_type=item):
            return f"list of {_shape(item)}"
        case DictType(value_type=msgspec.inspect.AnyType()):
            return "table"
        case DictType(value_type=value):
            return "table of " + ("tables" if isinstance(value, StructType | DictType) else _shape(value))
        case _:
            return "table"


def _first(kind: type) -> str:
    """Return the first paragraph of a class's docstring."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())


def _table(headings: Sequence[str], rows: Iterator[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table and an empty line; nothing if the table has no rows."""
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    if not lines:
        return []
    return [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|", *(f"| {line} |" for line in lines), ""]


def files() -> dict[Path, str]:
    """Return the text of each file."""
    # tasks.py is above this package: it is found by its name, as invoke finds it.
    verbs = Collection.from_module(import_module("tasks"))
    return {
        REFERENCE: reference(verbs),
        scripts.PAGE: _replaced(scripts.PAGE.read_text(encoding="utf-8"), scripts.tables(verbs)),
        scripts.SCHEMA: scripts.json_schema(verbs),
        CONFIGURATION: configuration(CONFIGURATION.read_text(encoding="utf-8")),
        DESIGN: design(DESIGN.read_text(encoding="utf-8")),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
