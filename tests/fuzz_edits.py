"""Damage an input as somebody would who knows its format: numbers, names and texts change, and stay in their fields.

A fuzzer that moves all bytes behind an edit, or replaces a quoted text by one without quotes, tests little besides the
first check of a parser.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from random import Random
from typing import Literal

# Numbers that no size, count or mode has. -60 and -512 are sizes that lead back to the header in front of them, in an
# ar and in a tar; the last one is -512 as GNU writes numbers that octal digits cannot express.
NUMBERS = (
    b"-1",
    b"-60",
    b"-512",
    b"0",
    *(b"9" * digits for digits in (8, 19, 400, 5000)),
    b"1e300",
    b"1e999",
    b"NaN",
    b"\xff" * 10 + b"\xfe\x00",
)
# What may lead a name out of its folder.
PATHS = (b"../", b"./../", b"../../", b"./../../", b"/", b"\\")
# Numbers in tables of binary formats: counts, sizes, offsets.
WORDS = tuple(struct.pack("<I", word) for word in (0, 1, 1 << 16, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFF0))
# What hostile files have in place of what is expected.
TOKENS = (
    b"",
    b"\0",
    *PATHS,
    b"\n",
    b" ",
    b"\xff\xfe",
    b"\\ud800",
    b"<script>",
    b"<b onload=x>",
    b"</script><x-of-edits>",
    b"\xff" * 8,
    bytes(8),
    b"\x80" + bytes(7),
    *WORDS,
    *(opening * 4000 for opening in (b"[", b"(", b"<", b'{"a":')),
    *NUMBERS,
)
# What is edited: that many bytes, which may then be more or fewer; as many bytes as are put there; a word; a line;
# quoted text; or a field that keeps its size: digits with the blanks or zeros behind them, a name with zeros behind
# it, the whole or its beginning, four bytes of a table that are not zeros.
Kind = int | Literal["over", "word", "line", "text", "number", "field", "prefix", "binary"]
_NAMED: tuple[Kind, ...] = ("over", "word", "line", "text", "number", "field", "prefix", "binary")
KINDS: tuple[Kind, ...] = (*_NAMED, 0, 1, 2, 4, 8, 60, 512, 2**16)
# With a letter. A long text of these bytes is read twice and not for each of its bytes.
_NAME = re.compile(rb"(?<![-+.\w/])(?=[-+.\d_/]*[A-Za-z])[-+.\w/]++\0+")
_PLACES = {
    "word": re.compile(rb'"[^"]*"|[-+.\w]+'),
    "line": re.compile(rb"[^\n]*\n"),
    "text": re.compile(rb'(?<=")[^"]*(?=")'),
    "number": re.compile(rb"\d+[ \0]*"),
    "field": _NAME,
    "prefix": _NAME,
    # Words of zeros are read with the one behind them, so that each begins at a multiple of four.
    "binary": re.compile(rb"(?:\0{4})*(.{4})", re.DOTALL),
}
Edit = tuple[int, Kind, bytes | None]


def edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Return an input after edits: a place, what is edited there, and what replaces it. None is itself, twice.

    A place is a byte, or counts words, texts and fields; it may be larger than there are.
    """
    for place, kind, new in edits:
        start = place % (len(data) + 1)
        if kind == "over":
            end = start + len(new or b"")
        elif isinstance(kind, int):
            end = start + kind
        else:
            spans = [found.span(found.re.groups) for found in _PLACES[kind].finditer(data)] or [(start, start)]
            start, end = spans[place % len(spans)]
        old = data[start:end]
        put = 2 * old if new is None else new
        if kind in ("number", "field", "prefix", "binary"):
            put += old if kind == "prefix" else b""
            put = put[: len(old)].ljust(len(old), b" " if old.endswith(b" ") else b"\0")
        data = data[:start] + put + data[end:]
    return data


def drawn(random: Random) -> list[Edit]:
    """Return edits at random, one to four, most often one, and most often such that keep a field's size."""
    edits: list[Edit] = []
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        kind = random.choice(random.choice((_NAMED, _NAMED, KINDS)))
        some = random.choice({"number": NUMBERS, "prefix": PATHS, "binary": WORDS}.get(str(kind), TOKENS))
        new = random.choice((some, some, random.randbytes(random.randrange(9)), None))
        # Formats have their tables at the beginning, more often than not.
        edits.append((random.randrange(random.choice((128, 1024, 2**17))), kind, new))
    return edits
