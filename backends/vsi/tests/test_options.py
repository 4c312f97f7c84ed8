"""Options: from the launch, from the environment, and which of them make a different compiled kernel."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from foundry_core.backend.compiler import OptionError
from made_up import FakeSdk
from triton_vsi_backend.compiler import VsiBackend, VsiOptions, target
from triton_vsi_backend.errors import VsiError

SWITCHES = {
    "VSI_ENABLE_TC": "enable_tc",
    "VSI_ENABLE_MULTI_ENGINES": "enable_multi_engines",
    "VSI_ENABLE_MULTI_THREADS": "enable_multi_threads",
}

pytestmark = pytest.mark.usefixtures("no_switches")


def options(**keywords: object) -> VsiOptions:
    return VsiBackend(target()).parse_options(keywords)


def test_the_defaults_are_the_vendors() -> None:
    plain = options()
    assert plain.default_dot_input_precision == "ieee"
    assert "fp8e5" in plain.supported_fp8_dtypes
    assert plain.sanitize_overflow
    assert (plain.num_warps, plain.warp_size, plain.threads) == (4, 32, 1)
    assert not plain.dump_standalone
    least = VsiBackend(target()).get_codegen_implementation(plain)["min_dot_size"]
    assert least(None, None) == (16, 16, 8)
    assert (target().backend, target().warp_size) == ("vsi", 32)


@pytest.mark.parametrize(("variable", "field"), SWITCHES.items())
def test_a_switch_in_the_environment_is_an_option_and_part_of_the_key(
    variable: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = options()
    monkeypatch.setenv(variable, "1")
    on = options()
    assert [name for name in SWITCHES.values() if getattr(on, name)] == [field]
    assert on.hash() != off.hash()
    assert not getattr(options(**{field: False}), field)


@pytest.mark.parametrize("value", ["", "0"])
def test_only_1_switches_on(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in SWITCHES:
        monkeypatch.setenv(variable, value)
    assert options() == VsiOptions(arch=target().arch)


@pytest.mark.parametrize(("variable", "field"), SWITCHES.items())
@pytest.mark.parametrize("value", ["yes", "true", "2"])
def test_a_switch_with_any_other_value_is_refused_with_the_valid_ones(
    variable: str, field: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OptionError, match=f"{field}='{value}' is not possible\n.*True or False"):
        options(**{field: value})
    monkeypatch.setenv(variable, value)
    with pytest.raises(OptionError, match=f"{variable}={value} is not possible\n.*1 switches on, 0 switches off"):
        options()


def test_all_options_are_part_of_the_key() -> None:
    changed: list[dict[str, Any]] = [
        {"num_warps": 8},
        {"dump_standalone": True},
        {"enable_tc": True},
        {"num_stages": 3},
    ]
    assert len({options(**change).hash() for change in [{}, *changed]}) == 1 + len(changed)


def test_threads_are_warps_times_32_where_a_program_is_spread() -> None:
    assert options(num_warps=8, enable_multi_threads=True).threads == 256
    assert options(num_warps=8).threads == 1
    # As in triton-cpu.
    assert options(num_warps=0) == options()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"num_warps": -1}, OptionError), ({"num_warps": 3}, OptionError), ({"warp_size": 64}, VsiError)],
)
def test_warps_that_there_cannot_be_are_refused(wrong: dict[str, int], error: type[Exception]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(error, match=f"{name}={value}"):
        options(**wrong)


def test_the_content_of_compiler_and_bridge_is_part_of_the_key(fake_sdk: FakeSdk) -> None:
    backend = VsiBackend(target())
    keys = [backend.hash()]
    for path in (fake_sdk.compiler, fake_sdk.bridge):
        # A different file, as another SDK has: a process assumes that the same path is the same program.
        other = path.with_name(f"other-{path.name}")
        other.write_bytes(path.read_bytes() + b"\n")
        other.chmod(0o755)
        with pytest.MonkeyPatch.context() as patch:
            name = "VSI_ZEN_COMPILER_PATH" if path == fake_sdk.compiler else "VSI_ZEN_TC_BRIDGE_PATH"
            patch.setenv(name, str(other))
            keys.append(backend.hash())
    assert len(set(keys)) == 3


def test_the_same_sdk_in_another_place_makes_the_same_kernels(
    fake_sdk: FakeSdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = VsiBackend(target()).hash()
    shutil.copytree(fake_sdk.compiler.parent, tmp_path / "copy")
    monkeypatch.setenv("VSI_ZEN_COMPILER_PATH", str(tmp_path / "copy" / fake_sdk.compiler.name))
    monkeypatch.setenv("VSI_ZEN_TC_BRIDGE_PATH", str(tmp_path / "copy" / fake_sdk.bridge.name))
    assert VsiBackend(target()).hash() == before


def test_the_key_can_be_had_without_an_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSI_ZEN_COMPILER_PATH", "/nowhere/zen-compiler")
    monkeypatch.setenv("VSI_ZEN_TC_BRIDGE_PATH", "/nowhere/libZenTCBridge.so")
    assert VsiBackend(target()).hash().startswith(target().arch)
