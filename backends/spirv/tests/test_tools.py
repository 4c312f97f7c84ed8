"""The image's llc, which has only what the lowering uses: what it lacks or cannot do is an error that says so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

GOOD = "define i32 @f(i32 %x) {\n  ret i32 %x\n}\n"
WRONG = "define i32 @f(i32 %x) {\n  ret i64 %x\n}\n"


@pytest.mark.parametrize(
    ("words", "source", "message"),
    [
        (["-verify-machineinstrs"], GOOD, "takes only --version, .*, not -verify-machineinstrs"),
        (["-mtriple=riscv64"], GOOD, "riscv64"),
        (["-mtriple=spirv64"], WRONG, "<stdin>:2:11: error: '%x' defined with type 'i32' but expected 'i64'"),
        (["-mtriple=spirv64", "-filetype=obj", "-o", "/dev/full"], GOOD, "cannot write to /dev/full"),
        (["-mtriple=spirv64", "-filetype=obj", "-o", "/no/folder"], GOOD, "cannot write to /no/folder"),
    ],
)
def test_unsupported_use_of_llc_is_an_error(words: list[str], source: str, message: str) -> None:
    done = subprocess.run(["llc", *words], input=source, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.match(f"llc: error: .*{message}", done.stderr)


@pytest.mark.parametrize("kind", ["spirv64", "x86_64-unknown-linux-gnu"])
def test_llc_writes_objects_to_standard_output_and_to_files(kind: str, tmp_path: Path) -> None:
    words = ["llc", f"-mtriple={kind}", "-O2", "-relocation-model=pic", "-filetype=obj", "-o"]
    printed = subprocess.run([*words, "-"], input=GOOD.encode(), capture_output=True, check=True).stdout
    subprocess.run([*words, tmp_path / "object"], input=GOOD.encode(), check=True)
    assert printed.startswith(b"\x7fELF" if kind.startswith("x86") else b"\x03\x02\x23\x07")
    assert (tmp_path / "object").read_bytes() == printed
