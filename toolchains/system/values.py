"""Read option values that are more than text: numbers, lists of numbers, digests. Wrong values are refused.

Input: the option's name and the words of a command line. Output: the value. Verbs read all values before any other
step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolchains.system.errors import UsageError


def read_number(option: str, text: str, *, example: int, default: int = 0, most: int | None = None) -> int:
    """Return the positive number that an option gives.

    Args:
        option: its name, such as "--jobs".
        text: its value; empty if the option is not given.
        example: a valid value.
        default: returned if the option is not given.
        most: the largest accepted number; None for no limit.

    Raises:
        UsageError: it is not a number from 1 to `most`.
    """
    return _number(option, text, text, 1, most, str(example)) if text else default


def read_size(option: str, text: str, *, example: str, default: int) -> int:
    """Return the bytes that an option's value names, such as "10GB" or "500 MiB"; the default if it is empty.

    Raises:
        UsageError: it is no size, or zero.
    """
    match = re.fullmatch(r"([0-9]{1,6})(?: ?([KMGT])(i?)B?)?", text, re.IGNORECASE)
    if not text:
        return default
    if match is None or int(match[1]) == 0:
        raise UsageError(f"{option}={text} is no size", next=f"for example {option}={example}")
    base = 1024 if match[3] else 1000
    size: int = int(match[1]) * base ** " KMGT".index((match[2] or " ").upper())
    return size


def read_numbers(option: str, text: str, *, least: int, example: str, count: int | None = None) -> tuple[int, ...]:
    """Return the numbers, separated by commas, that an option gives; none if its value is empty.

    Args:
        option, text: as for read_number.
        least: the smallest accepted number.
        example: a valid value.
        count: the maximum number of numbers; None for no limit.

    Raises:
        UsageError: one of them is not such a number, or there are too many.
    """
    words = text.split(",") if text else []
    if count is not None and len(words) > count:
        raise UsageError(
            f"{option}={text} has {len(words)} numbers", why=f"at most {count}", next=f"{option}={example}"
        )
    return tuple(_number(option, text, word, least, None, example) for word in words)


def read_sha256(option: str, text: str) -> str:
    """Return the sha256 that an option gives, in lower case; "" if its value is empty.

    Raises:
        UsageError: it is not a sha256.
    """
    if text and not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise UsageError(f"{option}={text} is not a sha256", next=f"{option} with its 64 hexadecimal digits")
    return text.lower()


def read_pair(option: str, text: str, *, example: str) -> tuple[str, str]:
    """Return the name and the value that an option gives as NAME=VALUE.

    Raises:
        UsageError: it does not have that form.
    """
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise UsageError(f"{option}={text} is not of the form NAME=VALUE", next=f"{option}={example}")
    return name, value


def read_indexed(option: str, texts: Sequence[str], *, example: str) -> tuple[tuple[int, str], ...]:
    """Return the index of a parameter, from 0, and the value for each IDX=VALUE that an option gives.

    Raises:
        UsageError: one of them does not have that form.
    """
    pairs = []
    for text in texts:
        index, sign, value = text.partition("=")
        if not (sign and value and _is_number(index)):
            raise UsageError(f"{option}={text} is not of the form IDX=VALUE", next=f"{option}={example}")
        pairs.append((int(index), value))
    return tuple(pairs)


def _number(option: str, text: str, word: str, least: int, most: int | None, example: str) -> int:
    if _is_number(word) and int(word) >= least and (most is None or int(word) <= most):
        return int(word)
    what = f"{option}={text}" + (f": {word!r}" if word != text else "")
    end = f" to {most}" if most else ""
    raise UsageError(f"{what} is not a number from {least}{end}", next=f"{option}={example}")


def _is_number(word: str) -> bool:
    # str.isdecimal alone accepts digits of other scripts.
    return word.isascii() and word.isdecimal()
