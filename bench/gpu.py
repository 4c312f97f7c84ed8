"""Time Triton on a Vulkan device against Triton's CUDA backend and torch, without an image.

    export PYTHONPATH=e2e                               as in an image: e2e/ runs and reports the measurements
    python -m bench.gpu --out=DIR                       on a machine with an NVIDIA GPU; --budget limits the time
    python -m bench.gpu --out=DIR --only=softmax,sum
    python -m bench.gpu --out=DIR --corpus              the kernels of bench/corpus/
    python -m bench.gpu --out=DIR --tiny --peer=none    anywhere, to try the program
    python -m bench.gpu --out=DIR --render              write the Markdown again from the JSON

DIR gets vulkan.json and vulkan.md, or corpus.json and corpus.md, written after each measurement. The wheels of
`./foundry wheel spirv` must be installed, and torch with CUDA. A measurement that crashes or takes too long is
reported, and a new process goes on with the next. The exit status is 1 if a result was wrong or something was not
measured.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

OURS, CUDA = "Triton, Vulkan", "Triton, CUDA"
_FOLDER = Path(__file__).parent


def names_of(file: str) -> list[str]:
    """Return the names of the measurements in a table of this folder."""
    return list(tomllib.loads((_FOLDER / file).read_text(encoding="utf-8")))


NAMES = [*names_of("vulkan.toml"), "launch"]
CORPUS = names_of("corpus/corpus.toml")
# How many of the slowest kernels the summary of the corpus names.
_WORST = 5


def main(words: list[str]) -> int:
    """Do what the module says; return the exit status."""
    parser = argparse.ArgumentParser(
        "bench.gpu",
        description=inspect.cleandoc(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--corpus", action="store_true", help="the corpus, and not the kernels that were tuned")
    parser.add_argument("--only", default="", help=f"some of {', '.join(NAMES)}, or of bench/corpus/corpus.toml")
    parser.add_argument(
        "--peer", choices=("cuda", "opencl", "none"), default="cuda", help="the other backend of Triton"
    )
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU device")
    parser.add_argument("--budget", type=float, default=430, help="seconds after which no further measure starts")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one measure")
    parser.add_argument("--no-bounds", action="store_true", help="do not find what bounds each kernel: it takes time")
    parser.add_argument("--render", action="store_true", help="write the Markdown again, and measure nothing")
    options = parser.parse_args(words)
    known = CORPUS if options.corpus else NAMES
    names = options.only.split(",") if options.only else known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no measure {', '.join(unknown)}; known: {', '.join(known)}")
    path = options.out / ("corpus.json" if options.corpus else "vulkan.json")

    def write(results: Mapping[str, Any]) -> None:
        for file, text in ((path, json.dumps(results, indent=2) + "\n"), (path.with_suffix(".md"), markdown(results))):
            # A run that is killed leaves a whole file.
            beside = file.with_name(f"{file.name}.part")
            beside.write_text(text)
            beside.replace(file)

    if options.render:
        results = json.loads(path.read_text())
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        results = measured(options, names, words, write)
    write(results)
    print(markdown(results))
    return int(bool(results["failed"] or any(each["failed"] for each in results["measurements"])))


def measured(
    options: argparse.Namespace, names: list[str], words: list[str], write: Callable[[Mapping[str, Any]], None]
) -> dict[str, Any]:
    """Run `python -m bench`, and return what it measured.

    Args:
        write: called after each measurement with what was measured so far.
    """
    env = {"FOUNDRY_MEASUREMENTS": "vulkan", "FOUNDRY_BENCH_FULL": "1", "FOUNDRY_BENCH_PEER": options.peer}
    if options.tiny:
        env["FOUNDRY_BENCH_TINY"] = "1"
    if options.no_bounds:
        env["FOUNDRY_BENCH_BOUNDS"] = "0"
    command = [sys.executable, "-m", "bench", "--records", "--only", ",".join(names), f"--limit={options.limit}"]
    start = time.monotonic()
    measurements: list[Any] = []
    failed = dict.fromkeys(names, "the run ended before it")
    results: dict[str, Any] = {
        "command": " ".join(["python -m bench.gpu", *words]),
        "corpus": options.corpus,
        "seconds": 0.0,
        "measurements": measurements,
        "failed": failed,
    }
    with subprocess.Popen(command, env=os.environ | env, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            event = json.loads(line)
            results["seconds"] = time.monotonic() - start
            if "began" in event and results["seconds"] > options.budget:
                child.send_signal(signal.SIGINT)
                failed.update(dict.fromkeys(failed, "there was no time left"))
                break
            if result := event.get("result"):
                del failed[result["name"]]
                if data := result.get("data"):
                    measurements += data["measurements"]
                else:
                    failed[result["name"]] = result["failure"]
                write(results)
    return results


def markdown(results: Mapping[str, Any]) -> str:
    """Return the report: ratios with the project's aims, then each candidate's rate.

    Args:
        results: what `measured` returns.
    """
    machine: dict[str, str] = {}
    for each in results["measurements"]:
        machine |= each["on"]
    lines = ["# Triton on a Vulkan device, measured", ""]
    lines += [
        *(f"- {part}: {what}" for part, what in machine.items()),
        "",
        f"Taken by `{results['command']}` in {results['seconds']:.0f} s. Candidates take turns in one process, "
        "after work that does not count. Rates are of the median turn, and a share is the median of the shares in "
        "single rounds. Both backends of Triton run the same kernels, each with the fastest of the same "
        "configurations. Every result was compared with float64 first.",
        "",
        "| measure | peer | share of the peer's speed | at least | aim |",
        "|---|---|---|---|---|",
    ]
    for each in results["measurements"]:
        for peer, (least, aim) in each["aims"].items():
            lines.append(f"| {each['title']} | {peer} | {_share(each, peer, least)} | {least:g} | {aim:g} |")
    if results.get("corpus"):
        lines += ["", summary(results["measurements"])]
    lines += [
        "",
        "| measure | candidate | rate | least to most | configuration | error, part of what is allowed |",
        "|---|---|---|---|---|---|",
    ]
    for each in results["measurements"]:
        for row in each["rows"]:
            times, amount = row["times"], row["rate"] * row["times"]["median"]
            span = f"{amount / max(times['turns']):.4g} to {amount / min(times['turns']):.4g}"
            error = "" if row["error"] is None else f"{row['error']:.2g}"
            rate = f"{row['rate']:.4g} {each['unit']}"
            lines.append(f"| {each['title']} | {row['label']} | {rate} | {span} | {row['detail']} | {error} |")
    lines += _bounds(results["measurements"])
    failed = [
        (f"{each['title']}, {who}", why) for each in results["measurements"] for who, why in each["failed"].items()
    ]
    if failed := [*failed, *results["failed"].items()]:
        problems = (f"- {who}: {why}".replace("\n", " ") for who, why in failed)
        lines += ["", "Wrong, or not measured:", "", *problems]
    return "\n".join(lines) + "\n"


def summary(measurements: Sequence[Mapping[str, Any]]) -> str:
    """Return the geometric mean of the ratios to Triton's CUDA backend, and the worst ones."""
    key = f"{OURS} over {CUDA}, median"
    shares = sorted((each["ratios"][key], each["title"]) for each in measurements if key in each["ratios"])
    if not shares:
        return f"Nothing was compared with {CUDA}."
    mean = math.exp(math.fsum(math.log(share) for share, _ in shares) / len(shares))
    worst = "; ".join(f"{title} {share:.2f}" for share, title in shares[:_WORST])
    return f"Geometric mean of {len(shares)} kernels: {mean:.2f}. The worst: {worst}."


def _bounds(measurements: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of what bounds each kernel; docs/profiling.md says how to read it."""
    rows = []
    for each in measurements:
        for kernel in each.get("kernels", ()):
            share, shader = kernel.get("share"), kernel.get("shader") or {"statistics": {}, "chosen": "", "signs": []}
            bound = kernel.get("bound") or f"not known: {kernel.get('unknown', '')}"
            columns = [
                each["title"],
                kernel["kernel"],
                bound if share is None else f"{bound}, {share:.0%} of its roof",
                "; ".join(f"{sign['kind']}: {sign['shows']}" for sign in shader["signs"]),
                ", ".join(f"{name} {number:g}" for name, number in shader["statistics"].items()),
                shader["chosen"],
                "; ".join(kernel.get("next", ())),
            ]
            rows.append(f"| {' | '.join(text.replace('|', '/').replace(chr(10), ' ') for text in columns)} |")
    if not rows:
        return []
    return [
        "",
        "What bounds our kernels. Roofs are measured in this run; signs are counted in the module, and not measured.",
        "",
        "| measure | kernel | nearest roof | what may keep it below | the driver's compiler says | chosen | next |",
        "|---|---|---|---|---|---|---|",
        *rows,
    ]


def _share(measurement: Mapping[str, Any], peer: str, least: float) -> str:
    labels = [row["label"] for row in measurement["rows"]]
    if missing := [name for name in (OURS, peer) if name not in labels]:
        return f"not measured: {', '.join(missing)}"
    share = measurement["ratios"][f"{OURS} over {peer}, median"]
    return f"{share:.2f}" if share >= least else f"**{share:.2f}**, missed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
