"""Says what bounds each recorded kernel: its work, counted from the kernel, against the roofs of this device."""

from __future__ import annotations

import linecache
import math
import subprocess
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runtime.device_report import Kind
from . import objects
from .recording import LaunchRecord, Recorder

if TYPE_CHECKING:
    from ..footprint.work import Work

# Kernels, and lines and instructions of each, that are shown.
_MOST, _LINES, _INSTRUCTIONS = 12, 8, 40
# Below this share of a roof, something else bounds a kernel.
_LOW = 0.3
# A kernel is bound by its launch if its roof allows less time than this many launches take.
_FEW_LAUNCHES = 2
# The bytes of the largest triad of many; no cache of a device has room for them.
_MOST_BYTES = 1 << 28


def report(recorder: Recorder) -> tuple[str, list[dict[str, Any]]]:
    """Return what bounds each kernel as text, and the same figures for programs, for each kernel by name."""
    from triton.runtime import driver

    active = driver.active
    found = sorted(recorder.found.values(), key=lambda each: -sum(each.seconds))
    several = len({type(each.driver) for each in found}) > 1
    code = {(each.hash, type(each.driver)): _code(each, found) for each in found[:_MOST]}
    every: list[dict[str, Any]] = []
    parts = ["profile: times are measured, work is counted from the kernels, roofs are measured in this run"]
    for each in found[:_MOST]:
        every.append(examine(each, _configuration(each, found)))
        ran = each.driver.device_report()
        rows = [format_report(every[-1]), *([f"  ran on {ran.kind}: {ran.device}"] if several else [])]
        # The instructions of a kernel are shown once, for all its grids.
        if ran.kind is Kind.CPU_OPENCL:
            paths = code.pop((each.hash, type(each.driver)), [])
            rows += [show_code(each.kernel, path) for path in paths]
        parts.append("\n".join(rows))
    # Roofs are measured with each driver.
    driver.set_active(active)
    if len(found) > _MOST:
        parts.append(f"and {len(found) - _MOST} more, which took less time")
    if not found:
        parts.append("no kernel was launched")
    return "\n\n".join(parts), every


def _code(launched: LaunchRecord, found: list[LaunchRecord]) -> list[str]:
    """Return the objects that PoCL loaded for a kernel, without those of other kernels of its name."""
    loaded = objects.loaded_objects(launched.kernel)
    if launched.programs:
        return [path for path in loaded if objects.program(path) in launched.programs]
    others = {program for each in found for program in each.programs}
    return [path for path in loaded if objects.program(path) not in others]


def _configuration(launched: LaunchRecord, found: list[LaunchRecord]) -> str:
    """Return what tells a kernel from others of its name, which an autotuner tried: `BLOCK=128, num_warps=8`."""
    others = [each.configuration for each in found if each.kernel == launched.kernel]
    shown = {
        name: value if isinstance(value, int | float | str) else getattr(value, "__name__", str(value))
        for name, value in launched.configuration.items()
        if any(name not in other or str(other[name]) != str(value) for other in others)
    }
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def examine(launched: LaunchRecord, configuration: str = "", *, by_device: float | None = None) -> dict[str, Any]:
    """Return a kernel's figures, by name; with `unknown`, a reason, if its work cannot be counted.

    Args:
        by_device: the seconds of a launch by the device's clock, among others without waiting; the roofs are then
            measured in the same way. None to take the fastest of the recorded launches.
    """
    figures = _figures(launched, configuration, by_device)
    work: Work | None = None
    if "unknown" not in figures:
        try:
            work = _work(launched)
        except Exception as error:  # a kernel that the footprint refuses, or a cache that was cleared meanwhile
            figures["unknown"] = str(error)
    if work is not None:
        figures |= _compared(launched, work, figures["seconds"], by_device is not None)
    if launched.described:
        figures |= _shader(launched, work, figures)
    return figures


def _shader(launched: LaunchRecord, work: Work | None, figures: dict[str, Any]) -> dict[str, Any]:
    """Return what a shader's module and its driver say of it; with `unknown` if Triton's cache does not have it."""
    from .bound import advice, examine_shader

    products = work.products if work else {}
    try:
        module = _stage(launched, "spv").read_bytes()
        found = {"shader": examine_shader(module, launched.described, products, launched.values)}
    except (OSError, ValueError) as error:
        return {"unknown": figures.get("unknown") or str(error)}
    return found | {"next": advice(figures | found)}


def _figures(launched: LaunchRecord, configuration: str, by_device: float | None) -> dict[str, Any]:
    """Return what was recorded of a kernel; with `unknown` if its time says nothing."""
    figures: dict[str, Any] = {
        "kernel": launched.kernel,
        "configuration": configuration,
        "grid": launched.grid,
        "launches": len(launched.seconds),
        "seconds": min(launched.repeated + launched.seconds) if by_device is None else by_device,
        "by_device": by_device is not None,
        "total": sum(launched.seconds),
        "ran": launched.driver.device_report().as_dict(),
    }
    timed = by_device is not None or launched.prepared or launched.repeated or launched.modelled
    if not timed and len(launched.seconds) == 1:
        figures["unknown"] = "its only launch includes what prepares it, such as the device's compiler; launch it again"
    return figures


def _compared(launched: LaunchRecord, work: Work, seconds: float, by_device: bool) -> dict[str, Any]:
    """Return a kernel's work, the roofs that it is compared with, and the nearest of them."""
    arithmetic = _arithmetic(work, launched)
    operations = sum(arithmetic.values())
    figures: dict[str, Any] = {
        "bytes": work.bytes,
        "operations": operations,
        "functions": work.functions,
        "exact": work.exact,
    }
    if launched.modelled:
        busy = {name: launched.modelled[name] for name in ("dma", "pipeline")}
        bound = max(busy, key=lambda name: busy[name])
        return figures | {"modelled": launched.modelled, "bound": bound, "share": busy[bound]}
    from .roofs import device_roofs

    roofs = device_roofs(launched.driver, by_device)
    ideal = {"memory": 0.0, "arithmetic": 0.0}
    if work.bytes:
        bytes = max(work.bytes, 12)
        # Among many kernels, few triads do for all.
        figures["memory_roof"] = roofs.memory(min(1 << (bytes - 1).bit_length(), _MOST_BYTES) if by_device else bytes)
        ideal["memory"] = work.bytes / figures["memory_roof"]
    rates = {kind: roofs.arithmetic(kind) for kind, count in arithmetic.items() if count}
    figures["arithmetic_roofs"] = measured = {kind: rate for kind, rate in rates.items() if rate is not None}
    figures["unmeasured"] = [kind for kind in rates if kind not in measured]
    ideal["arithmetic"] = sum(arithmetic[kind] / rate for kind, rate in measured.items())
    figures["launch"] = ideal["launch"] = roofs.launch
    bound = max(ideal, key=lambda name: ideal[name])
    # A triad of so few bytes is bound by its launch, too.
    if ideal[bound] < _FEW_LAUNCHES * ideal["launch"]:
        bound = "launch"
    share = ideal[bound] / seconds
    # What is faster than its roof says that the roof was measured too low, and nothing about a share.
    return figures | {"bound": bound, "share": share if share <= 1 else None}


def _arithmetic(work: Work, launched: LaunchRecord) -> dict[str, float]:
    """Return the operations of a kernel by what the device computes them with, as roofs.Roofs.arithmetic names it.

    Products of integers count only if the device multiplies them by cooperative matrices.
    """
    from .roofs import FACTORS, multiplies_matrices

    found = defaultdict(float, work.operations)
    matrices = False
    with suppress(FileNotFoundError):
        matrices = multiplies_matrices(_stage(launched, "spv").read_bytes())
    for factor, count in work.products.items():
        if matrices and factor in FACTORS:
            found[f"{factor} matrices"] += count
        elif factor[0] != "i":
            found["f64" if factor == "f64" else "f32"] += count
    return found


def _stage(launched: LaunchRecord, name: str) -> Path:
    """Return the file of a stage of a kernel's compilation in Triton's cache.

    Raises:
        FileNotFoundError: there is none.
    """
    from triton.runtime.cache import get_cache_manager

    path = get_cache_manager(launched.hash).get_file(f"{launched.kernel[:150]}.{name}")
    if path is None:
        raise FileNotFoundError("Triton's cache no longer has the kernel")
    return Path(path)


def _work(launched: LaunchRecord) -> Work:
    from ..codegen.pipeline import read_kernel
    from ..footprint import Footprints

    text = _stage(launched, "ttir").read_text()
    return Footprints(read_kernel(text).text).work(launched.values, launched.grid, launched.sizes)


def format_report(figures: dict[str, Any]) -> str:
    """Return a kernel's figures for people to read."""
    from .bound import format_shader

    return "\n".join([_format_work(figures), *(format_shader(figures) if "shader" in figures else [])])


def _format_work(figures: dict[str, Any]) -> str:
    seconds = figures["seconds"]
    grid = " x ".join(map(str, figures["grid"]))
    launches = "1 launch" if figures["launches"] == 1 else f"{figures['launches']} launches"
    head = ", ".join(filter(None, [figures["kernel"], figures["configuration"], f"grid {grid}: {launches}"]))
    timed = f"{_si(seconds)}s by the device's clock" if figures["by_device"] else f"the fastest {_si(seconds)}s"
    if "unknown" in figures:
        return f"{head}, {timed}\n  what bounds it is not known: {figures['unknown'].splitlines()[0]}"
    reached, computed = f"  reaches {_si(figures['bytes'])}B", f"  computes {_si(figures['operations'])}op"
    computed += "" if figures["exact"] else " or more: a loop ends at run time"
    functions = f"{_si(figures['functions'])}functions such as exp"
    if "modelled" in figures:
        modelled = figures["modelled"]
        rows = [
            f"{head}, the last {_si(modelled['cycles'])}cycles (modelled)",
            f"{reached}, {figures['bytes'] / modelled['cycles']:.3g} B a cycle (modelled)",
            f"{computed}, {figures['operations'] / modelled['cycles']:.3g} op a cycle (modelled)",
            *([f"  evaluates {functions}"] if figures["functions"] else []),
            f"  the DMA engine is busy in {modelled['dma']:.0%} of the cycles, the pipeline in "
            f"{modelled['pipeline']:.0%} (modelled): bound by {figures['bound']}",
        ]
        return "\n".join([*rows, *_show_lines(modelled, figures["bound"])])
    roof = f"; a triad of as many {_si(figures['memory_roof'])}B/s" if "memory_roof" in figures else ""
    roofs = "".join(f"; multiply-adds in {kind} {_si(rate)}op/s" for kind, rate in figures["arithmetic_roofs"].items())
    roofs += "".join(f"; no roof of {kind} was measured" for kind in figures["unmeasured"])
    rows = [
        f"{head}, {timed}; one that does nothing {_si(figures['launch'])}s",
        f"{reached}: {_si(figures['bytes'] / seconds)}B/s{roof}",
        f"{computed}: {_si(figures['operations'] / seconds)}op/s{roofs}",
        *([f"  evaluates {functions}: {_si(figures['functions'] / seconds)}/s"] if figures["functions"] else []),
    ]
    share, bound = figures["share"], "the cost of a launch" if figures["bound"] == "launch" else figures["bound"]
    if share is None:
        why = "the kernel is faster than the roof that was measured, so its share of it is not known"
        return "\n".join([*rows, f"  bound by {bound}, as far as that is known: {why}"])
    if share >= _LOW:
        return "\n".join([*rows, f"  bound by {bound}: {share:.0%} of its roof"])
    others = "functions, " if figures["functions"] else ""
    others += "".join(f"arithmetic in {kind}, " for kind in figures["unmeasured"])
    others += "integers, addresses, masks, or loads that wait"
    rows.append(f"  the nearest roof is {bound}, of which it reaches {share:.0%}: bound by {others}")
    return "\n".join(rows)


def _show_lines(modelled: dict[str, Any], bound: str) -> list[str]:
    """Return rows with what each source line takes of the modelled cycles, the most of what bounds the kernel first."""
    lines = modelled.get("lines") or []
    if not lines:
        return []
    # The engine's cycles are those of lines; instructions are also those of barriers and of the program's start.
    transfers = sum(line["dma_cycles"] for line in lines) or 1
    issued = modelled["instructions"]
    first, second = ("dma_cycles", "instructions") if bound == "dma" else ("instructions", "dma_cycles")
    lines = sorted(lines, key=lambda line: (-line[first], -line[second]))
    rows = ["  modelled cycles by source line, of all DPUs:"]
    for line in [each for each in lines if each[first] or each[second]][:_LINES]:
        path, _, number = line["place"].rpartition(":")
        place = f"{Path(path).name}:{number}" if path else line["place"]
        source = linecache.getline(path, int(number)).strip() if path else "a function of ours"
        rows.append(
            f"    {place:<16} pipeline {_si(line['instructions'])}cycles, {line['instructions'] / issued:.0%}; "
            f"DMA {_si(line['dma_cycles'])}cycles, {line['dma_cycles'] / transfers:.0%} | {source}"
        )
    others = issued - sum(line["instructions"] for line in lines)
    rows.append(f"    {'no line':<16} pipeline {_si(others)}cycles, {others / issued:.0%}: start, end, waiting")
    return rows


def _si(number: float) -> str:
    """Return a number with three digits and a prefix of its unit, which follows: 1.23 M."""
    step = min(max(math.floor(math.log10(number) / 3), -3), 4) if number > 0 else 0
    return f"{number / 1000.0**step:.3g} {('', 'k', 'M', 'G', 'T', 'n', 'u', 'm')[step]}"


def show_code(kernel: str, path: str) -> str:
    """Return the lines and the innermost loop of an object that PoCL compiled."""
    try:
        instructions = objects.disassemble(path, kernel)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"  its instructions are not shown: {error}"
    rows = ["  instructions by source line, the innermost loops first:"]
    for line in objects.lines(instructions)[:_LINES]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in line.kinds.most_common())
        place = f"{Path(line.place[0]).name}:{line.place[1]}" if line.place[1] else "no line"
        rows.append(f"    {place:<16} loops {line.depth}: {kinds}; {line.memory} reach memory | {line.source}")
    loop = objects.innermost(instructions)
    if loop:
        rows.append(f"  innermost loop, {len(loop)} instructions:")
        last = None
        for each in loop[:_INSTRUCTIONS]:
            place = f"{Path(each.place[0]).name}:{each.place[1]}" if each.place != last else ""
            last = each.place
            rows.append(f"    {place:<16} {each.text}")
        if len(loop) > _INSTRUCTIONS:
            rows.append(f"    and {len(loop) - _INSTRUCTIONS} more")
    return "\n".join(rows)
