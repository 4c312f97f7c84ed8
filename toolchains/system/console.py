"""The terminal, as all modules print to it: text is shown as it is, and moves and colours nothing.

Names of files, tests, packages and images come from users, engines, registries, containers and archives. rich would
read `[red]x[/]` in such a name as a style, and `:x:` as an emoji; a lone `[/]` would end the verb. What is to have a
style is a rich.text.Text. A terminal would obey control characters: it would show another text than the one that is
there, get another title, or write to the clipboard. So none is passed on, neither by Console nor by print().
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import IO, Any, TextIO

import rich.console
from rich.segment import Segment
from rich.text import Text

# Control characters, those that end a line elsewhere or turn the direction of writing, and halves of surrogates.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, kept: str = "\n\t") -> str:
    """Return a text in which control characters are written as Python writes them, such as \\x1b.

    Args:
        kept: the control characters that stay.
    """
    return _CONTROL.sub(lambda found: found[0] if found[0] in kept else ascii(found[0])[1:-1], text)


class Console(rich.console.Console):  # noqa: TID251 - the one place
    """rich's console without its markup, in tables and titles too; for the options, see there."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    @property
    def file(self) -> IO[str]:
        """The stream that rich writes to: behind PrintableStream, and behind the stream of a progress bar."""
        stream = super().file
        while inner := getattr(stream, "rich_proxied_file", None):
            stream = inner
        return stream

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(self, *args: Any, **options: Any) -> Iterable[Segment]:
        """Yield what is written: text, and rich's own control sequences."""
        for segment in super().render(*args, **options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))

    def notice(self, text: str) -> None:
        """Print a text whose beginning, up to the first colon, is yellow."""
        head, colon, rest = text.partition(":")
        self.print(Text.assemble((head + colon, "yellow"), rest), soft_wrap=True)


class PrintableStream:
    """A stream for print(), instead of sys.stdout or sys.stderr; its `buffer` is that of the stream.

    Args:
        stream: rich writes to it directly, because Console.render has looked at the text.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write a text without control characters."""
        return self.rich_proxied_file.write(printable(text.replace("\r\n", "\n")))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts without control characters."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)
