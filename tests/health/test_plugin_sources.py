"""What doctor says of a plugin's wheel and releases of Triton; and whether what is recorded is what wheels say."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolchains.engine.client import Engine
from toolchains.health import extension, triton_releases
from toolchains.health.extension import Loading
from toolchains.health.machine import Problem
from toolchains.system.errors import UsageError

GOOD = """
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget

class NpuBackend(BaseBackend):
    @staticmethod
    def supports_target(target): return target.backend == "npu"
    def hash(self): return "1"
    def parse_options(self, options): return options
    def add_stages(self, stages, options, language=None): pass
    def load_dialects(self, context): pass
    def get_module_map(self): return {}
    def get_codegen_implementation(self, options=None): return {}
    def pack_metadata(self, metadata): return ()
    def make(self, pm): passes.common.add_inliner(pm)
"""
DRIVER = """
from triton.backends import driver as base

class NpuDriver(base.DriverBase):
    @classmethod
    def is_active(cls): return False
    def get_current_target(self): pass
    def get_active_torch_device(self): pass
    def get_benchmarker(self): pass
    def map_python_to_cpp_type(self, ty): pass
"""
ALL = "3.2.0, 3.3.1, 3.4.0, 3.5.1, 3.6.0, 3.7.1, 3.8.0, 3.9.0"
SINCE_3, SINCE_4 = ALL.removeprefix("3.2.0, "), ALL.removeprefix("3.2.0, 3.3.1, ")


def found(
    folder: Path, compiler: str = GOOD, driver: str = DRIVER, requires: str = "", triton: str = "", **others: str
) -> list[Problem]:
    wheel = folder / "npu-1-py3-none-any.whl"
    files: Mapping[str, str] = {
        "npu/__init__.py": "",
        "npu/compiler.py": compiler,
        "npu/driver.py": driver,
        "npu-1.dist-info/entry_points.txt": "[triton.backends]\nnpu = npu\n",
        "npu-1.dist-info/METADATA": f"Name: npu\nVersion: 1\n{requires}\n",
        **{name.replace("__", "/") + ".py": text for name, text in others.items()},
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return list(extension.check(wheel, Loading(), triton=triton))


def said(problems: list[Problem]) -> list[str]:
    return [problem.what for problem in problems]


def test_plugin_for_all_releases_has_no_finding(tmp_path: Path) -> None:
    assert said(found(tmp_path)) == []


def test_import_of_the_wheel_is_not_run(tmp_path: Path) -> None:
    planted = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    found(tmp_path, planted + GOOD, planted + DRIVER, npu__other=planted)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        # Of Triton's own history: each of the first three, the sixth and the last one broke plugins.
        ("options, language=None", "options", f"{SINCE_4}: NpuBackend.add_stages takes 2 arguments, and gets 3"),
        ("options, language=None", "options, language", "3.2.0, 3.3.1: NpuBackend.add_stages needs 3 arguments"),
        ("(self, options=None): return {}", "(self): return {}", f"{SINCE_3}: NpuBackend.get_codegen_implementation"),
        ("def get_module_map", "def get_map", f"{ALL}: NpuBackend has no get_module_map(self), which is abstract"),
        ("import ir, passes", "import ir, passes, gluon_ir", "3.2.0, 3.3.1: there is no triton._C.libtriton.gluon_ir"),
        ("import BaseBackend,", "import AttrsDescriptor, BaseBackend,", f"{SINCE_3}: there is no"),
        ("common.add_inliner", "common.add_lost", f"{ALL}: there is no triton._C.libtriton.passes.common.add_lost"),
        ("\nclass", "\nimport triton.knobs\nclass", "3.2.0, 3.3.1: there is no triton.knobs"),
    ],
)
def test_finding_names_the_releases_and_what_is_wrong(old: str, new: str, what: str, tmp_path: Path) -> None:
    assert old in GOOD
    first, last = said(found(tmp_path, GOOD.replace(old, new, 1)))
    assert first.startswith(f"Triton {what}")
    good = [version for version in ALL.split(", ") if version not in first]
    assert last == f"nothing was found with Triton {', '.join(good) or 'of any release'}"


def test_method_of_a_driver_that_a_release_added_is_missing_there(tmp_path: Path) -> None:
    driver = DRIVER.replace("map_python_to_cpp_type", "cpp_type")
    first, _ = said(found(tmp_path, driver=driver))
    assert first.startswith("Triton 3.5.1, 3.6.0, 3.7.1, 3.8.0, 3.9.0: NpuDriver has no map_python_to_cpp_type")


def test_code_for_some_releases_only_is_left_out(tmp_path: Path) -> None:
    guarded = (
        "try:\n    from triton import gone\nexcept ImportError:\n    gone = None\nif gone:\n    import triton.lost\n"
    )
    assert said(found(tmp_path, guarded + GOOD)) == []


def test_classes_are_followed_through_modules_of_the_wheel_and_of_backends(tmp_path: Path) -> None:
    derived = "from .base import NpuBackend as Base\nclass Npu(Base):\n    def hash(self, more): pass\n"
    first, _ = said(found(tmp_path, derived, npu__base=GOOD))
    assert first == f"Triton {ALL}: Npu.hash needs 1 arguments, and gets 0"
    core = "from foundry_core.backend.compiler import ProgramBackend\nclass Npu(ProgramBackend):\n    pass\n"
    *all_of_it, _ = said(found(tmp_path, core))
    missing = {what.partition(" has no ")[2].partition("(")[0] for what in all_of_it}
    assert {"add_stages", "hash"} <= missing and "supports_target" not in missing, all_of_it
    # What stands in no file that is read may have all methods.
    other = "from other.compiler import OtherBackend\nclass Npu(OtherBackend):\n    pass\n"
    assert said(found(tmp_path, other)) == []


@pytest.mark.parametrize(
    ("requires", "triton", "fatal"),
    [
        ("", "", False),
        ("Requires-Dist: triton>=3.4", "", False),
        ("Requires-Dist: triton>=3.3; extra == 'triton'", "", True),
        ("", "3.2.0", True),
    ],
)
def test_finding_is_fatal_if_the_wheel_is_for_that_release(
    requires: str, triton: str, fatal: bool, tmp_path: Path
) -> None:
    problems = found(tmp_path, "import triton.knobs\n" + GOOD, requires=requires, triton=triton)
    assert [problem.fatal for problem in problems] == [fatal, False]


def test_plugin_that_no_release_can_use_will_fail(tmp_path: Path) -> None:
    assert found(tmp_path, "import triton.lost\n" + GOOD)[0].fatal


def test_source_that_is_not_python_is_named(tmp_path: Path) -> None:
    (problem, *_) = found(tmp_path, "def (")
    assert problem.what == "npu.compiler is not Python" and problem.fatal


def test_unknown_release_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--triton=3.9.9: nothing is known") as caught:
        found(tmp_path, triton="3.9.9")
    assert ALL in caught.value.why


def test_page_and_file_are_what_the_recorded_releases_give() -> None:
    releases = triton_releases.recorded()
    assert ", ".join(releases) == ALL
    assert triton_releases.FILE.read_text(encoding="utf-8") == triton_releases.text(releases.values())
    assert triton_releases.PAGE.read_text(encoding="utf-8") == triton_releases.page()


@pytest.mark.docker
@pytest.mark.slow
def test_recorded_releases_are_those_of_the_locked_wheels(docker: Engine) -> None:
    """They are imported in a container, and asked."""
    wheels = triton_releases.locked_wheels()
    assert wheels, "an image was built, so the store has its wheel"
    for wheel in wheels:
        asked = triton_releases.probe(wheel)
        known = triton_releases.recorded()[asked.version]
        assert triton_releases.text([asked]) == triton_releases.text([known])
