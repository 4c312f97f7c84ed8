"""Check what the machine must have, and install and start it if this is allowed.

`./foundry --yes ...` or CI=true allows it. It is done only as root on Debian and Ubuntu. Otherwise nothing is installed
or started, and the error has the command to type.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock

from toolchains.config import platforms
from toolchains.engine import client, context, diagnosis
from toolchains.fetch import apt_sources
from toolchains.system import children, paths
from toolchains.system.errors import EngineError, FoundryError, MissingToolError

_RELEASE = Path("/etc/os-release")
_SYSTEMD = Path("/run/systemd/system")
_PIDFILE = Path("/var/run/docker.pid")
# No bridge, so no firewall rule changes: builds and runs use the networks none and host, which always exist.
_DOCKERD = ("dockerd", "--bridge=none", "--iptables=false", "--ip-forward=false")
_STARTUP_SECONDS = 60
# Where the kernel is told which program runs those of another machine, and the Debian package of such programs.
_BINFMT = Path("/proc/sys/fs/binfmt_misc")
_QEMU = "qemu-user-static"


@dataclass(frozen=True)
class Requirement:
    """Something that the machine must have.

    Attributes:
        name: the name that users know.
        purpose: what it is needed for.
        packages: the Debian packages that contain it.
        find: returns where it is, or None if it is missing.
        fix: returns the command that provides it.
        version: a command that prints its version.
    """

    name: str
    purpose: str
    packages: tuple[str, ...]
    find: Callable[[], str | None]
    fix: Callable[[], str]
    version: tuple[str, ...] = ()

    def describe(self) -> str | None:
        """Return its path or the version that it prints; None if it is missing."""
        place = self.find()
        if place is None or not self.version:
            return place
        return next(iter(children.run(self.version, log="version", check=False).stdout.splitlines()), place)


def requirements() -> list[Requirement]:
    """Return all requirements of this machine and user."""
    required = [
        _program("apt-get", "apt", "fetches the packages of the base image"),
        Requirement(
            "a Debian archive",
            "has those packages",
            ("debian-archive-keyring",),
            find=lambda: None if _archives()[0] is None else f"{_archives()[0]} in the sources of apt",
            fix=lambda: _archives()[1],
        ),
        _program("dpkg-deb", "dpkg", "reads what packages say of themselves"),
        _program("mmdebstrap", "mmdebstrap", "makes the base image"),
        _program("strip", "binutils", "takes debug information out of Triton"),
        _program("git", "git", "fetches what is built from a commit"),
    ]
    if os.geteuid() != 0:
        # newuidmap has no option that prints a version.
        required.append(replace(_program("newuidmap", "uidmap", "lets mmdebstrap work without being root"), version=()))
    required.append(Requirement("a container engine", "builds and runs images", ("docker.io",), _engine, _engine_fix))
    return required


def provide() -> list[Requirement]:
    """Install and start what is missing if this is allowed; return what is missing then."""
    if _may_provide():
        _provide(_missing())
    return _missing()


def ensure_engine() -> client.Engine:
    """Return the engine. Install and start it first if this is allowed, together with all other missing requirements.

    Without permission, the other requirements are not checked here: code that fetches or builds something checks them.

    Raises:
        MissingToolError: no engine is installed, and it may not be installed.
        EngineError: there is one, but it does not work.
    """
    if _may_provide() and (missing := _missing()):
        _provide(missing)
    try:
        return client.connect()
    except EngineError as failure:
        missing = _missing()
        # The engine may answer by now; then the first error is reported.
        raise (error(missing) if missing and missing[-1].find is _engine else failure) from failure


def installs_engine() -> bool:
    """Return whether ensure_engine() is going to install or start an engine, which takes a while."""
    return _may_provide() and _engine() is None


def ensure_program(name: str, purpose: str) -> str:
    """Return the path of a program that only one check needs. Install its package of the same name if this is allowed.

    Raises:
        MissingToolError: it is not installed, and may not be.
    """
    _ensure([_program(name, name, purpose)])
    return children.tool(name, package=name)


def ensure_emulation(platform: str) -> None:
    """Check that this machine makes and runs a platform's programs. Install and register what it lacks if allowed.

    The kernel starts the emulator, so it does so for programs in containers, too, if the engine is on this machine.

    Raises:
        MissingToolError: no emulator is registered, or a program is missing, and it may not be installed.
    """
    machine = platforms.load(platform).machine
    if platform != platforms.here():
        strip, package = platforms.strip(platform)
        emulator = Requirement(
            f"an emulator of {machine}",
            f"runs programs of {platform}",
            (_QEMU,),
            find=lambda: _emulator(machine),
            fix=lambda: _emulator_fix(machine),
        )
        tools = [
            _program("arch-test", "arch-test", "tells mmdebstrap that there is an emulator"),
            _program(strip, package, "takes debug information out of Triton"),
        ]
        _ensure([*tools, emulator])
        if _emulator(machine) is None:
            children.run(["sh", "-c", _register(machine)], log=f"register-{machine}")


def _emulator(machine: str) -> str | None:
    """Return the emulator that the kernel starts for a machine's programs, in any root; None if there is none."""
    with suppress(OSError):
        lines = (_BINFMT / f"qemu-{machine}").read_text().splitlines()
        entry = dict(line.partition(" ")[::2] for line in lines)
        # F: the kernel holds the emulator open, so that a root need not have it.
        if "enabled" in entry and "F" in entry.get("flags:", ""):
            return entry["interpreter"]
    return None


def _emulator_fix(machine: str) -> str:
    """Return the command that installs an emulator, and registers it where neither systemd nor binfmt-support does."""
    return f"{_install(_QEMU)}; and where systemd does not run: {_register(machine)}"


def _register(machine: str) -> str:
    sudo = "" if os.geteuid() == 0 else "sudo "
    mounted = f"mountpoint -q {_BINFMT} || {sudo}mount -t binfmt_misc binfmt_misc {_BINFMT}"
    return f"{mounted}; {sudo}sh -c 'cat /usr/lib/binfmt.d/qemu-{machine}.conf > {_BINFMT}/register'"


def ensure_programs(*names: str) -> None:
    """Check some of requirements(). Install the packages of those that are missing if this is allowed; start nothing.

    Raises:
        MissingToolError: one is not installed, and may not be.
    """
    _ensure([requirement for requirement in requirements() if requirement.name in names])


def _ensure(required: list[Requirement]) -> None:
    missing = [requirement for requirement in required if requirement.find() is None]
    if missing and not _may_provide():
        raise error(missing)
    if missing:
        _provide(missing)


def _missing() -> list[Requirement]:
    return [requirement for requirement in requirements() if requirement.find() is None]


def error(missing: list[Requirement]) -> FoundryError:
    """Return the error that names what is missing, and how to get it."""
    failure = _engine_failure() if missing[-1].find is _engine else None
    if failure and (_is_users_engine() or not _is_absent(failure) or shutil.which(_DOCKERD[0])):
        others = [f"{requirement.name} is missing, too: {requirement.fix()}" for requirement in missing[:-1]]
        return EngineError(failure.what, why="\n".join([failure.why, *others]), next=_engine_fix(failure))
    offer = "./foundry --yes doctor, or type it yourself" if _can_provide() else "type it"
    return MissingToolError(
        f"this machine lacks {', '.join(requirement.name for requirement in missing)}",
        why="\n".join(f"{requirement.name}: {requirement.fix()}" for requirement in missing),
        next=offer,
    )


def _may_provide() -> bool:
    return _can_provide() and (os.environ.get("FOUNDRY_YES") == "1" or os.environ.get("CI") == "true")


def _can_provide() -> bool:
    return os.geteuid() == 0 and _is_debian()


def _is_users_engine() -> bool:
    """Return whether the user chose an engine; then only the user can start it."""
    return bool(os.environ.get("DOCKER_HOST") or context.current())


def _is_debian() -> bool:
    if not _RELEASE.is_file():
        return False
    fields = dict(line.split("=", 1) for line in _RELEASE.read_text().splitlines() if "=" in line)
    family = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".replace('"', "").split()
    return "debian" in family or "ubuntu" in family


def _provide(missing: list[Requirement]) -> None:
    """Install the packages of missing requirements, and start the engine if it is one of them."""
    failure = _engine_failure() if any(requirement.find is _engine for requirement in missing) else None
    absent = failure is not None and _is_absent(failure) and not _is_users_engine()
    # If the engine's program is installed, it only has to be started.
    packages = [
        package
        for requirement in missing
        if requirement.find is not _engine or (absent and not shutil.which(_DOCKERD[0]))
        for package in requirement.packages
    ]
    if packages:
        _say(f"installing {', '.join(packages)}")
        for words in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            quiet = {"DEBIAN_FRONTEND": "noninteractive"}
            children.run(["apt-get", *words], log=f"apt-{words[0]}", env=quiet, network=True)
    if absent:
        paths.BUILD.mkdir(exist_ok=True)
        with FileLock(paths.BUILD / "engine.lock"):
            # Another process may have started it while this one waited.
            if _engine() is None:
                _start_engine()


def _start_engine() -> None:
    if _SYSTEMD.is_dir():
        children.run(["systemctl", "start", "docker"], log="systemctl-docker")
        child = None
    else:
        _remove_stale_pidfile()
        child = children.start(_DOCKERD, log="dockerd")
    end = time.monotonic() + _STARTUP_SECONDS
    while _engine() is None:
        if (child is not None and child.poll() is not None) or time.monotonic() > end:
            log = paths.LOGS / "dockerd.log"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:]) if child is not None else ""
            raise EngineError("dockerd does not answer", why=f"{tail}\n(whole output: {log})", next="./foundry doctor")
        time.sleep(0.1)
    if child is not None:
        _say(f"started dockerd; it keeps running when this command ends. To stop it: kill $(cat {_PIDFILE})")


def _remove_stale_pidfile() -> None:
    """Remove the pidfile of a killed dockerd: the next one refuses to start while any process has that number."""
    if _PIDFILE.is_file():
        number = _PIDFILE.read_text(errors="replace").strip()
        try:
            running = Path("/proc", number if number.isdecimal() else "none", "comm").read_text().strip()
        except OSError:
            # There is none, or it has just ended.
            running = ""
        if running != _DOCKERD[0]:
            _PIDFILE.unlink()


def _program(name: str, package: str, purpose: str) -> Requirement:
    return Requirement(
        name, purpose, (package,), lambda: shutil.which(name), lambda: _install(package), version=(name, "--version")
    )


def _archives() -> tuple[int | None, str]:
    """Return the number of Debian archives in the sources of apt; None if there are none, and what helps then."""
    try:
        return len(apt_sources.archives()), ""
    except FoundryError as error:
        return None, error.next


def _install(package: str) -> str:
    if not _is_debian():
        return f"install the equivalent of Debian's {package}"
    return f"{'' if os.geteuid() == 0 else 'sudo '}apt-get install {package}"


def _engine() -> str | None:
    """Return name, version and address of the engine; None if no engine works."""
    with suppress(EngineError):
        return f"{client.connect().version()} at {diagnosis.address()}"
    return None


def _engine_failure() -> EngineError | None:
    """Return why no engine can be used; None if one works."""
    try:
        client.connect().version()
    except EngineError as error:
        return error
    return None


def _is_absent(failure: EngineError) -> bool:
    """Return whether there is no engine at the address. An engine that exists but does not work is not replaced."""
    return diagnosis.find(failure.__cause__ or failure).absent


def _engine_fix(failure: EngineError | None = None) -> str:
    """Return the command or the action that makes an engine work."""
    failure = failure or _engine_failure()
    if failure is None:
        return ""
    if _is_users_engine() or not _is_absent(failure):
        return failure.next
    sudo = "" if os.geteuid() == 0 else "sudo "
    if not shutil.which(_DOCKERD[0]):
        return f"{_install('docker.io')}, or set DOCKER_HOST to an engine"
    start = f"{sudo}systemctl start docker" if _SYSTEMD.is_dir() else f"{sudo}{' '.join(_DOCKERD)} &"
    return f"{start}, or: ./foundry --yes doctor" if _can_provide() else start


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
