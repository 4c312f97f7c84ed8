"""From Triton's IR to SPIR-V, in the stages that Triton's cache shows: ttir, tile, mlir, llir, spv."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from foundry_core.fingerprint import fingerprint
from foundry_core.programs import NAMES, locate
from foundry_core.workitem.target import WorkItemTarget
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget


@dataclass(frozen=True)
class SpirvOptions:
    """What a launch may set by keyword, as `kernel[grid](..., num_warps=4)`.

    A program is one work-item here, so the options that spread a program over a GPU (num_warps, num_stages, num_ctas)
    are accepted, because kernels and their autotuner configurations carry them, and change nothing.
    """

    backend_name: str = "spirv"
    arch: str = ""
    num_warps: int = 1
    num_stages: int = 1
    num_ctas: int = 1
    warp_size: int = 1
    enable_fp_fusion: bool = True
    debug: bool = False
    sanitize_overflow: bool = False
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    launch_cooperative_grid: bool = False
    extern_libs: tuple[tuple[str, str], ...] = ()
    supported_fp8_dtypes: tuple[str, ...] = ()
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    # The tf32 modes permit a loss of precision and do not demand it: they are computed like ieee.
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3")
    max_num_imprecise_acc_default: int = 0

    def hash(self) -> str:
        """Part of the key of Triton's cache."""
        key = "_".join(f"{name}-{value}" for name, value in sorted(self.__dict__.items()))
        return hashlib.sha256(key.encode()).hexdigest()


_LLVM = "-llvm"


def target(device: WorkItemTarget) -> GPUTarget:
    """Triton's name for a device, such as v64-llvm. A warp is one work-item, one program."""
    return GPUTarget("spirv", f"v{device.vector_bytes}{_LLVM if device.llvm_intrinsics else ''}", 1)


def device(target: GPUTarget) -> WorkItemTarget:
    """The inverse of `target`."""
    return WorkItemTarget(int(target.arch.removeprefix("v").removesuffix(_LLVM)), target.arch.endswith(_LLVM))


class SpirvBackend(BaseBackend):  # type: ignore[misc]
    """Triton's view of the compiler."""

    binary_ext = "spv"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "spirv")

    def parse_options(self, opts: dict[str, Any]) -> SpirvOptions:
        known = SpirvOptions.__dataclass_fields__
        given = {name: opts[name] for name in known if opts.get(name) is not None}
        return SpirvOptions(**given | {"arch": self.target.arch})

    def pack_metadata(self, metadata: Any) -> Any:
        return metadata

    def get_codegen_implementation(self, options: SpirvOptions) -> dict[str, Any]:
        # Tiles of any size are multiplied: there is no matrix instruction whose shape would set a least one.
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, ctx: Any) -> None:
        """TTIR is made of Triton's own dialects; everything after it leaves Triton's MLIR."""

    def add_stages(self, stages: dict[str, Any], options: SpirvOptions, language: Any = None) -> None:
        # The lowering is imported by its first use: a kernel out of Triton's cache does not pay for it.
        def tile(module: Any, metadata: dict[str, Any]) -> str:
            from foundry_core.pipeline import to_structured

            metadata["name"] = module.get_entry_func_name()
            metadata["shared"] = 0
            return to_structured(str(module))

        def mlir(source: str, metadata: dict[str, Any]) -> str:
            from foundry_core.pipeline import to_mlir

            return to_mlir(source, device(self.target))

        def llir(source: str, metadata: dict[str, Any]) -> str:
            from foundry_core.pipeline import to_llvm

            return to_llvm(source)

        def spv(source: str, metadata: dict[str, Any]) -> bytes:
            from foundry_core.pipeline import to_spirv

            return to_spirv(source)

        stages["ttir"] = lambda module, metadata: make_ttir(module)
        stages["tile"] = tile
        stages["mlir"] = mlir
        stages["llir"] = llir
        stages["spv"] = spv

    def hash(self) -> str:
        return f"{self.target.arch}-{compiler_fingerprint()}"


def make_ttir(module: Any) -> Any:
    """Triton's own clean-up, the passes that its other backends run before they leave TTIR."""
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.common.add_inliner(manager)
    if hasattr(passes.ttir, "add_rewrite_tensor_pointer"):  # until 3.6: block pointers become plain ones
        passes.ttir.add_rewrite_tensor_pointer(manager)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.ttir.add_reorder_broadcast(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.ttir.add_loop_unroll(manager)
    manager.run(module, "make_ttir")
    return module


@functools.cache
def compiler_fingerprint() -> str:
    """Identity of everything between TTIR and SPIR-V. A program that is missing has none, and fails when it is run."""
    programs = [path for name in NAMES if (path := locate(name))]
    return fingerprint(("foundry_core", "triton_spirv_backend"), programs)
