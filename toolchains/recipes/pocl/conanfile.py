"""PoCL, the OpenCL device of the images, as Debian configures it, on Debian's LLVM: library, kernels, ICD file.

It is configured for the folder that the image has it in, /opt/foundry/pocl (the preset says so), because its CMake
files install by absolute paths only.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.files import copy, rm, rmdir


class Pocl(ConanFile):
    name = "pocl"
    license = "MIT"
    description = "libpocl with its drivers for CPUs and its library of OpenCL's functions"
    python_requires = "foundry-upstream/1.0"
    python_requires_extend = "foundry-upstream.Upstream"

    targets = ("all",)

    def package(self) -> None:
        root = Path(self.build_folder, "installed")
        rmdir(self, str(root))
        self.run(shlex.join(["env", f"DESTDIR={root}", "cmake", "--install", self.build_folder, "--strip"]))
        prefix = root / "opt" / "foundry" / "pocl"
        # What programs are linked with; the images' load it by the ICD file.
        rmdir(self, str(prefix / "lib" / "pkgconfig"))
        rm(self, "libpocl.so", str(prefix / "lib"))
        if not copy(self, "*", str(prefix), self.package_folder):
            raise ConanException(f"nothing was installed below {prefix}: was it configured with another prefix before?")
