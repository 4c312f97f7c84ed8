"""Control a worker process, and restart it when it dies: a crash is a result."""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .job import Done, Job

# Seconds for a launch, including compilation.
_PATIENCE = 120
# Launches per process. Compiled kernels stay in a process's memory.
_LAUNCHES = 2000


class Worker:
    """Launches kernels.

    Args:
        interpret: whether to launch in Triton's interpreter.
    """

    def __init__(self, *, interpret: bool) -> None:
        self._interpret = interpret
        self._process: subprocess.Popen[bytes] | None = None
        self._launches = 0
        self._said = tempfile.TemporaryFile()  # noqa: SIM115

    def launch(self, job: Job) -> Done:
        """Run a job. If the process dies or does not end in time, the result has the error `Crash` or `Timeout`."""
        if self._launches >= _LAUNCHES:
            self.close()
        process = self._running()
        self._launches += 1
        sent = pickle.dumps(job)
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(struct.pack("<q", len(sent)) + sent)
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], _PATIENCE)
            if not ready:
                self.close()
                return Done([], ("Timeout",), f"no result in {_PATIENCE} s")
            (size,) = struct.unpack("<q", process.stdout.read(8))
            answer = process.stdout.read(size)
            done: Done = pickle.loads(answer)
        except (OSError, struct.error, EOFError, pickle.UnpicklingError):
            status = process.wait()
            self._process = None
            self._said.seek(0)
            last = self._said.read()[-2000:].decode(errors="replace")
            return Done([], ("Crash",), f"the process ended with status {status}\n{last}")
        return done

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            folder = Path(__file__).resolve().parents[1]
            search = os.pathsep.join([str(folder), *filter(None, sys.path)])
            env = os.environ | {"PYTHONPATH": search, "TRITON_INTERPRET": "1" if self._interpret else "0"}
            self._launches = 0
            self._said.truncate(0)
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("worker.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env=env,
            )
        return self._process

    def close(self) -> None:
        """End the process. The next launch starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
