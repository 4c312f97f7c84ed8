"""`python -m triton_dpu_backend.artifact`: pack a script's kernel, or write the entry point for a kernel's IR."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from . import arguments
from .pack import pack
from .script import ScriptError
from .signature import SignatureError, parse, tasklets
from .wrapper import wrapper


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 1, with a line on stderr, if it failed."""
    parser = argparse.ArgumentParser(prog="python -m triton_dpu_backend.artifact", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_pack_options(commands.add_parser("pack", help="make an artifact folder of a Triton script's kernel"))
    add_wrapper_options(
        commands.add_parser("wrapper", help="write the entry point and argument structs for a kernel's IR")
    )
    options = parser.parse_args(words)
    try:
        options.run(options)
    except (ScriptError, SignatureError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def add_pack_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `pack`."""
    script = "takes --out PATH and writes the kernel's LLVM IR there"
    outs = "parameters that are results, counted from 0; default: all arrays that the kernel writes"
    parser.add_argument("--triton-script", "--script", type=Path, required=True, metavar="FILE", help=script)
    parser.add_argument("--artifact-dir", type=Path, required=True, metavar="DIR", help="the folder to write")
    parser.add_argument("--out-indices", type=indices, metavar="IDX[,IDX]", help=outs)
    parser.add_argument("--kernel", default="", metavar="NAME", help="needed if the IR has several kernels")
    parser.set_defaults(run=_pack)


def add_wrapper_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `wrapper`."""
    parser.add_argument("--ir", type=Path, required=True, metavar="FILE", help="the kernel's LLVM IR")
    parser.add_argument("--kernel", default="", metavar="NAME", help="needed if the IR has several kernels")
    for option, what in _WRITTEN.items():
        parser.add_argument(f"--{option}", type=Path, metavar="FILE", required=option == "out", help=what)
    parser.set_defaults(run=_wrapper)


_WRITTEN = {
    "out": "where to write the entry point, wrapper.ll",
    "dpu-args-h": "where to write triton_args.h",
    "dpu-args-c": "where to write triton_args.c, which includes triton_args.h",
    "host-args-h": "where to write the host's struct of arguments",
}


def indices(text: str) -> list[int]:
    """Read `2` or `2,3`."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a list of parameter indices such as 2 or 2,3") from None


def _pack(options: argparse.Namespace) -> None:
    packed = pack(options.triton_script, options.artifact_dir, outs=options.out_indices, kernel=options.kernel)
    dpus = f"{packed.dpus.count} DPUs by default, from {packed.dpus.source}" if packed.dpus else "1 DPU by default"
    print(f"packed the kernel {packed.kernel.name}: results are arrays {packed.outs}; {dpus}")


def _wrapper(options: argparse.Namespace) -> None:
    ir = options.ir.read_text()
    kernel = parse(ir, options.kernel)
    for path, text in (
        (options.out, wrapper(kernel)),
        (options.dpu_args_h, arguments.dpu_header(kernel)),
        (options.dpu_args_c, arguments.dpu_source(kernel, tasklets(ir))),
        (options.host_args_h, arguments.host_header(kernel)),
    ):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
