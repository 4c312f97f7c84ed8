"""A user's own plugin, which runs in a target's image without being a part of it: --plugin.

Input: a wheel, a folder of wheels, or a folder with the sources of a wheel. Output: a Plugin. Only data is read here;
the plugin's code, and the code that builds its wheel, run in a container (testing/plugin_in_image.py).
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import zipfile
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from toolchains.archives import wheel_file
from toolchains.system import foreign
from toolchains.system.errors import UsageError

GROUP = "triton.backends"
# Beside compiler.py in the package: what e2e expects of the backend.
_SETTINGS = "foundry.toml"
_KEYS = {"refused"}
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PACKAGE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
# The most bytes of a file of text, and of a plugin's wheel.
_TEXT, _WHEEL = 1 << 20, 4 << 30


@dataclass(frozen=True)
class Plugin:
    """A plugin for Triton.

    Attributes:
        option: the value of --plugin.
        name: of the backend, which TRITON_DEFAULT_BACKEND takes.
        package: the Python package with compiler.py and driver.py.
        distribution: its name as a distribution.
        described: the wheel with its sha256, or the folder, for reports.
        wheels: the files to install, the plugin's among them; empty if there are only sources.
        sources: the folder with pyproject.toml; None if there are wheels.
        settings: foundry.toml of the package; "" if it has none.
    """

    option: str
    name: str
    package: str
    distribution: str
    described: str
    wheels: tuple[Path, ...]
    sources: Path | None
    settings: str

    @classmethod
    def read(cls, option: str) -> Plugin | None:
        """Return the plugin that --plugin names; None if it is empty.

        Raises:
            UsageError: it names no plugin, or several.
            UnsafeArchiveError: a wheel is damaged.
        """
        if not option:
            return None
        path = Path(option)
        if (path / "pyproject.toml").is_file():
            return cls._of_sources(option, path)
        wheels = tuple(sorted(path.glob("*.whl"))) if path.is_dir() else (path,) * (path.suffix == ".whl")
        if not wheels or not all(wheel.is_file() for wheel in wheels):
            why = (
                "it has neither pyproject.toml nor a file *.whl"
                if path.is_dir()
                else "there is no such wheel or folder"
            )
            raise _error(option, why)
        found = [(wheel, *entry) for wheel in wheels for entry in _of_wheel(wheel)]
        if len(found) != 1:
            why = f"of {', '.join(wheel.name for wheel in wheels)}, {len(found)} name a backend, and one must"
            raise _error(option, why)
        ((wheel, name, package, settings),) = found
        with foreign.open_file(wheel, _WHEEL) as file:
            described = f"{wheel.name}, sha256 {hashlib.file_digest(file, 'sha256').hexdigest()}"
        try:
            distribution = str(parse_wheel_filename(wheel.name)[0])
        except InvalidWheelFilename as error:
            raise _error(option, str(error)) from error
        return cls._checked(option, name, package, distribution, described, wheels, None, settings)

    @classmethod
    def _of_sources(cls, option: str, folder: Path) -> Plugin:
        try:
            project = tomllib.loads(foreign.read_file(folder / "pyproject.toml", _TEXT).decode())["project"]
            backends = dict(project["entry-points"][GROUP])
            ((name, package),) = backends.items()
            distribution = str(project["name"])
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, ValueError, TypeError) as error:
            needed = f'a name, and one backend below [project.entry-points."{GROUP}"]'
            why = f"its pyproject.toml must have {needed}: {error!r}"
            raise _error(option, why) from error
        if not isinstance(package, str):
            raise _error(option, f"the entry point {name} is no text")
        inside = Path(package.replace(".", "/"), _SETTINGS)
        places = [place for place in (folder / "src" / inside, folder / inside) if place.is_file()]
        settings = foreign.read_file(places[0], _TEXT).decode(errors="replace") if places else ""
        return cls._checked(option, name, package, distribution, f"the sources in {folder}", (), folder, settings)

    @classmethod
    def _checked(cls, option: str, name: str, package: str, *others: Any) -> Plugin:
        if not _NAME.fullmatch(name) or not _PACKAGE.fullmatch(package):
            raise _error(option, f"its entry point {name!r} = {package!r} names no backend and package")
        plugin = cls(option, name, package, *others)
        try:
            settings = tomllib.loads(plugin.settings)
        except tomllib.TOMLDecodeError as error:
            raise _error(option, f"its {_SETTINGS} cannot be read: {error}") from error
        refused = settings.get("refused", {})
        if settings.keys() - _KEYS or not isinstance(refused, Mapping) or not all(map(_is_pattern, refused.values())):
            raise _error(option, f"its {_SETTINGS} may have one table, [refused], of types and regular expressions")
        return plugin


def _of_wheel(wheel: Path) -> list[tuple[str, str, str]]:
    """Return the backends of a wheel: name, package, and the text of its settings."""
    with foreign.open_file(wheel, _WHEEL) as file, wheel_file.opened(file) as archive:
        entries = {entry.filename: entry for entry in wheel_file.wheel_files(archive)}
        found = []
        for path in (path for path in entries if path.endswith(".dist-info/entry_points.txt")):
            for name, package in backends_of(_text(archive, path), wheel.name).items():
                inside = f"{package.replace('.', '/')}/{_SETTINGS}"
                found.append((name, package, _text(archive, inside) if inside in entries else ""))
        return found


def backends_of(entry_points: str, called: str) -> dict[str, str]:
    """Return the backends in a file of entry points: the package by name.

    Raises:
        UsageError: the file cannot be read.
    """
    read = ConfigParser(delimiters=("=",), interpolation=None)
    # Names of entry points differ by case.
    read.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        read.read_string(entry_points)
    except ConfigError as error:
        raise _error(called, f"its entry points cannot be read: {error}") from error
    return {name: package.strip() for name, package in (read.items(GROUP) if read.has_section(GROUP) else ())}


def _text(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as file:
        return foreign.read(file, _TEXT, name).decode(errors="replace")


def _is_pattern(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(re.compile(value))
    except re.error:
        return False


def _error(option: str, why: str) -> UsageError:
    return UsageError(
        f"--plugin={option} is no plugin of Triton",
        why=why,
        next="name a wheel, a folder of wheels, or a folder with the sources: docs/own-plugin.md",
    )
