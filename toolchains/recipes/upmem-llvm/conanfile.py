"""LLVM with typed pointers, for DPUs: opt with dpu-legalize in it, mlir-opt, mlir-translate.

Takes UPMEM's fork of LLVM 12, and any LLVM from 11 to 14 as well.
"""

from conan import ConanFile


class UpmemLlvm(ConanFile):
    name = "upmem-llvm"
    license = "Apache-2.0 WITH LLVM-exception"
    description = "opt, mlir-opt and mlir-translate as TritonPIM's instructions build them, with dpu-legalize in opt"
    python_requires = "foundry-upstream/1.0"
    python_requires_extend = "foundry-upstream.Upstream"
    options = {"assertions": [True, False]}
    default_options = {"assertions": False}

    subfolder = "llvm"
    targets = programs = ("opt", "mlir-opt", "mlir-translate")

    def variables(self) -> dict[str, str]:
        return {
            "LLVM_ENABLE_ASSERTIONS": "ON" if self.options.assertions else "OFF",
            # The pass as one of LLVM's own projects, linked into opt.
            "LLVM_EXTERNAL_PROJECTS": "dpu-legalize",
            "LLVM_EXTERNAL_DPU_LEGALIZE_SOURCE_DIR": self.conf.get("user.foundry:beside", check_type=str)
            + "/dpu-legalize",
            "LLVM_DPULEGALIZE_LINK_INTO_TOOLS": "ON",
        }
