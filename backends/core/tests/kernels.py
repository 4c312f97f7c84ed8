"""Build the structured form of a kernel without a device: Triton's front end, its clean-up, and ours."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from foundry_core.backend.compiler import ProgramBackend, ProgramOptions, make_tile, make_ttir
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource

TARGET = GPUTarget("none", "none", 1)


class Backend(ProgramBackend):
    """The part of a backend that the front end uses."""

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return True

    def parse_options(self, options: Mapping[str, Any]) -> ProgramOptions:
        return ProgramOptions()

    def add_stages(self, stages: dict[str, Any], options: Any, language: object = None) -> None:
        """Add nothing: the structured form is the last stage."""

    def hash(self) -> str:
        return ""


def structured(kernel: Any, types: Mapping[str, str], constants: Mapping[str, Any]) -> str:
    """Return the stage `tile` of a kernel; `types` are of the parameters that are not in `constants`."""
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, signature, dict(constants))
    context = ir.context()
    ir.load_dialects(context)
    backend = Backend(TARGET)
    options = ProgramOptions()
    everything = {
        "target": TARGET,
        "options": options,
        "context": context,
        "module_map": backend.get_module_map(),
        "codegen_fns": backend.get_codegen_implementation(options),
    }
    # 3.6 does not take the target.
    wanted = list(inspect.signature(source.make_ir).parameters)
    metadata: dict[str, Any] = {}
    module = make_ttir(source.make_ir(*(everything[name] for name in wanted)), metadata)
    return make_tile(module, metadata)
