"""Read the number of DPUs from a user's Triton script without running it; run the script for the IR of its kernel.

A script accepts `--out PATH` and writes the kernel's LLVM IR there.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..counts import MOST_DPUS, count
from .runner import Dpus

CONSTANT = "TRITON_DPU_NUM_DPUS"
_KEYWORD = "num_dpus"


class ScriptError(ValueError):
    """A script cannot be run, writes no IR, or contradicts itself."""


def default_dpus(source: str, kernel: str) -> Dpus | None:
    """Return the number of DPUs that a script asks for.

    The first of these counts: the launch `kernel[grid](..., num_dpus=4)`, then `triton.Config(..., num_dpus=4)`, then a
    top-level `TRITON_DPU_NUM_DPUS = 4`. A number is a literal or a top-level constant.

    Returns:
        None if the script has none of them, or if the first of them cannot be read without running the script.

    Raises:
        ScriptError: two of the same kind disagree, one is not a number of DPUs, or the script is not Python.
    """
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        raise ScriptError(f"the script is not Python: line {error.lineno}: {error.msg}") from error
    constants = dict(_constants(module))
    ways: Sequence[tuple[str, list[ast.expr]]] = (
        (f"a launch of {kernel}", list(_launches(module, kernel))),
        ("triton.Config", list(_configurations(module))),
        (CONSTANT, [value for name, value in _constants(module) if name == CONSTANT]),
    )
    for source_name, expressions in ways:
        numbers = {}
        for expression in expressions:
            named = constants.get(expression.id) if isinstance(expression, ast.Name) else expression
            try:
                value = ast.literal_eval(named) if named is not None else None
            except ValueError:
                value = None
            if value is None:
                return None
            try:
                numbers[expression.lineno] = count(value, MOST_DPUS, f"the number of DPUs ({source_name})")
            except ValueError as error:
                raise ScriptError(f"line {expression.lineno}: {error}") from None
        if len(set(numbers.values())) > 1:
            message = ", ".join(f"{number} in line {line}" for line, number in sorted(numbers.items()))
            raise ScriptError(f"the script disagrees with itself on the number of DPUs, {source_name}: {message}")
        if numbers:
            return Dpus(next(iter(numbers.values())), source_name)
    return None


def _constants(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def _launches(module: ast.Module, kernel: str) -> Iterator[ast.expr]:
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name))) if name == kernel:
                yield from (keyword.value for keyword in node.keywords if keyword.arg == _KEYWORD)


def _configurations(module: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id="Config") | ast.Attribute(attr="Config")):
                yield from (keyword.value for keyword in node.keywords if keyword.arg == _KEYWORD)
                for argument in node.args[:1]:
                    if isinstance(argument, ast.Dict):
                        for key, value in zip(argument.keys, argument.values, strict=True):
                            if isinstance(key, ast.Constant) and key.value == _KEYWORD:
                                yield value


def kernel_ir(script: Path) -> str:
    """Run a script and return the LLVM IR that it writes.

    Environment:
        TRITON_PY: the Python that runs the script; the current one by default.
        TRITON_SRC: a source tree of Triton to use instead of the installed one.
        TRITON_CACHE_DIR: Triton's cache; a temporary folder by default, since the usual place may not be writable.

    Raises:
        ScriptError: the script failed (its output is on stderr) or wrote nothing, or UPMEM_OPT names no program.
    """
    if not script.is_file():
        raise ScriptError(f"there is no script {script}")
    opt = os.environ.get("UPMEM_OPT")
    if opt and shutil.which(opt) is None:
        raise ScriptError(f"UPMEM_OPT={opt} is not a program; unset it to use the installed opt")
    with tempfile.TemporaryDirectory() as work:
        out = Path(work, "kernel.ll")
        # Print which opt legalises the kernel, as TritonPIM does.
        env = {"TRITON_CACHE_DIR": str(Path(work, "cache")), "TRITON_DPU_VERBOSE": "1"} | os.environ | _source_tree()
        command = [os.environ.get("TRITON_PY") or sys.executable, str(script), "--out", str(out)]
        try:
            done = subprocess.run(command, env=env, check=False)
        except OSError as error:
            raise ScriptError(f"TRITON_PY={command[0]} cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            raise ScriptError(f"{' '.join(command)} ended with exit status {done.returncode}")
        if not out.is_file():
            raise ScriptError(f"{script} wrote no {out.name}: a script must take --out PATH and write LLVM IR there")
        return out.read_text()


def _source_tree() -> dict[str, str]:
    source = os.environ.get("TRITON_SRC")
    if not source:
        return {}
    python = Path(source, "python")
    if not (python / "triton" / "__init__.py").is_file():
        raise ScriptError(f"TRITON_SRC={source} has no python/triton/__init__.py; unset it to use the installed Triton")
    path = os.environ.get("PYTHONPATH")
    # TritonPIM's Triton has a dpu backend of its own. With any other, the installed one is used.
    own = {"TRITON_BACKENDS_IN_TREE": "1"} if (python / "triton" / "backends" / "dpu").is_dir() else {}
    return {"PYTHONPATH": f"{python}{os.pathsep}{path}" if path else str(python), **own}
