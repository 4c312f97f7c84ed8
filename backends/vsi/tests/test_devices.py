"""The choice of the OpenCL device: that of the SDK's driver, which PyOpenCL's own loader would not find."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from foundry_core.runtime.opencl import DeviceError
from triton_vsi_backend import devices
from triton_vsi_backend.errors import MissingError

SDK = Path(os.environ["VSI_SDK_DIR"])


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    devices._load.cache_clear()
    yield
    devices._load.cache_clear()


@pytest.fixture
def sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an SDK whose folder of drivers is empty. Return that folder."""
    monkeypatch.setenv("VSI_SDK_DIR", str(tmp_path))
    folder = tmp_path / "drivers"
    folder.mkdir()
    return folder


def test_the_driver_in_the_sdk_is_found_and_the_loader_beside_it_is_not_taken_for_one(sdk: Path) -> None:
    (driver,) = devices.icds(SDK / "drivers")
    for name, target in (("liba.so", driver), ("libb.so.2", driver), ("libOpenCL.so.1", SDK / "lib/libOpenCL.so.1")):
        (sdk / name).symlink_to(target)
    (sdk / "empty.so").touch()
    (sdk / "other.so").write_bytes(b"\x7fELF and nothing else")
    (sdk / "readme.txt").write_bytes(b"clIcdGetPlatformIDsKHR")
    (sdk / "folder.so").mkdir()
    assert devices.icds(sdk) == [driver.resolve()]
    assert devices.choose_device().int_ptr == devices.open_device().cl.int_ptr


def test_an_sdk_without_a_driver_is_said_to_have_none(sdk: Path) -> None:
    with pytest.raises(MissingError, match=f"{sdk} has no OpenCL driver\n(.|\n)*FOUNDRY_VSI_DEVICE"):
        devices.choose_device()


def test_a_driver_that_does_not_load_gives_no_device(sdk: Path) -> None:
    (sdk / "libbroken.so").write_bytes(b"\x7fELF clIcdGetPlatformIDsKHR")
    with pytest.raises(MissingError, match="has no OpenCL driver"):
        devices.choose_device()


def test_a_device_of_another_driver_is_taken_only_by_name(sdk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = devices.open_device().cl.name
    monkeypatch.setattr(devices, "_load", lambda folder: frozenset([1]))
    with pytest.raises(DeviceError) as caught:
        devices.choose_device()
    assert f"{name.strip()} (" in str(caught.value)
    assert f"its driver is not in {sdk}" in str(caught.value)
    monkeypatch.setenv("FOUNDRY_VSI_DEVICE", name.strip())
    assert devices.choose_device().name == name


def test_a_named_device_needs_no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    name = devices.open_device().cl.name.strip()
    monkeypatch.delenv("VSI_SDK_DIR")
    monkeypatch.setenv("FOUNDRY_VSI_DEVICE", name)
    assert devices.choose_device().name.strip() == name


def test_a_driver_that_only_the_sdk_has_is_found_and_the_environment_is_left_as_it_was(tmp_path: Path) -> None:
    """Use a separate process, because a loader looks for drivers only once. OCL_ICD_VENDORS hides the system's."""
    script = """
import os
before = dict(os.environ)
from triton_vsi_backend import devices
print(devices.choose_device().name.strip())
assert {name: value for name, value in os.environ.items() if name != "PYOPENCL_HOME"} == before
"""
    environment = os.environ | {"OCL_ICD_VENDORS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == devices.open_device().cl.name.strip(), done.stderr


def test_drivers_of_the_system_stay_in_sight(tmp_path: Path) -> None:
    (driver,) = devices.icds(SDK / "drivers")
    (tmp_path / "one.icd").write_text(f"{driver}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OCL_ICD_VENDORS", str(tmp_path))
        patch.setenv("OCL_ICD_FILENAMES", "/other.so")
        with devices._announced([Path("/sdk.so")]):
            files = {path.name: path.read_text() for path in Path(os.environ["OCL_ICD_VENDORS"]).iterdir()}
            assert files == {"system-one.icd": f"{driver}\n", "sdk-0.icd": "/sdk.so\n"}
            assert os.environ["OCL_ICD_FILENAMES"] == "/sdk.so:/other.so"
        assert os.environ["OCL_ICD_VENDORS"] == str(tmp_path)
        assert os.environ["OCL_ICD_FILENAMES"] == "/other.so"
