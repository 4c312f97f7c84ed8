"""Choose how many tasklets run a DPU's programs, and into how many slices each program is split.

A tasklet issues an instruction every 11 cycles at most, and a DPU one a cycle. So 16 programs on 14 tasklets take as
long as 25: 14 at one instruction a cycle, then 2 in the time of 11. On 8 or 11 tasklets they take as long as 22, and on
16 tasklets, or as 32 slices on 16, as long as 16.
"""

from __future__ import annotations

from collections.abc import Callable

from foundry_core.mapping.base.target import FULL_PIPELINE

# The share above which nothing finer is tried, and what a finer split must gain: each slice repeats what does not
# depend on the slice, such as loads of the other factor of a product, its transfers are shorter, and a split that the
# kernel was not compiled for has to be compiled. In a kernel that computes with floats, that weighs less.
_ENOUGH, _GAIN = 0.95, 1.1
_ENOUGH_COMPUTING, _GAIN_COMPUTING = 0.98, 1.02


def tasklet_count(slices: int, most: int) -> int:
    """Return how many of `most` tasklets finish a number of equal slices first.

    Of several numbers, it is one with which all tasklets have as many slices, if there is one, then the largest.
    """
    numbers = range(1, min(most, max(slices, 1)) + 1)
    return min(numbers, key=lambda count: (_cycles(slices, count), slices % count != 0, -count))


def share(slices: int, most: int) -> float:
    """Return the share of a DPU's cycles in which it issues an instruction, with the best number of tasklets."""
    return slices / _cycles(slices, tasklet_count(slices, most)) if slices else 1.0


def slice_count(
    programs: int,
    room: Callable[[int], int],
    compiled: int,
    most_parts: int,
    *,
    most_tasklets: int,
    computes: bool = False,
) -> int:
    """Return the number of slices of each program.

    Args:
        programs: the programs of a DPU.
        room: returns for how many tasklets there is room if a program has a number of slices. It may have to compile
            the program for that, so it is asked only where the answer can matter.
        compiled: the number of slices that the kernel was compiled for.
        most_parts: the largest number that the kernel allows, a power of 2.
        most_tasklets: no number of slices has room for more.
        computes: whether the kernel computes with floats, each of which takes a DPU 20 to 1000 instructions.
    """
    enough, gain = (_ENOUGH_COMPUTING, _GAIN_COMPUTING) if computes else (_ENOUGH, _GAIN)
    shares = {compiled: share(programs * compiled, room(compiled))}
    finer = (compiled << power for power in range(1, (most_parts // compiled).bit_length()))
    limits = {parts: share(programs * parts, most_tasklets) for parts in finer}
    # The coarsest split that is enough is taken. Those that cannot be come last, the best ones first.
    for parts in sorted(limits, key=lambda parts: (-min(limits[parts], enough), parts)):
        best = max(shares.values())
        if best >= enough or limits[parts] < best:
            break
        shares[parts] = share(programs * parts, room(parts))
    best_parts = min(shares, key=lambda parts: (-shares[parts], parts))
    return best_parts if shares[best_parts] > gain * shares[compiled] else compiled


def _cycles(slices: int, count: int) -> int:
    """Return the cycles, in units of a slice's instructions, that a number of tasklets takes."""
    rounds, rest = divmod(slices, count)
    return rounds * max(FULL_PIPELINE, count) + (max(FULL_PIPELINE, rest) if rest else 0)
