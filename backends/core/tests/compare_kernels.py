"""Compare kernels that hypothesis draws on this target, in Triton's interpreter and in NumPy.

    ./foundry run spirv --wheels=build/wheels backends/core/tests/compare_kernels.py --seconds 7200

The seed of each round is printed. A kernel for which not all three agree is shrunk, and printed as a complete script
with the seed that leads to it; the next round follows, and the exit status is 1. differential/values.py says what has
to be equal.
"""

from __future__ import annotations

import argparse
import sys

from differential.rounds import run, today


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long new rounds are begun (60)")
    parser.add_argument("--seed", type=int, default=today(), help="of the first round; each has the next (the date)")
    parser.add_argument("--rounds", type=int, help="how many rounds, however long they take")
    arguments = parser.parse_args()
    return 1 if run(arguments.seed, arguments.seconds, rounds=arguments.rounds).failures else 0


if __name__ == "__main__":
    sys.exit(main())
