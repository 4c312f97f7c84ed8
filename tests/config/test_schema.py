"""The JSON Schemas in the tree are those that the configuration is read with, and the TOML files name them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from toolchains.config import schema
from toolchains.system import paths

FILES = [
    (name, path)
    for name, folder in schema.schema_folders().items()
    for path in (paths.SCHEMAS / ".." / folder).glob("*.toml")
]


def test_the_schemas_are_current() -> None:
    written = {path.name: path.read_text() for path in paths.SCHEMAS.glob("*.json")}
    assert written == schema.schemas(), "write them again: python -m toolchains.config.schema"


@pytest.mark.parametrize(("name", "path"), FILES, ids=[path.name for _, path in FILES])
def test_a_file_names_its_schema_and_fits_it(name: str, path: Path) -> None:
    text = path.read_text()
    assert text.startswith(f"#:schema ../schemas/{name}\n")
    jsonschema.validate(tomllib.loads(text), json.loads(schema.schemas()[name]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("component.json", 'source = "deb"\nleftout = []'),
        ("component.json", 'source = "releases"\ndistribution = "t"\ndefault = "2"\n[release."2"]\nllvm-hash = "a"'),
        ("target.json", 'backend = "b"\nplugins = ["b"]\nsuite = "s"\npython = 3\ncomponents = []'),
        ("target.json", 'extends = "spirv"\nsuite = "s"'),
        ("builder.json", 'python = "3.13"'),
        ("upstream.json", 'default = "a"\ngigabytes = 1\n[profile.a]\nversions = "1"'),
        ("sdk.json", 'name = "a"'),
    ],
)
def test_a_schema_refuses_what_reading_refuses(name: str, text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), json.loads(schema.schemas()[name]))
