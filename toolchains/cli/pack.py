"""The verbs pack and run-packed: a kernel becomes an artifact folder, and an artifact runs, in dpu's container.

What goes in and comes out is copied, so that an engine on another machine serves as well. In the container runs what a
user of TritonPIM types there by hand, a script of backends/dpu/tritonpim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchains.assembly import building
from toolchains.engine.client import Container
from toolchains.sdk.supplied import Given
from toolchains.system import paths
from toolchains.system.errors import CommandError, UsageError

TARGET = "dpu"
_TRITONPIM = paths.BACKENDS / TARGET / "tritonpim"
_HOME = "/foundry/artifacts"
# What of an artifact is made where it runs.
_BUILT = "build"


def pack(
    script: str,
    artifact: str,
    *,
    out_indices: str = "",
    kernel: str = "",
    triton: str = "",
    offline: bool = False,
    allow_drift: bool = False,
) -> Path:
    """Compile the kernel of a Triton script, and write what is needed to run it on DPUs without Triton.

    Args:
        script: a path; it takes `--out PATH` and writes LLVM IR there. Copied by itself, it cannot import its
            neighbours. The addition of tritonpim/ if empty.
        artifact: the folder to write.
        out_indices: indices of the parameters that are results, "2" or "2,3"; what the kernel writes, if empty.
        kernel: its name; needed if the IR has several.
        triton, offline, allow_drift: see building.have.

    Returns:
        The folder.

    Raises:
        UsageError: there is no such script, or no folder is named.
        CommandError: the script failed, or its IR cannot be packed; what was printed says why.
    """
    source = Path(script or _TRITONPIM / "dpu_min_test.py")
    if not source.is_file():
        raise UsageError(f"there is no script {source}")
    if not artifact:
        raise UsageError("a folder to write to is needed", next="./foundry help pack")
    docker, made = building.have(TARGET, triton=triton, offline=offline, allow_drift=allow_drift)
    inside = f"{_HOME}/script/{source.name}"
    options = [f"--out-indices={out_indices}"] * bool(out_indices) + [f"--kernel={kernel}"] * bool(kernel)
    with docker.sandbox(made.name) as container:
        container.copy_into(source, inside)
        command = ["python", "-m", "triton_dpu_backend.artifact", "pack", "--triton-script", inside]
        command += ["--artifact-dir", f"{_HOME}/packed", *options]
        _run(container, command, f"{source} cannot be packed", {inside: source})
        container.copy_out(f"{_HOME}/packed", Path(artifact))
    print(f"packed in {artifact}; next: ./foundry run-packed {artifact} --parameters")
    return Path(artifact)


def run(
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
    """Build an artifact and run it on DPUs.

    Args:
        artifact: the folder that pack() wrote.
        options: for its host program, such as ["--nr-dpus", "4", "--arg", "3=100"].
        ins: "IDX=PATH", files of this machine with the elements of arrays.
        outs: "IDX=PATH", where on this machine arrays are to be written.
        triton, offline, allow_drift, given: see building.have.

    Raises:
        UsageError: there is no such artifact, or a file of `ins` is not there.
        CommandError: it cannot be built, or its host program refused the options or failed.
    """
    folder = Path(artifact)
    if not (folder / "meta.json").is_file():
        raise UsageError(f"{artifact} is not a packed kernel: it has no meta.json", next="./foundry help pack")
    read, written = ([_assignment(text) for text in texts] for texts in (ins, outs))
    for index, path in read:
        if not path.is_file():
            raise UsageError(f"--in {index}={path}: there is no such file")
    docker, made = building.have(TARGET, triton=triton, offline=offline, allow_drift=allow_drift, given=given)
    with docker.sandbox(made.name) as container:
        for file in folder.iterdir():
            if file.name != _BUILT:
                container.copy_into(file, f"{_HOME}/packed/{file.name}")
        container.copy_into(_TRITONPIM / "scripts", f"{_HOME}/scripts")
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
        command = ["env", f"ARTIFACT_DIR={_HOME}/packed", "sh", f"{_HOME}/scripts/container_artifact_run.sh", *words]
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
