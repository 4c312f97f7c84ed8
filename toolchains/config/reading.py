"""Read a TOML file strictly into an object."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import msgspec

from toolchains.system.errors import PinError
from toolchains.system.paths import ROOT

# Types that many keys have: non-empty text, a path in a container, a git commit.
Text = Annotated[str, msgspec.Meta(min_length=1)]
AbsolutePath = Annotated[str, msgspec.Meta(pattern="^/[^/]", description="an absolute path")]
Commit = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$", description="40 hexadecimal digits")]
OptionalCommit = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{40})?$", description="40 hexadecimal digits")]

_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`")
_WHERE = re.compile(r" - at `(.*)`$", re.DOTALL)


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The allowed keys of a TOML file, or of one of its tables. Keys are the fields' names with hyphens."""


def read_table(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        PinError: there is no such file, or it is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PinError(
            f"there is no file {display_path(path)}",
            next="write it, or remove the name where it is used in toolchains/targets",
        ) from None
    except (ValueError, RecursionError) as error:
        raise PinError(
            f"{display_path(path)} is not TOML", why=str(error), next=f"correct {display_path(path)}"
        ) from error


def convert(table: dict[str, Any], kind: Any, path: Path, *, below: str = "", **known: str) -> Any:
    """Convert a table to an object.

    Args:
        kind: a class derived from File, or a union of such classes.
        path: the file that the table is from, for errors.
        below: the path of the table in the file: "profile.one".
        known: fields that are not keys of the file, such as its name.

    Raises:
        PinError: the table does not match `kind`; the error has the file, the key and what was expected.
    """
    for key in known:
        if key in table:
            raise wrong(path, _path(below, f"$.{key}"), "unknown key", "its value is the name of the file")
    try:
        result = msgspec.convert({**table, **known}, kind)
    except msgspec.ValidationError as error:
        message = str(error)
        where = _WHERE.search(message)
        # In the file, the keys of a source are in the profile's own table.
        key = _path(below, (where.group(1) if where else "$").replace("$.source", "$"))
        message = _WHERE.sub("", message)
        unknown = _UNKNOWN.fullmatch(message)
        if not unknown:
            raise wrong(path, key, message) from None
        # The keys of the class; of a union, those of the member that the table's tag selects.
        info = msgspec.inspect.type_info(kind)
        members = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
        structs = [member for member in members if isinstance(member, msgspec.inspect.StructType)]
        named = [member for member in structs if member.tag_field is None or table.get(member.tag_field) == member.tag]
        names = [field.encode_name for member in named for field in member.fields if field.encode_name != "name"]
        near = get_close_matches(unknown.group(1), names, 1)
        why = f"did you mean {near[0]}?" if near else f"the keys are: {', '.join(names)}" if names else ""
        raise wrong(path, _path(key, f"$.{unknown.group(1)}"), "unknown key", why) from None
    return result


def wrong(path: Path, key: str, what: str, why: str = "") -> PinError:
    """Return the error for a value in a file."""
    where = f"{display_path(path)}, {key}" if key else display_path(path)
    return PinError(f"{where}: {what[0].lower()}{what[1:]}", why=why, next=f"correct {display_path(path)}")


def display_path(path: Path) -> str:
    """Return a path as messages show it: relative to the project if it is inside."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _path(below: str, key: str) -> str:
    return ".".join(part for part in (below, key.removeprefix("$").removeprefix(".")) if part)
