"""Run the operators of public libraries on torch's CPU tensors, and print docs/operator-libraries.md.

    pip download --no-deps --dest build/wheels liger-kernel==0.8.2 conch-triton-kernels==1.3
    ./foundry run spirv-torch --wheels=build/wheels conformance/libraries/page.py > docs/operator-libraries.md

Words after the script name parts of cases, which alone run.
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import PackageNotFoundError, version

import torch
import triton
from operators import Outcome, run

# Modules of this folder with cases, and libraries that could not be imported where this was run.
CASES = ("liger", "conch_kernels")
OTHERS = {"fla-core": "fla.ops", "flag-gems": "flag_gems"}

HEAD = """# Operator libraries

These public libraries of Triton kernels were run in `spirv-torch`, unchanged, on torch's CPU tensors. Each operator's
results, and the gradients for all its inputs, were compared with the same function in torch's operators and float64.
The largest error of a tensor may be 8 times that of torch's own operators in float32, or 8 roundings of its largest
element, whichever is more. New memory was filled with NaN. A case that launches no kernel does not count as right.
[torch.md](torch.md) says what `torch.compile` makes kernels of.

The outcomes are those of `conformance/libraries/page.py`, whose first lines say how to run it.
"""
TABLE = "| operator | outcome | launches | tensors compared | error, as a share of the allowed |\n|---|---|---|---|---|"


def line(outcome: Outcome) -> str:
    said = outcome.verdict + (f": {outcome.reason[:160]}" if outcome.reason else "")
    share = "" if outcome.share is None else f"{outcome.share:.3f}"
    cells = (outcome.name, said.replace("|", "/"), outcome.launches, outcome.tensors, share)
    return f"| {' | '.join(map(str, cells))} |"


def main(words: list[str]) -> int:
    print(HEAD)
    wrong = 0
    for name in CASES:
        library = importlib.import_module(name)
        chosen = [case for case in library.cases() if not words or any(word in case.name for word in words)]
        outcomes = []
        for case in chosen:
            outcomes.append(run(case))
            print(outcomes[-1], file=sys.stderr, flush=True)
        right = sum(outcome.verdict == "right" for outcome in outcomes)
        wrong += sum(outcome.verdict == "wrong" for outcome in outcomes)
        print(f"\n## {library.TITLE} {version(library.DISTRIBUTION)}\n\n{right} of {len(outcomes)} cases are right.\n")
        print(TABLE, *map(line, outcomes), sep="\n", flush=True)
    print("\n## Libraries that cannot be imported\n\n| library | error of the import |\n|---|---|")
    for distribution, module in OTHERS.items():
        try:
            said = version(distribution)
            importlib.import_module(module)
        except PackageNotFoundError:
            continue
        except Exception as error:
            text = " ".join(str(error).split())
            print(f"| {distribution} {said} | {type(error).__name__}: {text} |")
    # Last: a process that opened the device cannot fork.
    device = triton.runtime.driver.active.device_report()
    print(
        f"\n## Where it ran\n\nTriton {triton.__version__}, torch {torch.__version__}, {device.kind}: {device.device}."
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
