"""Time Triton on a Vulkan device against Triton's CUDA backend and torch: `python bench/vulkan --out=DIR`.

    python bench/vulkan --out=DIR                         on a machine with an NVIDIA GPU: some 6 minutes
    python bench/vulkan --out=DIR --only=softmax,sum
    python bench/vulkan --out=DIR --tiny --peer=none      anywhere, to try the program
    python bench/vulkan --out=DIR --render                write the Markdown again from the JSON

DIR gets vulkan.json and vulkan.md. The wheels of `./foundry wheel spirv` must be installed, and torch with CUDA. The
measures run in a child process. One that crashes or takes too long is reported, and a new child goes on with the next.
The exit status is 1 if a result was wrong or something was not measured.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import report
from taking_turns import Plan


def main(words: list[str]) -> int:
    """Do what the module says; return the exit status."""
    parser = argparse.ArgumentParser(
        "bench/vulkan",
        description=inspect.cleandoc(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--only", default="", help="names of measures, separated by commas; `list` lists them")
    parser.add_argument(
        "--peer", choices=("cuda", "opencl", "none"), default="cuda", help="the other backend of Triton"
    )
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU device")
    parser.add_argument("--budget", type=float, default=430, help="seconds after which no further measure starts")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one measure")
    parser.add_argument("--render", action="store_true", help="write the Markdown again, and measure nothing")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.child:
        work(options)
        return 0
    path = options.out / "vulkan.json"
    if not options.render:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(supervised(options, words), indent=2) + "\n")
    found = json.loads(path.read_text())
    text = report.markdown(found)
    (options.out / "vulkan.md").write_text(text)
    print(text)
    measures = found["measures"].values()
    return int(
        any(measure.get("failed") for measure in measures)
        or not all(each["right"] for measure in measures for each in measure.get("candidates", ()))
    )


def plan(options: argparse.Namespace) -> Plan:
    """Return how long to measure."""
    return Plan(warm=0.05, rounds=3, batch=0.1) if options.tiny else Plan(warm=3.0, rounds=9, batch=25.0)


def supervised(options: argparse.Namespace, words: list[str]) -> dict[str, Any]:
    """Measure everything in children, and return what they found."""
    import measures

    known = measures.measures(tiny=options.tiny)
    names = options.only.split(",") if options.only else list(known)
    if unknown := [name for name in names if name not in known]:
        print(f"no measure {', '.join(unknown)}; known: {', '.join(known)}", file=sys.stderr)
        sys.exit(2)
    start = time.monotonic()
    found: dict[str, Any] = {"machine": {"Python": {"version": platform.python_version()}}, "measures": {}}
    while names and time.monotonic() - start < options.budget:
        names = names[run_child(options, words, names, found, start) :]
    for name in names:
        found["measures"][name] = {"title": known[name].title, "failed": {"all": "there was no time left"}}
    return {
        "command": " ".join(["python bench/vulkan", *words]),
        "seconds": time.monotonic() - start,
        "plan": asdict(plan(options)),
        **found,
    }


def run_child(
    options: argparse.Namespace, words: list[str], names: list[str], found: dict[str, Any], start: float
) -> int:
    """Let a child measure until it ends, fails, or takes too long; return how many names it has dealt with."""
    import measures

    log = options.out / "child.jsonl"
    log.write_text("")
    left = options.budget - (time.monotonic() - start)
    child = subprocess.Popen(
        [sys.executable, Path(__file__).parent, *words, "--child", f"--only={','.join(names)}", f"--budget={left}"]
    )
    done, moment, ended = 0, time.monotonic(), False
    while not ended:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.2)
        ended = child.poll() is not None
        lines = log.read_text().splitlines()
        for line in lines[done:]:
            said = json.loads(line)
            if "machine" in said:
                found["machine"] |= said["machine"]
            else:
                found["measures"][said["name"]] = said["measure"]
        if len(lines) > done:
            done, moment = len(lines), time.monotonic()
        if time.monotonic() - moment > options.limit:
            child.kill()
            child.wait()
            ended = True
    if not done:
        why = f"the process ended with status {child.returncode} before it measured anything"
        for name in names:
            found["measures"][name] = {
                "title": measures.measures(tiny=options.tiny)[name].title,
                "failed": {"all": why},
            }
        return len(names)
    measured = done - 1  # the first line is about the machine
    if measured < len(names) and child.returncode != 0:
        known = measures.measures(tiny=options.tiny)[names[measured]]
        why = f"the process ended with status {child.returncode} (-9: it took more than {options.limit:g} s)"
        found["measures"][names[measured]] = {"title": known.title, "failed": {"all": why}}
        return measured + 1
    return measured


def work(options: argparse.Namespace) -> None:
    """Measure, and append a line of JSON for the machine and for each measure."""
    import devices
    import measures
    import taking_turns
    import triton

    start = time.monotonic()
    ours, peer = devices.Vulkan(), devices.peer(options.peer)
    machine = {"Triton": {"version": triton.__version__}, ours.name: ours.described()}
    machine |= {peer.name: peer.described()} if peer else {}

    def say(what: dict[str, Any]) -> None:
        with (options.out / "child.jsonl").open("a") as file:
            file.write(json.dumps(what) + "\n")

    say({"machine": machine})
    for name in options.only.split(","):
        if time.monotonic() - start > options.budget:
            return
        moment = time.monotonic()
        measure = measures.measures(tiny=options.tiny)[name]
        try:
            taken = taking_turns.take(measure, ours, peer, plan(options))
        except Exception as failure:  # the next measure may run
            taken = {"title": measure.title, "failed": {"all": f"{type(failure).__name__}: {failure}"[:2000]}}
        say({"name": name, "measure": taken})
        print(f"{name}: {time.monotonic() - moment:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
