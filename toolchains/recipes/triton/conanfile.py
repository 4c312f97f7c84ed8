"""Triton's wheel from its sources: setup.py of 3.1 and later, the LLVM of the package llvm, nothing fetched.

What setup.py would fetch, and how each release is kept from it:
    LLVM                                        LLVM_SYSPATH and, where CMake asks for them, MLIR_DIR and its like
    JSON's headers                              JSON_SYSPATH: Debian's nlohmann-json3-dev
    pybind11 (to 3.2 a download, then a wheel)  PYBIND11_SYSPATH; from 3.9 on nanobind, a wheel of the builder
    ptxas, cuobjdump, nvdisasm, CUDA's headers  TRITON_OFFLINE_BUILD; before 3.2 a variable for each, set to any path
    GoogleTest, fetched by CMake itself         TRITON_BUILD_UT=OFF
    what proton, the profiler, needs of CUPTI   TRITON_BUILD_PROTON=OFF

Backends that Triton's own build takes as plugins (TRITON_PLUGIN_DIRS) are the folders of plugins/ at the top of the
tree that have backend/name.conf.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.env import Environment
from conan.tools.files import copy, rmdir, save

# Each keeps a release from fetching what it names, whatever its value; releases differ in which they know.
_FETCHED = (
    "TRITON_PTXAS_PATH",
    "TRITON_PTXAS_BLACKWELL_PATH",
    "TRITON_CUOBJDUMP_PATH",
    "TRITON_NVDISASM_PATH",
    "TRITON_CUDACRT_PATH",
    "TRITON_CUDART_PATH",
    "TRITON_CUPTI_PATH",
    "TRITON_CUPTI_INCLUDE_PATH",
    "TRITON_CUPTI_LIB_PATH",
    "TRITON_CUPTI_LIB_BLACKWELL_PATH",
)
# setup.py makes CMake's command line itself, of what it knows of: the rest goes in by a door of CMake's.
_TOOLCHAIN = """\
include("{toolchain}")
set(CMAKE_JOB_POOLS link={links})
set(CMAKE_JOB_POOL_LINK link)
set(FETCHCONTENT_FULLY_DISCONNECTED ON CACHE BOOL "")
set(TRITON_BUILD_UT OFF CACHE BOOL "")
set(TRITON_BUILD_PROTON OFF CACHE BOOL "")
set(LLVM_DIR "{llvm}/lib/cmake/llvm" CACHE PATH "")
set(MLIR_DIR "{llvm}/lib/cmake/mlir" CACHE PATH "")
set(LLD_DIR "{llvm}/lib/cmake/lld" CACHE PATH "")
"""


class Triton(ConanFile):
    name = "triton"
    license = "MIT"
    description = "Triton's wheel, compiled from its sources with the LLVM that they pin"
    python_requires = "foundry-upstream/1.0"
    python_requires_extend = "foundry-upstream.Upstream"
    # llvm: the version of the package llvm.
    options = {"llvm": ["ANY"]}
    default_options = {"llvm": "unknown"}

    def requirements(self) -> None:
        self.requires(f"llvm/{self.options.llvm}")

    def build(self) -> None:
        source, build = Path(self.source_folder), Path(self.build_folder)
        # Up to 3.3 it lies in python/.
        project = next((folder for folder in (source, source / "python") if (folder / "setup.py").is_file()), None)
        if project is None:
            raise ConanException(f"{source} is no Triton: neither setup.py nor python/setup.py")
        rmdir(self, str(build / "wheel"))
        with self._environment().vars(self).apply():
            self.run(
                shlex.join(
                    [
                        sys.executable,
                        "-m",
                        "pip",
                        "wheel",
                        "--verbose",
                        "--no-index",
                        "--no-deps",
                        "--no-build-isolation",
                        "--disable-pip-version-check",
                        "--wheel-dir",
                        str(build / "wheel"),
                        str(project),
                    ]
                )
            )
        # Where the recipe's users look for the times of compilations.
        for log in (*build.glob("cmake.*/.ninja_log"), *project.glob("build/cmake.*/.ninja_log")):
            copy(self, ".ninja_log", str(log.parent), str(build))

    def _environment(self) -> Environment:
        import pybind11

        source, build = Path(self.source_folder), Path(self.build_folder)
        llvm = self.dependencies["llvm"].package_folder
        presets = Path(self.conf.get("user.foundry:presets", check_type=str))
        links = self.conf.get("user.foundry:links", default=1, check_type=int)
        toolchain = build / "triton.cmake"
        content = _TOOLCHAIN.format(toolchain=presets.parent / "upstream.cmake", links=links, llvm=llvm)
        save(self, str(toolchain), content)
        environment = Environment()
        for name, value in {
            "CMAKE_TOOLCHAIN_FILE": toolchain,
            "LLVM_SYSPATH": llvm,
            "LLVM_INCLUDE_DIRS": Path(llvm, "include"),
            "LLVM_LIBRARY_DIR": Path(llvm, "lib"),
            "JSON_SYSPATH": "/usr",
            "PYBIND11_SYSPATH": Path(pybind11.__file__).parent,
            "TRITON_OFFLINE_BUILD": "1",
            "TRITON_BUILD_PROTON": "OFF",
            "TRITON_BUILD_NVIDIA_GSAN_RUNTIME": "OFF",
            "TRITON_BUILD_DIR": build,
            # Its place for what it fetches; without it, it refuses where there is no home.
            "TRITON_HOME": build,
            "TRITON_PARALLEL_LINK_JOBS": links,
            "MAX_JOBS": self.conf.get("user.foundry:jobs", default=1, check_type=int),
            **dict.fromkeys(_FETCHED, "/not-fetched"),
        }.items():
            environment.define(name, str(value))
        plugins = sorted(file.parent.parent for file in source.glob("plugins/*/backend/name.conf"))
        if plugins:
            environment.define("TRITON_PLUGIN_DIRS", ";".join(map(str, plugins)))
        return environment

    def package(self) -> None:
        copy(self, "*.whl", str(Path(self.build_folder, "wheel")), str(Path(self.package_folder, "wheel")))
