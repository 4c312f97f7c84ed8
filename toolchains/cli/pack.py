"""The verbs pack and run-packed: write a kernel to an artifact folder, and run an artifact, in a target's container.

Input and output are copied, so an engine on another machine can be used. The target's file says, as `packing`, which
module packs in the container and which script runs an artifact there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchains.assembly import ensure
from toolchains.config import components
from toolchains.config.components import Packing
from toolchains.engine.container import Container
from toolchains.sdk.supplied import Given
from toolchains.system import paths
from toolchains.system.errors import CommandError, UsageError

_HOME = "/foundry/artifacts"
# What of an artifact is made where it runs.
_BUILT = "build"


def choose_target(name: str = "") -> str:
    """Return the target that kernels are packed for: this one, or if the name is empty the only one that can be.

    Raises:
        UsageError: kernels of this target cannot be packed, or a target must be named.
    """
    # A variant packs as the target that it extends: named only if it is meant.
    able = [each for each in components.names() if components.target(each).packing]
    plain = [each for each in able if components.target(each).backend == each]
    if name in able or (not name and len(plain) == 1):
        return name or plain[0]
    raise UsageError(
        f"kernels of {name} cannot be packed" if name else "the target must be named",
        why=f"targets whose kernels can be packed: {', '.join(able) or 'none'}",
        next="./foundry pack --target=TARGET",
    )


def _packing(target: str) -> Packing:
    packing = components.target(target).packing
    assert packing is not None, "choose_target returns a target that packs"
    return packing


def pack(
    target: str,
    script: str,
    artifact: str,
    *,
    out_indices: str = "",
    kernel: str = "",
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
) -> Path:
    """Compile the kernel of a Triton script, and write what is needed to run it without Triton.

    Args:
        target: see choose_target.
        script: a path; it takes `--out PATH` and writes LLVM IR there. Copied by itself, it cannot import its
            neighbours. The target's example if empty.
        artifact: the folder to write.
        out_indices: indices of the parameters that are results, "2" or "2,3"; what the kernel writes, if empty.
        kernel: its name; needed if the IR has several.
        triton, offline, allow_drift: see ensure.ensure_image.

    Returns:
        The folder.

    Raises:
        UsageError: there is no such script, or no folder is named.
        CommandError: the script failed, or its IR cannot be packed; what was printed says why.
    """
    packing = _packing(target)
    source = Path(script or paths.BACKENDS / packing.example)
    if not source.is_file():
        raise UsageError(f"there is no script {source}")
    if not artifact:
        raise UsageError("say where to write: --artifact-dir DIR", next="./foundry --help pack")
    docker, made = ensure.ensure_image(target, triton=triton, offline=offline, allow_drift=allow_drift)
    inside = f"{_HOME}/script/{source.name}"
    options = [f"--out-indices={out_indices}"] * bool(out_indices) + [f"--kernel={kernel}"] * bool(kernel)
    with docker.sandbox(made.name) as container:
        container.copy_into(source, inside)
        command = ["python", "-m", packing.module, "pack", "--triton-script", inside]
        command += ["--artifact-dir", f"{_HOME}/packed", *options]
        _run(container, command, f"{source} cannot be packed", {inside: source})
        container.copy_out(f"{_HOME}/packed", Path(artifact))
    print(f"packed in {artifact}; next: ./foundry run-packed {artifact} --parameters")
    return Path(artifact)


def run_packed(
    target: str,
    artifact: str,
    options: Sequence[str],
    *,
    ins: Sequence[str] = (),
    outs: Sequence[str] = (),
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
    given: Given | None = None,
) -> None:
    """Build an artifact and run it.

    Args:
        target: see choose_target.
        artifact: the folder that pack() wrote.
        options: for its host program, such as ["--arg", "3=100"].
        ins: "IDX=PATH", files of this machine with the elements of arrays.
        outs: "IDX=PATH", where on this machine arrays are to be written.
        triton, offline, allow_drift, given: see ensure.ensure_image.

    Raises:
        UsageError: there is no such artifact, or a file of `ins` is not there.
        CommandError: it cannot be built, or its host program refused the options or failed.
    """
    packing = _packing(target)
    folder = Path(artifact)
    if not (folder / "meta.json").is_file():
        raise UsageError(f"{artifact} is not a packed kernel: it has no meta.json", next="./foundry help pack")
    read, written = ([_assignment(text) for text in texts] for texts in (ins, outs))
    for index, path in read:
        if not path.is_file():
            raise UsageError(f"--in {index}={path}: there is no such file")
    docker, made = ensure.ensure_image(target, triton=triton, offline=offline, allow_drift=allow_drift, given=given)
    with docker.sandbox(made.name) as container:
        for file in folder.iterdir():
            if file.name != _BUILT:
                container.copy_into(file, f"{_HOME}/packed/{file.name}")
        container.copy_into(paths.BACKENDS / packing.scripts, f"{_HOME}/scripts")
        words = list(options)
        # What a place in there is called here.
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
            container.copy_out(f"{_HOME}/out/{index}", path)


def _run(container: Container, command: Sequence[str], what: str, places: Mapping[str, Path]) -> None:
    """Run a command and show what it prints, with this machine's names of the files that it speaks of."""

    def show(text: str) -> None:
        for inside, here in places.items():
            text = text.replace(inside, str(here))
        print(text, flush=True)

    done = container.run(command, line=show)
    if done.status != 0:
        # What it printed said why.
        raise CommandError(f"{what}: exit status {done.status}")


def _assignment(text: str) -> tuple[str, Path]:
    """IDX=PATH."""
    index, sign, path = text.partition("=")
    if not sign or not index.isdecimal() or not path:
        raise UsageError(f"{text} is not of the form IDX=PATH, such as 0=x.bin")
    return index, Path(path)
