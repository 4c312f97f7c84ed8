"""Check that each row of ELEMENTWISE computes what it means, on every type that it has."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from foundry_core.ops.elementwise import ROWS

from ..devices import DEVICES
from ..kernels import elementwise
from ..memory import Array
from ..roads import Kernel, run
from ..rows import COUNT, DTYPES, MEANINGS, Meaning, Wide, values

# Operations of one kernel.
_MOST = 6
# DPUs have no addresses that are numbers.
_OF_ADDRESSES = ("tt.int_to_ptr", "tt.ptr_to_int")


def test_every_row_has_a_meaning() -> None:
    assert {row.operation.name for row in ROWS} == MEANINGS.keys()


def kernel(meanings: Sequence[Meaning], elem: str, lanes: int) -> str:
    """Return a kernel that computes each operation once."""
    lines, outputs = [], {}
    for number, meaning in enumerate(meanings):
        own = {re.match(r"%\w+", line)[0] for line in meaning.before} | {"%v"}  # type: ignore[index]
        result = meaning.result
        made = [*meaning.before, f"%v = {meaning.text}"]
        if result == "i1":
            made.append("%w = arith.extui %v : T[i1] to T[i8]")
            own, result = own | {"%w"}, "i8"
        for line in made:
            line = re.sub(rf"({'|'.join(own)})\b", rf"\1_{number}", line)
            lines.append(re.sub(r"\bT(?:\[([^\]]*)\])?(?![\w.])", lambda type: f"TILE({type[1] or elem})", line))
        outputs[f"%{'w' if meaning.result == 'i1' else 'v'}_{number}"] = result
    return elementwise([elem] * 3, outputs, lines, lanes=lanes, size=COUNT)


def check(meaning: Meaning, found: Array, inputs: Sequence[Array], error: float) -> None:
    """Compare results with what NumPy says, and signs of zeros; a NaN may be any.

    Args:
        error: how many units in the last place they may be off.
    """
    with np.errstate(all="ignore"):
        exact = np.asarray(meaning.numpy(*inputs))
        dtype = DTYPES[meaning.result] if meaning.result != "i1" else np.int8
        wanted = exact.astype(dtype)
        same = found == wanted
        if wanted.dtype.kind == "f":
            same = (same & (np.signbit(found) == np.signbit(wanted))) | (np.isnan(found) & np.isnan(wanted))
            if error:
                known = np.finfo(dtype)
                size = np.maximum(np.abs(exact.astype(Wide)), Wide(known.smallest_normal))
                unit = np.exp2(np.floor(np.log2(np.minimum(size, Wide(known.max)))) - known.nmant)
                # Infinity counts as the first power of two beyond the range.
                finite = np.where(np.isinf(found), np.copysign(Wide(2) ** known.maxexp, found), found.astype(Wide))
                near = np.abs(finite - np.clip(exact, -(Wide(2) ** known.maxexp), Wide(2) ** known.maxexp))
                same |= (near <= error * unit) & ~np.isnan(found) & ~((exact == 0) & (found == 0))
                same |= (exact == 0) & (found == 0)
    wrong = np.flatnonzero(~same)
    if len(wrong):
        at = wrong[0]
        operands = [x[at] for x in inputs]
        pytest.fail(f"{meaning.text}: {len(wrong)} wrong, first of {operands}: {found[at]} and not {wanted[at]}")


def _kernels() -> list[tuple[str, str, list[Meaning]]]:
    found = []
    for elem in DTYPES:
        every = [(name, each) for name, meanings in MEANINGS.items() for each in meanings if each.elem == elem]
        for number, part in enumerate(every[at : at + _MOST] for at in range(0, len(every), _MOST)):
            found.append((f"{elem}-{number}", elem, [each for _, each in part]))
    return found


KERNELS = _kernels()


@pytest.mark.parametrize("road", ["tasklet", "pocl", "keeping"])
@pytest.mark.parametrize(("elem", "meanings"), [each[1:] for each in KERNELS], ids=[each[0] for each in KERNELS])
def test_row_computes_what_it_means(elem: str, meanings: list[Meaning], road: str) -> None:
    if road == "tasklet":
        meanings = [each for each in meanings if not any(name in "".join(each.before) for name in _OF_ADDRESSES)]
    inputs = values(elem)
    outs = [np.full(COUNT, 77, DTYPES.get(each.result, np.int8)) for each in meanings]
    texts = Kernel(kernel(meanings, elem, 0), kernel(meanings, elem, DEVICES["keeping"].warp_size))
    _, _, _, *found = run(road, texts, [*inputs, *outs]).arrays
    for meaning, out in zip(meanings, found, strict=True):
        # A work-item has the C library's functions here; glibc's manual states up to 4 units.
        check(meaning, out, inputs, max(meaning.error, 4.0 * (road == "pocl" and meaning.error > 0.5)))
