"""The verbs run and shell: copy a user's folder into a target's container, and copy changes back to this machine.

    this machine                     container
    folder of the script, or --with  /foundry/work       copied in; the command starts in it
    the same folder, or --results    /foundry/work       new and changed files are copied out at the end
    --wheels                         /foundry/wheels     installed, and found by `pip install`
    examples/, docs/, README.md      /foundry/examples, /foundry/docs
    e2e/                             /foundry/e2e

Everything is copied, so an engine on another machine works as well. Files are copied out even if the command fails.
Files deleted in the container are not deleted on this machine, and links are not copied out.

`python` is that of /foundry/env, an environment on top of the image's /opt/foundry: it has the same packages, and
`python -m pip install` can write to it. It exists in the container only.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives import confine, tar_file
from toolchains.archives import folders as trees
from toolchains.archives.tar_file import TarWriter, reading
from toolchains.assembly import container_files, ensure
from toolchains.assembly.request import Request
from toolchains.config import components
from toolchains.engine.container import Container
from toolchains.engine.gpus import unused
from toolchains.engine.sandbox import HOME, USER
from toolchains.system import durable, json_text, paths
from toolchains.system.errors import CommandError, EngineError, FoundryError, UnsafeArchiveError, UsageError
from toolchains.testing import proof

WORK = f"{HOME}/work"
_PROFILED = "profile.json"
_PROFILE = ["-m", "foundry_core.profile", f"--json={_PROFILED}"]
_ENVIRONMENT = f"{HOME}/env"
_WHEELS = f"{HOME}/wheels"
_CHANGES = f"{HOME}/changes"
# Neither copied in nor out: histories and environments, which are large and useless to a script.
_LEFT_OUT = trees.LITTER | {".git", ".venv"}
# The limit in bytes for a folder that the user did not name: running a script in a download folder is a mistake.
_UNNAMED = 10**9
# Runs in the container with the image's own Python: creates the environment that users install into. It adds the
# image's packages by path, with the folders that their .pth files name.
_MAKE_ENVIRONMENT = """
import pathlib, subprocess, sys, sysconfig
place, below = pathlib.Path(sys.argv[1]), sysconfig.get_path("purelib")
subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
own = next(place.glob("lib/python*/site-packages"))
(own / "image.pth").write_text(f"import site; site.addsitedir({below!r})\\n")
for name in "pip", "pip3":
    (place / "bin" / name).write_text('#!/bin/sh\\nexec "$(dirname "$0")/python" -m pip "$@"\\n')
    (place / "bin" / name).chmod(0o755)
"""
# Runs in the container: packs the new and changed files below a folder, and names the files that it leaves out.
_PACK_CHANGES = """
import hashlib, json, os, pathlib, sys, tarfile
work, changes = map(pathlib.Path, sys.argv[1:])
asked = json.loads((changes / "asked.json").read_text())
left = []
with tarfile.open(changes / "files.tar", "w", format=tarfile.PAX_FORMAT) as tar:
    for folder, folders, files in os.walk(work):
        left += [os.path.join(folder, name) for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(name for name in folders if name not in asked["left out"])
        for path in (pathlib.Path(folder, name) for name in sorted(files)):
            name = path.relative_to(work).as_posix()
            if path.is_symlink() or not path.is_file():
                left.append(str(path))
                continue
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError:
                left.append(str(path))
                continue
            if asked["before"].get(name) != found:
                tar.add(path, name, recursive=False)
(changes / "left.json").write_text(json.dumps(sorted(left)))
"""


# Prints in the container the device that kernels run on, or why there is none.
_DEVICE = """
import sys, triton
try:
    print("kernels run on", triton.runtime.driver.active.device_report())
except Exception as error:
    sys.exit(str(error))
"""


@dataclass(frozen=True)
class Place:
    """The user's folders on this machine.

    Attributes:
        folder: the folder to copy in; None for nothing.
        results: the folder for new and changed files.
        wheels: the folder with wheels to install; None for none.
        script: the path in `folder` of the script to run; "" for a shell.
    """

    folder: Path | None
    results: Path | None
    wheels: Path | None
    script: str = ""

    @classmethod
    def read(cls, *, script: str = "", folder: str = "", results: str = "", wheels: str = "") -> Place:
        """Check the words of a command line.

        Args:
            script: a Python file of this machine; empty for a shell.
            folder: --with; if empty, the script's own folder, or none for a shell.
            results: --results; `folder` if empty.
            wheels: --wheels; none if empty.

        Raises:
            UsageError: there is no such script or folder, the script is not in the folder, a folder for wheels has no
                wheel, results were requested without a folder, or nothing can be written to the folder for them.
        """
        source = _named(folder) if folder else None
        inside = ""
        if script:
            path = _script(script)
            source = source or _unnamed(path.parent)
            if not path.is_relative_to(source.resolve()):
                raise UsageError(
                    f"{script} is not in {folder}",
                    why="only what is in --with is copied into the container",
                    next=f"--with={Path(script).parent}",
                )
            inside = path.relative_to(source.resolve()).as_posix()
        if source is None and results:
            raise UsageError("--results needs a folder that is copied in", next="add --with=PATH")
        packages = Path(wheels) if wheels else None
        if packages and not any(packages.glob("*.whl")):
            why = "it has no file *.whl" if packages.is_dir() else "there is no such folder"
            raise UsageError(
                f"--wheels={wheels}: there is nothing to install",
                why=why,
                next=f"pip download --only-binary=:all: --dest {shlex.quote(wheels)} NAME",
            )
        if results:
            durable.require_writable(Path(results), f"--results={results}")
        elif source is not None:
            durable.require_writable(source, f"{source}, to which files are copied back,")
        return cls(source, Path(results) if results else source, packages, inside)


def run_script(request: Request, place: Place, words: Sequence[str], *, profile: bool = False) -> int:
    """Run the place's script with these arguments in a target's container; return its exit status.

    With `profile`, it also prints what bounds each kernel, and writes profile.json, there and for the verb report.

    Raises:
        CommandError: a wheel cannot be installed.
    """
    kept = proof.results_folder(request) / "profiles" / f"{Path(place.script).stem}.json" if profile else None
    with _open_container(request) as container, open_folder(container, place):
        if kept:
            # A run that ends without a profile leaves none of an earlier one.
            kept.unlink(missing_ok=True)
            if place.results:
                (place.results / _PROFILED).unlink(missing_ok=True)
        status = container.interactive(
            _inside(["python", *(_PROFILE if profile else []), place.script, *words]), cwd=WORK
        )
        if kept and (found := container.run(["cat", f"{WORK}/{_PROFILED}"])).status == 0:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(found.stdout, encoding="utf-8")
        return status


def open_shell(request: Request, place: Place) -> int:
    """Open a shell in a target's container, in the user's folder if there is one; return its exit status.

    Raises:
        CommandError: a wheel cannot be installed.
    """
    with _open_container(request) as container:
        container_files.copy_checks(container, request.target)
        container_files.copy_documents(container, request.target)
        with open_folder(container, place):
            return container.interactive(_inside(["bash"]), cwd=WORK if place.folder else HOME)


@contextmanager
def _open_container(request: Request) -> Iterator[Container]:
    """Yield a container of the requested image, with the target's user folders."""
    docker, made = ensure.ensure_image(request)
    places = container_files.writable_folders(request.target)
    with docker.sandbox(made.info.id, folders=places, gpus=request.gpus) as container:
        container_files.copy_user_folders(container, request.target)
        if request.gpus:
            done = container.run(["python", "-c", _DEVICE], cwd="/tmp")
            if done.status != 0:
                raise EngineError(f"--gpus={request.gpus.text}: no GPU can be used", why=done.stderr.strip())
            print(done.stdout.strip(), file=sys.stderr, flush=True)
        elif components.target(request.target.name).gpus and (note := unused(None)):
            print(note, file=sys.stderr, flush=True)
        yield container


@contextmanager
def open_folder(container: Container, place: Place) -> Iterator[None]:
    """Copy a user's folder into a container, and create an environment to install into; copy changes out at the end.

    Raises:
        CommandError: a wheel cannot be installed.
        UnsafeArchiveError: a file would be written outside the folder for results.
    """
    container.call(["python", "-I", "-c", _MAKE_ENVIRONMENT, _ENVIRONMENT])
    container.call(["mkdir", "-p", WORK, _CHANGES, _WHEELS])
    if place.wheels:
        _install(container, place.wheels)
    before = _copy_in(container, place.folder) if place.folder else {}
    try:
        yield
    except BaseException:
        # Report the error that ended the command, and not that the container may be gone because of it.
        try:
            _copy_out(container, before, place)
        except FoundryError as lost:
            print(f"the files that were written are lost: {lost.what}", file=sys.stderr)
        raise
    _copy_out(container, before, place)


def _inside(argv: Sequence[str]) -> list[str]:
    """Return a command that runs with the environment of a user's programs."""
    settings = {
        "VIRTUAL_ENV": _ENVIRONMENT,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": f"{_WHEELS} {WORK}",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONUNBUFFERED": "1",
    }
    words = [f"{key}={value}" for key, value in settings.items()]
    return ["env", *words, "sh", "-c", f'PATH={_ENVIRONMENT}/bin:$PATH; export PATH; exec "$@"', "sh", *argv]


def _install(container: Container, folder: Path) -> None:
    wheels = sorted(folder.glob("*.whl"))
    for wheel in wheels:
        container.copy_into(wheel, f"{_WHEELS}/{wheel.name}")
    done = container.run(
        _inside(["python", "-m", "pip", "install", "--quiet", *(f"{_WHEELS}/{wheel.name}" for wheel in wheels)])
    )
    if done.status != 0:
        raise CommandError(
            f"the wheels of {folder} cannot be installed",
            why=(done.stdout + done.stderr).strip(),
            next="put what is missing into that folder: pip download --only-binary=:all: --python-version VERSION NAME",
        )


def _script(name: str) -> Path:
    path = Path(name)
    if path.is_file():
        return path.resolve()
    packed = (path / "meta.json").is_file()
    raise UsageError(
        f"{name} is not a Python script",
        why="it is a folder" if path.is_dir() else "there is no such file",
        next=f"./foundry run-packed {name}" if packed else "./foundry help run",
    )


def _named(folder: str) -> Path:
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"--with={folder}: there is no such folder", next="name a folder of this machine")
    return path


def _unnamed(folder: Path) -> Path:
    """Return the folder of a script if it may be copied although the user did not name it.

    Raises:
        UsageError: it is the user's home or a parent of it, or it is large.
    """
    what = f"all of {folder} would be copied into the container"
    advice = "put the script into a separate folder, or name the folder: --with=PATH"
    if Path.home().is_relative_to(folder):
        raise UsageError(what, why="the script's folder is copied, and this one has your home in it", next=advice)
    size = 0
    for _, path in _files(folder):
        size += path.stat().st_size
        if size > _UNNAMED:
            raise UsageError(what, why=f"it has more than {_UNNAMED / 1e9:.0f} GB", next=advice)
    return folder


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder with their relative names, and folders too, so that empty ones are copied.

    Links to files are followed, links to folders are not.
    """
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _LEFT_OUT and not Path(top, name, "pyvenv.cfg").exists() and not Path(top, name).is_symlink()
        )
        for name in (*folders, *sorted(files)):
            path = Path(top, name)
            if path.is_file() or path.is_dir():
                yield path.relative_to(folder).as_posix(), path


def _copy_in(container: Container, folder: Path) -> dict[str, str]:
    """Copy a folder into the container; return the sha256 of each file by its name."""
    before = {}
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        packed = Path(work, "work.tar")
        with packed.open("wb") as file, TarWriter(file, owner=USER) as tar:
            for name, path in _files(folder):
                date = int(path.stat().st_mtime)
                if path.is_dir():
                    tar.folder(name, date=date)
                    continue
                # Read each file once, so that the recorded sha256 is that of the copied content.
                content = path.read_bytes()
                before[name] = hashlib.sha256(content).hexdigest()
                tar.file(name, content, executable=trees.mode(path) == 0o755, date=date)
        container.put(packed, WORK)
    return before


def _copy_out(container: Container, before: Mapping[str, str], place: Place) -> None:
    """Copy new and changed files to the folder for results, and print their names."""
    if place.results is None:
        return
    asked = json.dumps({"before": before, "left out": sorted(_LEFT_OUT)})
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        local = Path(work)
        (local / "asked.json").write_text(asked)
        container.copy_into(local / "asked.json", f"{_CHANGES}/asked.json")
        container.call(["python3", "-I", "-c", _PACK_CHANGES, WORK, _CHANGES])
        for name in ("files.tar", "left.json"):
            container.fetch(f"{_CHANGES}/{name}", local / name)
        for name in unpack(local / "files.tar", place.results):
            print(f"written: {place.results / name}", file=sys.stderr)
        for name in json_text.read(local / "left.json", list[str]):
            print(f"not copied out, since it is not a plain file: {name}", file=sys.stderr)


def unpack(packed: Path, folder: Path) -> list[str]:
    """Write the files of a tar below a folder, which is created; return their names.

    The tar comes from a container in which any program ran, so it is not trusted: only files are written, and none
    outside the folder, neither by its name nor through a link on this machine.

    Raises:
        UnsafeArchiveError: some files would be written outside; the other files are written.
    """
    written, refused = [], []
    with reading("what came from the container is a damaged archive"), tar_file.opened(packed, "r:") as tar:
        for member in tar:
            # A sparse file of a few bytes may be larger than this machine's disk.
            content = tar.extractfile(member) if member.isfile() and not member.issparse() else None
            try:
                path = confine.path_below(folder, member.name, "the container")
            except UnsafeArchiveError:
                content = None
            if content is None:
                refused.append(member.name)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                shutil.copyfileobj(content, file)
            if member.mode & stat.S_IXUSR:
                path.chmod(path.stat().st_mode | stat.S_IXUSR)
            written.append(member.name)
    if refused:
        raise UnsafeArchiveError(
            f"{len(refused)} files were not copied out of the container",
            next="--results=DIR, with a new folder",
            why="\n".join(f"{name} is no plain file, or would be written outside {folder}" for name in refused),
        )
    return written
