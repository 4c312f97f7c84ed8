"""Define one class for each kind of failure: what failed, why, and the next command to type.

Each class has its own exit status, so that a CI script can tell "the network is down" from "a hash is wrong" without
reading text. docs/reference.md lists them (toolchains/cli/reference.py).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class FoundryError(Exception):
    """A failure of another kind than those below.

    Args:
        what: the thing that failed, one sentence.
        why: the cause, if it is known; may have several lines.
        next: a command to type or a thing to do.
    """

    exit_code = 1

    def __init__(self, what: str, *, why: str = "", next: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next = next

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  why:  {self.why}".replace("\n", "\n        "))
        if self.next:
            lines.append(f"  next: {self.next}")
        return "\n".join(lines)


class UsageError(FoundryError):
    """A verb was called with something that does not exist, such as an unknown target, version or option."""

    exit_code = 2


# How alike two words are that begin with different letters and are still near, as difflib says.
_NEAR = 0.7


def nearest(word: str, known: Sequence[str]) -> str:
    """Return the known word that is nearest to a mistyped one, or "" if none is near. Leading dashes are ignored.

    A word with another first letter must be nearer: people seldom mistype the first one.
    """
    bare, word = {candidate.lstrip("-"): candidate for candidate in known}, word.lstrip("-")
    near = [
        *difflib.get_close_matches(word, bare, 1, _NEAR),
        *(candidate for candidate in difflib.get_close_matches(word, bare) if candidate[:1] == word[:1]),
    ]
    return bare[near[0]] if near else ""


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return what follows a mistyped word in a message: "; did you mean spirv?"."""
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


class CommandError(FoundryError):
    """A child process failed. The message has the last lines of its output."""

    exit_code = 3


class MissingToolError(FoundryError):
    """A program that this machine must have is not installed."""

    exit_code = 4


class FileError(FoundryError):
    """A file cannot be read or written, for example because of its permissions or a full disk."""

    exit_code = 5


class PinError(FoundryError):
    """A pin file, a target file or the lock is malformed, or they do not agree."""

    exit_code = 10


class HashMismatchError(FoundryError):
    """A file does not have the sha256 that the lock gives."""

    exit_code = 11


class TruncatedError(FoundryError):
    """A file is shorter than the size in the lock."""

    exit_code = 12


class UnsafeArchiveError(FoundryError):
    """An archive entry would be written outside the folder it is unpacked into."""

    exit_code = 13


class OfflineError(FoundryError):
    """A file is needed that the store does not have, and the network may not be used."""

    exit_code = 14


class GoneError(FoundryError):
    """The archive no longer has the locked version."""

    exit_code = 15


class FetchError(FoundryError):
    """The network failed, or an archive, an index or a remote did not answer as expected."""

    exit_code = 16


class SdkError(FoundryError):
    """The path given is not a valid vendor SDK: files are missing, it is for another machine, or it has no version."""

    exit_code = 17


class AbsentError(FoundryError):
    """A built part, or an image, is neither here nor, if one was asked, on the remote. It can be built."""

    exit_code = 18


class PartError(FoundryError):
    """A built part in the store was changed or damaged."""

    exit_code = 19


class PatchError(FoundryError):
    """A patch series cannot be used, for another reason than 22, 23 and 24."""

    exit_code = 20


class LlvmHashError(FoundryError):
    """The LLVM commit inside a Triton is not the pinned one."""

    exit_code = 21


class MalformedPatchError(PatchError):
    """A patch or its series cannot be read: no unified diff, no header, or a missing file of the series."""

    exit_code = 22


class PatchTargetError(PatchError):
    """A patch changes a file that the tree does not have."""

    exit_code = 23


class HunkError(PatchError):
    """A hunk does not apply: the lines at its place are not the expected ones."""

    exit_code = 24


class EngineError(FoundryError):
    """No container engine answers, or it refused a request."""

    exit_code = 30


class ImageError(FoundryError):
    """An image could not be built, or is not the image that its name promises."""

    exit_code = 31


class LimitError(FoundryError):
    """A program in a container was ended because it reached its limit on time or memory."""

    exit_code = 32


class ProofError(FoundryError):
    """A kernel's result is wrong, or a kernel did not run."""

    exit_code = 40


class CheckError(FoundryError):
    """A check of this repository failed: lint, types, tests or those of a release."""

    exit_code = 41


class VerificationError(FoundryError):
    """An artifact is not what the lock, the records or the signatures say."""

    exit_code = 42


class OutdatedError(FoundryError):
    """The lock has packages for which there are security updates."""

    exit_code = 43


class HealthError(FoundryError):
    """`doctor` found something on this machine that will make a command fail."""

    exit_code = 44
