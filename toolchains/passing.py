"""Words of the command line that are for a user's script: invoke must not read them as options of the verb.

invoke loads tasks.py after it has read its own options and before it reads those of verbs. In between, take() removes
the words that follow the script's name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from invoke.main import program

_passed: list[str] = []


def words() -> list[str]:
    """Return the words that follow the script's name on the command line of this process."""
    return list(_passed)


def take(verb: Callable[..., None], positional: int) -> None:
    """Remove what follows a verb's last positional word from the words that invoke has yet to read.

    Does nothing if the command line calls another verb.

    Args:
        positional: how many positional words the verb takes.
    """
    core = getattr(program, "core", None)
    if core is None or verb.__name__ not in core.unparsed[:2]:
        return
    start = core.unparsed.index(verb.__name__) + 1
    own, rest = cut(core.unparsed[start:], verb, positional)
    # invoke joins what follows a "--" into one text.
    _, mark, *behind = [*program.argv[program.argv.index("--") - 1 :]] if "--" in program.argv else ["", ""]
    _passed[:] = [*rest, *([mark] if rest and mark else []), *behind]
    core.unparsed[start:] = own


def cut(given: Sequence[str], verb: Callable[..., None], positional: int) -> tuple[list[str], list[str]]:
    """Return the words that are a verb's own, up to its last positional one, and the words after them.

    An option that is not a switch takes the next word as its value, unless it has a sign: --with=PATH.
    """
    parameters = inspect.signature(verb).parameters.values()
    switches = {f"--{each.name.replace('_', '-')}" for each in parameters if isinstance(each.default, bool)}
    place = 0
    while place < len(given) and positional:
        word = given[place]
        if not word.startswith("-"):
            positional -= 1
        elif "=" not in word and word not in {*switches, "--help", "-h"}:
            place += 1
        place += 1
    return list(given[:place]), list(given[place:])
