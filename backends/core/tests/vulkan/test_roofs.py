"""The roofs of a profile on a Vulkan device: of each type that kernels compute with, and of cooperative matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from foundry_core.profile import roofs
from foundry_core.profile.recording import recording
from foundry_core.profile.report import examine, report
from foundry_core.vulkan.array import DeviceTensor
from foundry_core.vulkan.device import MATRICES_VARIABLE, opened
from shared_kernels import product


@triton.jit
def polynomial(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, (v * 0.5 + 1.0) * v + 2.0)


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure shortly: what is measured matters, and not how well."""
    monkeypatch.setattr(roofs, "_ROUNDS", 1)
    monkeypatch.setattr(roofs, "_ENOUGH", 0.0)
    monkeypatch.setattr(roofs, "_PROGRAMS", (2, 2))
    monkeypatch.setattr(roofs, "_SIDES", (16, 16))
    roofs.device_roofs.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_multiply_adds_are_those_that_products_and_sums_of_this_device_take(dtype: str) -> None:
    """A device that rounds the product has no tl.fma of f64, and one of many instructions of f32."""
    found = roofs.Roofs(triton.runtime.driver.active)
    compiled = []
    launch = found._launch

    def noted(*arguments: Any, **constants: Any) -> object:
        compiled.append((launch(*arguments, **constants), constants))
        return compiled[-1][0]

    found._launch = noted  # type: ignore[method-assign]
    elem = {"float32": "f32", "float64": "f64"}[dtype]
    found.arithmetic(elem)
    fuses = int(elem[1:]) in opened().target().fuses
    assert {constants["FUSED"] for _, constants in compiled} == {fuses}
    assert ("math.fma" in compiled[0][0].asm["ttir"]) == fuses


def test_a_profile_measures_what_a_kernel_computes_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MATRICES_VARIABLE, "1")
    x, y = (DeviceTensor.from_numpy(np.ones(256)) for _ in range(2))
    a, b = (DeviceTensor.from_numpy(np.ones((16, 16), np.float16)) for _ in range(2))
    c = DeviceTensor.zeros((16, 16))
    with recording() as recorder:
        for _ in range(2):
            polynomial[(1,)](x, y, N=256)
            product[(1,)](a, b, c, N=16)
    _, figures = report(recorder)
    kinds = {each["kernel"]: {*each["arithmetic_roofs"], *each["unmeasured"]} for each in figures}
    assert kinds == {"polynomial": {"f64"}, "product": {"f16 matrices"}}
    assert {each["kernel"]: each["operations"] for each in figures} == {"polynomial": 256 * 4, "product": 2 * 16**3}
    assert all(each["share"] is None or each["share"] <= 1 for each in figures)


@triton.jit
def turned(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i % n))


@pytest.mark.parametrize(("n", "variant"), [(40, "wide"), (37, "narrow")])
def test_a_profile_says_which_variant_was_launched_and_what_to_try(n: int, variant: str) -> None:
    x, y = DeviceTensor.from_numpy(np.arange(n, dtype=np.float16)), DeviceTensor.zeros(512, "float16")
    with recording() as recorder:
        for _ in range(2):
            turned[(1,)](x, y, n, B=512)
    np.testing.assert_array_equal(y.numpy(), np.resize(np.arange(n), 512))
    (launched,) = recorder.found.values()
    figures = examine(launched, by_device=1.0)
    assert figures["by_device"] and figures["seconds"] == 1.0
    assert figures["memory_roof"] > 0 and figures["shader"]["variant"] == variant
    assert ("loads of 2 bytes" in figures["shader"]["counts"]) == (variant == "narrow")
    assert any("pad n" in advice for advice in figures["next"]) == (variant == "narrow")
    text, _ = report(recorder)
    assert f"the one with {variant} accesses" in text and "the driver's compiler says: " in text


def test_statistics_of_the_driver_are_numbers_with_names() -> None:
    x, y = DeviceTensor.from_numpy(np.ones(256)), DeviceTensor.from_numpy(np.ones(256))
    with recording() as recorder:
        polynomial[(1,)](x, y, N=256)
    (launched,) = recorder.found.values()
    # lavapipe has none.
    assert all(name.isprintable() and number == number for name, number in launched.described["statistics"].items())
    assert launched.described["workgroup_limit"] == opened().properties.workgroup_bytes
