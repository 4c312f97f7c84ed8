"""Join this process's terminal to a stream: keys go out as they are typed, what comes back is shown as it is."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Callable
from typing import Any

_CHUNK = 65536


def join(stream: Any, resize: Callable[[int, int], None]) -> None:
    """Pump bytes both ways until the other side closes. Stdin must be a terminal.

    Args:
        stream: what a container engine hands out for an interactive command: a socket, or an object around one.
        resize: called with rows and columns, at the start and whenever the window changes.
    """
    # Over a Unix socket the SDK wraps the socket in a file; reads of that file could hold bytes back.
    sock = getattr(stream, "_sock", stream)
    keys = sys.stdin.fileno()

    def fit(*_: object) -> None:
        size = shutil.get_terminal_size()
        # The command may just have ended; then there is nothing to resize.
        with contextlib.suppress(Exception):
            resize(size.lines, size.columns)

    fit()
    before = signal.signal(signal.SIGWINCH, fit)
    saved = termios.tcgetattr(keys)
    try:
        # Not the default, which throws away what was typed ahead.
        tty.setraw(keys, termios.TCSADRAIN)
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
                    # In raw mode Ctrl-D is a key like others; this is the end of the terminal itself.
                    return
                sock.sendall(data)
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, saved)
        signal.signal(signal.SIGWINCH, before)
