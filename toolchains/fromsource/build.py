"""Compile an upstream project in a container of the locked builder, without a network, and make a part of it.

    source    the patched tree, from the store                                        tree.py
    volume    source/ and build/ of this build: a killed build continues in it        triton-foundry-NAME-IDENTITY
    ccache    the results of earlier compilations, of any build                       triton-foundry-ccache
    package   `conan build` and `conan export-pkg` of toolchains/recipes/NAME
    part      NAME.tar, the package's files; NAME.tgz, Conan's own archive of it, for a remote (remote.py)

A part is named by all its inputs: the tree with its patches, the recipe, its preset, the recipes compiled into it,
the builder, and the packages that it requires. The number of jobs and the content of ccache are not inputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

from toolchains.archives import folders as trees
from toolchains.archives.tar_file import EPOCH
from toolchains.artifacts import native
from toolchains.config import projects
from toolchains.config.projects import GitPin, Profile, SourcePackagePin, Upstream
from toolchains.contents import licences
from toolchains.contents.component import Component, patches, properties, purl
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.fromsource import progress, resources, timings, tree
from toolchains.fromsource.conan import PROFILE, RECIPES, SOURCES, Conan, option_words
from toolchains.fromsource.tree import SourceTree
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedSource, LockedTarget, digest
from toolchains.patching.series import Series
from toolchains.system import paths
from toolchains.system.errors import CommandError, FileError, PinError
from toolchains.system.steps import step
from toolchains.system.terminal import make_console

# The revision of how a project is built: raise it if a change here changes the result.
FORMAT = 1
WORK, CCACHE = "/foundry/work", "/foundry/ccache"
CCACHE_VOLUME = "triton-foundry-ccache"
# The environment of Conan, CMake and compilers in the container.
_ENVIRONMENT = {
    "SOURCE_DATE_EPOCH": str(EPOCH),
    "CCACHE_DIR": CCACHE,
    # The date of clang's file is the image's and does not depend on its content.
    "CCACHE_COMPILERCHECK": "content",
    # ccache's default limit, 5 GB, is too small for LLVM.
    "CCACHE_MAXSIZE": "20G",
    "NINJA_STATUS": progress.STATUS,
}
_UPSTREAM = ("upstream.cmake", "upstream.profile", "reproducible.cmake")
# The recipe that the others are based on, and the project that Triton's requires.
BASE, LLVM = "upstream", "llvm"
_console = make_console(stderr=True)


@dataclass(frozen=True)
class Wanted:
    """An upstream project to build, and the projects that it requires.

    Attributes:
        source: describes its tree, which need not exist yet.
        locked: the lock's entry of the source; a folder needs none.
        folder: a folder of this machine that replaces the profile's source.
        builder: the image in which it is compiled.
        settings: values of the recipe's own options, {"targets": "host;SPIRV"}.
    """

    upstream: Upstream
    profile: Profile
    source: tree.Described
    locked: LockedSource | None
    folder: Path | None
    builder: LockedTarget
    settings: Mapping[str, str] = field(default_factory=dict)
    requires: tuple[Wanted, ...] = ()

    @property
    def name(self) -> str:
        return self.upstream.name

    @property
    def reference(self) -> str:
        """Return Conan's name of the package: "upmem-llvm/13.0.1"."""
        return f"{self.name}/{self.profile.version}"

    @property
    def all_required(self) -> Iterator[Wanted]:
        """Yield all required projects, also indirect ones, the innermost first."""
        for required in self.requires:
            yield from required.all_required
            yield required

    @property
    def options(self) -> dict[str, str]:
        """Return the values of the recipe's options: with the settings they determine Conan's package_id."""
        return {
            "commit": self.source.commit,
            "patches": self.source.patches or "none",
            "image": _builder_digest(self.builder)[:16],
            "presets": digest(self._compiled_with)[:16],
            **self.settings,
        }

    @property
    def _compiled_with(self) -> dict[str, object]:
        """Return the inputs of the compilation other than the tree, the builder and the recipe itself."""
        files = dict(_checkout(self.upstream))
        # Only the project's own preset counts.
        del files["cmake/CMakePresets.json"]
        return {
            "files": trees.files_digest(files),
            "preset": preset(self.name),
            "requires": sorted(required.identity for required in self.requires),
        }

    @property
    def identity(self) -> str:
        """Return the digest of all inputs of the part."""
        return digest(
            {
                "format": FORMAT,
                "source": self.source.identity,
                "version": self.profile.version,
                "recipe": trees.files_digest(trees.entries_below(paths.RECIPES / self.name, self.name)),
                "options": self.options,
            }
        )

    @property
    def component(self) -> Component:
        """Return the part as a component: its source as the ancestor, its patches, and what it requires."""
        pin, licence = self.profile.source, licences.of_recipe(self.name)
        if self.folder is None and isinstance(pin, SourcePackagePin) and self.locked is not None:
            version = self.locked.version
            where = purl("deb", pin.package, version, namespace="debian", arch="source", distro=pin.suite)
            files = properties(file=[f"{file.filename} sha256:{file.sha256}" for file in self.locked.files])
            source = Component("source", pin.package, version, licence, where, properties=files)
        else:
            commit, where = self.source.commit, ""
            if self.folder is None and isinstance(pin, GitPin):
                place = urlsplit(pin.urls[0])
                owner, _, name = place.path.strip("/").removesuffix(".git").partition("/")
                where = purl("github", name, commit, namespace=owner) if place.hostname == "github.com" else ""
            source = Component("source", self.name, commit, licence, where, commit=commit)
        return Component(
            "native",
            self.name,
            self.profile.version,
            licence,
            ancestors=(source,),
            patches=patches(Series.load(paths.PATCHES / self.profile.patches)) if self.profile.patches else (),
            parts=tuple(required.component for required in self.requires),
            properties=properties(
                inputs=self.identity,
                beside=self.upstream.beside,
                taken=list(self.profile.take),
                left_out=list(self.profile.left_out),
                options=[f"{name}={value}" for name, value in sorted(self.options.items())],
            ),
        )

    @property
    def volume(self) -> str:
        """Return the name of the engine's volume in which it is compiled."""
        return f"triton-foundry-{self.name}-{self.identity[:16]}"


@dataclass(frozen=True)
class Built:
    """A built upstream project.

    Attributes:
        path: a tar of the files that it installs.
        conan: the same files as Conan's own archive, for `conan cache restore`.
        made: whether it was built just now.
    """

    name: str
    path: Path
    conan: Path
    identity: str
    made: bool


def describe_build(
    name: str,
    suite: str,
    *,
    profiles: Mapping[str, str] | None = None,
    folders: Mapping[str, Path] | None = None,
    llvm_targets: Sequence[str] = (),
) -> Wanted:
    """Describe the build of a project.

    Args:
        name: a file in toolchains/upstreams.
        suite: the Debian suite on which the result must run; there is a builder with this name.
        profiles: the profile to use, by project name; the default profile if not given.
        folders: trees on this machine by project name, which replace the pinned sources.
        llvm_targets: the targets of LLVM, from a target's file.

    Raises:
        UsageError: no such project or profile.
        PinError: its source is not in the lock, so that its content is unknown; or no builder is locked.
    """
    upstream = projects.load(name)
    chosen = upstream.profile((profiles or {}).get(name, ""))
    folder = (folders or {}).get(name)
    locked = lock.load()
    if suite not in locked.builders:
        raise PinError(f"nothing is locked to build in for {suite}", next="./foundry pin --update")
    requires: tuple[Wanted, ...] = ()
    if chosen.llvm_hash:
        known = {LLVM: llvm_profile(chosen), **(profiles or {})}
        requires = (describe_build(LLVM, suite, profiles=known, folders=folders, llvm_targets=llvm_targets),)
    # The setting "llvm" is the version of that package that the recipe requires.
    settings = {required.name: required.profile.version for required in requires}
    if name == LLVM and llvm_targets:
        settings["targets"] = ";".join(llvm_targets)
    if chosen.assertions:
        settings["assertions"] = "True"
    entry = locked.sources.get(f"{name}/{chosen.name}")
    described = tree.describe_tree(name, chosen, entry, folder=folder)
    return Wanted(upstream, chosen, described, entry, folder, locked.builders[suite], settings, requires)


def llvm_profile(chosen: Profile) -> str:
    """Return the profile of LLVM that has the commit to which a Triton is pinned."""
    for profile in projects.load(LLVM).profiles.values():
        if isinstance(profile.source, GitPin) and profile.source.commit == chosen.llvm_hash:
            return profile.name
    raise PinError(
        f"no profile of LLVM has the commit that Triton {chosen.version} goes with",
        why=chosen.llvm_hash,
        next=f"add it to toolchains/upstreams/{LLVM}.toml, or give a tree of it: --source {LLVM}=PATH",
    )


def ensure_built(want: Wanted, *, jobs: int = 0, compiler_cache: str = "", store: Store, engine: Engine) -> Built:
    """Return the part of a project, from the store or built now, together with its requirements.

    Args:
        jobs: number of simultaneous compilers; if 0, as many as processors and memory allow.
        compiler_cache: a further storage for ccache, in the form of CCACHE_REMOTE_STORAGE. It needs a network, so the
            container gets one; a notice is printed.

    Raises:
        CommandError: Conan, CMake or a compiler failed; carries the compiler's messages.
        FoundryError: the source is not available or does not fit, the disk is too small, or no engine answers.
    """

    def build(folder: Path) -> None:
        # First the steps that take minutes, so that a Triton that requires another LLVM is refused before a long build.
        source = tree.prepare(want.name, want.profile, want.locked, folder=want.folder, store=store)
        if source.identity != want.source.identity:
            raise FileError(f"{want.folder} changed since it was looked at", next="the same command again")
        required = [
            ensure_built(project, jobs=jobs, compiler_cache=compiler_cache, store=store, engine=engine)
            for project in want.requires
        ]
        image = native.builder_image(want.builder, store=store, engine=engine)
        volumes = {want.volume: WORK, CCACHE_VOLUME: CCACHE}
        if compiler_cache:
            # The host may follow a user and a password.
            where = urlsplit(compiler_cache).netloc.rpartition("@")[2]
            _console.notice(f"with a network: the container may reach {where}, and all else")
        # If a build was killed and not interrupted, its Ninja still runs in the volume.
        engine.evict(want.volume)
        with (
            step(f"{want.reference} from source"),
            engine.container(image, volumes=volumes, network="host" if compiler_cache else "none") as container,
        ):
            environment = _ENVIRONMENT | ({"CCACHE_REMOTE_STORAGE": compiler_cache} if compiler_cache else {})
            _Build(want, source, required, Conan(container, environment), jobs, folder).run()
        engine.remove_volume(want.volume)

    made = not store.has_part("upstream", want.identity)
    folder = store.part("upstream", want.identity, build)
    return Built(want.name, folder / f"{want.name}.tar", folder / f"{want.name}.tgz", want.identity, made)


@dataclass
class _Build:
    """A build in a container; `asked` is the user's number of compile jobs, and `result` the folder of the part."""

    want: Wanted
    source: SourceTree
    required: Sequence[Built]
    conan: Conan
    asked: int
    result: Path

    def run(self) -> None:
        start = monotonic()
        container, name = self.conan.container, self.want.name
        machine = resources.machine(container)
        jobs = resources.jobs(machine.cpus, machine.memory, asked=self.asked)
        _console.print(str(jobs))
        resources.check_disk(container, WORK, round(self.want.upstream.gigabytes * 1e9))
        self._copy_inputs()
        log = paths.LOGS / f"upstream-{name}.log"
        self._call("ccache", "--zero-stats")
        with progress.Watcher(_console, log, name) as watcher:
            argv = ["conan", *self._words("build", jobs)]
            done = container.run(argv, env=self.conan.environment, line=watcher.line)
        if done.status != 0:
            death = resources.cause_of_death(watcher.last(200), done.status, container.oom_killed())
            again = f"correct what is refused (patches/, toolchains/recipes/{name}), then the same command again"
            fewer = f"the same command again with --jobs={max(jobs.compile // 2, 1)}: it goes on where this one stopped"
            raise CommandError(
                f"{self.want.reference} could not be built",
                why=f"{death or watcher.why()}\n(whole output: {log})",
                next=fewer if death else again,
            )
        exported = json.loads(self.conan.call(*self._words("export-pkg", jobs), "--format", "json"))
        nodes = exported["graph"]["nodes"].values()
        (reference,) = {f"{node['ref']}:{node['package_id']}" for node in nodes if node["name"] == name}
        self.conan.extract(reference, self.result)
        self._report(monotonic() - start)

    def _copy_inputs(self) -> None:
        """Copy the tree into the volume, the files of this checkout next to it, and the required packages."""
        container, mark = self.conan.container, f"{WORK}/source.identity"
        marked = container.run(["cat", mark])
        if marked.status != 0 or marked.stdout != self.source.identity:
            # An incomplete tree has no mark. build/ may stay, because Ninja compares files with its earlier output.
            self._call("rm", "-rf", f"{WORK}/source", mark)
            self._call("mkdir", "-p", f"{WORK}/source")
            container.put(self.source.path, f"{WORK}/source")
            self._call("sh", "-c", f'printf %s "$1" >{mark}', "sh", self.source.identity)
        for name, path in _checkout(self.want.upstream):
            container.copy_into(path, f"{SOURCES}/{name}")
        for file in sorted((paths.RECIPES / self.want.name).iterdir()):
            if file.is_file():
                container.copy_into(file, f"{WORK}/{file.name}")
        self.conan.export(BASE)
        for part in self.required:
            container.copy_into(part.conan, f"/foundry/{part.name}.tgz")
            self.conan.call("cache", "restore", f"/foundry/{part.name}.tgz")

    def _words(self, verb: str, jobs: resources.Jobs) -> list[str]:
        """Return the words of Conan's command line for the recipe in the volume."""
        words = [verb, f"{WORK}/conanfile.py", "--version", self.want.profile.version, "--output-folder", WORK]
        words += ["--profile:all", PROFILE, "--no-remote", *option_words("&", self.want.options)]
        for required in self.want.all_required:
            words += option_words(f"{required.name}/*", required.options)
        confs = {
            "presets": f"{SOURCES}/cmake/CMakePresets.json",
            "jobs": str(jobs.compile),
            "links": str(jobs.link),
            "beside": RECIPES,
        }
        for name, value in confs.items():
            words += ["-c", f"user.foundry:{name}={value}"]
        return words

    def _report(self, seconds: float) -> None:
        """Print how long the build's steps took, and store the figures next to the part."""
        log = self.conan.container.run(["cat", f"{WORK}/build/.ninja_log"])
        steps = timings.read(log.stdout) if log.status == 0 else []
        counted = self._call("ccache", "--print-stats")
        stats = dict(line.split("\t") for line in counted.splitlines() if "\t" in line)
        hits = sum(int(stats.get(key, 0)) for key in ("direct_cache_hit", "preprocessed_cache_hit"))
        misses = int(stats.get("cache_miss", 0))
        if steps:
            _console.print(timings.table(steps))
        _console.print(f"ccache had {hits} of {hits + misses} compilations; {seconds:.0f} s in all")
        figures = {
            "seconds": round(seconds, 1),
            "ccache-hits": hits,
            "ccache-misses": misses,
            "slowest": [[step.output, round(step.seconds, 1)] for step in steps[:20]],
        }
        (self.result / "timings.json").write_text(json.dumps(figures, indent=2))

    def _call(self, *argv: str) -> str:
        return self.conan.container.call(argv, env=self.conan.environment)


def _checkout(upstream: Upstream) -> Iterator[tuple[str, Path]]:
    """Yield the files of this checkout that the container needs, by name below SOURCES."""
    yield f"recipes/{BASE}/conanfile.py", paths.RECIPES / BASE / "conanfile.py"
    for file in (*_UPSTREAM, "CMakePresets.json"):
        yield f"cmake/{file}", paths.CMAKE / file
    for recipe in upstream.beside:
        for inner, path in native.sources(recipe).items():
            yield f"recipes/{inner}", path


def preset(name: str) -> dict[str, object]:
    """Return a preset of cmake/CMakePresets.json with the values that it inherits; empty if a project has none.

    Only this preset is part of the identity, so that an edit in another project's preset causes no build.
    """
    presets = json.loads((paths.CMAKE / "CMakePresets.json").read_text())["configurePresets"]
    entries = {entry["name"]: entry for entry in presets}
    inherited: dict[str, object] = {}
    below = name if name in entries else ""
    while below:
        inherited[below] = entries[below]
        below = entries[below].get("inherits", "")
    return inherited


def _builder_digest(builder: LockedTarget) -> str:
    """Return the digest of the packages in the builder's image, independent of how they were installed."""
    return digest(
        {
            "packages": sorted(artifact.sha256 for artifact in (*builder.debs, *builder.wheels, *builder.sdists)),
            "recipe": trees.files_digest({"Dockerfile": paths.DOCKER / "build.Dockerfile"}),
        }
    )
