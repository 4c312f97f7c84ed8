"""Compile Triton's IR to SPIR-V with zen-compiler, in the stages that Triton's cache shows: ttir, spv.

zen-compiler's other output is the library that generates a kernel's command buffers. It is next to the kernel in
Triton's cache, as <kernel>_cmd_gen.so. It is not a stage, because Triton reads a stage as text unless it is the binary.

Environment, read when a kernel is compiled. A keyword of the launch (enable_tc=True) comes first:
    VSI_ENABLE_TC: 1 sends matrix multiplications to the tensor core.
    VSI_ENABLE_MULTI_ENGINES: 1 lets the DMA engines work in parallel with the shader cores.
    VSI_ENABLE_MULTI_THREADS: 1 spreads a program over num_warps * 32 work-items; otherwise a program is one work-item.
Each may be 0, as if it were not set; another value is an error.
"""

from __future__ import annotations

import functools
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from foundry_core.backend.compiler import (
    LEAST_SHARED,
    OptionError,
    ProgramBackend,
    ProgramOptions,
    clean_up,
    kernel_name,
    launch_options,
    uses_addresses,
    without_collections,
)
from foundry_core.codegen.programs import NAMES, fingerprint, locate
from triton.backends.compiler import GPUTarget

from . import pieces
from .errors import MissingError, VsiError

_WARP = 32
_SWITCHES = {
    "enable_tc": "VSI_ENABLE_TC",
    "enable_multi_engines": "VSI_ENABLE_MULTI_ENGINES",
    "enable_multi_threads": "VSI_ENABLE_MULTI_THREADS",
}


@dataclass(frozen=True)
class VsiOptions(ProgramOptions):
    """Options that a launch may set by keyword: `kernel[grid](..., num_warps=8, dump_standalone=True)`.

    Attributes:
        enable_tc, enable_multi_engines, enable_multi_threads: by default as the environment says, see above.
        dump_standalone: at a launch, write the kernel and a C++ launcher into $VSI_DUMP_DIR/<kernel>.
    """

    backend_name: str = "vsi"
    num_warps: int = 4
    warp_size: int = _WARP
    enable_tc: bool = False
    enable_multi_engines: bool = False
    enable_multi_threads: bool = False
    dump_standalone: bool = False
    threads_instead: ClassVar[str] = "num_warps= has the work-items of a program, with VSI_ENABLE_MULTI_THREADS=1"

    @property
    def threads(self) -> int:
        """Work-items of each program."""
        return self.num_warps * self.warp_size if self.enable_multi_threads else 1


def target() -> GPUTarget:
    """Return Triton's name for the device. zen-compiler generates the same code for all devices."""
    return GPUTarget("vsi", "gpgpu", _WARP)


class VsiBackend(ProgramBackend):
    """The compiler, as Triton's runtime sees it."""

    binary_ext = "spv"
    options_type = VsiOptions

    def parse_options(self, opts: dict[str, Any]) -> VsiOptions:
        switches = {name: _is_on(variable) for name, variable in _SWITCHES.items()}
        options = self.options_type(**switches | launch_options(self.options_type, opts) | {"arch": self.target.arch})
        if options.warp_size != _WARP:
            raise VsiError(f"warp_size={options.warp_size} is not possible", why=f"a warp has {_WARP} work-items")
        return options

    def get_codegen_implementation(self, options: Any = None) -> dict[str, Any]:
        # The smallest product of the tensor core: m, n, k.
        return super().get_codegen_implementation(options) | {"min_dot_size": lambda lhs, rhs: (16, 16, 8)}

    def add_stages(self, stages: dict[str, Any], options: VsiOptions, language: Any = None) -> None:
        # zen-compiler decides what a `while` without effects means. No barriers are added to keep such a loop.
        stages["ttir"] = clean_up
        stages["spv"] = functools.partial(make_spirv, options=options)

    def hash(self) -> str:
        return f"{self.target.arch}-{compiler_fingerprint()}"


def _is_on(variable: str) -> bool:
    """Return whether a variable switches something on.

    Raises:
        OptionError: it has another value than 0 and 1.
    """
    value = os.environ.get(variable) or "0"
    if value not in ("0", "1"):
        raise OptionError(
            f"{variable}={value} is not possible", why="1 switches on, 0 switches off", next=f"export {variable}=1"
        )
    return value == "1"


def make_spirv(module: Any, metadata: dict[str, Any], *, options: VsiOptions) -> bytes:
    """Run the stage spv: return the kernel, and note in the metadata what Triton's runtime and the launcher need.

    Raises:
        MissingError: a piece of the SDK does not exist.
        ZenCompilerError: zen-compiler refused the kernel.
    """
    # Imported at first use, so that a kernel from Triton's cache does not load it.
    from triton.runtime.cache import get_cache_manager

    from .zen_compiler import Switches, compile_ttir

    name = kernel_name(module)
    switches = Switches(
        options.enable_tc, options.enable_multi_engines, options.enable_multi_threads, bool(options.check)
    )
    ttir = str(module)
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(compile_ttir, ttir, name=name, threads=options.threads, switches=switches)
        # While zen-compiler runs, which may know operations that foundry_core does not know. Then any argument may be
        # written.
        with without_collections():
            from foundry_core.codegen.pipeline import written_arguments
        written = written_arguments(ttir)
        compiled = started.result()
    get_cache_manager(metadata["hash"]).put(compiled.cmd_gen, cmd_gen_name(name), binary=True)
    metadata["name"] = name
    metadata["shared"] = LEAST_SHARED
    metadata["written"] = written
    metadata["addresses"] = uses_addresses(ttir)
    metadata["threads"] = options.threads
    if not options.enable_multi_threads:
        metadata["num_warps"] = 0
    return compiled.spirv


def cmd_gen_name(kernel: str) -> str:
    """Return the name that the library for a kernel's commands has in Triton's cache, shortened as Triton does."""
    return f"{kernel[:150]}_cmd_gen.so"


def compiler_fingerprint() -> str:
    """Identify everything between TTIR and SPIR-V, except missing programs, which fail when they are needed.

    The SDK's pieces are identified by content. The reference zen-compiler is foundry_core with LLVM's tools, so these
    are included, too.
    """
    paths = []
    for piece in (pieces.zen_compiler, pieces.bridge):
        try:
            paths.append(piece())
        except MissingError:
            continue
    return _fingerprint(tuple(paths))


@functools.cache
def _fingerprint(paths: tuple[Path, ...]) -> str:
    programs = [path for name in NAMES if (path := locate(name))]
    digest = hashlib.sha256(fingerprint(("foundry_core", "triton_vsi_backend"), programs).encode())
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
