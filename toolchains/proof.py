"""The verbs e2e and bench: checks and measurements run in a target's container, results come out.

Nothing of this machine is mounted: the scripts are copied in and the results out, so that an engine on another machine
serves as well. Which device ran the kernels stands in what is printed and in every result file.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import building, image, paths
from .errors import ProofError

_HOME = "/foundry"
_RESULTS = f"{_HOME}/results"


def e2e(target: str, *, triton: str = "", offline: bool = False, allow_drift: bool = False, only: str = "") -> Path:
    """Have a target's image, and prove in it that kernels run and are right.

    Args:
        target: its name.
        triton: a pinned release; the target's default if empty.
        offline: do not use the network.
        allow_drift: see building.have.
        only: run the cases whose name contains this; all if empty.

    Returns:
        The folder with junit.xml and results.json.

    Raises:
        ProofError: a case failed; the results are there all the same.
    """
    command = ["python", "e2e", "--results", _RESULTS, "--only", only]
    status, results = _run(target, ["e2e"], command, {}, triton=triton, offline=offline, allow_drift=allow_drift)
    if status != 0:
        raise ProofError(f"{target} is not proven", why=f"the failed cases are in {results}/junit.xml",
                         next=f"invoke shell {target}")  # fmt: skip
    print(f"{target} is proven; results in {results}")
    return results


def bench(target: str, *, triton: str = "", offline: bool = False, only: str = "") -> Path:
    """Time a target against its peers, in the variant of its image that has them.

    Args:
        target: its name.
        triton: a pinned release; the target's default if empty.
        offline: do not use the network.
        only: name of one measurement; all if empty.

    Returns:
        The folder with bench.json.

    Raises:
        ProofError: a measurement failed, or one of the candidates computed something wrong.
    """
    variant = f"{target}-bench"
    command = ["python", "bench", "--results", _RESULTS, *(["--only", only] if only else [])]
    # bench/ times the kernels that e2e/ checks.
    env = {"PYTHONPATH": f"{_HOME}/e2e"}
    status, results = _run(variant, ["e2e", "bench"], command, env, triton=triton, offline=offline)
    if status != 0:
        raise ProofError(f"the measurements of {target} did not come to an end", next=f"invoke shell {variant}")
    print(f"results in {results}")
    return results


def _run(
    target: str, folders: Sequence[str], command: Sequence[str], env: Mapping[str, str], *, triton: str, offline: bool,
    allow_drift: bool = False,
) -> tuple[int, Path]:  # fmt: skip
    """Run a command in a container of a target's image; returns its exit status and where its results are now."""
    docker, made = building.have(target, triton=triton, offline=offline, allow_drift=allow_drift)
    results = paths.RESULTS / target / made.info.labels[image.LABEL + "triton"]
    shutil.rmtree(results, ignore_errors=True)
    with docker.container(made.name) as container:
        for folder in folders:
            container.copy_into(paths.ROOT / folder, f"{_HOME}/{folder}")
        container.call(["mkdir", _RESULTS])
        status = container.run(command, env=env, cwd=_HOME, line=lambda text: print(text, flush=True)).status
        container.copy_out(_RESULTS, results)
    return status, results
