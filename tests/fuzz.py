"""Look for inputs that a parser in fuzz_targets.py or fuzz_native.py does not survive.

    python tests/fuzz.py --target=tar --time=3600       an hour, or until there is a finding, which is printed
    python tests/fuzz.py --all --time=600               ten minutes for each target
    python tests/fuzz.py --target=tar --tries=5000      the same damage in each run
    python tests/fuzz.py --faults --tries=99999 --time=120    which of these inputs show the faults of fuzz_faults.py

Parsers in Python are given inputs that are damaged at random. Targets in C and C++ are guided by the code that their
inputs reach, which needs clang++; --clang names it. What is found there, and the inputs that reach new code, are in
build/fuzz; the next run starts from these. An input that takes 20 seconds, or 2 GB in C, is a finding, too.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import islice, takewhile
from multiprocessing import TimeoutError, get_context
from pathlib import Path
from random import Random, SystemRandom

import fuzz_edits
import fuzz_faults
import fuzz_native

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("", "backends/core/src", "backends/dpu/src")]
_FOLDER = ROOT / "build/fuzz"
_LIMITS = ["-timeout=20", "-rss_limit_mb=2048", "-max_len=65536"]
# Processor time of an input that is a finding.
SECONDS = 20


def _write_words(corpus: Path) -> None:
    """Write the dictionary of libFuzzer."""
    words = (token.hex(" ") for token in fuzz_edits.TOKENS if 0 < len(token) < 60)
    lines = ("".join(f"\\x{byte}" for byte in word.split()) for word in words)
    Path(f"{corpus}.words").write_text("".join(f'"{line}"\n' for line in lines))


def first_wrong(name: str, numbers: Iterable[int], seconds: float = SECONDS) -> tuple[int, str] | None:
    """Damage the inputs of a target in the ways that have these numbers.

    Args:
        seconds: processor time that one input may take.

    Returns:
        The first number whose input the target does not survive, and what is wrong; or None.
    """
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as work:
        if name in fuzz_native.TARGETS:
            program = Path(work, "program")
            fuzz_native.build(name, program, fuzz_native.by_gcc())
            seeds, left = fuzz_native.TARGETS[name].seeds(), iter(numbers)
            while files := [write_damaged(Path(made), seeds, name, each) for each in islice(left, 500)]:
                tried = fuzz_native.tried(program, files, 60)
                if tried.wrong:
                    return int(tried.last), tried.wrong
            return None
        import fuzz_targets

        target = fuzz_targets.TARGETS[name]
        seeds = target.seeds(Path(made))
        for each in numbers:
            data = _damaged(seeds, name, each)
            try:
                fuzz_targets.run(target, data, Path(work), seconds)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                return each, f"{error!r:.200} of {data!r:.500}"
    return None


def _damaged(seeds: Sequence[bytes], name: str, number: int) -> bytes:
    random = Random(f"{name} {number}")
    return fuzz_edits.edited(random.choice(seeds), fuzz_edits.drawn(random))


def write_damaged(folder: Path, seeds: Sequence[bytes], name: str, number: int) -> Path:
    """Write the damaged input of a target that has a number to a file of this name."""
    file = folder / str(number)
    file.write_bytes(_damaged(seeds, name, number))
    return file


def fuzz_native_target(name: str, seconds: int, clang: str) -> bool:
    """Let libFuzzer run a target in C++; return whether there was a finding, which it prints."""
    corpus = _FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    _write_words(corpus)
    for number, seed in enumerate(fuzz_native.TARGETS[name].seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    with tempfile.TemporaryDirectory() as work:
        program = Path(work, "program")
        fuzz_native.build(name, program, fuzz_native.by_clang(clang))
        options = [*_LIMITS, f"-dict={corpus}.words", f"-artifact_prefix={_FOLDER}/{name}-"]
        done = subprocess.run(
            [program, *options, f"-max_total_time={seconds}", corpus], env=fuzz_native.ENVIRONMENT, check=False
        )
    return done.returncode != 0


def planted_faults(tries: int, seconds: int) -> int:
    """Plant each fault in a copy of the repository, print what shows it, and return how many nothing shows.

    Args:
        tries: the number of damaged inputs to look among; 0 for the input that the table names.
        seconds: time for each.
    """
    # The children find what it imports of other projects in memory.
    import fuzz_targets  # noqa: F401

    missed = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as work:
        copy = Path(work, "copy")
        fuzz_faults.copied(ROOT, copy)
        for fault in fuzz_faults.FAULTS:
            numbers = range(tries) if tries else [fault.number]
            start, found = time.monotonic(), None
            with fuzz_faults.planted(fault, copy), get_context("fork").Pool(1) as pool, suppress(TimeoutError):
                found = pool.apply_async(_first_wrong_in, (copy, fault.target, numbers)).get(seconds)
            missed += not found
            text = f"{time.monotonic() - start:4.0f} s, input {found[0]}: {found[1]!r:.200}" if found else "not found"
            print(f"{fault.name:60} {fault.target:24} {text}", flush=True)
    return missed


def _first_wrong_in(copy: Path, name: str, numbers: Iterable[int]) -> tuple[int, str] | None:
    """Call first_wrong of a copy of the repository, in a process that ends then."""
    files = {module: getattr(loaded, "__file__", None) or "" for module, loaded in sys.modules.items()}
    for module, file in files.items():
        if module != "__main__" and Path(file).is_relative_to(ROOT) and "site-packages" not in file:
            del sys.modules[module]
    # Two states of a file may have the same size and time.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy / "tests"))
    found: tuple[int, str] | None = import_module("fuzz").first_wrong(name, numbers, fuzz_faults.SECONDS)
    return found


def _numbers(seconds: int) -> Iterator[int]:
    """Return consecutive numbers from one at random on, for some time."""
    end = time.monotonic() + seconds
    return takewhile(lambda _: time.monotonic() < end, itertools.count(SystemRandom().randrange(10**9)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", help="a name in fuzz_targets.TARGETS or fuzz_native.TARGETS")
    parser.add_argument("--all", action="store_true", help="all targets, one after the other")
    parser.add_argument("--time", type=int, default=600, help="seconds for each")
    parser.add_argument("--tries", type=int, default=0, help="so many inputs, the same in each run")
    parser.add_argument("--faults", action="store_true", help="plant faults, and look for what shows them")
    parser.add_argument("--clang", default="clang++-14", help="the compiler of targets in C++")
    given = parser.parse_args()
    if given.faults:
        return int(planted_faults(given.tries, given.time) > 0)
    import fuzz_targets

    known = [*fuzz_targets.TARGETS, *fuzz_native.TARGETS]
    if not given.all and given.target not in known:
        parser.error(f"--all, --faults, or --target with one of: {', '.join(known)}")
    count = 0
    for name in known if given.all else [given.target]:
        if not given.tries and name in fuzz_native.TARGETS:
            count += fuzz_native_target(name, given.time, given.clang)
            continue
        wrong = first_wrong(name, range(given.tries) or _numbers(given.time))
        print(f"{name}: {wrong or 'nothing'}")
        count += bool(wrong)
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
