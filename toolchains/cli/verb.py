"""Turn functions in tasks.py into verbs: invoke tasks with errors for people and exit statuses for CI scripts."""

from __future__ import annotations

import errno
import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from invoke.main import program
from invoke.tasks import task

from toolchains.cli import options
from toolchains.cli.commandline import Foundry, fail, is_output_closed
from toolchains.system import document, paths, scratch, space
from toolchains.system.document import Failure
from toolchains.system.errors import FileError, FoundryError

# Shells report a process that signal N killed with this status plus N. A verb that cleaned up first does the same.
_SIGNALLED = 128

# invoke loads tasks.py, and so this module, after it has read its own options and before it reads ours.
program.__class__ = Foundry


class Stopped(BaseException):
    """The process received SIGTERM, or SIGHUP when its terminal closed. KeyboardInterrupt is for Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def verb(
    *,
    group: str = "",
    actions: Sequence[str] = (),
    nameless: Sequence[str] = (),
    wordless: int = 0,
    optional: Sequence[str] = (),
    iterable: Sequence[str] = (),
    passing: bool = False,
    request: Sequence[str] = (),
    choose: Callable[[str], str] | None = None,
    built: bool = False,
    json: bool = False,
) -> Callable[[Callable[..., None]], Any]:
    """Turn a function into a task; a FoundryError is printed without a traceback and determines the exit status.

    On Ctrl-C, SIGTERM or SIGHUP, the verb first leaves its with statements, which end containers and child processes.
    Parameters without a default value, except those that may be given several times, need no name on the command line.

    Args:
        group: its group in the overview; see commandline.GROUPS.
        actions: the allowed values of its argument `action`; commandline.py refuses other values.
        nameless: the actions without a further word; the argument after `action` is then "".
        wordless: how many of its last words may be missing, or be given as options; such an argument is then "".
        optional: names of options that may be given with or without a value.
        iterable: names of options that may be given several times.
        passing: whether all words after the last positional one are for a user's script; see commandline.script_words.
        request: options of options.py. The verb has these options and a target, and its function gets the resulting
            Request as the parameter `request`.
        choose: returns the name of the target for the value of --target, which may be empty; without `choose`, or if
            all words may be missing, the target is the verb's first word.
        built: see Request.read.
        json: whether the verb has --json. The Documents that it shows are the classes in the module of its name; see
            system/document.py and cli/scripts.py.
    """

    def make(function: Callable[..., None]) -> Any:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> None:
            as_json = json and kwargs.pop("json")
            try:
                with document.written_to_stdout(_failure) if as_json else nullcontext():
                    _listen()
                    for leftover in scratch.sweep(paths.temporary()):
                        what = (
                            f"{leftover.size / 1e6:.0f} MB that a killed run left ({leftover.owner}): {leftover.path}"
                        )
                        print(f"removed {what}", file=sys.stderr)
                    if request:
                        # Imported late: help and errors about words need none of the modules that it imports.
                        from toolchains.assembly.request import Request

                        words = {name: kwargs.pop(name) for name in request}
                        target = kwargs.pop("target")
                        kwargs["request"] = Request.read(choose(target) if choose else target, built=built, **words)
                    function(*args, **kwargs)
            except BaseException as error:
                failed = _failure(error)
                if failed is None:
                    raise
                lines = FoundryError(failed.what, why=failed.why, next=failed.next)
                fail(str(lines) if isinstance(error, KeyboardInterrupt | Stopped) else f"error: {lines}", failed.status)

        signature = inspect.signature(function)
        if request:
            signature = options.signature(signature, request, needs_target=choose is None or wordless > 1)
        if json:
            signature = options.with_json(signature)
        if request or json:
            guarded.__doc__ = options.described(function.__doc__ or "", request, json=json)
        some = [*optional, *(option for option in request if options.OPTIONS[option].default is None)]
        many = [*iterable, *(option for option in request if options.OPTIONS[option].several)]
        _, *parameters = signature.parameters.values()
        positional = [
            parameter.name
            for parameter in parameters
            if parameter.default is parameter.empty and parameter.name not in many
        ]
        passed = len(positional) if passing else 0
        vars(guarded).update(__signature__=signature, group=group, actions=actions, nameless=nameless, passing=passed)
        vars(guarded).update(wordless=wordless, json=json)
        return task(optional=some, iterable=many, positional=positional)(guarded)

    return make


def _failure(error: BaseException) -> Failure | None:
    """Return what is printed if an exception ends a verb; None if it is no failure of the verb."""
    match error:
        case KeyboardInterrupt():
            return Failure("interrupted", _SIGNALLED + signal.SIGINT)
        case Stopped():
            return Failure(f"ended by {error}", _SIGNALLED + error.number)
        case FoundryError():
            return Failure(error.what, error.exit_code, error.why, error.next)
        case BrokenPipeError() if is_output_closed():
            return None
        case OSError():
            return _failure(explain_os_error(error))
        case MemoryError():
            return _failure(explain_os_error(OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))))
    return None


def explain_os_error(error: OSError) -> FileError:
    """Describe an error of the operating system: which file, why, and what the user can do."""
    # If a copy failed, the second name is the destination.
    name = error.filename2 or error.filename
    what = f"cannot use {name}" if name else "cannot read or write a file"
    why = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        # The error of a failed write does not name the file.
        return space.error(what, why, [Path(name)] if name else [])
    if error.errno == errno.ENOMEM:
        what = what if name else "there is not enough memory"
        return FileError(what, why=why, next="free memory; if TMPDIR is in memory, set it to a folder on a disk")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return FileError(what, why=why, next="make it writable, or set FOUNDRY_CACHE and TMPDIR to folders that are")
    return FileError(what, why=why, next="./foundry doctor")


def _listen() -> None:
    """Turn SIGTERM and SIGHUP into Stopped; ignore a second one, so that it does not interrupt the cleaning up."""

    def stop(number: int, _: object) -> None:
        for caught in (signal.SIGTERM, signal.SIGHUP):
            # Not SIG_IGN, because children would inherit it.
            signal.signal(caught, lambda *_: None)
        raise Stopped(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        # Keep SIGHUP ignored if nohup ignores it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
