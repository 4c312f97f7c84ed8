"""The terminal, as all modules print to it: text is shown as it is.

Names of files, tests, packages and images come from users, engines and archives. rich would read `[red]x[/]` in such a
name as a style, and `:x:` as an emoji; a lone `[/]` would end the verb. What is to have a style is a rich.text.Text.
"""

from __future__ import annotations

from typing import Any

import rich.console
from rich.text import Text


class Console(rich.console.Console):  # noqa: TID251 - the one place
    """rich's console without its markup, in tables and titles too; for the options, see there."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def notice(self, text: str) -> None:
        """Print a text whose beginning, up to the first colon, is yellow."""
        head, colon, rest = text.partition(":")
        self.print(Text.assemble((head + colon, "yellow"), rest), soft_wrap=True)
