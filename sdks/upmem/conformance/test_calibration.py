"""The emulator's cycle model agrees with what was published of hardware; see calibration.py."""

from __future__ import annotations

import pytest
from calibration import PUBLISHED, TASKLETS, Runs, compared, measured, transfer


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return measured(tmp_path_factory.mktemp("calibration"))


def _close(modelled: float, published: float) -> None:
    assert modelled == pytest.approx(published, rel=PUBLISHED["tolerance"])


@pytest.mark.parametrize("tasklets", [1, 2, 4, 8, 11, 16, 24])
@pytest.mark.parametrize("length", [8, 16, 32, 64, 128, 256, 512, 1024, 2048])
@pytest.mark.parametrize("direction", ["read", "write"])
def test_a_tasklet_waits_for_its_transfer_longer_than_the_engine_is_busy_with_it(
    runs: Runs, direction: str, length: int, tasklets: int
) -> None:
    _close(runs[f"dma_{direction}", length, tasklets].each, transfer(direction, length, tasklets))


def test_bandwidths_and_arithmetic_are_as_published(runs: Runs) -> None:
    for _, _, published, modelled in compared(runs):
        _close(modelled, published)


@pytest.mark.parametrize("tasklets", [1, 2, 4, 8, 11, 16, 24])
@pytest.mark.parametrize("operation", ["add_int32", "multiply_float"])
def test_throughput_rises_with_tasklets_until_the_pipeline_is_full(runs: Runs, operation: str, tasklets: int) -> None:
    full = PUBLISHED["saturation"]
    share = runs[operation, 0, TASKLETS].each / runs[operation, 0, tasklets].each
    _close(share, min(tasklets, full) / full)
