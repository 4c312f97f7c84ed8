"""Read the descriptions of the vendors' SDKs: one TOML file each in toolchains/sdks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolchains.config.reading import File, Text, convert, read_table
from toolchains.system import paths


class VendorSdk(File, frozen=True):
    """A vendor's SDK.

    Attributes:
        key: the name of the file in toolchains/sdks.
        name: the SDK's name in messages.
        replaces: the recipe that the SDK replaces.
        home: the folder of the SDK in an image. If it has {version} in it, the version must be known.
        needs: the files that the SDK must have.
        host: folders of the SDK whose programs and libraries run on the host; subfolders are not looked at.
        folders: the names that the SDK's topmost folder may have, with {version}.
        search: folders of the SDK that LD_LIBRARY_PATH has in an image.
        defines: functions by folder. A library in the folder must define at least one of them.
        environment: variables that may name the SDK, each with the file that it names; "" for the whole folder.
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
    def read(cls, key: str) -> VendorSdk:
        """Read toolchains/sdks/<key>.toml.

        Raises:
            PinError: there is no such file, or it has a key or a value that an SDK cannot have.
        """
        path = file(key)
        kind: VendorSdk = convert(read_table(path), cls, path, key=key)
        return kind

    @property
    def versioned(self) -> bool:
        """Return whether the SDK's version must be known."""
        return "{version}" in self.home


def file(key: str) -> Path:
    """Return the path of the description of a vendor's SDK."""
    return paths.SDKS / f"{key}.toml"
