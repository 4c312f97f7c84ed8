"""Write the JSON Schemas of the TOML files, toolchains/schemas/*.json, so that editors complete and check these files.

Each TOML file names its schema in its first line (`#:schema`). A test compares the schemas with the output of this
module; `python -m toolchains.config.schema` writes them again.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from toolchains.config.components import BuilderFile, Pin, TargetFile, VariantFile
from toolchains.config.platforms import Platform
from toolchains.config.projects import Profile, ProjectFile
from toolchains.config.vendors import VendorSdk
from toolchains.system import paths

# For each schema: the folder of the files, the class of their content, and the fields that come from the file's name.
_KINDS: dict[str, tuple[str, Any, tuple[str, ...]]] = {
    "component": ("pins", Pin, ("name",)),
    "target": ("targets", TargetFile | VariantFile, ()),
    "builder": ("builders", BuilderFile, ()),
    "platform": ("platforms", Platform, ("name",)),
    "upstream": ("upstreams", ProjectFile, ()),
    "sdk": ("sdks", VendorSdk, ("key",)),
}


def schemas() -> dict[str, str]:
    """Return the text of each schema by its file name."""
    return {f"{name}.json": _schema(name, kind, own) for name, (_, kind, own) in _KINDS.items()}


def schema_folders() -> dict[str, str]:
    """Return the folder of the files that each schema describes, by the schema's file name."""
    return {f"{name}.json": folder for name, (folder, _, _) in _KINDS.items()}


def described(members: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a value that is of one of these classes, and its definitions by class."""
    tops, components = msgspec.json.schema_components(members, ref_template="#/$defs/{name}")
    for definition in components.values():
        if "description" in definition:
            definition["description"] = inspect.cleandoc(definition["description"])
    return tops[0] if len(tops) == 1 else {"anyOf": list(tops)}, components


def written(title: str, top: dict[str, Any], components: dict[str, Any]) -> str:
    """Return the text of a schema's file."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **top, "$defs": components}
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def _schema(name: str, kind: Any, from_file_name: tuple[str, ...]) -> str:
    # The classes of this union have no tag: their keys tell them apart, which msgspec does not support.
    top, components = described(kind.__args__ if kind == TargetFile | VariantFile else (kind,))
    for definition in components.values():
        for field in from_file_name:
            if field in definition.get("properties", {}) and (
                field == "key" or {"source", "debian"} & definition["properties"].keys()
            ):
                del definition["properties"][field]
                definition["required"].remove(field)
    if name == "upstream":
        components |= _profile(components["ProjectFile"])
    return written(name, top, components)


def _profile(project: dict[str, Any]) -> dict[str, Any]:
    """Describe a profile as in the file: the keys of its source are next to its own, and any key may be in [common]."""
    (_,), components = msgspec.json.schema_components((Profile,), ref_template="#/$defs/{name}")
    tables = {name: dict(table["properties"]) for name, table in components.items()}
    keys = tables.pop("Profile")
    del keys["source"], keys["name"]
    kinds = sorted(table.pop("source")["enum"][0] for table in tables.values())
    for table in tables.values():
        keys |= table
    keys["source"] = {"enum": kinds}
    reference = {"$ref": "#/$defs/Profile"}
    project["properties"]["common"] = reference
    project["properties"]["profile"] = {"type": "object", "additionalProperties": reference}
    return {"Profile": {"type": "object", "properties": keys, "additionalProperties": False}}


if __name__ == "__main__":
    for file, text in schemas().items():
        (paths.SCHEMAS / file).write_text(text)
