"""What is on a terminal besides what was printed: the line that says what is being done, and the reset."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolchains.system import paths

PROGRAM = """
import sys, time
from toolchains.cli import commandline
from toolchains.system import steps, waiting
waiting._SILENCE, waiting._INTERVAL = 0.2, 0.05
commandline.prepare_streams()
{}
"""
SHOWN = re.compile(rb"\r\x1b\[2K\x1b\[2m(.*?)\x1b\[22m")
REMOVED = b"\r\x1b[2K"


def on_terminal(
    text: str, *, term: str = "xterm", columns: int = 80, redirected: str = "", hang_up: bool = False
) -> bytes:
    """Return what a program in Python wrote to its terminal; with `hang_up`, this is closed after the first output."""
    ours, theirs = pty.openpty()
    stdout, stderr = (subprocess.DEVNULL if name == redirected else theirs for name in ("stdout", "stderr"))
    variables = {**os.environ, "TERM": term, "COLUMNS": str(columns)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(text)],
        cwd=paths.ROOT,
        env=variables,
        stdin=theirs,
        stdout=stdout,
        stderr=stderr,
    ) as program:
        os.close(theirs)
        written = b""
        try:
            while more := os.read(ours, 65536):
                written += more
                if hang_up:
                    break
        except OSError:
            pass
        os.close(ours)
    assert program.returncode == 0, written
    return written.replace(b"\r\n", b"\n")


def test_after_silence_a_line_says_what_is_done_and_is_removed_before_the_next_output() -> None:
    written = on_terminal(
        "print('before', flush=True)\n"
        "with waiting.doing('running a.py'):\n"
        "    time.sleep(1)\n"
        "    sys.stdout.buffer.write(b'out'); sys.stdout.buffer.flush()\n"
        "    sys.stdout.buffer.write(b'put' + bytes([10])); sys.stdout.buffer.flush()\n"
        "    time.sleep(1)\n"
        "    steps.console.print('rich')\n"
    )
    assert {shown.rpartition(b":")[0] for shown in SHOWN.findall(written)} == {b"running a.py"}
    # Without the line, there is what was printed, and each line that was shown was removed.
    before, first, second = SHOWN.sub(b"<line>", written).replace(b"<line>" * 2, b"<line>").split(REMOVED)[:3]
    assert (before.replace(b"<line>", b""), second) == (b"before\n", b"rich\n")
    assert first.startswith(b"output\n<line>")


@pytest.mark.parametrize(
    "text",
    [
        "with waiting.doing('it'):\n    print('a question? ', end='', flush=True)\n    time.sleep(0.8)",
        "time.sleep(0.8)",
        "waiting._SILENCE = 1000\nwith waiting.doing('it'):\n    time.sleep(0.8)",
    ],
    ids=["behind a question", "while nothing is named", "before the seconds are over"],
)
def test_it_is_not_shown(text: str) -> None:
    assert b"\x1b" not in on_terminal(text)


def test_it_is_not_shown_on_a_terminal_that_cannot_remove_it() -> None:
    assert on_terminal("with waiting.doing('it'):\n    time.sleep(0.8)", term="dumb") == b""


def test_it_is_not_shown_in_a_log_and_is_shown_beside_an_output_that_goes_to_a_file() -> None:
    assert on_terminal("with waiting.doing('it'):\n    time.sleep(0.8)", redirected="stderr") == b""
    assert SHOWN.search(on_terminal("with waiting.doing('it'):\n    time.sleep(0.8)", redirected="stdout"))


def test_a_step_that_began_later_is_named_until_it_ends_and_nothing_of_a_name_moves_the_cursor() -> None:
    written = on_terminal(
        "with waiting.doing('outer ' + chr(27) + '[1A'):\n"
        "    with waiting.doing('inner'):\n"
        "        time.sleep(0.8)\n"
        "    time.sleep(0.8)\n"
    )
    names = [shown.rpartition(b":")[0] for shown in SHOWN.findall(written)]
    assert list(dict.fromkeys(names)) == [b"inner", b"outer \\x1b[1A"]
    assert written.endswith(REMOVED)


def test_work_goes_on_when_the_terminal_is_closed(tmp_path: Path) -> None:
    written = on_terminal(
        "with waiting.doing('it'):\n"
        "    while not waiting._screen.shown: time.sleep(0.01)\n"
        # So that the line is removed by this thread, and not by the one that shows it.
        "    waiting._INTERVAL = 1000\n"
        "    time.sleep(1)\n"
        f"open({str(tmp_path / 'done')!r}, 'w')\n",
        hang_up=True,
    )
    assert SHOWN.search(written) and (tmp_path / "done").exists()


def test_it_fits_into_a_line() -> None:
    shown = SHOWN.findall(on_terminal("with waiting.doing('x' * 300):\n    time.sleep(0.8)", columns=30))
    assert shown and {len(line) for line in shown} == {29}


def test_a_reset_reaches_the_terminal() -> None:
    assert on_terminal("from toolchains.system import terminal; terminal.reset()") == b"\x1b[!p\x1b[?1049l\x1b[0m"
