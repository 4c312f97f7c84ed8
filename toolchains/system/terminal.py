"""Print to this process's terminal or log, and connect the terminal to a stream.

A connected terminal sends keys as they are typed, and shows answers unchanged.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import sys
import termios
import tty
from collections.abc import Callable

from toolchains.system.console import Console

_CHUNK = 65536
# The width of a log, in characters: wider than any table.
_UNLIMITED = 10_000


def make_console(*, stderr: bool = False) -> Console:
    """Return a console for texts and tables. If it is no terminal, such as a pipe, tables keep their full width."""
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console


def reset() -> None:
    """Show lines on the terminal's stderr as usual again, whatever a program printed: no other screen, no colours."""
    sys.stderr.buffer.write(b"\033[!p\033[?1049l\033[0m")
    sys.stderr.buffer.flush()


def join(sock: socket.socket, received: bytes, resize: Callable[[int, int], None]) -> None:
    """Copy bytes in both directions until the other side closes. Stdin must be a terminal.

    Args:
        sock: a container engine's connection for an interactive command.
        received: what was already read from it.
        resize: called with rows and columns, at the start and whenever the window changes.
    """
    keys = sys.stdin.fileno()

    def fit(*_: object) -> None:
        size = shutil.get_terminal_size()
        # The command may just have ended; then nothing can be resized.
        with contextlib.suppress(Exception):
            resize(size.lines, size.columns)

    fit()
    before = signal.signal(signal.SIGWINCH, fit)
    saved = termios.tcgetattr(keys)
    try:
        # TCSADRAIN, because the default discards keys that were already typed.
        tty.setraw(keys, termios.TCSADRAIN)
        sys.stdout.buffer.write(received)
        sys.stdout.buffer.flush()
        while True:
            ready, _, _ = select.select([sock, keys], [], [])
            if sock in ready:
                data = sock.recv(_CHUNK)
                if not data:
                    return
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            if keys in ready:
                data = os.read(keys, _CHUNK)
                if not data:
                    # The terminal itself was closed; in raw mode, Ctrl-D is a key like others.
                    return
                sock.sendall(data)
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, saved)
        signal.signal(signal.SIGWINCH, before)
