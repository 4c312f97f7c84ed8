"""A user's own plugin, which runs in a target's image without being a part of it: --plugin.

Input: a wheel, a folder of wheels, or a folder with the sources of a wheel. Output: a Plugin. Only data is read here;
the plugin's code, and the code that builds its wheel, run in a container (testing/plugin_in_image.py).
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from toolchains.archives import wheel_file
from toolchains.config import components
from toolchains.system import foreign
from toolchains.system.errors import UsageError

GROUP = "triton.backends"
# Beside compiler.py in the package: what e2e expects of the backend.
_SETTINGS = "foundry.toml"
_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
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

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or not _PACKAGE.fullmatch(self.package):
            raise _error(self.option, f"its entry point {self.name!r} = {self.package!r} names no backend and package")
        if self.name in components.names():
            raise UsageError(
                f"--plugin={self.option} has the name of a target: {self.name}",
                why="an image may have the target's own backend, and it could run in place of the plugin",
                next="give the backend another name, in its entry point and in get_current_target of its driver.py",
            )
        try:
            settings = tomllib.loads(self.settings)
        except tomllib.TOMLDecodeError as error:
            raise _error(self.option, f"its {_SETTINGS} cannot be read: {error}") from error
        refused = settings.get("refused", {})
        is_known = settings.keys() <= {"refused"} and isinstance(refused, dict)
        if not is_known or not all(map(_is_pattern, refused.values())):
            why = f"its {_SETTINGS} may have one table, [refused], of types and regular expressions"
            raise _error(self.option, why)

    @classmethod
    def read(cls, option: str) -> Plugin | None:
        """Return the plugin that --plugin names; None if it is empty.

        Raises:
            UsageError: it names no plugin, or several; or the plugin has the name of a target.
            UnsafeArchiveError: a wheel is damaged, or has a path that leaves its folder.
        """
        if not option:
            return None
        path = Path(option)
        if (path / "pyproject.toml").is_file():
            return cls._of_sources(option, path)
        wheels = tuple(sorted(path.glob("*.whl"))) if path.is_dir() else (path,)
        if not wheels:
            raise _error(option, "it has neither pyproject.toml nor a file *.whl")
        if not path.exists() or wheels[0].suffix != ".whl":
            raise _error(option, "there is no such wheel or folder")
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
        return cls(option, name, package, distribution, described, wheels, None, settings)

    @classmethod
    def _of_sources(cls, option: str, folder: Path) -> Plugin:
        try:
            project = tomllib.loads(foreign.read_file(folder / "pyproject.toml", _TEXT).decode())["project"]
            ((name, package),) = project["entry-points"][GROUP].items()
            distribution = str(project["name"])
            places = [top / package.replace(".", "/") / _SETTINGS for top in (folder / "src", folder)]
        except (UnicodeDecodeError, LookupError, ValueError, TypeError, AttributeError) as error:
            needed = f'a name, and one backend below [project.entry-points."{GROUP}"]'
            raise _error(option, f"its pyproject.toml must have {needed}: {error!r}") from error
        settings = next((foreign.read_file(place, _TEXT) for place in places if place.is_file()), b"")
        described = f"the sources in {folder.resolve()}"
        return cls(option, name, package, distribution, described, (), folder, settings.decode(errors="replace"))


def _of_wheel(wheel: Path) -> list[tuple[str, str, str]]:
    """Return the backends of a wheel: name, package, and the text of its settings."""
    with foreign.open_file(wheel, _WHEEL) as file, wheel_file.opened(file) as archive:
        entries = {entry.filename for entry in wheel_file.wheel_files(archive)}

        def text(name: str) -> str:
            with archive.open(name) as packed:
                return foreign.read(packed, _TEXT, name).decode(errors="replace")

        found = []
        for path in (path for path in entries if path.endswith(".dist-info/entry_points.txt")):
            try:
                backends = backends_of(text(path))
            except ValueError as error:
                raise _error(wheel.name, f"its entry points cannot be read: {error}") from error
            for name, package in backends.items():
                settings = f"{package.replace('.', '/')}/{_SETTINGS}"
                found.append((name, package, text(settings) if settings in entries else ""))
        return found


def backends_of(entry_points: str) -> dict[str, str]:
    """Return the backends in a file of entry points: the package by name.

    Raises:
        ValueError: the file cannot be read.
    """
    read = ConfigParser(delimiters=("=",), interpolation=None)
    # Names of entry points differ by case.
    read.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        read.read_string(entry_points)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    return {name: package.strip() for name, package in (read.items(GROUP) if read.has_section(GROUP) else ())}


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
