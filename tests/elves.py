"""Make small ELF files and Debian packages of them for tests, with tools that builds need: binutils, dpkg-deb."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import archive_files
from elftools.elf.hash import ELFHashTable

from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact, LockedTarget

LOADER = "/lib64/ld-linux-x86-64.so.2"
# Offsets of the machine and the OS ABI in an ELF header, and their values for AArch64 and FreeBSD.
_MACHINE, _AARCH64 = 18, 183
_ABI, _FREEBSD = 7, 9


def make(
    path: Path,
    defines: Mapping[str, str] | None = None,
    *,
    uses: Sequence[str] = (),
    may_use: Sequence[str] = (),
    relays: Mapping[str, str] | None = None,
    against: Sequence[Path] = (),
    soname: str = "",
    search: str = "",
    loader: str = "",
) -> Path:
    """Make a shared library, or a program if a loader is named.

    Args:
        defines: the functions that it defines, each with its version; "" for none.
        uses: functions that it calls.
        may_use: functions that it calls by weak symbols.
        relays: functions that it defines by jumping to others.
        against: the libraries that it is linked with. It needs all of them.
        search: DT_RUNPATH.
    """
    functions = dict(defines or {})
    assembly = "".join(f".globl {name}\n.type {name}, @function\n{name}: ret\n" for name in functions)
    for name, to in (relays or {}).items():
        assembly += f".globl {name}\n.type {name}, @function\n{name}: jmp {to}@PLT\n"
    assembly += "".join(f".weak {name}\n" for name in may_use)
    assembly += ".globl _start\n_start:\n" + "".join(f"call {name}@PLT\n" for name in (*uses, *may_use)) + "ret\n"
    versions: dict[str, list[str]] = {}
    for name, version in functions.items():
        if version:
            versions.setdefault(version, []).append(name)
    with TemporaryDirectory() as work:
        source, made, script = Path(work, "a.s"), Path(work, "a.o"), Path(work, "versions")
        source.write_text(assembly + '.section .note.GNU-stack,"",@progbits\n')
        script.write_text("".join(f"{version} {{ {'; '.join(names)}; }};\n" for version, names in versions.items()))
        _call("as", "--64", "-o", made, source)
        _call(
            "ld",
            "-o",
            path,
            made,
            *against,
            "--no-as-needed",
            "--allow-shlib-undefined",
            *(["-pie", "-dynamic-linker", loader] if loader else ["-shared"]),
            *(["-soname", soname] if soname else []),
            *(["--enable-new-dtags", "-rpath", search] if search else []),
            *(["--version-script", str(script)] if versions else []),
        )
    return path


def for_aarch64(content: bytes) -> bytes:
    """Return the same file, marked as one for another machine."""
    return content[:_MACHINE] + bytes([_AARCH64]) + content[_MACHINE + 1 :]


def for_freebsd(content: bytes) -> bytes:
    """Return the same file, marked as one for another system."""
    return content[:_ABI] + bytes([_FREEBSD]) + content[_ABI + 1 :]


def with_weak_need(content: bytes, version: str) -> bytes:
    """Return the same file with a weak need for a version: a version entry is a hash, followed by flags."""
    flags = content.index(ELFHashTable.elf_hash(version).to_bytes(4, "little")) + 4
    return content[:flags] + b"\2" + content[flags + 1 :]


def _call(*argv: str | Path) -> None:
    subprocess.run(argv, check=True, capture_output=True)


@dataclass(frozen=True)
class Runtime:
    """The C and C++ libraries of a made-up Debian suite, and one more, as packages in a store.

    Attributes:
        store: contains the packages, and has no network.
        debs: libc6, libstdc++6 and zlib1g.
        libraries: by soname, to link with.
    """

    store: Store
    debs: tuple[Artifact, ...]
    libraries: Mapping[str, Path]

    def target(self, name: str) -> LockedTarget:
        """Return one of our targets, on this suite."""
        return replace(lock.load().targets[name], debs=self.debs)


def runtime(folder: Path) -> Runtime:
    """Make a suite with glibc 2.41 and GLIBCXX_3.4.33."""
    defined = {
        "libc.so.6": {"puts": "GLIBC_2.2.5", "newer": "GLIBC_2.41"},
        "ld-linux-x86-64.so.2": {"tls": "GLIBC_2.3"},
        "libstdc++.so.6": {"cxx": "GLIBCXX_3.4.33", "abi": "CXXABI_1.3"},
        "libz.so.1": {"inflate": ""},
    }
    libraries = {name: make(folder / name, defines, soname=name) for name, defines in defined.items()}
    store = Store(folder / "store", offline=True)
    debs = []
    for name, version, own, shlibs in (
        ("libc6", "2.41-1", ["libc.so.6", "ld-linux-x86-64.so.2"], "ld-linux-x86-64 2 libc6\nlibc 6 libc6\n"),
        ("libstdc++6", "14.2.0-1", ["libstdc++.so.6"], "libstdc++ 6 libstdc++6\n"),
        ("zlib1g", "1.3-1", ["libz.so.1"], "udeb: libfoo 1 foo-udeb\nlibz 1 zlib1g\nlibbar 1.5 bar\n"),
    ):
        files = {f"usr/lib/x86_64-linux-gnu/{library}": libraries[library].read_bytes() for library in own}
        deb, locked = archive_files.deb(folder, name, version, {**files, "DEBIAN/shlibs": shlibs.encode()})
        store.adopt(deb, locked)
        debs.append(locked)
    return Runtime(store, tuple(debs), libraries)
