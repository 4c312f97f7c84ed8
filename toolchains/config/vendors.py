"""What we know of each vendor's SDK: a file under toolchains/sdks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolchains.config.reading import File, Text, convert, read_table
from toolchains.system import paths


class Kind(File, frozen=True):
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
    name: Text
    replaces: Text
    home: Text
    needs: tuple[Text, ...]
    host: tuple[Text, ...]
    folders: tuple[Text, ...] = ()
    search: tuple[Text, ...] = ()
    defines: Mapping[str, tuple[Text, ...]] = {}
    environment: Mapping[str, str] = {}

    @classmethod
    def read(cls, key: str) -> Kind:
        """Read toolchains/sdks/<key>.toml.

        Raises:
            PinError: there is no such file, or it says what an SDK does not have.
        """
        path = file(key)
        kind: Kind = convert(read_table(path), cls, path, key=key)
        return kind

    @property
    def versioned(self) -> bool:
        """Whether its version must be known."""
        return "{version}" in self.home


def file(key: str) -> Path:
    """Where the description of a vendor's SDK is."""
    return paths.SDKS / f"{key}.toml"
