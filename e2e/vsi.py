"""Cases for vsi only: its modes, the vendor's examples, the two ways to install the plugin, dumped launchers.

The documented variables select a mode for every kernel of vec_add and matmul. The launch shows whether the mode was in
effect: how many work-items shared a program, and how many commands for the tensor core were created.

Examples, installations and launchers run the command lines that VeriSilicon documents, in a copy of the plugin's
folder, which the container has at /foundry/triton_vsi_backend.

    python e2e/vsi.py [--only TEXT]
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import matmul
import numpy as np
import triton
import vec_add
from foundry_core.tensor import Tensor
from report import Case, Outcome, run_command, run_script

HERE = Path(__file__).resolve().parent
# ./foundry puts the plugin's sources here. Without it, the sources are those of the checkout of this file.
FURNISHED = Path("/foundry/triton_vsi_backend")
PLUGIN = FURNISHED if FURNISHED.is_dir() else HERE.parent / "backends" / "vsi"

TC, THREADS = "VSI_ENABLE_TC", "VSI_ENABLE_MULTI_THREADS"
MODES = {
    "": {TC: "0", THREADS: "0"},
    "TC": {TC: "1", THREADS: "0"},
    "threads": {TC: "0", THREADS: "1"},
}
# Triton's default number of warps, and the number of work-items in a warp.
WARPS, WARP = 4, 32
COMMAND_BYTES = 256


# ---- modes


def in_modes(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the cases in each of the modes.

    An addition has nothing for the tensor core, so TC runs only those of its cases that every release of Triton runs.
    """
    cases = list(cases)
    for mode, variables in MODES.items():
        for case in cases:
            if mode == "TC" and case.suite == "vec_add" and case.anywhere:
                continue
            yield dataclasses.replace(
                case,
                name=f"{case.name} {mode}".rstrip(),
                run=lambda case=case: run_and_confirm_mode(case),  # type: ignore[misc]
                variables=variables,
            )


def type_of(case: Case) -> str:
    """Return the element types in a case's name."""
    return next(word for word in case.name.split() if word in {**vec_add.DTYPES, **matmul.DTYPES})


def run_and_confirm_mode(case: Case) -> Outcome:
    """Run a case; the last launch must show that the mode selected by the environment was in effect."""
    driver = triton.runtime.driver.active
    before = driver.last_launch
    outcome = case.run()
    launch = driver.last_launch
    refused = isinstance(outcome, str)
    assert refused == (type_of(case) == "f64"), f"{type_of(case)} was {outcome if refused else 'compiled'}"
    if refused:
        assert launch is before, "a refused kernel was launched"
        return outcome
    assert launch is not before and launch is not None, "nothing was launched"
    threads = WARPS * WARP if os.environ[THREADS] == "1" else 1
    assert launch.threads == threads, f"{launch.threads} work-items shared a program, not {threads}"
    if case.suite == "matmul" and os.environ[TC] == "1":
        assert launch.matmuls > 0, "tl.dot did not go to the tensor core"
    else:
        assert launch.matmuls == 0, f"{launch.matmuls} matmul commands a program, and there should be none"
    commands = (launch.matmuls + launch.dmas) * math.prod(launch.grid)
    assert launch.command_bytes == commands * COMMAND_BYTES, f"{launch.command_bytes} bytes are {commands} commands"
    return outcome


# ---- command lines of users


def lines(text: str, folder: Path, **variables: str | None) -> str:
    """Run command lines in a folder, and return their output.

    Args:
        variables: environment variables to set; None removes one.
    """
    return run_command("bash", "-ec", text, folder=folder, variables=variables).stdout


def in_a_copy(flow: Callable[[Path], None]) -> None:
    """Run a function in a folder where `cd triton_vsi_backend` works, with empty caches."""
    with tempfile.TemporaryDirectory(prefix="vsi-") as scratch:
        folder = Path(scratch, "triton_vsi_backend")
        shutil.copytree(PLUGIN, folder, ignore=shutil.ignore_patterns("__pycache__", "*.whl"))
        flow(Path(scratch))


def example(name: str, mode: str) -> None:
    """Run one of VeriSilicon's examples as its first line says; the example checks its result."""

    def flow(scratch: Path) -> None:
        said = lines(f"python {name}.py", scratch / "triton_vsi_backend" / "examples", **MODES[mode])
        assert "CPU OpenCL device" in said or "hardware" in said, f"it did not say on what it ran: {said}"
        if name == "matmul":
            on = [variable for variable, value in MODES[mode].items() if value == "1"]
            assert (", ".join(on) or "no switches") in said, f"it ran otherwise: {said}"

    in_a_copy(flow)


# An environment on top of this one: packages that are installed into it take precedence.
ENVIRONMENT = """
python -m venv --without-pip env
echo {below} > env/{packages}/zz_below.pth
"""
WHEEL = """
cd triton_vsi_backend
pip3 wheel --no-build-isolation .
"""
EDITABLE = """
cd triton_vsi_backend
pip3 --python ../env/bin/python install --no-build-isolation --editable .
"""
# No network, and no configuration of the user.
OFFLINE = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_CONFIG_FILE": "/dev/null",
}
WHERE = """
import triton, triton_vsi_backend
from triton_vsi_backend import pieces
print(triton_vsi_backend.__file__, pieces.zen_compiler(), pieces.bridge(), sep="\\n")
"""


def environment(scratch: Path) -> Path:
    """Create an environment whose own packages precede the packages of this one; return the folder of its packages."""
    packages = Path("lib", f"python{sysconfig.get_python_version()}", "site-packages")
    below = "'" + "\n".join(path for path in sys.path if Path(path).is_dir()) + "'"
    lines(ENVIRONMENT.format(below=below, packages=packages), scratch)
    return scratch / "env" / packages


def installed(scratch: Path, **variables: str | None) -> list[Path]:
    """Run a TC matmul, and return where the new environment has the plugin, the compiler and the bridge."""
    settings = {"PATH": f"{scratch}/env/bin:{os.environ['PATH']}", "TRITON_CACHE_DIR": str(scratch / "cache"), TC: "1"}
    said = lines("python matmul.py", scratch / "triton_vsi_backend" / "examples", **settings, **variables)
    where = [Path(line) for line in lines(f"python -c '{WHERE}'", scratch, **settings, **variables).splitlines()]
    assert f"kernels compiled by {where[1]};" in said, f"it ran with another compiler: {said}"
    return where


def wheel(scratch: Path) -> None:
    """README: `pip3 wheel` with compiler and bridge in the wheel; it works without the variables that name them."""
    packages = environment(scratch)
    lines(WHEEL, scratch, **OFFLINE)
    # The image has this version of the plugin too, but without the two files.
    install = "pip3 --python env/bin/python install --force-reinstall triton_vsi_backend/triton_vsi_backend-*.whl"
    lines(install, scratch, **OFFLINE)
    shutil.move(scratch / "triton_vsi_backend" / "src", scratch / "elsewhere")
    plugin = packages / "triton_vsi_backend"
    found = installed(scratch, VSI_ZEN_COMPILER_PATH=None, VSI_ZEN_TC_BRIDGE_PATH=None)
    assert found == [plugin / "__init__.py", plugin / "bin/zen-compiler", plugin / "lib/libZenTCBridge.so"], found


def editable(scratch: Path) -> None:
    """README: an editable installation runs the sources in the folder, and the files that the variables name."""
    environment(scratch)
    lines(EDITABLE, scratch, **OFFLINE)
    named = [Path(os.environ[f"VSI_ZEN_{piece}_PATH"]) for piece in ("COMPILER", "TC_BRIDGE")]
    source = scratch / "triton_vsi_backend/src/triton_vsi_backend/__init__.py"
    assert installed(scratch) == [source, *named]
    source.write_text(source.read_text() + "\nEDITED = True\n")
    variables = {"PATH": f"{scratch}/env/bin:{os.environ['PATH']}"}
    assert lines("python -c 'import triton_vsi_backend as t; print(t.EDITED)'", scratch, **variables) == "True\n"


# The line of VeriSilicon's README, and the shorter line of their documents.
BUILD_LINES = {
    "libc++": "clang++ -Og -glldb -std=c++17 -stdlib=libc++ -fuse-ld=lld {kernel}_standalone.cpp "
    "-o {kernel}_standalone -I ${{VSI_SDK_DIR}}/include -L ${{VSI_SDK_DIR}}/lib -lOpenCL",
    "libstdc++": "ln -s ${{VSI_SDK_DIR}}/include ${{VSI_SDK_DIR}}/lib .\n"
    "clang++ -std=c++17 {kernel}_standalone.cpp -o {kernel}_standalone -I include -L lib -lOpenCL",
}
LAUNCH = """
export LD_LIBRARY_PATH=${{VSI_SDK_DIR}}/lib
./{kernel}_standalone -g {grid},1,1 -d 0 -w {warps} -m {kernel}.spv
"""


def standalone(line: str) -> float:
    """Dump matmul's kernel, build it and launch it without Python, in the mode of the environment.

    Returns the largest error as a share of its bound, like matmul.check. The launch uses other numbers than Triton's
    launch, so that output left by Triton's launch does not pass.
    """
    m, n, k, block = 100, 72, 40, (32, 16, 16)
    kernel, random = "matmul_kernel", np.random.default_rng(7)
    grid = triton.cdiv(m, block[0]) * triton.cdiv(n, block[1])

    def numbers() -> list[Any]:
        a, b = (random.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        return [a, b, np.full((m, n), np.nan, np.float32)]

    with tempfile.TemporaryDirectory(prefix="vsi-") as scratch:
        folder = Path(scratch, kernel)
        os.environ["VSI_DUMP_DIR"] = scratch
        try:
            a, b, c = numbers()
            matmul.launch(a, b, c, block, 8, dump_standalone=True)
        finally:
            del os.environ["VSI_DUMP_DIR"]
        names = {f"{kernel}{end}" for end in (".ttir", ".spv", "_cmd_gen.so", "_standalone.cpp")}
        assert names <= {path.name for path in folder.iterdir()}, sorted(folder.iterdir())
        lines(BUILD_LINES[line].format(kernel=kernel), folder)
        a, b, c = arrays = numbers()
        strides = [stride for array in arrays for stride in Tensor(array).stride()]
        # Triton turns integer arguments with the value 1 into constants.
        scalars = [np.int32(value) for value in (m, n, k, *strides) if value != 1]
        (folder / "inputs").mkdir()
        for index, argument in enumerate([*arrays, *scalars]):
            np.save(folder / f"inputs/arg_{index}.npy", argument)
        warps = WARPS if os.environ[THREADS] == "1" else 0
        # With this PYTHONHOME no Python can start.
        lines(LAUNCH.format(kernel=kernel, grid=grid, warps=warps), folder, PYTHONHOME="/nowhere")
        outputs = sorted(path.name for path in (folder / "outputs").iterdir())
        assert outputs == [f"arg_{index}.npy" for index in range(3)], outputs
        for index, array in enumerate((a, b)):
            np.testing.assert_array_equal(np.load(folder / f"outputs/arg_{index}.npy"), array)
        c = np.load(folder / "outputs/arg_2.npy")
    return matmul.check_product(a, b, c)


def cases() -> Iterator[Case]:
    for name, mode in itertools.chain([("elementwise_binary", "")], (("matmul", mode) for mode in MODES)):
        run: Any = lambda name=name, mode=mode: example(name, mode)  # noqa: E731
        yield Case("examples", f"{name} {mode}".rstrip(), run)
    for flow in (wheel, editable):
        yield Case("install", flow.__name__, lambda flow=flow: in_a_copy(flow), anywhere=True)  # type: ignore[misc]
    for (mode, variables), line in zip(MODES.items(), ("libc++", "libstdc++", "libstdc++"), strict=True):
        title = f"matmul 100x72x40 dumped, built with {line} {mode}".rstrip()
        run = lambda line=line: standalone(line)  # noqa: E731
        yield Case("launcher", title, run, variables, anywhere=True)


if __name__ == "__main__":
    run_script("vsi", lambda: itertools.chain(in_modes(itertools.chain(vec_add.cases(), matmul.cases())), cases()))
