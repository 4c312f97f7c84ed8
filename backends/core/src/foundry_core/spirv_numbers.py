"""The numbers of SPIR-V by Khronos's names: of instructions, of enumerants, and of extended instructions.

tests/tree/test_spirv_numbers.py generates spirv_numbers.json from Khronos's grammar, with the names that our code uses.
An instruction has no `Op` at the beginning of its name, and no KHR or EXT at the end.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

# By "Op", a kind of enumerants such as "Decoration", or a set of extended instructions such as "OpenCL.std".
NUMBERS: Final[dict[str, dict[str, int]]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def numbers(kind: str, names: str) -> tuple[int, ...]:
    """Return the numbers of names with spaces between them.

    Raises:
        KeyError: the file has no such name; tests/tree/test_spirv_numbers.py, as a program, adds it if Khronos has it.
    """
    return tuple(NUMBERS[kind][name] for name in names.split())
