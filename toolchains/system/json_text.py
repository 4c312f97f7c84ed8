"""Read JSON that another program wrote, as values of the types that our code needs.

It comes from containers, in which anything may run, from engines, and from folders that users may edit. A type has only
the fields that are read. json is the parser, because Python's programs write NaN and Infinity, which msgspec refuses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import msgspec

from toolchains.system import foreign
from toolchains.system.errors import FileError

T = TypeVar("T")


def parse(text: str | bytes, kind: type[T]) -> T:
    """Return the value of a text.

    Raises:
        ValueError: it is no JSON, or has another shape; says what, and where.
    """
    try:
        # Half of a pair of surrogates cannot be written to a file; it becomes a question mark.
        plain = json.dumps(json.loads(text), ensure_ascii=False).encode(errors="replace")
        return msgspec.convert(json.loads(plain), kind)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read(path: Path, kind: type[T]) -> T:
    """Return the value in a file.

    Raises:
        FileError: it is damaged, too large, or no plain file.
    """
    try:
        return parse(foreign.read_file(path), kind)
    except ValueError as error:
        raise FileError(f"{path} is damaged", why=str(error), next="run the verb that wrote it again") from error
