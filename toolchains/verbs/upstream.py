"""The verb `upstream`: list projects, their sources and builds that exist; build one project alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec
from rich.table import Table
from rich.text import Text

from toolchains.config import components, projects
from toolchains.engine import host
from toolchains.fetch.store import Store
from toolchains.fromsource import build
from toolchains.fromsource.choice import SourceChoice
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import document, paths
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.errors import FoundryError, UsageError
from toolchains.system.terminal import make_console

_console = make_console()


class Source(msgspec.Struct, frozen=True):
    """A source of a project.

    Attributes:
        project: the project.
        profile: the name of the source.
        is_default: whether it is used if no profile is named.
        source: where it comes from.
        llvm: the commit of LLVM that it needs, or "".
        targets: the backends that can be built with it.
        built: the suites of Debian for which this machine has built it.
    """

    project: str
    profile: str
    is_default: bool
    source: str
    llvm: str
    targets: list[str]
    built: list[str]


class Sources(ShownDocument, kw_only=True, tag="upstream"):
    """What can be built from source: `upstream`.

    Attributes:
        sources: each source of each project.
    """

    sources: list[Source]

    def render(self, console: Console) -> None:
        # On a terminal, profiles and sources are not shortened, because users type them.
        table = Table("project", "profile", "source", "built here", box=None, header_style="bold")
        table.columns[2].no_wrap = True
        for project, sources in groupby(self.sources, lambda source: source.project):
            for number, source in enumerate(sources):
                name, default = "" if number else project, " (default)" * source.is_default
                where = f"{source.source}, LLVM {source.llvm[:8]}" if source.llvm else source.source
                table.add_row(name, source.profile + default, where, ", ".join(source.built) or "-")
            targets = ", ".join(source.targets) or "no target"
            table.add_row("", Text(f"for {targets}", "dim"), end_section=True)
        console.print(table)
        console.print("\nbuild one alone: ./foundry upstream --build=NAME")
        console.print("in an image:     ./foundry build TARGET --from-source=NAME")


def show() -> None:
    """Show projects, their profiles, their sources, and whether they have been built here."""
    store = Store(paths.cache(), offline=True)
    sources = []
    for name in projects.names():
        upstream, users = projects.load(name), _users(name)
        for profile in upstream.profiles.values():
            sources.append(
                Source(
                    project=name,
                    profile=profile.name,
                    is_default=profile.name == upstream.default,
                    source=str(profile.source),
                    llvm=profile.llvm_hash,
                    targets=list(dict.fromkeys(target.backend for target in users)),
                    built=list(_built(name, profile.name, users, store)),
                )
            )
    document.show(Sources(sources=sources))


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
