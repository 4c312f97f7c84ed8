"""Describe the documents that --json prints: the tables of their keys in docs/scripts.md, and their JSON Schema.

Both come from the ShownDocument classes in the modules of the verbs. `python -m toolchains.cli.reference` writes them.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import msgspec
from invoke.collection import Collection
from msgspec.inspect import (
    BoolType,
    DataclassType,
    DictType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
)

from toolchains.config import schema
from toolchains.system import paths
from toolchains.system.document import ShownDocument

SCHEMA = paths.ROOT / "docs" / "scripts.json"
PAGE = SCHEMA.with_suffix(".md")


def documents(verbs: Collection) -> dict[str, list[type[ShownDocument]]]:
    """Return the documents of each verb that has --json.

    Args:
        verbs: the tasks of tasks.py.
    """
    found = {}
    for name, task in sorted(verbs.tasks.items()):
        if task.body.json:
            # Verbs are above this package: they are found by their names, as tasks.py finds them.
            module = import_module(f"toolchains.verbs.{name.replace('-', '_')}")
            kinds = [
                kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__
            ]
            found[name] = [kind for kind in kinds if issubclass(kind, ShownDocument)]
    return found


def title(kind: type[ShownDocument]) -> str:
    """Return the value of a document's key `document`."""
    return str(kind.__struct_config__.tag)


def json_schema(verbs: Collection) -> str:
    """Return the text of the schema of all documents."""
    kinds: list[type[ShownDocument]] = [
        ShownDocument,
        *(kind for several in documents(verbs).values() for kind in several),
    ]
    top, components = schema.described(kinds)
    classes: set[type] = {each for kind in kinds for each in _classes(kind)}
    for each in classes:
        definition, descriptions = components[each.__name__], fields(each)
        # All keys are written, also those with a default value.
        definition["required"] = [*definition["properties"]]
        definition["description"] = _first(each)
        for name, value in definition["properties"].items():
            value.pop("default", None)
            if name in descriptions:
                value["description"] = descriptions[name]
    text = schema.written("the documents of --json", top, components)
    # The innermost objects and lists stand on one line each.
    return re.sub(r"[{\[][^{}\[\]]*[}\]]", lambda match: re.sub(r"\n *", " ", match[0]), text)


def tables(verbs: Collection) -> str:
    """Return the tables of fields for docs/scripts.md."""
    lines = []
    for kinds in documents(verbs).values():
        for kind in kinds:
            lines += [f"### {title(kind)}", "", _first(kind), ""]
            own = [each for each in _classes(kind) if each not in _classes(ShownDocument)]
            for each in own:
                if each is not kind:
                    lines += [f"`{each.__name__}`: {_first(each)}", ""]
                lines += ["| key | value | meaning |", "|---|---|---|"]
                for key, value in _keys(each).items():
                    lines.append(f"| `{key}` | {value} | {fields(each)[key].rstrip('.')} |")
                lines.append("")
    return "\n".join(lines)


def fields(kind: type) -> dict[str, str]:
    """Return the description of each attribute from the docstrings of a class and of those that it inherits from."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        _, _, text = (inspect.getdoc(each) or "").partition("Attributes:\n")
        for names, description in re.findall(r"^ {4}([\w, ]+): (.*(?:\n {8}.*)*)", text, re.MULTILINE):
            found |= dict.fromkeys(names.split(", "), " ".join(description.split()))
    return found


def _keys(kind: type) -> dict[str, str]:
    """Return what each key's value is, without the keys that all documents have."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, StructType | DataclassType)
    common = ShownDocument.__struct_fields__ if issubclass(kind, ShownDocument) else ()
    return {field.encode_name: _shape(field.type) for field in info.fields if field.name not in common}


def _shape(kind: Type) -> str:
    """Return what a value looks like."""
    match kind:
        case StrType():
            return "text"
        case BoolType():
            return "`true` or `false`"
        case IntType():
            return "integer"
        case FloatType():
            return "number"
        case NoneType():
            return "`null`"
        case LiteralType(values=values):
            return ", ".join(f"`{value!r}`".replace("'", '"') for value in values)
        case UnionType(types=types):
            return " or ".join(_shape(each) for each in types)
        case ListType(item_type=item) | VarTupleType(item_type=item):
            return f"list of {_shape(item)}"
        case DictType(value_type=value):
            return f"object, each value {_shape(value)}"
        case StructType(cls=cls) | DataclassType(cls=cls):
            return f"`{cls.__name__}`"
    raise TypeError(f"docs/scripts.md has no words for {kind}")


def _classes(kind: type) -> list[type]:
    """Return a class and those of its fields, at any depth."""
    found: list[type] = []

    def visit(each: Any) -> None:
        match each:
            case StructType(cls=cls, fields=inner) | DataclassType(cls=cls, fields=inner):
                if cls not in found:
                    found.append(cls)
                    for field in inner:
                        visit(field.type)
            case UnionType(types=types):
                for one in types:
                    visit(one)
            case ListType(item_type=item) | VarTupleType(item_type=item) | DictType(value_type=item):
                visit(item)

    visit(msgspec.inspect.type_info(kind))
    return found


def _first(kind: type) -> str:
    """Return the first paragraph of a class's docstring."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
