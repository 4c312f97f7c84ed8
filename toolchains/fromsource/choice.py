"""A user's choice of what to build from source: --from-source, --source, --profile, --jobs, --compiler-cache."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from toolchains.config import components
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.fromsource import build
from toolchains.fromsource.build import Built, Wanted
from toolchains.lockfile.lock import LockedTarget, LockedTriton
from toolchains.system import paths
from toolchains.system.console import Console
from toolchains.system.errors import FoundryError, UsageError, suggestion
from toolchains.system.values import read_pair

# The upstream project whose part is a wheel: it replaces the official wheel.
TRITON = "triton"
# Variables by which Triton's setup.py, or its documentation, selects an LLVM that was built before.
_LLVM_VARIABLES = ("LLVM_SYSPATH", "LLVM_BUILD_DIR", "LLVM_INCLUDE_DIRS", "LLVM_LIBRARY_DIR")
# The word for no projects.
NONE = "none"
_console = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Sourced:
    """The projects of an image that are built from source, and the options of their builds.

    Attributes:
        wanted: the projects, without those that they require.
        jobs, compiler_cache: see SourceChoice.
    """

    wanted: tuple[Wanted, ...]
    jobs: int = 0
    compiler_cache: str = ""

    @property
    def triton(self) -> Wanted | None:
        """Return the Triton among them, which becomes a wheel."""
        return next((want for want in self.wanted if want.name == TRITON), None)

    @property
    def parts(self) -> tuple[Wanted, ...]:
        """Return the other projects: docker/from-source/NAME.Dockerfile adds their files to the image."""
        return tuple(want for want in self.wanted if want.name != TRITON)

    @property
    def label(self) -> str:
        """Return the text about them in an image's label."""
        return ", ".join(f"{want.reference} {want.source.commit[:40]}" for want in self.wanted)

    def built(self, want: Wanted, *, store: Store, engine: Engine) -> Built:
        """Return the part of one of them, from the store or built now."""
        return build.ensure_built(want, jobs=self.jobs, compiler_cache=self.compiler_cache, store=store, engine=engine)


@dataclass(frozen=True)
class SourceChoice:
    """The projects to build from source, as the options give them.

    Attributes:
        names: of projects; if empty, all that the target's file names.
        folders: trees on this machine by project, which replace the pinned sources.
        profiles: the profile to use, by project.
        jobs: number of simultaneous compilers; if 0, as many as the machine allows.
        compiler_cache: in the form of CCACHE_REMOTE_STORAGE; none if empty.
    """

    names: tuple[str, ...] = ()
    folders: Mapping[str, Path] = field(default_factory=dict)
    profiles: Mapping[str, str] = field(default_factory=dict)
    jobs: int = 0
    compiler_cache: str = ""

    def check(self, target: LockedTarget) -> None:
        """Check that a target takes these projects.

        Raises:
            UsageError: it does not take one of them.
        """
        takes = projects_of(target)
        unused = [name for name in dict.fromkeys([*self.names, *self.folders, *self.profiles]) if name not in takes]
        if unused:
            raise UsageError(
                f"{target.name} cannot take {', '.join(unused)} from source{suggestion(unused[0], takes)}",
                why=f"it takes: {', '.join(takes) or 'none'}",
                next="./foundry upstream",
            )

    def sourced(self, target: LockedTarget, locked: LockedTriton) -> Sourced:
        """Return what has to be built for a target's image.

        Args:
            locked: the image's release of Triton.

        Raises:
            UsageError: the target does not take one of these projects.
            PinError: a source is not in the lock.
        """
        self.check(target)
        file = components.target(target.name)
        # An image has LLVM only inside Triton: a user who names LLVM means a Triton that is built with it.
        names = dict.fromkeys(TRITON if name == build.LLVM else name for name in self.names)
        wanted = tuple(
            build.describe_build(
                name,
                target.suite,
                profiles={TRITON: locked.version, **self.profiles},
                folders=self.folders,
                llvm_targets=file.llvm_targets,
            )
            for name in names or file.upstreams
        )
        return Sourced(wanted, self.jobs, self.compiler_cache)

    @property
    def options(self) -> list[str]:
        """Return the words of a command line that give this choice."""
        return [
            f"--from-source={','.join(self.names)}" if self.names else "--from-source",
            *(f"--source={name}={path}" for name, path in self.folders.items()),
            *(f"--profile={name}={profile}" for name, profile in self.profiles.items()),
        ]


def projects_of(target: LockedTarget) -> tuple[str, ...]:
    """Return the projects that a target takes; if Triton is one of them, also LLVM, which Triton requires."""
    names = components.target(target.name).upstreams
    return (*names, build.LLVM) if TRITON in names and build.LLVM not in names else tuple(names)


def find_built(target: LockedTarget, locked: LockedTriton) -> SourceChoice | None:
    """Return the projects that a target takes and that are already built, as a choice; None if there are none.

    Triton is left out: it would be another compiler than that of users of the official wheel.

    Args:
        locked: the image's release of Triton.
    """
    store = Store(paths.cache(), offline=True)
    built = []
    for name in [name for name in components.target(target.name).upstreams if name != TRITON]:
        # A project that cannot be built here, for example because its source is not in the lock, was not built either.
        wanted: Sequence[Wanted] = ()
        with suppress(FoundryError):
            wanted = SourceChoice((name,)).sourced(target, locked).wanted
        built += [name for want in wanted if store.has_part("upstream", want.identity)]
    if not built:
        return None
    _console.notice(
        f"from source: {', '.join(built)} has been built here, and is used; --from-source=none takes what is prebuilt"
    )
    return SourceChoice(tuple(built))


def read(
    from_source: str | bool | None,
    sources: Sequence[str],
    profiles: Sequence[str],
    jobs: int = 0,
    compiler_cache: str = "",
    *,
    environ: Mapping[str, str] = os.environ,
) -> SourceChoice | None:
    """Return the choice that the options of a command line give; None if nothing is built from source.

    Args:
        from_source: the names, separated by commas; True for all that the target takes; "none" for none.
        sources: texts NAME=PATH. Each implies that NAME is built from source.
        profiles: texts NAME=PROFILE. Each implies the same.
        jobs, compiler_cache: see SourceChoice.
        environ: the variables of this process.

    Raises:
        UsageError: a text has another form, or a variable is set that Triton's own build honours and that cannot be
            honoured here.
    """
    pairs = [read_pair("--source", text, example="triton=../triton") for text in sources]
    folders = {name: Path(value).expanduser() for name, value in pairs}
    chosen = dict(read_pair("--profile", text, example="triton=3.1.0") for text in profiles)
    if from_source == NONE:
        from_source = None
    if not (from_source or folders or chosen):
        if jobs or compiler_cache:
            raise UsageError("--jobs and --compiler-cache are for what is built from source", next="add --from-source")
        return None
    names = from_source.split(",") if isinstance(from_source, str) else []
    if from_source is not True:
        names += [name for name in (*folders, *chosen) if name not in names]
    if not names or {TRITON, build.LLVM} & set(names):
        _refuse_variables(environ)
    return SourceChoice(tuple(names), folders, chosen, jobs, compiler_cache)


def _refuse_variables(environ: Mapping[str, str]) -> None:
    """Refuse the variables by which Triton's own build uses an LLVM of this machine, or becomes a debug build."""
    for variable in _LLVM_VARIABLES:
        if environ.get(variable):
            raise UsageError(
                f"{variable}={environ[variable]} cannot be used here",
                why="Triton is compiled in a container that sees no build of this machine, with the LLVM commit that "
                "it pins",
                next=f"unset {variable}; --source=llvm=PATH takes LLVM's sources. To get an LLVM that Foundry built "
                "elsewhere: ./foundry cache pull",
            )
    if environ.get("DEBUG", "0").lower() not in ("", "0", "off", "false", "no", "n"):
        raise UsageError(
            f"DEBUG={environ['DEBUG']} cannot be used here",
            why="Triton and its LLVM are compiled as releases, so that the same sources give the same bytes",
            next="unset DEBUG; --profile=triton=3.1.0 has an LLVM with assertions",
        )
