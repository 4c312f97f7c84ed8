"""Keep the words of the command line that are for a user's script, so that invoke does not read them as options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

# What stands in the place of a script: a module, or a text of Python. invoke would take the word for an option, so it
# gets another one.
_PROGRAMS = {"-m": "python -m", "-c": "python -c"}
_passed: list[str] = []


def words() -> list[str]:
    """Return the words that follow the script's name on the command line of this process."""
    return list(_passed)


def program(script: str) -> str:
    """Return -m or -c if one of them stands in the place of the script; "" if there is a script."""
    return next((word for word, stands in _PROGRAMS.items() if script == stands), "")


def keep_script_words(
    given: Sequence[str], verb: Callable[..., None], positional: int, argv: Sequence[str]
) -> list[str]:
    """Store the words after a verb's last positional word for words(); return the words up to it.

    Args:
        given: the words after the verb.
        positional: number of positional words that the verb takes.
        argv: the whole command line. It is needed because invoke joins the words after a "--" into one text.
    """
    own, rest = split_words(given, verb, positional)
    behind = list(argv[argv.index("--") + 1 :]) if "--" in argv else []
    # A "--" directly after the script is only a separator.
    _passed[:] = [*rest, *(["--"] if rest and behind else []), *behind]
    return own


def split_words(given: Sequence[str], verb: Callable[..., None], positional: int) -> tuple[list[str], list[str]]:
    """Return a verb's own words, up to its last positional one, and the words after them.

    An option that is not a switch takes the next word as its value, unless it has a sign: --with=PATH. In the place of
    the last positional word, -m and -c are this word, as in Python's command line, and the module or the code follows.
    """
    parameters = inspect.signature(verb).parameters.values()
    switches = {f"--{each.name.replace('_', '-')}" for each in parameters if isinstance(each.default, bool)}
    place = 0
    while place < len(given) and positional:
        word = given[place]
        if positional == 1 and word in _PROGRAMS:
            return [*given[:place], _PROGRAMS[word]], list(given[place + 1 :])
        if not word.startswith("-"):
            positional -= 1
        elif "=" not in word and word not in {*switches, "--help", "-h"}:
            place += 1
        place += 1
    return list(given[:place]), list(given[place:])
