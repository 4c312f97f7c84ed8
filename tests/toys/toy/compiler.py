"""TTIR, one stage of text after it, and nothing to load."""

import hashlib
from dataclasses import dataclass

import triton
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend


@dataclass(frozen=True)
class Options:
    """What Triton's front end asks of options, in 3.2.0, in 3.6.0 and in 3.9.0."""

    num_warps: int = 1
    num_stages: int = 1
    num_ctas: int = 1
    arch: str = ""
    debug: bool = False
    sanitize_overflow: bool = False
    enable_fp_fusion: bool = True
    launch_cooperative_grid: bool = False
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    ir_override: str | None = None
    cluster_dims: tuple = (1, 1, 1)
    extern_libs: tuple = ()

    def hash(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()


class ToyBackend(BaseBackend):
    binary_ext = "toybin"

    @staticmethod
    def supports_target(target):
        return target.backend == "toy"

    def hash(self):
        return "toy"

    def parse_options(self, options):
        return Options(**{key: value for key, value in options.items() if key in Options.__dataclass_fields__})

    def pack_metadata(self, metadata):
        raise AssertionError("a kernel that is only compiled has no metadata of a finished binary")

    def get_codegen_implementation(self, options=None):
        return {}

    def get_module_map(self):
        return {}

    def load_dialects(self, context):
        pass

    def add_stages(self, stages, options, language=None):
        stages["ttir"] = make_ttir
        stages["toytext"] = lambda module, metadata: f"// toy\n{module}"


def make_ttir(module, metadata):
    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    passes.common.add_canonicalizer(manager)
    manager.run(module, *(() if triton.__version__.startswith("3.2.") else ("make_ttir",)))
    return module
