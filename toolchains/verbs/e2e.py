"""The verb e2e: prove a target by running kernels in its image, and comparing their results with NumPy's."""

from __future__ import annotations

from pathlib import Path

from toolchains.assembly.request import Request
from toolchains.config import components
from toolchains.system import document
from toolchains.system.console import Console
from toolchains.system.errors import ProofError, UsageError
from toolchains.testing import plugin_in_image, proof
from toolchains.testing.verdict import REFUSED, Ran


class Proof(Ran, kw_only=True, tag="e2e"):
    """Which cases ran in a target's image, and their results: `e2e`. The table is printed while they run.

    Attributes:
        proven: whether all cases of the target ran, and none failed.
    """

    proven: bool

    def render(self, console: Console) -> None:
        if not self.succeeded:
            return
        refused = sum(case.outcome == REFUSED for case in self.cases)
        outcome = f"{self.partial} passed: this does not prove {self.target}"
        notes = f"; {refused} cases were refused, and did not run" * bool(refused)
        print(f"{f'{self.target} is proven' if self.proven else outcome}{notes}; results in {self.results}")


def e2e(request: Request, *, only: str = "") -> Path:
    """Build a target's image if needed, and check in it that kernels run and give correct results.

    Args:
        request: the image.
        only: run the cases whose name contains this. If empty, run all; but cases whose result is the same with every
            release of Triton run only with the target's default release, and not in a variant on the same device.

    Returns:
        The folder with junit.xml and results.json.

    Raises:
        ProofError: a case failed; the results are written all the same. Or the run ended before it had any results.
        UsageError: no case's name contains `only`.
    """
    command = ["python", "e2e", "--records", "--only", only]
    target = request.target
    # If cases are selected by name, they run with any release. A variant for GPUs has a mapping of its own.
    same_device = target.variant and not components.target(target.name).gpus
    if not only and (same_device or request.release.version != target.default_triton):
        command.append("--not-anywhere")
    results = proof.results_folder(request, only=only)
    verdict = proof.run(
        request,
        ["e2e"],
        command,
        plugin_in_image.environment(request.plugin),
        results,
        install=lambda container: plugin_in_image.install(container, request.plugin, target),
    )
    if verdict.plan == () and only:
        raise UsageError(
            f"no case has {only!r} in its name", next="take a part of one of the names above, or leave out --only"
        )
    verdict.write(results)
    common = verdict.described(request.subject, request.release.version, results)
    document.show(Proof(**common, proven=verdict.proven))
    if not verdict.succeeded:
        why = proof.explain(verdict, results / "junit.xml")
        raise ProofError(f"{request.subject} is not proven", why=why, next=request.command("shell"))
    return results
