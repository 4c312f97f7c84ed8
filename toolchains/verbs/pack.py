"""The verbs pack and run-packed: write a kernel to an artifact folder, and run an artifact, in a target's container.

Input and output are copied, so an engine on another machine can be used. The key `packing` of the target's file names
the module that packs in the container, and the script that runs an artifact in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchains.archives.received import Bounds, print_executed
from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.config import components
from toolchains.config.components import Packing
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
    """Return the target for which kernels are packed: the named one, or the only possible one if the name is empty.

    Raises:
        UsageError: kernels of this target cannot be packed, or a target must be named.
    """
    # A variant packs like the target that it extends, so it is used only if the user names it.
    able = [target for target in components.names() if components.target(target).packing]
    plain = [target for target in able if components.target(target).backend == target]
    if name in able or (not name and len(plain) == 1):
        return name or plain[0]
    raise UsageError(
        f"kernels of {name} cannot be packed" if name else "the target must be named",
        why=f"targets whose kernels can be packed: {', '.join(able) or 'none'}",
        next="./foundry pack --target=TARGET",
    )


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
