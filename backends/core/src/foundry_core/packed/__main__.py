"""Pack the kernels that a script launches: `python -m foundry_core.packed SCRIPT:KERNEL DIR WORDS...`.

    python -m foundry_core.packed add.py:add packed/add
    python -m foundry_core.packed model.py packed/model --size 4096

The script runs with WORDS as its arguments. Each kernel that it launches, or those that are named after the colon, with
commas between, is compiled as it was launched, and in more general forms. The first launch of each compiled kernel is
recorded as an example. Triton's cache is a new folder, whatever TRITON_CACHE_DIR says. docs/packed.md has the rest.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import runpy
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from ..failure import Failure
from .folder import write
from .forms import compile_kernels
from .recording import Recorder
from .roads import PackError


def main(words: list[str]) -> int:
    """Do what the module says; return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m foundry_core.packed",
        description=inspect.cleandoc(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--name", default="", help="the folder's name in C and Python; default: the first kernel's")
    parser.add_argument("--target", default="", help="the target's name, for messages; default: the backend's")
    parser.add_argument(
        "--device",
        default="",
        help="with Vulkan: the device that kernels are compiled for, if the script does not run on it: a name in "
        "foundry_core/packed/devices.json, such as any-32 or h100, or a description, as target.arch in a kernel's "
        """metadata: 'vulkan {"warp_size": 32}'""",
    )
    parser.add_argument("script")
    parser.add_argument("folder", type=Path)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = vars(parser.parse_args(words))
    with tempfile.TemporaryDirectory() as cache:
        # A kernel that another script left in the user's cache has that script's path in it.
        os.environ["TRITON_CACHE_DIR"] = cache
        try:
            pack(**options)
        except Failure as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


def split(script: str) -> tuple[str, list[str]]:
    """Return the path of SCRIPT:KERNEL,KERNEL, and the names of the kernels."""
    path, colon, names = script.rpartition(":")
    if not colon or not re.fullmatch(r"[\w,]*", names):
        return script, []
    return path, [name for name in names.split(",") if name]


def pack(*, script: str, folder: Path, words: list[str], name: str, target: str, device: str) -> None:
    """Run a script, and pack the kernels that it launched; for another device, if one is named (see VulkanRoad).

    Raises:
        PackError: a kernel cannot be packed, or none was launched.
    """
    from triton.runtime import driver

    path, wanted = split(script)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PackError(f"{folder} is not empty", why="a folder of packed kernels has nothing else in it")
    road = getattr(driver.active, "road", None)
    if road is None:
        raise PackError("kernels of this target cannot be packed", why=f"{type(driver.active).__name__} has no road")
    recorder = Recorder(road(), wanted)
    packed_for = recorder.road.named_device(device, driver.active.get_current_target()) if device else None
    sys.argv = [path, *words]
    sys.path[0] = str(Path(path).resolve().parent)
    with recorder.active():
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise PackError(f"{path} failed", why=f"it ended with {end.code!r}") from end
    missing = sorted(set(wanted) - {launch.source.name for launch in recorder.found.values()})
    if missing or not recorder.found:
        raise PackError(
            f"{path} launched no kernel {', '.join(missing)}".rstrip(),
            why=f"it launched {', '.join(sorted(recorder.seen)) or 'none'}",
            next="let the script launch each kernel that is packed, with the arguments that it is for",
        )
    kernels = compile_kernels(list(recorder.found.values()), recorder.choices, recorder.road, packed_for)
    name = name or (wanted or [kernels[0].name])[0]
    target = target or driver.active.get_current_target().backend
    contents = write(folder, name, target, version("triton-foundry-core"), kernels, recorder.road)
    for kernel in kernels:
        recorded = sum(launch.memories is not None for launch in kernel.launches)
        print(f"{kernel.name}: {len(kernel.variants)} forms, {recorded} recorded launches")
        if recorded < len(kernel.launches):
            left = len(kernel.launches) - recorded
            print(f"  not recorded: {left} launches with large arrays, or with elements of two types in one memory")
    if not any(made.startswith("lib/") for made in contents):
        print("there is no C compiler: build the library, as CMakeLists.txt says")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
