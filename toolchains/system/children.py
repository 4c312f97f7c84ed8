"""Run child processes. No other module starts one, except bootstrap.py, which runs before this can be imported.

A child gets a small, explicit environment, so that a variable of the user's shell cannot change what is built. Its
output goes to a log file; an error carries the last lines of it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchains.system import paths, scratch, space
from toolchains.system.errors import CommandError, MissingToolError
from toolchains.system.paths import LOGS

# The variables that every child inherits.
_PASSED = ("HOME", "TERM")
# The variables that a child with network access also inherits: the user's proxies, certificates and pip settings. They
# cannot change a result, because every fetched byte is checked against the lock.
_PASSED_NETWORK = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
)
_NETWORK_PREFIX = "PIP_"
# The running children of all threads.
_children: list[subprocess.Popen[str]] = []
# End what is no child of this process: containers, and builds in the engine.
_ends: list[Callable[[], None]] = []
_TAIL_LINES = 20
_ISOLATED = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--")


@dataclass(frozen=True)
class Completed:
    """The result of a child: its exit status and its output, stdout and stderr separately."""

    status: int
    stdout: str
    stderr: str


def clean_environment(extra: Mapping[str, str] | None = None, *, network: bool = False) -> dict[str, str]:
    """Return the environment of a child: only permitted variables, UTF-8, UTC, and `extra`."""
    env = {name: os.environ[name] for name in _PASSED if name in os.environ}
    if network:
        env |= connection()
        env |= {name: value for name, value in os.environ.items() if name.startswith(_NETWORK_PREFIX)}
    env |= {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    # Files that a killed child leaves in this folder are removed together with ours.
    env["TMPDIR"] = str(paths.scratch())
    env |= extra or {}
    return env


def _remove_as_subordinate(place: Path) -> None:
    """Remove what mmdebstrap made as a subordinate user, when an ordinary user ran it."""
    if helper := shutil.which("mmdebstrap"):
        run([helper, "--unshare-helper", "rm", "-rf", place], log="remove-leftovers", check=False)


# Each child gets the scratch folder of this process, so this module imports that one, and not the other way around.
scratch.remove_as_subordinate = _remove_as_subordinate


def connection() -> dict[str, str]:
    """Return the user's own proxies and certificates."""
    return {name: os.environ[name] for name in _PASSED_NETWORK if name in os.environ}


def tool(name: str, *, package: str) -> str:
    """Return the path of a program on the host; raise MissingToolError with its Debian package if it is missing."""
    path = shutil.which(name)
    if path is None:
        raise MissingToolError(f"{name} is not installed", next=f"apt-get install {package}")
    return path


def run(
    argv: Sequence[str | Path],
    *,
    log: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    network: bool = False,
    check: bool = True,
    line: Callable[[str], None] | None = None,
    isolated: bool = False,
    next: str = "",
    input: Path | None = None,
    output: Path | None = None,
    niceness: int = 0,
) -> Completed:
    """Run a program to its end.

    Args:
        argv: program and arguments; never a shell line.
        log: name of the log file under build/logs, without suffix; the file is replaced.
        env: added to the permitted variables.
        network: also pass proxies, certificates and pip settings.
        check: raise on a non-zero exit status.
        line: called with each line of stdout and stderr as it is printed, for progress.
        isolated: run in mount and PID namespaces that end with the program. Even if it is killed, the kernel unmounts
            what it mounted, and ends what it started. Requires root.
        next: the advice in a CommandError.
        input: a file for the program's stdin, which is otherwise empty.
        output: a file for the program's stdout, which is then not in the log; not together with `line`.
        niceness: how much it gives way to other programs, up to 19.

    Raises:
        CommandError: exit status not zero and `check`; carries the last lines printed and the log's path.
        FileError: the same, and the program printed that a disk is full.
        MissingToolError: the program does not exist.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{log}.log"
    words = [str(word) for word in argv]
    shown = shlex.join(words)
    child_environment = clean_environment(env, network=network)
    if shutil.which(words[0], path=child_environment["PATH"]) is None:
        raise MissingToolError(f"{words[0]} is not installed", next="./foundry doctor")
    # The words before a command that make the kernel kill it when this process is killed.
    setpriv = shutil.which("setpriv")
    dying_with_us = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
    giving_way = ["nice", f"-n{niceness}"] if niceness else []
    with contextlib.ExitStack() as files:
        child = subprocess.Popen(
            [*dying_with_us, *giving_way, *(_ISOLATED if isolated else ()), *words],
            cwd=cwd,
            env=child_environment,
            stdin=files.enter_context(input.open("rb")) if input else subprocess.DEVNULL,
            stdout=files.enter_context(output.open("wb")) if output else subprocess.PIPE,
            stderr=subprocess.PIPE if line is None else subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
            pass_fds=scratch.locks(),
        )
    _children.append(child)
    try:
        if line is None:
            printed, stderr = child.communicate()
            stdout = printed or ""
        else:
            assert child.stdout is not None
            lines = []
            for text in child.stdout:
                lines.append(text)
                line(text.rstrip("\n"))
            child.wait()
            stdout, stderr = "".join(lines), ""
    except BaseException:
        _end(child)
        raise
    finally:
        _children.remove(child)
    path.write_text(f"$ {shown}\n{stdout}{stderr}[exit status {child.returncode}]\n")
    if check and child.returncode != 0:
        tail = "\n".join((stdout + stderr).splitlines()[-_TAIL_LINES:])
        full = [text for text in (stdout + stderr).splitlines() if space.FULL.search(text)]
        if full:
            raise space.error(f"{words[0]} found the disk full", f"{full[-1]}\n(whole output: {path})")
        raise CommandError(
            f"{words[0]} failed with exit status {child.returncode}",
            why=f"{tail}\n(whole output: {path})",
            next=next or shown,
        )
    return Completed(child.returncode, stdout, stderr)


@contextlib.contextmanager
def ended_by(end: Callable[[], None]) -> Iterator[None]:
    """Let end_children() end what this thread waits for in the with statement, and what is no child.

    Args:
        end: called in another thread, perhaps several times, also before the thing exists or when it is gone; must not
            raise.
    """
    _ends.append(end)
    try:
        yield
    finally:
        _ends.remove(end)


def end_children() -> None:
    """End the children of other threads, and see ended_by; the threads see a failure."""
    for end in tuple(_ends):
        end()
    for child in tuple(_children):
        _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    """End a child and everything that it started; they are one process group.

    SIGINT comes first, because more programs clean up after it than after SIGTERM; pytest, for example, removes its
    containers. If this process was started with SIGINT ignored, as a shell starts a job in the background, so were its
    children, and it would be sent in vain.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    # If all members of a group have ended, it cannot be signalled.
    with contextlib.suppress(ProcessLookupError):
        for number in (signal.SIGINT, signal.SIGTERM)[ignored:]:
            os.killpg(child.pid, number)
            try:
                child.wait(10)
                break
            except subprocess.TimeoutExpired:
                continue
        # The child, or its descendants that ignored the signals.
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def start(argv: Sequence[str | Path], *, log: str) -> subprocess.Popen[bytes]:
    """Start a daemon: it outlives this process, and its output goes to its log file.

    Raises:
        MissingToolError: the program does not exist.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    env = clean_environment(network=True)
    # This process's own folder is removed when the process ends; a daemon needs one that stays.
    del env["TMPDIR"]
    with (LOGS / f"{log}.log").open("wb") as output:
        try:
            return subprocess.Popen(
                [str(word) for word in argv],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
            )
        except FileNotFoundError:
            raise MissingToolError(f"{argv[0]} is not installed", next="./foundry doctor") from None
