"""The verbs pack and run-packed: write kernels to a folder that runs without Triton, and run one, in a container.

Input and output are copied, so an engine on another machine can be used. A script that launches kernels is packed by
foundry_core.packed, on each target. A script that writes LLVM IR is packed for DPUs, as TritonPIM does: the key
`packing` of the target's file names the module that packs in the container, and the script that runs an artifact in it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchains.archives.received import Bounds, print_executed
from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.config import components
from toolchains.config.components import Packing
from toolchains.contents import packed_folder
from toolchains.engine.sandbox import DISK, Sandbox
from toolchains.system import durable, foreign, paths
from toolchains.system.errors import CommandError, UsageError

# Values by the index of the kernel's parameter, from 0.
Indexed = Sequence[tuple[int, str]]
_HOME = "/foundry/artifacts"
# The most bytes of arrays that a packed kernel writes.
_ARRAYS = 16 * 10**9
# The folder of an artifact that is built where the artifact runs.
_BUILT = "build"
# Bytes of an artifact: a program for a DPU has a few hundred thousand.
_MOST = 256 << 20


def choose_target(name: str) -> str:
    """Return the named target; if the name is empty, the only one that packs scripts that write LLVM IR.

    Raises:
        UsageError: a target must be named.
    """
    if name:
        return name
    # A variant packs like the target that it extends, so it is used only if the user names it.
    able = [target for target in components.names() if components.target(target).packing]
    plain = [target for target in able if components.target(target).backend == target]
    if len(plain) == 1:
        return plain[0]
    raise UsageError(
        "the target must be named",
        why=f"scripts that write LLVM IR can be packed for {', '.join(able) or 'none'}",
        next="./foundry pack TARGET SCRIPT:KERNEL DIR",
    )


def split_script(script: str) -> tuple[str, str]:
    """Return the path of SCRIPT:KERNEL,KERNEL, and the kernels; both "" if there is no colon, as in a plain path."""
    path, colon, names = script.rpartition(":")
    return (path, names) if colon and re.fullmatch(r"[A-Za-z0-9_,]*", names) else ("", "")


def launches(request: Request, script: str) -> bool:
    """Return whether a script is one that launches kernels, and not one that writes LLVM IR."""
    return bool(split_script(script)[0]) or components.target(request.target.name).packing is None


def pack_launches(
    request: Request,
    script: str,
    folder: str,
    *,
    name: str = "",
    with_: str = "",
    device: str = "",
    words: Sequence[str] = (),
) -> Path:
    """Run a script in a target's container, and pack the kernels that it launches.

    Args:
        request: the image.
        script: SCRIPT:KERNEL, with commas between several kernels; all kernels without a colon. Only the script itself
            is copied, or the folder `with_`.
        folder: the folder to write: new, or empty.
        name: the folder's name in C and Python; the first kernel's if empty.
        device: the device that kernels are compiled for; that of the container if empty.
        words: the script's arguments.

    Returns:
        The folder.

    Raises:
        UsageError: there is no such script, or no folder is named, or it cannot be written.
        CommandError: the script failed, or its kernels cannot be packed; the printed output has the reason.
    """
    if not script:
        raise UsageError("say which script to run, and which kernels", next="./foundry pack TARGET SCRIPT:KERNEL DIR")
    path, kernels = split_script(script)
    source = Path(path or script)
    if not source.is_file():
        raise UsageError(f"there is no script {source}", next="./foundry pack TARGET SCRIPT:KERNEL DIR")
    if not folder:
        raise UsageError("say where to write", next="./foundry pack TARGET SCRIPT:KERNEL DIR")
    if (place := Path(folder)).exists() and (not place.is_dir() or any(place.iterdir())):
        raise UsageError(
            f"{folder} is not empty", why="packed kernels get a folder of their own", next="name a new folder"
        )
    durable.require_writable(place, folder)
    around = Path(with_) if with_ else source
    if with_ and not source.resolve().is_relative_to(around.resolve()):
        raise UsageError(f"{source} is not in --with={with_}", next="name a folder that has the script in it")
    docker, image = ensure.ensure_image(request)
    with docker.sandbox(image.info.id) as container:
        inside = f"{_HOME}/script/{around.name if not with_ else 'with'}"
        container.copy_into(around, inside)
        ran = f"{inside}/{source.resolve().relative_to(around.resolve()).as_posix()}" if with_ else inside
        command = ["python", "-m", "foundry_core.packed", f"--target={request.target.name}", f"--name={name}"]
        command += [f"--device={device}"] * bool(device)
        command += [f"{ran}:{kernels}", f"{_HOME}/packed", *words]
        _run(container, command, f"{source} cannot be packed", {inside: around})
        taken = container.take(f"{_HOME}/packed", place, Bounds(DISK))
    print_executed(taken.written)
    taken.check(f"{source} is not packed as a whole")
    print(f"packed in {folder}; next: ./foundry run-packed {folder}")
    return place


def run_folder(folder: str, *, request: Request | None, device: str = "", ulp: int = 0) -> None:
    """Launch the kernels of a folder as they were recorded, and compare with what was recorded.

    Args:
        folder: what pack_launches wrote.
        request: the image to run in; None to run on this machine.
        device: which one: its number, or a part of its name.
        ulp: how many units in the last place a float may differ.

    Raises:
        UsageError, FileError: see packed_folder.read.
        CommandError: a result is wrong, or a launch failed; the printed output has the reason.
    """
    known, files = packed_folder.read(Path(folder))
    if request is None:
        print(f"running {known.example} of {folder} on this machine", file=sys.stderr, flush=True)
        command = [str(Path(folder, known.example).resolve()), folder, device, f"{ulp}"]
        done = subprocess.run(command, check=False)
        if done.returncode:
            raise CommandError(f"{folder} did not run as recorded: exit status {done.returncode}")
        return
    docker, image = ensure.ensure_image(request)
    inside = f"{_HOME}/packed"
    with docker.sandbox(image.info.id) as container:
        for name, file in {**files, packed_folder.MANIFEST: Path(folder, packed_folder.MANIFEST)}.items():
            container.copy_into(file, f"{inside}/{name}")
        command = ["python", "-m", "foundry_core.packed.replay", f"{inside}/{known.example}", inside, device, f"{ulp}"]
        _run(container, command, f"{folder} did not run as recorded", {inside: Path(folder)})


def packed_request(request: Request, folder: str) -> Request | None:
    """Return the request for the image in which a folder of packed kernels runs; None if it is another kind of folder.

    The image is of the target that the folder was packed for, unless the user names another one.

    Raises:
        UsageError, FileError: see packed_folder.read.
    """
    if not packed_folder.is_packed(Path(folder)):
        return None
    known, _ = packed_folder.read(Path(folder))
    return request.for_target(known.target) if request.target.name == choose_target("") else request


def _packing(request: Request) -> Packing:
    packing = components.target(request.target.name).packing
    assert packing is not None, "choose_target returns a target that packs"
    return packing


def pack(request: Request, script: str, artifact: str, *, out_indices: Sequence[int] = (), kernel: str = "") -> Path:
    """Compile the kernel of a Triton script, and write what is needed to run it without Triton.

    Args:
        request: the image, of a target that choose_target returns.
        script: a path; the script takes `--out PATH` and writes LLVM IR to it. Only the script itself is copied, so it
            cannot import its neighbours. If empty, the target's example.
        artifact: the folder to write.
        out_indices: indices of the parameters that are results, from 0; if empty, the parameters that the kernel
            writes.
        kernel: the kernel's name; needed if the IR has several.

    Returns:
        The folder.

    Raises:
        UsageError: there is no such script, or no folder is named, or it cannot be written.
        CommandError: the script failed, or its IR cannot be packed; the printed output has the reason.
    """
    packing = _packing(request)
    source = Path(script or paths.BACKENDS / packing.example)
    if not source.is_file():
        raise UsageError(f"there is no script {source}")
    if not artifact:
        raise UsageError("say where to write: --artifact-dir DIR", next="./foundry help pack")
    durable.require_writable(Path(artifact), f"--artifact-dir={artifact}")
    docker, image = ensure.ensure_image(request)
    inside = f"{_HOME}/script/{source.name}"
    options = ["--out-indices", ",".join(map(str, out_indices))] * bool(out_indices)
    options += ["--kernel", kernel] * bool(kernel)
    with docker.sandbox(image.info.id) as container:
        container.copy_into(source, inside)
        command = ["python", "-m", packing.module, "pack", "--triton-script", inside]
        command += ["--artifact-dir", f"{_HOME}/packed", *options]
        _run(container, command, f"{source} cannot be packed", {inside: source})
        taken = container.take(f"{_HOME}/packed", Path(artifact), Bounds(DISK))
    print_executed(taken.written)
    taken.check(f"{source} is not packed as a whole")
    print(f"packed in {artifact}; next: ./foundry run-packed {artifact} --parameters")
    return Path(artifact)


def run_packed(
    request: Request,
    artifact: str,
    *,
    values: Mapping[str, Indexed] | None = None,
    ins: Indexed = (),
    outs: Indexed = (),
    nr_dpus: int = 0,
    grid: Sequence[int] = (),
    parameters: bool = False,
) -> None:
    """Build an artifact and run it.

    `values` has scalars ("arg"), lengths of arrays ("len") and values of all elements ("fill") by parameters' indices.

    Raises:
        UsageError: there is no such artifact, a file of `ins` does not exist, or one of `outs` cannot be written.
        FileError: the artifact has links, pipes or devices in it, or is too large.
        CommandError: the build failed, or its host program refused the options or failed.
    """
    packing = _packing(request)
    folder = Path(artifact)
    if not (folder / "meta.json").is_file():
        raise UsageError(f"{artifact} is not a packed kernel: it has no meta.json", next="./foundry help pack")
    read, written = ([(index, Path(path)) for index, path in pairs] for pairs in (ins, outs))
    for index, path in read:
        if not path.is_file():
            raise UsageError(f"--in={index}={path}: there is no such file", next="name a file of this machine")
    for index, path in written:
        durable.require_writable(path.parent, f"--out={index}={path}")
    files = foreign.plain_files(folder, _MOST, without=_BUILT)
    docker, image = ensure.ensure_image(request)
    with docker.sandbox(image.info.id, disk=_ARRAYS) as container:
        for name, file in files.items():
            container.copy_into(file, f"{_HOME}/packed/{name}")
        container.copy_into(paths.BACKENDS / packing.scripts, f"{_HOME}/scripts")
        words = [
            word
            for name, indexed in (values or {}).items()
            for index, value in indexed
            for word in (f"--{name}", f"{index}={value}")
        ]
        words += ["--nr-dpus", f"{nr_dpus}"] * bool(nr_dpus)
        words += ["--grid", ",".join(map(str, grid))] * bool(grid) + ["--help"] * parameters
        # The paths on this machine for the paths in the container.
        places = {f"{_HOME}/packed": folder}
        for index, path in read:
            places[f"{_HOME}/in/{index}"] = path
            container.copy_into(path, f"{_HOME}/in/{index}")
            words += ["--in", f"{index}={_HOME}/in/{index}"]
        container.call(["mkdir", f"{_HOME}/out"])
        for index, path in written:
            places[f"{_HOME}/out/{index}"] = path
            words += ["--out", f"{index}={_HOME}/out/{index}"]
        command = ["env", f"ARTIFACT_DIR={_HOME}/packed", "sh", f"{_HOME}/scripts/{packing.runner}", *words]
        _run(container, command, f"{artifact} did not run", places)
        for index, path in written:
            container.copy_out(f"{_HOME}/out/{index}", path, Bounds(_ARRAYS), only="file")


def _run(container: Sandbox, command: Sequence[str], what: str, places: Mapping[str, Path]) -> None:
    """Run a command and show its output, with paths of the container replaced by those of this machine."""

    def show(text: str) -> None:
        for inside, here in places.items():
            text = text.replace(inside, str(here))
        print(text, flush=True)

    with container.disk_limited():
        done = container.run(command, line=show)
    if done.status != 0:
        # The command's output has the reason.
        raise CommandError(f"{what}: exit status {done.status}")
