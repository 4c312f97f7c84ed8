"""A made-up Triton's build, with the interface of the real one's: what it reads, what it refuses, what it makes.

Like the real one it would fetch what it is not given; here that is an error.
"""

import os
import subprocess
import sysconfig
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
GIVEN = ("LLVM_SYSPATH", "LLVM_INCLUDE_DIRS", "LLVM_LIBRARY_DIR", "JSON_SYSPATH", "TRITON_PTXAS_PATH")
PLUGINS = [Path(folder) for folder in os.environ.get("TRITON_PLUGIN_DIRS", "").split(";") if folder]
BACKENDS = {
    "nvidia": ROOT / "third_party" / "nvidia",
    **{(folder / "backend" / "name.conf").read_text().strip(): folder for folder in PLUGINS},
}


class CMakeBuild(build_ext):
    def build_extension(self, extension: Extension) -> None:
        missing = [name for name in GIVEN if name not in os.environ]
        if missing or os.environ.get("TRITON_OFFLINE_BUILD") != "1" or os.environ.get("TRITON_BUILD_PROTON") != "OFF":
            raise RuntimeError(f"it would fetch something; not given: {missing}")
        json = Path(os.environ["JSON_SYSPATH"], "include", "nlohmann", "json.hpp")
        pybind11 = Path(os.environ["PYBIND11_SYSPATH"], "include", "pybind11", "pybind11.h")
        for header in (json, pybind11):
            if not header.is_file():
                raise RuntimeError(f"there is no {header}")
        build = Path(os.environ["TRITON_BUILD_DIR"], f"cmake.{sysconfig.get_platform()}")
        build.mkdir(parents=True, exist_ok=True)
        output = Path(self.build_lib, "triton", "_C").resolve()
        subprocess.check_call(
            ["cmake", ROOT, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={output}"],
            cwd=build,
        )
        subprocess.check_call(["cmake", "--build", ".", f"-j{os.environ['MAX_JOBS']}"], cwd=build)


setup(
    name="triton",
    version="1.0.0",
    packages=[*find_packages("python"), *(f"triton.backends.{name}" for name in BACKENDS)],
    package_dir={"": "python"}
    | {f"triton.backends.{name}": os.path.relpath(folder / "backend", ROOT) for name, folder in BACKENDS.items()},
    entry_points={"triton.backends": [f"{name} = triton.backends.{name}" for name in BACKENDS]},
    ext_modules=[Extension("triton", [])],
    cmdclass={"build_ext": CMakeBuild},
)
