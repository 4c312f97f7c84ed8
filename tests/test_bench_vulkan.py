"""The report of bench/vulkan: what is said of a share that is missed, of a wrong result, and of what did not run."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest

from toolchains.system import paths

BENCH = paths.ROOT / "bench" / "vulkan"


@pytest.fixture
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vulkan_report", BENCH / "report.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def candidate(name: str, rate: float, right: bool = True) -> dict[str, Any]:
    error = 0.5 if right else float("nan")
    ends = {"least": rate - 1, "most": rate + 1}
    return {"name": name, "config": {"BLOCK": 64}, "compiled": {}, "error": error, "right": right, "rate": rate, **ends}


def found(*candidates: dict[str, Any], failed: dict[str, str] | None = None) -> dict[str, Any]:
    aims = [{"peer": "Triton, CUDA", "least": 0.9, "aim": 1.0}]
    measure = {"title": "softmax", "unit": "GB/s", "aims": aims, "candidates": [*candidates], "failed": failed or {}}
    plan = {"rounds": 3, "warm": 3.0}
    machine = {"Triton": {"version": "3.6.0"}}
    return {"command": "it", "seconds": 60, "plan": plan, "machine": machine, "measures": {"softmax": measure}}


@pytest.mark.parametrize(
    ("ours", "right", "said"),
    [
        (95, True, "| 0.95 | 0.9 | 1 |"),
        (85, True, "| **0.85**, missed |"),
        (95, False, "| none, wrong: Triton, Vulkan |"),
    ],
)
def test_a_share_is_said_only_of_right_results(report: ModuleType, ours: float, right: bool, said: str) -> None:
    text = report.markdown(found(candidate("Triton, Vulkan", ours, right), candidate("Triton, CUDA", 100)))
    assert said in text
    assert ("**WRONG" in text) != right


def test_a_candidate_that_did_not_run_is_named_with_its_reason(report: ModuleType) -> None:
    text = report.markdown(found(candidate("Triton, Vulkan", 95), failed={"Triton, CUDA": "OutOfResources: shared"}))
    assert "| not measured: Triton, CUDA |" in text
    assert "- softmax, Triton, CUDA: OutOfResources: shared\n" in text
