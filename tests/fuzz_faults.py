"""Faults that a fuzzer must find: each is a change of one of our readers, planted in a copy of the repository.

`python tests/fuzz.py --faults` plants each, and gives the target the damaged input that shows it. With --tries, it
looks for such inputs: their numbers change with fuzz_edits.py and with a target's valid inputs.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Processor time of an input that shows a fault; without it, it takes less than a tenth.
SECONDS = 1


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        name: for people.
        target: the target that must find it.
        file: the file that is changed.
        changes: texts in it, each of which is replaced by the next.
        number: of the damaged input that shows the fault; without the fault, this input passes.
    """

    name: str
    target: str
    file: str
    changes: tuple[tuple[str, str], ...]
    number: int


_CONFINE, _EMULATOR = "toolchains/archives/confine.py", "sdks/upmem/host/program.cpp"
_ESCAPE = (
    ('if ".." in path.split("/")', 'if ".." in path.split("/") and not path.startswith("./..")'),
    ("if not place.resolve().is_relative_to(folder.resolve()):", "if False:"),
)
_NPY = "backends/vsi/src/triton_vsi_backend/standalone/npy.h"
_VULKAN = "toolchains/recipes/vulkan-runtime/src/vulkan.c"
FAULTS = (
    Fault("a file is written beside the folder for results", "unpacked", _CONFINE, _ESCAPE, 733),
    Fault("a file is copied out beside its destination", "copied-out", _CONFINE, _ESCAPE, 1185),
    Fault(
        "a member of an ar has a negative size",
        "deb",
        "toolchains/archives/ar_file.py",
        (("not size.isdecimal()", 'not size.lstrip("-").isdecimal()'),),
        13,
    ),
    Fault(
        "an entry of a tar has a negative size",
        "tar",
        "toolchains/archives/tar_file.py",
        (("if count < 0 or (", "if ("),),
        589,
    ),
    Fault(
        "a folder of results writes elements into the report",
        "results-spirv-results",
        "toolchains/report/page.py",
        (("autoescape=True", "autoescape=False"),),
        578,
    ),
    Fault(
        "a name in results ends the report's data",
        "results-spirv-sizes",
        "toolchains/report/page.py",
        (('.replace("<", "\\\\u003c")', ""),),
        776,
    ),
    Fault(
        "a table of an ELF file has no end",
        "elf",
        "toolchains/sdk/elf.py",
        (("if self._left < 0:", "if False:"),),
        9716,
    ),
    Fault(
        "an instruction of SPIR-V has no words",
        "spirv",
        "backends/core/src/foundry_core/codegen/spirv.py",
        (("if not at < end", "if not at <= end"),),
        8,
    ),
    Fault(
        "JSON is nested too deeply",
        "json",
        "toolchains/system/json_text.py",
        (("except RecursionError", "except KeyError"),),
        204,
    ),
    Fault(
        "a number of an artifact has two lines",
        "artifact",
        "backends/dpu/tritonpim/scripts/container_artifact_run.sh",
        ((",* | *, | *[!0-9,]*)", ",* | *,)"),),
        32,
    ),
    Fault("a .npy file has more data than its shape", "npy", _NPY, (("rest != expected", "rest < expected"),), 14),
    Fault(
        "a header of a .npy file is longer than the file",
        "npy",
        _NPY,
        (("if (count > size - before)", "if (false)"),),
        60,
    ),
    Fault(
        "a table of a DPU program lies behind its end",
        "dpu-program",
        _EMULATOR,
        (("count > (file_.size() - offset) / sizeof(T)", "count > file_.size()"),),
        17,
    ),
    Fault(
        "a segment of a DPU program is larger than its memory",
        "dpu-program",
        _EMULATOR,
        (("segment.p_memsz <= bytes - (segment.p_vaddr - base)", "segment.p_filesz <= bytes"),),
        50,
    ),
    Fault(
        "a Vulkan command buffer is used again before it has run",
        "vulkan",
        _VULKAN,
        (("if (number > SLOTS) {", "if (0) {"),),
        4,
    ),
)


def copied(root: Path, copy: Path) -> None:
    """Copy the repository: the files that git knows, and new ones that it does not ignore."""
    names = subprocess.check_output(["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"], text=True)
    for name in filter(None, names.split("\0")):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name, follow_symlinks=False)


@contextmanager
def planted(fault: Fault, copy: Path) -> Iterator[None]:
    """Plant a fault in a copy of the repository inside a with statement.

    Raises:
        ValueError: the file has changed, so that the fault cannot be planted.
    """
    file = copy / fault.file
    before = text = file.read_text()
    for old, new in fault.changes:
        if old not in text:
            raise ValueError(f"{fault.file} does not have {old!r} any more, so {fault.name!r} cannot be planted")
        text = text.replace(old, new)
    # What Python compiled of the file before has another size, or another time.
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(before)
