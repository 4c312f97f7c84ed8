"""Owners: every byte of a file system is counted once, for the package that installed it."""

from __future__ import annotations

from pathlib import Path

from toolchains.assembly import package_sizes


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_bytes_are_counted_for_their_owner_and_links_once(tmp_path: Path) -> None:
    write(tmp_path / "var/lib/dpkg/info/libfoo:amd64.list", "/lib\n/lib/libfoo.so\n/lib/again.so\n/usr/share/foo\n")
    write(tmp_path / "usr/lib/libfoo.so", "x" * 100)
    (tmp_path / "usr/lib/again.so").hardlink_to(tmp_path / "usr/lib/libfoo.so")
    (tmp_path / "usr/lib/link.so").symlink_to("libfoo.so")
    write(tmp_path / "usr/share/foo", "x" * 10)
    packages = tmp_path / "opt/foundry/lib/python3.13/site-packages"
    write(packages / "bar-1.0.dist-info/RECORD", "bar/__init__.py,,\n../../../bin/bar,,\n")
    write(packages / "bar/__init__.py", "x" * 7)
    write(packages / "bar/__pycache__/__init__.cpython-313.pyc", "x" * 20)
    write(tmp_path / "opt/foundry/bin/bar", "x" * 5)
    write(tmp_path / "etc/stray", "x" * 3)
    write(tmp_path / "proc/huge", "x" * 10000)
    found = package_sizes.measure(tmp_path)
    listings = sum(path.stat().st_size for path in tmp_path.glob("var/lib/dpkg/info/*"))
    record = (packages / "bar-1.0.dist-info/RECORD").stat().st_size
    assert found["libfoo"] == 110
    assert found[package_sizes.NOBODY] == 3 + listings + record
    assert found["python: bar"] == 32
    assert sum(found.values()) == 110 + 32 + 3 + listings + record
