"""LLVM, MLIR and lld as Triton links with them, and the four tools that our lowering runs: lean, at a commit.

Libraries are static, as Triton wants them; tools that nobody here runs are neither linked nor installed.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from conan import ConanFile
from conan.tools.files import rmdir


class Llvm(ConanFile):
    name = "llvm"
    license = "Apache-2.0 WITH LLVM-exception"
    description = "Libraries, headers and CMake files of LLVM, MLIR and lld; mlir-opt, mlir-translate, opt, llc"
    python_requires = "foundry-upstream/1.0"
    python_requires_extend = "foundry-upstream.Upstream"
    package_type = "static-library"
    # targets: LLVM_TARGETS_TO_BUILD, "host;NVPTX;AMDGPU".
    options = {"assertions": [True, False], "targets": ["ANY"]}
    default_options = {"assertions": False, "targets": "host"}

    subfolder = "llvm"
    programs = ("opt", "llc", "mlir-opt", "mlir-translate")
    # all: the libraries and the tablegens; the preset takes the tools out of it.
    targets = ("all", *programs)

    def variables(self) -> dict[str, str]:
        return {
            "LLVM_ENABLE_ASSERTIONS": "ON" if self.options.assertions else "OFF",
            "LLVM_TARGETS_TO_BUILD": str(self.options.targets),
            # LLVM asks git for its commit, and there is none beside the tree. What links with it says it, by which
            # toolchains/artifacts/triton_wheel.py tells whether a Triton has the LLVM that it is meant to have.
            "LLVM_FORCE_VC_REVISION": str(self.options.commit),
        }

    def package(self) -> None:
        self.run(shlex.join(["cmake", "--install", self.build_folder, "--strip", "--prefix", self.package_folder]))
        for folder in ("share", "lib/objects-Release"):
            rmdir(self, str(Path(self.package_folder, folder)))
        self.package_programs()
