"""Find why a kernel takes another time in another process: each setting changes one thing, in several new processes.

    export PYTHONPATH=e2e
    python -m bench.variance                            on a machine with a GPU; some 5 minutes
    python -m bench.variance --settings=plain,offset    some of the settings
    python -m bench.variance --tiny --repeats=2         anywhere, to try the program

It prints, for each kernel and setting, the medians of the processes, and their spread: the largest over the least. What
a setting changes may be a cause if all its medians are elsewhere than those of `plain`, or spread far less; the last
lines say which are. `within` is the spread of the turns in one process. The processes of the settings take turns, so
that a change of the machine in time affects all of them. Each result is compared with float64 first.

The kernels: rotary embedding of the queries and keys in a packed array, whose values are split off; and linear
attention of bench/corpus/.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# What each setting changes. `plain` is each array in an allocation of its own, the device's clock, and a second of work
# before; drivers' compiled kernels are in a cache.
SETTINGS = {
    "plain": "nothing",
    "offset": "arrays begin 256 bytes, 4 KiB and so on behind a multiple of 2 MiB, in one allocation",
    "together": "arrays are in one allocation, at multiples of 2 MiB",
    "host": "arrays are in the host's memory",
    "order": "the other kernel is measured first, and keeps its arrays",
    "reversed": "programs are in reversed order (rotary embedding only)",
    "cold": "no work before, so that the GPU raises its clocks meanwhile",
    "compiled": "the driver compiles the kernel again",
    "waits": "the host waits for each launch, and takes the time",
    "cuda": "CUDA is open in the process, as where torch is compared",
}
_MIB2 = 2 << 20
_OFFSET = 256
# A spread or a distance beyond this share is no noise; so few processes show nothing.
_NOISE, _FEWEST = 1.1, 3
_CLOCKS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")


def main(words: list[str]) -> int:
    """Do what the module says; return the exit status."""
    parser = argparse.ArgumentParser(
        "bench.variance",
        description=inspect.cleandoc(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="settings:\n" + "\n".join(f"  {name:<10} {what}" for name, what in SETTINGS.items()),
    )
    parser.add_argument("--repeats", type=int, default=5, help="processes of each setting")
    parser.add_argument("--settings", default=",".join(SETTINGS), help="some of those below")
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU device")
    parser.add_argument("--budget", type=float, default=540, help="seconds after which no further process starts")
    parser.add_argument("--json", type=Path, help="write what each process measured to this file, too")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.child:
        print(json.dumps(_child(options.child, options.tiny)))
        return 0
    settings = options.settings.split(",")
    if unknown := [name for name in settings if name not in SETTINGS]:
        parser.error(f"no setting {', '.join(unknown)}; known: {', '.join(SETTINGS)}")
    found: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    end = time.monotonic() + options.budget
    for setting in settings * options.repeats:
        if setting in failed or time.monotonic() > end:
            continue
        result = _run(setting, options.tiny)
        if isinstance(result, str):
            failed[setting] = result
        else:
            found.append(result)
            print(f"{setting}: {', '.join(f'{k} {_us(v)}' for k, v in _medians(result).items())}", file=sys.stderr)
        if options.json:
            options.json.write_text(json.dumps({"processes": found, "failed": failed}, indent=1) + "\n")
    print(table(found, failed))
    return int(not found)


def _run(setting: str, tiny: bool) -> dict[str, Any] | str:
    """Measure in a new process; return what it found, or why it found nothing."""
    command = [sys.executable, "-m", "bench.variance", "--child", setting, *(["--tiny"] if tiny else [])]
    with tempfile.TemporaryDirectory() as empty:
        # Triton's cache also keeps what the driver compiled; NVIDIA's and Mesa's drivers have caches of their own.
        caches = {"TRITON_CACHE_DIR": empty, "__GL_SHADER_DISK_CACHE": "0", "MESA_SHADER_CACHE_DISABLE": "true"}
        cache = caches if setting == "compiled" else {}
        try:
            done = subprocess.run(command, env=os.environ | cache, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired as error:
            return str(error)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _clocks() -> dict[str, float]:
    """Return what nvidia-smi says of the GPU now; {} without one."""
    try:
        command = ["nvidia-smi", f"--query-gpu={','.join(_CLOCKS)}", "--format=csv,noheader,nounits"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return dict(zip(_CLOCKS, map(float, done.stdout.splitlines()[0].split(",")), strict=True))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}


def _child(setting: str, tiny: bool) -> dict[str, Any]:
    """Measure both kernels in this process."""
    from .devices import ByHostClock, Vulkan
    from .turns import Plan, take_turns

    context = None
    if setting == "cuda":
        import torch

        context = torch.zeros(1, device="cuda")
    device = Vulkan()
    device.use()
    kernels: dict[str, Any] = {}
    made = _problems(tiny, reverse=setting == "reversed")
    kept = []
    for name in reversed(made) if setting == "order" else made:
        problem, options = made[name]
        if setting in ("offset", "together", "host"):
            places = _places(setting, [*problem.inputs, problem.output])
            device.put = functools.partial(_next, places)  # type: ignore[method-assign]
        candidate = device.candidates(problem, {"": options})[""]
        error, _ = problem.check(setting, candidate)
        kept.append(candidate)
        if setting == "waits":
            kept.append(candidate := type(candidate)(candidate.call, ByHostClock(device)))
        plan = Plan(
            1e-3 if tiny else 10e-3, least=9, most=9, seconds=0.0, warm=0.0 if setting == "cold" or tiny else 1.0
        )
        before = _clocks()
        times = take_turns({"": candidate}, plan)[""]
        kernels[name] = {"turns": times.turns, "error": error, "before": before, "after": _clocks()}
    del context
    return {"setting": setting, "device": device.described(), "kernels": kernels}


def _next(places: Iterator[Any], array: object) -> Any:
    """Return the place of the next array, which is the one that is given."""
    return next(places)


def _problems(tiny: bool, *, reverse: bool) -> dict[str, Any]:
    """Return the kernels by name, each with its launch options."""
    from . import corpus
    from .corpus import elements

    size, row = "cpu" if tiny else "gpu", corpus.ROWS["attention-linear"]
    turned = elements.rotary_split(*((5, 6, 16) if tiny else (8192, 32, 128)), reverse=reverse)
    found: dict[str, Any] = {"rope-split": (turned, {"BH": 4 if tiny else 8, "num_warps": 4})}
    if not reverse:
        options, *_ = corpus.launches(row, size).values()
        found["attention-linear"] = corpus.problem(row, size), options
    return found


def _places(setting: str, arrays: Sequence[Any]) -> Iterator[Any]:
    """Yield tensors with the contents of arrays, in one allocation, at places that a setting says."""
    import numpy as np
    from foundry_core.vulkan.array import DeviceTensor, _Memory
    from foundry_core.vulkan.device import opened
    from foundry_core.vulkan.memory import DeviceBuffer

    size = (1 + sum(-(-array.nbytes // _MIB2) + 1 for array in arrays)) * _MIB2
    whole = DeviceTensor(size, np.uint8)
    if setting == "host":
        whole._buffer = DeviceBuffer(opened(), size, of_host=True)
        whole._array = np.ndarray(size, np.uint8, np.asarray(_Memory(whole._buffer, size)))
    at = -whole._buffer.address % _MIB2
    for number, array in enumerate(arrays):
        begin = at + (_OFFSET << 4 * number % 12 if setting == "offset" else 0)
        part = whole._alike(whole._array[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape))
        part._write(np.ascontiguousarray(array))
        at += -(-(begin - at + array.nbytes) // _MIB2) * _MIB2
        yield part


def _medians(process: Mapping[str, Any]) -> dict[str, float]:
    return {name: statistics.median(kernel["turns"]) for name, kernel in process["kernels"].items()}


def table(found: Sequence[Mapping[str, Any]], failed: Mapping[str, str]) -> str:
    """Return what was found for people to read: a row for each kernel and setting, and the causes."""
    medians: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    within: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    clocks: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for process in found:
        for name, kernel in process["kernels"].items():
            medians[name][process["setting"]].append(statistics.median(kernel["turns"]))
            within[name][process["setting"]].append(max(kernel["turns"]) / min(kernel["turns"]))
            clocks[name][process["setting"]] += [
                each["clocks.sm"] for each in (kernel["before"], kernel["after"]) if each
            ]
    lines = [*dict.fromkeys(process["device"] for process in found)]
    for name, settings in medians.items():
        lines += [
            "",
            name,
            f"  {'setting':<10} {'median':>11} {'least':>11} {'most':>11}  spread  within  clock in MHz",
        ]
        for setting, each in settings.items():
            seen = clocks[name][setting]
            lines.append(
                f"  {setting:<10} {_us(statistics.median(each)):>11} {_us(min(each)):>11} {_us(max(each)):>11}  "
                f"{max(each) / min(each):5.2f}   {statistics.median(within[name][setting]):5.2f}   "
                + (f"{min(seen):.0f} to {max(seen):.0f}" if seen else "not known")
            )
        lines += _verdicts(settings)
    lines += [f"not measured: {setting}: {why}" for setting, why in failed.items()]
    return "\n".join(lines)


def _verdicts(settings: Mapping[str, Sequence[float]]) -> list[str]:
    """Return which settings are elsewhere than `plain` in all their processes, or spread far less."""
    if len(plain := settings.get("plain", ())) < _FEWEST:
        return [f"  no verdict: it takes {_FEWEST} processes of `plain`"]
    spread = max(plain) / min(plain)
    causes, others = [], []
    for setting, each in settings.items():
        if setting == "plain" or len(each) < _FEWEST:
            continue
        if min(each) > _NOISE * max(plain) or max(each) * _NOISE < min(plain):
            causes.append(f"{setting} ({statistics.median(each) / statistics.median(plain):.2f} times plain)")
        elif spread > _NOISE and (max(each) / min(each) - 1) * _FEWEST < spread - 1:
            causes.append(f"{setting} (spread {max(each) / min(each):.2f} instead of {spread:.2f})")
        else:
            others.append(setting)
    return [
        f"  processes of plain spread by {spread:.2f}" + ("" if spread > _NOISE else ": there is nothing to explain"),
        f"  may be a cause: {', '.join(causes) or 'none of these'}",
        f"  ruled out, as far as {len(plain)} processes show: {', '.join(others) or 'none'}",
    ]


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
