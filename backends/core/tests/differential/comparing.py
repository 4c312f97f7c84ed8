"""Run kernels on a target and in Triton's interpreter, and compare both with NumPy."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from . import data
from .job import FENCE, POISON, Done, Job
from .process import Worker
from .program import SIZE, Dataset, Kernel
from .values import Array, Value, differences

# The interpreter broadcasts a scalar comparison as integers, and then refuses the result as a mask. In 3.6 it
# makes an array of one element of a scalar, which NumPy 2.4 does not take for a loop's bound.
_INTERPRETER_REFUSES = ("mask has unsupported dtype", "only 0-dimensional arrays can be converted to Python scalars")


class Difference(AssertionError):
    """A kernel for which not all three agree. The message is a complete script."""


@dataclass
class Comparison:
    """Compares kernels, and counts what it compared.

    Attributes:
        refusals: patterns of the messages with which the target may refuse a kernel; each is a documented limit.
        counts: number of kernels, launches, elements, and refusals by pattern.
    """

    folder: Path
    target: Worker
    interpreter: Worker
    refusals: tuple[str, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)

    def check(self, kernel: Kernel) -> None:
        """Compare a kernel on all its datasets.

        Raises:
            Difference: the result of the target or of the interpreter is not NumPy's.
        """
        for dataset in kernel.datasets:
            found = self.launch(kernel, dataset)
            if found is None:
                return
            # The interpreter gets only sections that it computes as the compiler does. No section uses another one.
            plain = replace(kernel, sections=tuple(each for each in kernel.sections if each.plain))
            also = self.interpret(plain, dataset) if plain.sections else ""
            if found:
                more = (
                    f"The interpreter: {also}" if also else "The interpreter agrees with NumPy, as far as it was asked."
                )
                raise Difference(script(kernel, dataset, f"The target: {found}\n{more}"))
            if also:
                raise Difference(script(plain, dataset, f"The target agrees with NumPy.\nThe interpreter: {also}"))
        self.counts["kernels"] += 1
        self.counts["outputs"] += len(kernel.sections)

    def launch(self, kernel: Kernel, dataset: Dataset) -> str | None:
        """Return what is wrong on the target, or ""; None if the target refuses the kernel for an allowed reason."""
        expected = kernel.expected(dataset)
        done = self._run(self.target, kernel, dataset)
        if done.error and (refusal := self._refusal(done)):
            self.counts[f"refused ({refusal})"] += 1
            self.counts["refused"] += 1
            return None
        self.counts["launches"] += 1
        self.counts["elements"] += sum(int(np.count_nonzero(where & ~value.open)) for value, where in expected)
        return _wrong(expected, done)

    def interpret(self, kernel: Kernel, dataset: Dataset) -> str:
        """Return what is wrong in the interpreter, or ""."""
        done = self._run(self.interpreter, replace(kernel, options={}), dataset)
        if any(each in done.message for each in _INTERPRETER_REFUSES):
            self.counts["refused by the interpreter"] += 1
            return ""
        self.counts["interpreted"] += 1
        return _wrong(kernel.expected(dataset), done)

    def _run(self, worker: Worker, kernel: Kernel, dataset: Dataset) -> Done:
        source = kernel.source()
        path = self.folder / f"kernel_{hashlib.sha256(source.encode()).hexdigest()[:16]}.py"
        path.write_text(source)
        outputs = [(section.value.type.numpy, section.size(kernel.programs)) for section in kernel.sections]
        scalars = [dataset.n, dataset.m, dataset.f]
        inputs = list(kernel.arrays(dataset).values())
        try:
            return worker.launch(Job(str(path), (kernel.programs,), inputs, outputs, scalars, kernel.options))
        finally:
            path.unlink()

    def _refusal(self, done: Done) -> str | None:
        if done.error[0] in ("Crash", "Timeout"):
            return None
        return next((each for each in self.refusals if re.search(each, done.message)), None)


def _wrong(expected: list[tuple[Value, Array]], done: Done) -> str:
    """Return what is wrong with the outputs, or ""."""
    if done.error:
        return f"raises {done.error[0]}:\n{done.message}"
    for number, ((value, written), whole) in enumerate(zip(expected, done.outputs, strict=True)):
        kind = value.type.numpy
        item, size = kind.itemsize, value.data.size
        inside = whole[FENCE * item : (FENCE + size) * item]
        outside = np.concatenate([whole[: FENCE * item], whole[(FENCE + size) * item :]])
        if (outside != POISON).any():
            return f"memory outside of out{number} was written"
        untouched = (inside.reshape(size, item) == POISON).all(axis=1)
        astray = np.flatnonzero(~written & ~untouched)
        if astray.size:
            return f"out{number}[{astray[0]}] was written, and must not be"
        if kind.kind == "b" and (inside[written] > 1).any():
            return f"out{number} has a boolean that is neither 0 nor 1"
        found = (inside != 0) if kind.kind == "b" else inside.view(kind)
        wrong = np.flatnonzero(differences(found, value) & written)
        if wrong.size:
            at = int(wrong[0])
            error = float(value.full("error")[at])
            allowed = f" within {error:.4g}" if error else ""
            return (
                f"out{number}[{at}] is {found[at]!r}, and must be {value.data[at]!r}{allowed}; "
                f"{wrong.size} of {np.count_nonzero(written)} elements are wrong"
            )
    return ""


def script(kernel: Kernel, dataset: Dataset, said: str) -> str:
    """Return a program that launches a kernel in the same way, and prints what the kernel stores."""
    names = list(kernel.types)
    makes = [
        f'    {name} = fill("{dataset.kind}", {dataset.seed + names.index(name)}, "{kind.numpy.name}", {SIZE})'
        for name, kind in kernel.inputs.items()
    ]
    outs, poisons = [], []
    for number, section in enumerate(kernel.sections):
        kind, size = section.value.type.numpy, section.size(kernel.programs)
        outs.append(f"out{number}")
        poisons.append(f'    out{number} = np.full({size * kind.itemsize}, {POISON}, np.uint8).view("{kind.name}")')
    tensors = ", ".join(f"Tensor({name})" for name in [*kernel.inputs, *outs])
    options = "".join(f", {name}={value!r}" for name, value in kernel.options.items())
    comment = "\n".join(f"# {line}" for line in said.splitlines())
    return "\n".join(
        [
            "",
            comment,
            "# Run this in the target's image, and with TRITON_INTERPRET=1.",
            inspect.getsource(data).replace("from __future__ import annotations\n", ""),
            "from foundry_core.tensor import Tensor",
            kernel.source(),
            "",
            'if __name__ == "__main__":',
            *makes,
            *poisons,
            f"    kernel[({kernel.programs},)]({tensors}, {dataset.n}, {dataset.m}, {dataset.f}{options})",
            f"    print({', '.join(outs)}, sep='\\n')",
            "",
        ]
    )
