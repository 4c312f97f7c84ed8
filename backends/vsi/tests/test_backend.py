"""The plugin in Triton, with the SDK that the environment names: compiling, caches, launches, and refusals."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, ClassVar

import launch_cases
import numpy as np
import pytest
import triton
from foundry_core.tensor import Tensor
from image import python
from launch_cases import LaunchCases, forget
from shared_kernels import product
from triton.compiler.errors import CompilationError
from triton.runtime.cache import get_cache_manager
from triton_vsi_backend import devices
from triton_vsi_backend.commands import Commands
from triton_vsi_backend.compiler import cmd_gen_name
from triton_vsi_backend.driver import VsiDriver
from triton_vsi_backend.errors import VsiError, ZenCompilerError


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, no_switches: None) -> None:
    """Forget the kernels that other tests compiled with their switches."""
    forget(product)


class TestLaunches(LaunchCases):
    stages: ClassVar[list[str]] = ["ttir", "spv"]
    tool, has_f64 = "zen-compiler", False
    refusal = ZenCompilerError, "zen-compiler refused the kernel assembly_kernel"


def add(n: int = 1000, **options: Any) -> Any:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    y, out = x[::-1].copy(), np.full(n, np.nan, np.float32)
    kernel = launch_cases.add(x, y, out, n, **options)
    assert np.array_equal(out, x + y)
    return kernel


def multiply() -> Any:
    a, b = np.random.default_rng(1).integers(-8, 8, (2, 32, 32)).astype(np.float32)
    c = np.full((32, 32), np.nan, np.float32)
    kernel = product[(1,)](Tensor(a), Tensor(b), Tensor(c), N=32)
    assert np.array_equal(c, a @ b)
    return kernel


def library(kernel: Any) -> Path:
    path = get_cache_manager(kernel.metadata.hash).get_file(cmd_gen_name(kernel.metadata.name))
    assert path is not None
    return Path(path)


def test_the_command_library_is_beside_the_stages_in_the_cache() -> None:
    kernel = add()
    assert kernel.asm["spv"][:4] == b"\x03\x02\x23\x07"
    assert library(kernel).name == "vec_add_cmd_gen.so"
    assert library(kernel).read_bytes()[:4] == b"\x7fELF"


def test_without_threads_a_program_is_one_work_item_and_num_warps_0() -> None:
    kernel = add(num_warps=8)
    assert (kernel.metadata.num_warps, kernel.metadata.threads) == (0, 1)


@pytest.mark.parametrize("warps", [1, 2, 4])
def test_with_threads_a_program_is_spread_over_its_warps(warps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSI_ENABLE_MULTI_THREADS", "1")
    kernel = add(num_warps=warps)
    assert (kernel.metadata.num_warps, kernel.metadata.threads) == (warps, 32 * warps)
    multiply()


@pytest.mark.parametrize("engines", ["0", "1"])
@pytest.mark.parametrize("tc", ["0", "1"])
def test_a_dot_has_commands_where_the_tensor_core_is_enabled(
    tc: str, engines: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VSI_ENABLE_TC", tc)
    monkeypatch.setenv("VSI_ENABLE_MULTI_ENGINES", engines)
    kernel = multiply()
    commands = Commands(library(kernel), ["*fp32"] * 3, most_bytes=1 << 20)
    assert (commands.matmuls > 0) == (tc == "1")
    assert add().metadata.enable_tc == (tc == "1")


def test_switches_make_kernels_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {add().metadata.hash}
    for name in ("VSI_ENABLE_TC", "VSI_ENABLE_MULTI_ENGINES", "VSI_ENABLE_MULTI_THREADS"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, "1")
            forget()
            keys.add(add().metadata.hash)
    assert len(keys) == 4


def test_a_dot_smaller_than_the_tensor_core_takes_is_refused() -> None:
    with pytest.raises(CompilationError) as caught:
        product[(1,)](*[Tensor(np.zeros((8, 8), np.float32))] * 3, N=8)
    # Triton names the line. Up to 3.2, the cause of that error says what is wrong.
    assert "K >= 8" in f"{caught.value} {caught.value.__cause__}"


def test_a_kernel_is_dumped_once_into_each_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        monkeypatch.setenv("VSI_DUMP_DIR", str(tmp_path / name))
        kernel = add(dump_standalone=True)
        (tmp_path / name / "vec_add/vec_add_standalone.cpp").write_text("edited")
        add(dump_standalone=True)
        assert (tmp_path / name / "vec_add/vec_add_standalone.cpp").read_text() == "edited"
    folder = tmp_path / "second" / "vec_add"
    expected = {f"vec_add{end}" for end in (".ttir", ".spv", "_cmd_gen.so", "_standalone.cpp")}
    assert expected <= {path.name for path in folder.iterdir()}
    assert (folder / "vec_add.spv").read_bytes() == kernel.asm["spv"]
    assert (folder / "vec_add.ttir").read_text() == kernel.asm["ttir"]
    assert (folder / "vec_add_cmd_gen.so").read_bytes() == library(kernel).read_bytes()


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "file"
    place.touch()
    monkeypatch.setenv("VSI_DUMP_DIR", str(place))
    with pytest.raises(VsiError, match=f"VSI_DUMP_DIR={place} cannot be written to.*\n.*{place}/vec_add: Not a dir"):
        add(dump_standalone=True)


@pytest.mark.parametrize(("asked", "folder"), [(True, ""), (False, "dump")])
def test_dump_needs_both_the_option_and_the_folder(
    asked: bool, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VSI_DUMP_DIR", str(tmp_path / folder) if folder else "")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        add(dump_standalone=asked)
    assert list(tmp_path.iterdir()) == []
    # A user who asks for a dump and names no folder gets a warning.
    assert ["VSI_DUMP_DIR is not set" in str(warning.message) for warning in caught] == [True] * asked


def test_torch_tensors_on_the_device_are_taken() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("vpex", reason="there is no vpex")
    x = torch.arange(1000, dtype=torch.float32, device="vsi")
    out = torch.full((1000,), float("nan"), device="vsi")
    launch_cases.add(x, x, out, 1000)
    assert torch.equal(out.cpu(), 2 * x.cpu())
    # Tutorials assert this for each of their tensors.
    assert triton.runtime.driver.active.get_active_torch_device() == x.device


def test_a_report_says_on_what_kernels_run_and_what_compiled_them() -> None:
    ran = triton.runtime.driver.active.device_report()
    assert devices.open_device().cl.name.strip() == ran.device
    assert os.environ["VSI_ZEN_COMPILER_PATH"] in ran.driver
    assert ran.memory


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("VSI_ZEN_COMPILER_PATH", "/nowhere", "there is no zen-compiler"),
        ("VSI_ZEN_TC_BRIDGE_PATH", "/nowhere", "there is no libZenTCBridge.so"),
        ("VSI_SDK_DIR", "", "VSI_SDK_DIR is not set"),
        ("VSI_SDK_DIR", "/nowhere", "/nowhere/drivers is not a folder"),
        ("FOUNDRY_VSI_DEVICE", "no such device", "no OpenCL device fits FOUNDRY_VSI_DEVICE=no such device"),
    ],
)
def test_missing_component_makes_the_driver_inactive_with_a_reason(
    variable: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert VsiDriver.is_active()
    assert VsiDriver.inactive_reason() == ""
    monkeypatch.setenv(variable, value)
    assert not VsiDriver.is_active()
    assert reason in VsiDriver.inactive_reason()


def test_importing_the_package_imports_neither_triton_nor_torch() -> None:
    imported = "[name for name in ('triton', 'torch', 'numpy', 'pyopencl') if name in sys.modules]"
    assert python("-c", f"import sys, triton_vsi_backend; print({imported})").stdout == "[]\n"


@pytest.mark.parametrize("order", [("triton", "triton_vsi_backend"), ("triton_vsi_backend", "triton")])
def test_importing_the_package_registers_it_with_a_triton_that_finds_no_entry_points(
    order: tuple[str, str],
) -> None:
    script = f"""
import importlib.metadata
everything = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **given: importlib.metadata.EntryPoints()
import {order[0]}
import {order[1]}
from triton.backends import backends
print(list(backends), backends["vsi"].driver.__name__, backends["vsi"].compiler.__name__)
"""
    assert python("-c", script).stdout == "['vsi'] VsiDriver VsiBackend\n"
