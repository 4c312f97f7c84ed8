"""Read the platforms that images are made for: what Debian, wheels and Dockerfiles call each of them.

All files of this tree are written for linux/amd64. For another platform, patterns of pins, Dockerfiles and the sources
of native parts and linked programs are rewritten by the platform's file. So the digests of linux/amd64 do not depend on
other platforms.
"""

from __future__ import annotations

import platform as machines
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from toolchains.config.reading import File, Text, convert, display_path, read_table
from toolchains.lockfile.lock import AMD64, digest
from toolchains.system import paths
from toolchains.system.errors import UsageError, suggestion


class Platform(File, frozen=True):
    """What the file of a platform says. The name of the file is the platform's, with a hyphen: linux-arm64.

    Attributes:
        name: Docker's name for it: "linux/arm64".
        debian: Debian's name for the architecture.
        machine: the kernel's name for the architecture, which `uname -m` prints.
        wheels: the tags of the wheels that run there, from the newest C library to the oldest.
        targets: the targets that are made for it; all if there are none.
        rewritten: texts of patterns, Dockerfiles and sources of linked programs, and what they are on this platform.
        unavailable: why a target cannot be made for it, by the target's name.
    """

    name: str
    debian: Text
    machine: Text
    wheels: tuple[Text, ...]
    targets: tuple[Text, ...] = ()
    rewritten: Mapping[Text, Text] = {}
    unavailable: Mapping[Text, Text] = {}

    def rewrite(self, text: str) -> str:
        """Return a text that is written for linux/amd64 as it is on this platform."""
        for old, new in self.rewritten.items():
            text = text.replace(old, new)
        return text

    def rewrite_files(self, files: Iterable[Path]) -> None:
        """Rewrite copies of files that are written for linux/amd64; files without such texts keep their bytes."""
        for file in files if self.rewritten else ():
            content = file.read_bytes()
            for old, new in self.rewritten.items():
                content = content.replace(old.encode(), new.encode())
            file.write_bytes(content)

    def has(self, target: str) -> bool:
        """Return whether a target is made for this platform."""
        return not self.targets or target in self.targets

    def refusal(self, target: str) -> str:
        """Return why there is no such target for this platform."""
        return self.unavailable.get(target, f"{display_path(file(self.name))} does not list it in `targets`")

    @property
    def identity(self) -> dict[str, str]:
        """Return what the digests of a platform's images have besides those of linux/amd64."""
        return {} if self.name == AMD64 else {"platform": digest([self.name, dict(self.rewritten)])}


def file(name: str) -> Path:
    """Return the path of a platform's file."""
    return paths.PLATFORMS / f"{name.replace('/', '-')}.toml"


@cache
def load(name: str) -> Platform:
    """Read one platform.

    Raises:
        UsageError: there is no such platform.
        PinError: the file has a key or a value that a platform cannot have.
    """
    if name not in names():
        what = f"there is no platform {name}{suggestion(name, names())}"
        raise UsageError(what, next=f"choose one of: {', '.join(names())}")
    found: Platform = convert(read_table(file(name)), Platform, file(name), name=name)
    return found


def names() -> list[str]:
    """Return the names of the platforms, that of linux/amd64 first."""
    return sorted(
        (path.stem.replace("-", "/", 1) for path in paths.PLATFORMS.glob("*.toml")), key=lambda n: (n != AMD64, n)
    )


def here() -> str:
    """Return the name of this machine's platform; linux/amd64 if this machine is none that images are made for."""
    known = {load(name).machine: name for name in names()}
    return known.get(machines.machine(), AMD64)


def option(name: str) -> str:
    """Return the option, after a space, with which a command on this machine is about a platform; "" for its own."""
    return f" --platform={name}" * (name != here())


def strip(name: str) -> tuple[str, str]:
    """Return the program that strips a platform's files on this machine, and the Debian package that has it."""
    if name == here():
        return "strip", "binutils"
    machine = load(name).machine
    return f"{machine}-linux-gnu-strip", f"binutils-{machine.replace('_', '-')}-linux-gnu"


def of_file(filename: str) -> str:
    """Return the platform that a wheel or a Debian package is for, by its name; linux/amd64 if it is for any."""
    stem = filename.rpartition(".")[0]
    return next((name for name in names() if stem.endswith(("_" + load(name).machine, "_" + load(name).debian))), AMD64)
