"""Show what a verb found: tables for people, or, with --json, one JSON document on stdout for scripts.

A verb collects what it found in a ShownDocument, whose fields are the documented schema, and calls show(). Without
--json, the document prints itself. With --json, everything that is printed goes to stderr, also by child processes, and
the document is written to stdout when the verb ends, even if the verb fails; `error` then says why.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Literal

import msgspec

from toolchains.system.console import Console
from toolchains.system.terminal import make_console


class Failure(msgspec.Struct, frozen=True):
    """Why a command failed: what it prints on stderr.

    Attributes:
        what: what failed, one sentence.
        status: the exit status, which tells kinds of failures apart.
        why: the cause; "" if it is not known. It may have several lines.
        next: a command to type or a thing to do, or "".
    """

    what: str
    status: int
    why: str = ""
    next: str = ""


class ShownDocument(msgspec.Struct, kw_only=True, tag_field="document", tag="result"):
    """The document of a command that has no table, or that failed before it had one.

    Attributes:
        version: of this document's schema. New fields do not change it; it is raised if a field changes or goes.
        error: why the command failed; null if it did not. The exit status is the same as without --json.
    """

    version: Literal[1] = 1
    error: Failure | None = None

    def render(self, console: Console) -> None:
        """Print it for people."""


# The document of this process's verb, if --json was given.
_kept: list[ShownDocument] | None = None


def is_asked() -> bool:
    """Return whether --json was given."""
    return _kept is not None


def show(shown: ShownDocument, console: Console | None = None) -> None:
    """Print a document for people; with --json, keep it in place of an earlier one."""
    if _kept is None:
        shown.render(console or make_console())
    else:
        _kept[:] = [shown]


@contextmanager
def written_to_stdout(failure: Callable[[BaseException], Failure | None]) -> Iterator[None]:
    """Write the document that is shown inside to stdout at the end, and everything else that is printed to stderr.

    Args:
        failure: returns why an exception ends the verb. If it returns None, no document is written: the exception is an
            error in our code.
    """
    global _kept
    _kept, ended, known = [], None, True
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    except SystemExit:
        # The verb has a status of its own, and has shown its document.
        raise
    except BaseException as error:
        ended = failure(error)
        known = ended is not None
        raise
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        shown, _kept = [*_kept, ShownDocument()][0], None
        if known:
            print(as_json(msgspec.structs.replace(shown, error=ended)), flush=True)


def as_json(document: ShownDocument) -> str:
    """Return a document as JSON in ASCII, so that nothing in it controls a terminal.

    What is no number in JSON, NaN and the infinities, becomes null; half of a pair of surrogates, a question mark.
    """
    text = json.dumps(msgspec.to_builtins(document), ensure_ascii=False).encode(errors="replace")
    return json.dumps(json.loads(text, parse_constant=lambda _: None), indent=1)
