"""Says what bounds a kernel on a Vulkan device: the nearest roof, and what its module and the driver's compiler show.

A roof is measured. What a module shows is no measurement: it is counted in the SPIR-V, each instruction once, and a
sign of what may keep a kernel below its roof. The driver's statistics are what its compiler says of its own code.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..analysis.axes import LaunchHope
from ..codegen.counts import Counts, count

# From this share of its roof on, a kernel is bound by it, and signs are not shown. A launch varies more.
_NEAR, _NEAR_LAUNCH = 0.8, 0.5
# A driver's names of what does not fit into registers: RADV's, ANV's, NVK's, and NVIDIA's.
_SPILLS = re.compile(r"spill|\bfills?\b|scratch|local memory size|\bSLM size", re.IGNORECASE)
_ACCESS = re.compile(r"(loads|stores) of (\d+) bytes$")
# The widest access, and how narrow one is that moves less than a register.
_WIDEST, _REGISTER = 16, 4
# Up to so many of a kind are no sign.
_FEW_ACCESSES, _FEW_ATOMICS, _FEW_BARRIERS, _FEW_WORDS = 8, 2, 2, 1 << 16
# Exchanges for each step of a reduction over all lanes of a subgroup.
_FEW_EXCHANGES = 4
# What to do about narrow accesses.
_WIDER = (
    "tl.max_contiguous(tl.multiple_of(offsets, N), N), a stride that is a tl.constexpr or a multiple of 16, and a mask "
    "that is the same for neighbours"
)
# What to do about a kernel that its roof bounds.
_AT_ROOF = {
    "memory": "move less: a narrower type, or one kernel in place of two that pass an array on",
    "arithmetic": "compute less, or by matrices: tl.dot of f16, bf16 or i8",
    "launch": "give it more work: more rows a launch, or one kernel in place of several",
}
# What to do about one that is below its roof and shows no sign.
_OTHERWISE = (
    "more programs or num_warps, so that more loads wait at the same time; fewer integers in addresses and masks"
)


class Sign(NamedTuple):
    """What may keep a kernel below its roof.

    Attributes:
        kind: of what there is too much or too little, such as "spills".
        shows: the figures.
        next: what to try.
    """

    kind: str
    shows: str
    next: str


def examine_shader(
    module: bytes,
    described: Mapping[str, Any],
    products: Mapping[str, float],
    values: Sequence[Any] = (),
) -> dict[str, Any]:
    """Return a kernel's figures by name: what its module has, what the driver says, what was chosen, and the signs.

    Args:
        described: what the launcher knows (SynchronousLauncher.described).
        products: the operations of tl.dot by the type of the factors.
        values: the arguments of the launch.

    Raises:
        ValueError: the module is damaged.
    """
    # A block that begins below zero takes the narrow variant, too; nobody here knows.
    hopes = described["hopes"]
    failed = [hope for hope in (LaunchHope(**fields) for fields in hopes or ()) if not hope.holds(values)]
    found = count(module, None if hopes is None else 0 if failed else 1)
    failing = [_hoped(hope, described["names"], values) for hope in failed]
    variant = "" if hopes is None else "narrow" if failed else "wide"
    figures: dict[str, Any] = {
        "counts": found.as_dict(),
        "statistics": described["statistics"],
        "chosen": described["chosen"],
        "variant": variant,
        "workgroup_limit": described["workgroup_limit"],
    }
    return figures | {"signs": [sign._asdict() for sign in _signs(found, described, products, failing)]}


def _hoped(hope: LaunchHope, names: Sequence[str], values: Sequence[Any]) -> tuple[str, str]:
    """Return why a hope failed, and what to try."""
    name, value = names[hope.argument], values[hope.argument]
    if hope.kind == "multiple":
        return f"{name}={value} is no multiple of {hope.of}", f"pad {name} to a multiple of {hope.of}, better 16"
    return f"{name}={value} is negative, or large", f"a smaller {name} that is not negative"


def _signs(
    found: Counts, described: Mapping[str, Any], products: Mapping[str, float], failing: Sequence[tuple[str, str]]
) -> Iterator[Sign]:
    """Yield the signs, the likeliest first.

    Args:
        failing: why the launch does not take the variant with wide accesses, and what to try.
    """
    has, chosen = found.everywhere, described["chosen"]
    spilled = {name: number for name, number in described["statistics"].items() if number and _SPILLS.search(name)}
    if spilled:
        said = ", ".join(f"{name} {number:,.10g}" for name, number in spilled.items())
        yield Sign(
            "spills", f"the driver's compiler keeps values in memory: {said}", "a smaller BLOCK, or more num_warps"
        )
    multiplied = [factor for factor, number in products.items() if number and factor in described["matrices"]]
    if multiplied and not has["products of matrices"]:
        yield Sign(
            "matrix units",
            f"products of {' and '.join(multiplied)} are not by matrices, which the device has",
            "blocks of multiples of 16 along M, N and K, and an f32 result",
        )
    for why, next in failing:
        yield Sign("bytes", f"the launch takes the variant with narrow accesses, because {why}", next)
    if not failing:
        yield from _narrow(found)
    if "num_stages=1" in chosen or "along K" in chosen:
        yield Sign(
            "workgroup memory",
            f"{chosen}: the device has {described['workgroup_limit']:,} bytes of workgroup memory",
            "a smaller BLOCK_K, or a smaller block of the larger factor",
        )
    looped, loops = found.in_loops["barriers"], has["loops with barriers"]
    if loops and looped > _FEW_BARRIERS * loops:
        yield Sign(
            "barriers",
            f"{looped} barriers in {loops} loop{'s' * (loops > 1)}, where a staged product needs {_FEW_BARRIERS}. "
            "Tiles pass through workgroup memory to be transposed, reduced or multiplied",
            "fewer products and reductions in the loop, or fewer num_warps, so that fewer tiles cross subgroups",
        )
    outside = has["barriers"] - looped
    if has["products of matrices"] and outside > _FEW_BARRIERS:
        yield Sign(
            "barriers",
            f"{outside} barriers outside of loops: the result passes through workgroup memory",
            "store the sums of tl.dot as they are, in f32, to see what the epilogue costs",
        )
    exchanges, steps = has["exchanges between lanes"], max(described["subgroup"].bit_length() - 1, 1)
    if exchanges > _FEW_EXCHANGES * steps:
        yield Sign(
            "exchanges",
            f"{exchanges} exchanges between lanes, where a reduction over a subgroup takes {steps}",
            "fewer rows a program, or tl.max, tl.argmax and tl.sum in place of a tl.reduce or tl.sort of your own",
        )
    if (atomics := has["atomics"]) > _FEW_ATOMICS:
        yield Sign(
            "atomics",
            f"each invocation has {atomics} atomics, one an element",
            "add up in the program first (tl.sum), or sort equal addresses next to each other",
        )
    if found.words > _FEW_WORDS:
        yield Sign(
            "instructions",
            f"the module has {found.words:,} words: tiles are written out element by element",
            "a smaller BLOCK or more num_warps, and range in place of tl.static_range",
        )


def _narrow(found: Counts) -> Iterator[Sign]:
    """Yield the signs of narrow accesses: those in loops decide, if there are any."""
    where, accesses = " in loops", _accesses(found.in_loops)
    if not accesses:
        where, accesses = "", _accesses(found.everywhere)
    for kind, limit, few, why in (
        ("bytes", _REGISTER, 1, "the analysis does not know that neighbours lie next to each other, and are aligned"),
        ("instructions", _WIDEST, _FEW_ACCESSES, f"one of {_WIDEST} bytes would do for several"),
    ):
        for what in sorted(accesses):
            widths = sorted(width for width in accesses[what] if width < limit)
            narrow, total = sum(accesses[what][width] for width in widths), accesses[what].total()
            if narrow > few and 2 * narrow > total:
                shown = " and ".join(map(str, widths))
                yield Sign(kind, f"{narrow} of {total} {what}{where} are of {shown} bytes: {why}", _WIDER)
                return


def _accesses(counts: Mapping[str, int]) -> dict[str, Counter[int]]:
    """Return how many loads and stores of global memory have each width in bytes."""
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for name, number in counts.items():
        if access := _ACCESS.fullmatch(name):
            found[access[1]][int(access[2])] += number
    return found


def advice(figures: Mapping[str, Any]) -> list[str]:
    """Return what to try next, the likeliest to help first, by a kernel's figures with its roofs."""
    if _at_roof(figures):
        return [_AT_ROOF[figures["bound"]]]
    without = _AT_ROOF["launch"] if figures.get("bound") == "launch" else _OTHERWISE
    return [sign["next"] for sign in figures["shader"]["signs"]] or [without]


def _at_roof(figures: Mapping[str, Any]) -> bool:
    """Return whether a roof bounds a kernel, so that signs say nothing; one that is faster than its roof is at it."""
    if "bound" not in figures:
        return False
    share = figures["share"]
    return share is None or bool(share >= (_NEAR_LAUNCH if figures["bound"] == "launch" else _NEAR))


def format_shader(figures: Mapping[str, Any]) -> list[str]:
    """Return rows for people to read: the counts, the driver's statistics, what was chosen, the signs, and advice."""
    shader = figures["shader"]
    counts = dict(shader["counts"])
    words, invocations, memory = (counts.pop(name) for name in ("words", "invocations", "bytes of workgroup memory"))
    said = ", ".join(f"{name} {number:,.10g}" for name, number in shader["statistics"].items())
    rows = [
        f"  its module: {words:,} words, {invocations} invocations a program, {memory:,} of "
        f"{shader['workgroup_limit']:,} bytes of workgroup memory"
    ]
    if each := [
        f"{name}: {number}" + (f" ({looped} in loops)" if (looped := counts.get(f"{name} in loops")) else "")
        for name, number in counts.items()
        if not name.endswith(" in loops")
    ]:
        rows.append(f"    {', '.join(each)}")
    rows.append(f"  the driver's compiler says: {said or 'nothing'}")
    if shader["variant"]:
        rows.append(f"  of two variants of the kernel it takes the one with {shader['variant']} accesses, counted here")
    if shader["chosen"]:
        rows.append(f"  chosen: {shader['chosen']}")
    if not _at_roof(figures) and shader["signs"]:
        rows.append("  what may keep it below its roof, the likeliest first (counted in the module, not measured):")
        for sign in shader["signs"]:
            rows += [f"    {sign['kind']}: {sign['shows']}", f"      next: {sign['next']}"]
        return rows
    return [*rows, f"  next: {advice(figures)[0]}"]
