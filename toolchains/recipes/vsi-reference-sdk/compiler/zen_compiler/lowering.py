"""From TTIR to SPIR-V for one work-item a program, through foundry_core."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from foundry_core.dialects.tt import PointerType
from foundry_core.errors import LoweringError
from foundry_core.front.structured import kernel
from foundry_core.parse import parse
from foundry_core.pipeline import WorkItemTarget, to_llvm, to_mlir, to_spirv, to_structured

from .bridge import Bridge


@dataclass(frozen=True)
class Lowered:
    """A compiled kernel.

    Attributes:
        spirv: the module.
        name: the kernel's.
        parameters: "ptr", "i1", "i8" to "i64", "f16", "bf16", "f32", "f64", in the kernel's order; neither the grid nor
            the command buffers, which follow.
        matmuls: the command template, 256 bytes, of every tl.dot that goes to the tensor core.
    """

    spirv: bytes
    name: str
    parameters: tuple[str, ...]
    matmuls: tuple[bytes, ...]


def lower(ttir: str, *, threads: int, bridge: Bridge | None) -> Lowered:
    """Compile a kernel.

    Args:
        ttir: the text of Triton's IR.
        threads: work-items that share a program.
        bridge: encodes commands for the tensor core; None: it is not used.

    Raises:
        LoweringError: the kernel cannot be compiled.
    """
    if threads != 1 or bridge is not None:
        raise LoweringError("programs of several work-items and the tensor core are not supported")
    structured = to_structured(ttir)
    function = kernel(parse(structured))
    parameters = tuple(
        "ptr" if isinstance(argument.type, PointerType) else str(argument.type) for argument in function.body.block.args
    )
    target = WorkItemTarget(vector_bytes=_vector_bytes(), llvm_intrinsics=True)
    spirv = to_spirv(to_llvm(to_mlir(structured, target)))
    return Lowered(spirv, function.sym_name.data, parameters, ())


def _vector_bytes() -> int:
    """The width of this machine's vector registers, which is the reference device's."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return 64 if "avx512f" in flags else 32 if "avx2" in flags else 16
