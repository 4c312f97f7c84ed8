"""What we know of each vendor's SDK: a file under toolchains/sdks."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolchains.system import paths
from toolchains.system.errors import PinError


@dataclass(frozen=True)
class Kind:
    """A vendor's SDK.

    Attributes:
        key: the file under toolchains/sdks.
        name: for people.
        replaces: the recipe that it stands in for.
        home: where it lies in an image; with {version} in it, a version must be known.
        needs: the files that must be in it.
        host: its folders whose programs and libraries run on the host; what is directly in them.
        folders: names that its topmost folder may have, with {version}.
        search: its folders that LD_LIBRARY_PATH names in an image.
        defines: by folder, functions of which a library in there must define one.
        environment: by variable, the file of the SDK that it may name; "" where it names the folder of all of it.
    """

    key: str
    name: str
    replaces: str
    home: str
    needs: tuple[str, ...]
    host: tuple[str, ...]
    folders: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    defines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, key: str) -> Kind:
        """Read toolchains/sdks/<key>.toml.

        Raises:
            PinError: there is no such file, or it is malformed.
        """
        path = file(key)
        try:
            data = tomllib.loads(path.read_text())
            for name, value in data.items():
                if isinstance(value, list):
                    data[name] = tuple(value)
            data["defines"] = {folder: tuple(names) for folder, names in data.get("defines", {}).items()}
            return cls(key, **data)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PinError(f"not the description of an SDK: {path}", why=repr(error), next=f"correct {path}") from error

    @property
    def versioned(self) -> bool:
        """Whether its version must be known."""
        return "{version}" in self.home


def file(key: str) -> Path:
    """Where the description of a vendor's SDK is."""
    return paths.SDKS / f"{key}.toml"
