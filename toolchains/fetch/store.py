"""The store: a folder in which the digest of its content or inputs names every file and every built part.

Layout: artifacts/<first two digits>/<sha256>/<file name> for fetched files, parts/<kind>/<digest>/ for built parts. A
name exists only if its content is complete: files are written next to it, synced to the disk, and renamed. Content may
be damaged later, so it is checked at each use: a fetched file must have the sha256 of the lock, and a part must match
its manifest (manifest.py). Content that was correct and has not changed since is not hashed again (verdicts.py).
Damaged content is fetched or built again.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock

from filelock import FileLock, Timeout
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from toolchains.archives import confine, wheel_file
from toolchains.config import platforms
from toolchains.fetch import manifest, verdicts
from toolchains.fetch.apt import Debs, SourcePackages
from toolchains.fetch.pip import Sdists, Wheels
from toolchains.fetch.source import ArtifactSource
from toolchains.lockfile.lock import AMD64, Artifact
from toolchains.system import durable
from toolchains.system.errors import FoundryError, GoneError, HashMismatchError, OfflineError, PartError, TruncatedError
from toolchains.system.steps import console, side_by_side


class Store:
    """The files of one user, shared by all checkouts and safe for several processes.

    Args:
        root: the folder; created when needed.
        offline: never use the network; report what is missing instead.
        allow_drift: if the Debian archive no longer has a locked package, use its current version.
    """

    def __init__(self, root: Path, *, offline: bool = False, allow_drift: bool = False) -> None:
        self.root = root
        self._offline = offline
        self._allow_drift = allow_drift
        self._said: set[Path] = set()
        self._bars = _Bars()

    def path(self, artifact: Artifact) -> Path:
        """Return the path of an artifact after checking it against the lock.

        Raises:
            OfflineError: it has not been fetched.
            TruncatedError, HashMismatchError: it is damaged in the store.
        """
        place = self._place(artifact)
        if not self.has(artifact):
            raise OfflineError(f"{artifact} is not in the store {self.root}", next="./foundry pin --fetch")
        if damage := self._damage(artifact):
            raise type(damage)(
                f"{damage.what}: it was damaged in the store",
                why=f"{place}\n{damage.why}",
                next="./foundry pin --fetch, which fetches it again",
            )
        return place

    def has(self, artifact: Artifact) -> bool:
        """Return whether an artifact has been fetched; it may be damaged."""
        return self._place(artifact).is_file()

    def _damage(self, artifact: Artifact) -> FoundryError | None:
        """Return the damage of a file in the store; None if it is as locked."""
        place, verdict = self._place(artifact), self.root / "verdicts" / artifact.sha256
        fingerprint = verdicts.fingerprint({artifact.filename: place})
        if verdicts.is_known(verdict, fingerprint):
            return None
        try:
            check_file(place, artifact)
        except (TruncatedError, HashMismatchError) as error:
            return error
        verdicts.note(verdict, fingerprint)
        return None

    def _whole(self, artifact: Artifact) -> bool:
        """Return whether an artifact has been fetched and is as locked; print a notice about a damaged one, once."""
        if not self.has(artifact):
            return False
        damage = self._damage(artifact)
        if damage:
            self._say(self._place(artifact), f"{damage.what}\n{damage.why}")
        return damage is None

    def _say(self, place: Path, why: str, what: str = "damaged in the store") -> None:
        if place not in self._said:
            self._said.add(place)
            console.notice(f"{what}: {place}")
            console.print("  " + why.replace("\n", "\n  "), highlight=False, soft_wrap=True)

    def fetch(self, artifacts: Sequence[Artifact], *, suite: str, python: str, platform: str = AMD64) -> list[Artifact]:
        """Ensure that the store has all of these, checked; fetch damaged ones again.

        Args:
            suite: the Debian suite that debs and source packages are from.
            python: the version of Python that wheels are for.
            platform: the platform that debs and wheels are for.

        Returns:
            The artifacts to use: those asked for, or other versions if drift is allowed and happened.

        Raises:
            OfflineError: something is missing or damaged, and the network may not be used; lists all of it.
            GoneError, FetchError, TruncatedError, HashMismatchError: correct files that did arrive are kept.
        """
        missing = [artifact for artifact in artifacts if not self._whole(artifact)]
        if not missing:
            return list(artifacts)
        if self._offline:
            raise OfflineError(
                f"{len(missing)} of {len(artifacts)} files are not in the store {self.root}, or are damaged there",
                why="\n".join(
                    f"{artifact.filename}  sha256 {artifact.sha256}" + "  damaged" * self.has(artifact)
                    for artifact in missing
                ),
                next="./foundry pin --fetch, on a machine with a network",
            )
        debs = [artifact for artifact in artifacts if artifact.kind == "deb"]
        packages = [artifact for artifact in artifacts if artifact.kind == "source"]
        others = [artifact for artifact in artifacts if artifact.kind != "deb"]
        apt = self.debs(suite, sorted({artifact.suite for artifact in debs if artifact.suite}), platform)

        used = list(artifacts)

        def from_index() -> None:
            self._bring(
                Wheels(python, platform), [artifact for artifact in others if artifact.kind == "wheel"], "wheels"
            )
            self._bring(
                Sdists(python, platform), [artifact for artifact in others if artifact.kind == "sdist"], "sources"
            )

        def from_archive() -> None:
            nonlocal used
            self._bring(self.source_packages(suite), packages, "source-packages")
            try:
                self._bring(apt, debs, "packages")
            except GoneError as gone:
                if not self._allow_drift:
                    raise
                console.notice(f"drift: {gone}")
                # The current versions of the same packages, resolved together so that they fit each other.
                current = apt.resolve([f"{deb.name}/{deb.suite}" if deb.suite else deb.name for deb in debs])
                before = {deb.name: deb.version for deb in debs}
                for deb in current:
                    if before.get(deb.name) != deb.version:
                        was = before.get(deb.name, "absent")
                        console.print(f"  {deb.name}: {was} -> {deb.version}", highlight=False)
                self._bring(apt, current, "packages")
                used = [*current, *others]

        def attempt(work: Callable[[], None]) -> FoundryError | None:
            # If one fails, the other one goes on: what it fetches is kept.
            try:
                work()
            except FoundryError as error:
                return error
            return None

        kinds = {artifact.kind for artifact in missing}
        works = [from_index] * bool(kinds & {"wheel", "sdist"}) + [from_archive] * bool(kinds & {"source", "deb"})
        for failure in side_by_side(*(partial(attempt, work) for work in works)):
            if failure:
                raise failure
        return used

    def debs(self, suite: str, extra: Sequence[str] = (), platform: str = AMD64) -> Debs:
        """Return apt for a suite and further ones on a platform; the store keeps its state."""
        architecture = platforms.load(platform).debian
        folder = "+".join((suite, *extra)) + (f".{architecture}" if platform != AMD64 else "")
        return Debs(suite, self.root / "apt" / folder, extra=extra, architecture=architecture)

    def source_packages(self, suite: str) -> SourcePackages:
        """Return apt for a suite's source packages; the store keeps its state."""
        return SourcePackages(suite, self.root / "apt" / f"{suite}-sources")

    @property
    def offline(self) -> bool:
        """Return whether the network may not be used."""
        return self._offline

    @contextmanager
    def incoming(self, noun: str) -> Iterator[Path]:
        """Yield a folder for files that arrive, for one process at a time and kind; it is removed afterwards.

        Args:
            noun: the kind of files, "wheels".
        """
        folder = self.root / f"incoming-{noun}"
        with self.locked(folder.name):
            # Remove the files of a killed process. It held the lock, so no process uses the folder now.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            try:
                yield Path(mkdtemp(dir=folder))
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def adopt(self, file: Path, artifact: Artifact) -> None:
        """Move a file into the store if it matches the lock.

        Raises:
            TruncatedError, HashMismatchError: it does not match; the file stays at its place.
        """
        check_file(file, artifact)
        file.chmod(0o444)
        durable.move(file, self._place(artifact))

    def verify(self, artifacts: Sequence[Artifact]) -> None:
        """Hash fetched files; remove damaged ones, so that they are fetched again.

        Raises:
            TruncatedError, HashMismatchError: some were damaged; lists all of them.
            UnsafeArchiveError: a wheel is as locked, but unsafe to unpack.
        """
        damaged: list[FoundryError] = []
        for artifact in artifacts:
            try:
                check_file(self._place(artifact), artifact)
            except (TruncatedError, HashMismatchError) as error:
                self._place(artifact).unlink()
                damaged.append(error)
        if damaged:
            raise type(damaged[0])(
                f"files in the store {self.root} were damaged; they have been removed from it: {len(damaged)}",
                why="\n".join(f"{error.what}\n{error.why}" for error in damaged),
                next="./foundry pin --fetch",
            )

    def verify_parts(self) -> tuple[int, list[str]]:
        """Hash all built parts; remove damaged ones, so that they are built again.

        Returns:
            The number of parts that match their manifests, and the names of those without a manifest, which are built
            again when they are used.

        Raises:
            PartError: some were damaged; lists all of them.
        """
        undamaged, unlisted, damaged = 0, [], []
        for place in sorted((self.root / "parts").glob("*/[!.]*")):
            kind = place.parent.name
            with self.locked(f"{kind}-{place.name}"):
                damage = manifest.damage(place)
                if damage is None:
                    undamaged += 1
                elif damage.unlisted:
                    unlisted.append(f"{kind}/{place.name}")
                else:
                    damaged.append(f"{kind}/{place.name}\n{damage.why}")
                    discard(place)
        if damaged:
            raise PartError(
                f"parts in the store {self.root} were damaged; they have been removed from it: {len(damaged)}",
                why="\n".join(damaged),
                next="./foundry build TARGET, which builds those that it needs again",
            )
        return undamaged, unlisted

    def part(self, kind: str, digest: str, build: Callable[[Path], object]) -> Path:
        """Return a part, named by the digest of its inputs; build it if it does not exist or is damaged.

        Args:
            kind: the kind of part, a folder below parts/.
            digest: the digest of all its inputs.
            build: fills the empty folder that it is called with.
        """
        place = self._part(kind, digest)
        if self.has_part(kind, digest):
            return place
        with self.locked(f"{kind}-{digest}"):
            if self.has_part(kind, digest):
                return place
            work = place.with_name(f".{digest}.partial")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            try:
                build(work)
                manifest.write(work)
                discard(place)
                durable.move(work, place)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        return place

    def has_part(self, kind: str, digest: str) -> bool:
        """Return whether a part exists and is undamaged; print a notice about a damaged one, once. See part."""
        place, verdict = self._part(kind, digest), self.root / "verdicts" / f"{kind}-{digest}"
        if not place.is_dir():
            return False
        fingerprint = verdicts.fingerprint(
            manifest.contents(place) | {manifest.MANIFEST_FILE: place / manifest.MANIFEST_FILE}
            if (place / manifest.MANIFEST_FILE).exists()
            else {}
        )
        if verdicts.is_known(verdict, fingerprint):
            return True
        damage = manifest.damage(place)
        if damage:
            self._say(place, damage.why, *["cannot be verified"] * damage.unlisted)
            return False
        verdicts.note(verdict, fingerprint)
        return True

    def found_part(self, kind: str, digest: str) -> Path | None:
        """Return the folder of a part that exists and is undamaged; None if it has to be built. See part."""
        return self._part(kind, digest) if self.has_part(kind, digest) else None

    def sha256(self, file: Path) -> str:
        """Return the sha256 that a part's manifest has for a file at the top of the part."""
        entry = (manifest.read(file.parent) or {}).get(file.name)
        if entry is None:
            raise PartError(
                f"the manifest of a part does not have {file.name}",
                why=str(file.parent),
                next="./foundry pin --check, then the same command again",
            )
        return str(entry["sha256"])

    def _part(self, kind: str, digest: str) -> Path:
        return self.root / "parts" / confine.name(kind, "a part") / confine.name(digest, "a part")

    def _place(self, artifact: Artifact) -> Path:
        return self.root / "artifacts" / artifact.sha256[:2] / artifact.sha256 / artifact.filename

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold a lock against other processes; print a message if it is not free."""
        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / name)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            console.print(f"waiting for another process at work on {name}", highlight=False)
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _bring(self, source: ArtifactSource, artifacts: Sequence[Artifact], noun: str) -> None:
        """Fetch the missing artifacts of one kind, check them and add them to the store."""
        if all(map(self._whole, artifacts)):
            return
        with self.incoming(noun) as folder:
            # Another process may have fetched them while we waited for the lock.
            missing = [artifact for artifact in artifacts if not self._whole(artifact)]
            if not missing:
                return
            try:
                with self._bars.bar(f"{len(missing)} {noun}", sum(artifact.size for artifact in missing)) as report:
                    source.fetch(missing, folder, report)
            except BaseException:
                # Interrupted or failed half-way: keep complete files, so that they are not fetched again.
                for artifact in missing:
                    with suppress(FoundryError, OSError):
                        self.adopt(folder / artifact.filename, artifact)
                raise
            for artifact in missing:
                self.adopt(folder / artifact.filename, artifact)


class _Bars:
    """The progress of all fetches at the same time: a console has one display of bars."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._shown: Progress | None = None
        self._users = 0

    @contextmanager
    def bar(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show a bar while a fetch goes on; yield what sets the number of bytes that have arrived."""
        with self._lock:
            if self._shown is None:
                columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
                self._shown = Progress(
                    TextColumn("fetching {task.description}", markup=False), *columns, console=console
                )
                self._shown.start()
            shown = self._shown
            self._users += 1
        task = shown.add_task(what, total=total)
        try:
            yield lambda done: shown.update(task, completed=done)
            shown.update(task, completed=total)
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    shown.stop()
                    self._shown = None


def discard(place: Path) -> None:
    """Remove a part if it exists. A process that has its files open can continue to read them."""
    if place.exists():
        gone = place.with_name(f".{place.name}.gone")
        shutil.rmtree(gone, ignore_errors=True)
        place.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def check_file(file: Path, artifact: Artifact) -> None:
    """Compare a file with its entry in the lock, and check that it is safe to unpack.

    Raises:
        TruncatedError: it is shorter than locked, or missing.
        HashMismatchError: it has other bytes.
        UnsafeArchiveError: it is a wheel with an entry that would be written outside the target folder.
    """
    size = file.stat().st_size if file.is_file() else 0
    if size < artifact.size:
        raise TruncatedError(
            f"{artifact.filename} is truncated",
            why=f"{size} of {artifact.size} bytes arrived",
            next="the same command again",
        )
    with file.open("rb") as stream:
        actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if actual != artifact.sha256:
        raise HashMismatchError(
            f"{artifact.filename} is not the file that was locked",
            why=f"sha256 {actual}, {size} bytes\nlocked {artifact.sha256}, {artifact.size} bytes",
            next="the same command again; if that fails, too, find out who changed the file: ./foundry pin --update",
        )
    if artifact.kind == "wheel":
        with zipfile.ZipFile(file) as archive:
            for _ in wheel_file.wheel_files(archive):
                pass
