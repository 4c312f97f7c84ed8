"""The verb `upstream`: list projects, their sources and builds that exist; build one project alone."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from toolchains.config import components, projects
from toolchains.engine import host
from toolchains.fetch.store import Store
from toolchains.fromsource import build
from toolchains.fromsource.choice import SourceChoice
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths
from toolchains.system.errors import FoundryError, UsageError
from toolchains.system.terminal import make_console

_console = make_console()


def show() -> None:
    """Print projects, their profiles, their sources, and whether they have been built here."""
    store = Store(paths.cache(), offline=True)
    # On a terminal, profiles and sources are not shortened, because users type them.
    table = Table("project", "profile", "source", "built here", box=None, header_style="bold")
    table.columns[2].no_wrap = True
    for name in projects.names():
        upstream = projects.load(name)
        users = _users(name)
        for number, profile in enumerate(upstream.profiles.values()):
            default = " (default)" if profile.name == upstream.default else ""
            llvm = f", LLVM {profile.llvm_hash[:8]}" if profile.llvm_hash else ""
            table.add_row(
                "" if number else name,
                profile.name + default,
                f"{profile.source}{llvm}",
                ", ".join(_built(name, profile.name, users, store)) or "-",
            )
        targets = ", ".join(dict.fromkeys(target.backend for target in users)) or "no target"
        table.add_row("", Text(f"for {targets}", "dim"), end_section=True)
    _console.print(table)
    _console.print("\nbuild one alone: ./foundry upstream --build=NAME")
    _console.print("in an image:     ./foundry build TARGET --from-source=NAME")


def build_project(
    name: str, target: str, choice: SourceChoice, *, offline: bool = False, allow_drift: bool = False
) -> None:
    """Build one project alone, and print where its part is.

    Args:
        target: the target to build for: its suite, and the targets of its LLVM. The first that takes it, if empty.
        choice: profiles, folders, jobs and compiler cache.
        offline, allow_drift: see Store.

    Raises:
        UsageError: no such project or target.
        FoundryError: see build.ensure_built.
    """
    projects.load(name)
    users = _users(name)
    takers = [user for user in users if user.name == target] if target else users
    if not takers:
        raise UsageError(
            f"{target or 'no target'} takes {name} from source",
            why=f"known: {', '.join(user.name for user in users) or 'none'}",
            next="./foundry upstream",
        )
    locked = takers[0]
    store = Store(paths.cache(), offline=offline, allow_drift=allow_drift)
    want = build.describe_build(
        name,
        locked.suite,
        profiles=choice.profiles,
        folders=choice.folders,
        llvm_targets=components.target(locked.name).llvm_targets,
    )
    built = build.ensure_built(
        want, jobs=choice.jobs, compiler_cache=choice.compiler_cache, store=store, engine=host.ensure_engine()
    )
    state = "built" if built.made else "exists already"
    _console.print(Text(f"{want.reference}", "bold"), f"for {locked.suite} {state}: {built.path.parent}")


def _users(name: str) -> list[LockedTarget]:
    """Return the targets that take a project; for LLVM, also those that take a Triton, which requires LLVM."""
    targets = lock.load().targets
    wanted = {name, "triton"} if name == "llvm" else {name}
    return [
        targets[user]
        for user in components.names()
        if user in targets and wanted & {*components.target(user).upstreams}
    ]


def _built(name: str, profile: str, users: list[LockedTarget], store: Store) -> Iterator[str]:
    """Yield the suites for which a profile has been built here."""
    for suite in dict.fromkeys(user.suite for user in users):
        targets = next(components.target(user.name).llvm_targets for user in users if user.suite == suite)
        try:
            want = build.describe_build(name, suite, profiles={name: profile}, llvm_targets=targets)
        except FoundryError:
            # What would be built is unknown: the source is not in the lock, or only a user can give it.
            continue
        if store.has_part("upstream", want.identity):
            yield suite
