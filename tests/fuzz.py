"""Look for inputs that a parser of fuzz_targets.py does not survive, guided by the code that they reach.

    pip install --require-hashes --requirement tests/fuzz-requirements.txt
    python tests/fuzz.py --target=tar --time=3600       an hour, or until there is a finding, which is printed
    python tests/fuzz.py --all --time=600               ten minutes for each target

What is found, and the inputs that reach new code, are in build/fuzz; the next run starts from these. An input that
takes 20 seconds or 2 GB is a finding, too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("", "backends/core/src", "backends/dpu/src")]
_FOLDER = ROOT / "build/fuzz"
# What is instrumented: our code, and the parsers that it uses.
_GUIDING = [
    "toolchains",
    "foundry_core",
    "triton_dpu_backend",
    "tarfile",
    "zipfile",
    "tomllib",
    "elftools",
    "unidiff",
    "xdsl",
]
_LIMITS = ["-timeout=20", "-rss_limit_mb=2048", "-max_len=65536"]
# Of an input that is a finding.
_SECONDS = 20


def fuzz(name: str, options: list[str]) -> None:
    """Run libFuzzer on a target in this process, which it ends."""
    import atheris

    with atheris.instrument_imports(include=_GUIDING):
        import fuzz_targets
    target, corpus = fuzz_targets.TARGETS[name], _FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    words = (token.hex(" ") for token in fuzz_targets.TOKENS if 0 < len(token) < 60)
    lines = ("".join(f"\\x{byte}" for byte in word.split()) for word in words)
    Path(f"{corpus}.words").write_text("".join(f'"{line}"\n' for line in lines))
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as work:
        for number, seed in enumerate(target.seeds(Path(made))):
            (corpus / f"seed-{number}").write_bytes(seed)
        places = [] if any(not option.startswith("-") for option in options) else [str(corpus)]
        atheris.Setup(
            [f"{sys.executable} {__file__} --target={name} --", *_LIMITS, f"-dict={corpus}.words", *options, *places],
            lambda data: fuzz_targets.run(target, data, Path(work)),
        )
        atheris.Fuzz()


def found(name: str, seconds: int) -> bool:
    """Fuzz a target in another process; return whether there was a finding, which is shortened and printed."""
    before = {*_FOLDER.glob(f"{name}-*")}
    _child(name, f"-max_total_time={seconds}", f"-artifact_prefix={_FOLDER}/{name}-", "-print_final_stats=1")
    new = {*_FOLDER.glob(f"{name}-*")} - before
    for finding in new:
        short = finding.with_name(f"short-{finding.name}")
        _child(name, "-minimize_crash=1", f"-max_total_time={_SECONDS}", f"-exact_artifact_path={short}", str(finding))
        print(f"\n{name}: {(short if short.exists() else finding).read_bytes()!r}\n  in {finding}", flush=True)
    return bool(new)


def _child(name: str, *options: str) -> None:
    subprocess.run([sys.executable, __file__, f"--target={name}", "--", *options], check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", help="a name in fuzz_targets.TARGETS")
    parser.add_argument("--all", action="store_true", help="all targets, one after the other")
    parser.add_argument("--time", type=int, default=600, help="seconds for each")
    parser.add_argument("options", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.options:
        fuzz(given.target, given.options)
    import fuzz_targets

    if not given.all and given.target not in fuzz_targets.TARGETS:
        parser.error(f"--all, or --target with one of: {', '.join(fuzz_targets.TARGETS)}")
    names = list(fuzz_targets.TARGETS) if given.all else [given.target]
    return int(sum(found(name, given.time) for name in names) > 0)


if __name__ == "__main__":
    sys.exit(main())
