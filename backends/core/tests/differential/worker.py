"""Run kernels in a separate process, on the target or (TRITON_INTERPRET=1) in Triton's interpreter.

A job comes through standard input. Its result goes to the original standard output. Both are pickled. What a kernel or
a library prints goes to standard error.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from differential.job import FENCE, POISON, Done, Job


def _fenced(dtype: Any, size: int) -> tuple[Any, Any]:
    item = np.dtype(dtype).itemsize
    whole = np.full((size + 2 * FENCE) * item, POISON, np.uint8)
    return whole, whole[FENCE * item : (FENCE + size) * item].view(dtype)


def _launch(kernel: Any, job: Job) -> Done:
    from foundry_core.tensor import Tensor

    arrays, before, outputs = [], [], []
    for values in job.inputs:
        whole, array = _fenced(values.dtype, values.size)
        array[:] = values
        before.append((whole, whole.copy()))
        arrays.append(array)
    for dtype, size in job.outputs:
        whole, array = _fenced(dtype, size)
        outputs.append(whole)
        arrays.append(array)
    kernel[job.grid](*(Tensor(each) for each in arrays), *job.scalars, **job.options)
    for number, (whole, copy) in enumerate(before):
        if not np.array_equal(whole, copy):
            raise AssertionError(f"input {number} was written to")
    return Done(outputs)


def _said(error: BaseException) -> str:
    parts = []
    while error is not None:
        parts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return "\n".join(parts)


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    modules: dict[str, Any] = {}
    while header := requests.read(8):
        job: Job = pickle.loads(requests.read(*struct.unpack("<q", header)))
        try:
            if job.path not in modules:
                spec = importlib.util.spec_from_file_location(Path(job.path).stem, job.path)
                assert spec is not None and spec.loader is not None
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                modules = {job.path: module}
            done = _launch(modules[job.path].kernel, job)
        except Exception as error:
            done = Done([], tuple(each.__name__ for each in type(error).__mro__), _said(error))
        sent = pickle.dumps(done)
        answers.write(struct.pack("<q", len(sent)) + sent)
        answers.flush()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    np.seterr(all="ignore")
    _serve(sys.stdin.buffer, answers)
