"""Run a few rounds of the random kernels, always with the same seeds; compare_kernels.py runs more."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from differential.comparing import Comparison
from differential.drawing import Limits
from differential.job import Done, Job
from differential.process import Worker
from differential.rounds import backend, one_round, run
from differential.values import F32, TYPES, Value, arithmetic, cast, compared, differences, number

# Maximum fraction of kernels that a target may refuse, each for a reason in differential/targets.py.
MAY_REFUSE = 0.2
# On vsi each kernel starts zen-compiler, whose lowering is spirv's, and lavapipe compiles slowly: only one round.
SEEDS = (20261122001,) if backend() in ("vsi", "spirv-vulkan") else (20261122000, 20261122001, 20261122002)


@pytest.mark.any_release
@pytest.mark.parametrize("seed", SEEDS)
def test_the_target_and_the_interpreter_do_what_numpy_does(seed: int) -> None:
    outcome = run(seed, rounds=1)
    assert not outcome.failures, outcome.failures[0]
    assert outcome.counts["interpreted"] and outcome.counts["elements"]
    assert outcome.counts["refused"] <= MAY_REFUSE * outcome.counts["kernels"]


class OneBitOff(Worker):
    """Triton's interpreter, with one bit of the first output flipped."""

    def launch(self, job: Job) -> Done:
        done = super().launch(job)
        if done.outputs:
            done.outputs[0][len(done.outputs[0]) // 2] ^= 1
        return done


@pytest.mark.anywhere
def test_a_wrong_bit_is_found_and_shown_in_a_script_that_runs(tmp_path: Path) -> None:
    with OneBitOff(interpret=True) as target, Worker(interpret=True) as interpreter:
        failure = one_round(Comparison(tmp_path, target, interpreter), Limits(steps=2, sections=1), 1)
    assert failure is not None
    assert "# The target: " in failure and "# The interpreter agrees with NumPy" in failure
    script = tmp_path / "found.py"
    script.write_text(failure)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.anywhere
def test_a_process_that_dies_is_a_result(tmp_path: Path) -> None:
    path = tmp_path / "dying.py"
    path.write_text("import os\n\n\nclass kernel:\n    def __class_getitem__(cls, grid):\n        os.abort()\n")
    with Worker(interpret=True) as worker:
        done = worker.launch(Job(str(path), (1,), [], [], [], {}))
        assert done.error == ("Crash",)
        assert "status -6" in done.message
        path.write_text("raise ValueError('no kernel')\n")
        assert worker.launch(Job(str(path), (1,), [], [], [], {})).message == "ValueError: no kernel"


def found(values: list[float], expected: Value) -> list[bool]:
    wrong = differences(np.array(values, expected.type.numpy), expected)
    return [bool(each) for each in wrong]


@pytest.mark.anywhere
def test_results_have_to_be_equal_with_the_sign_of_zero_where_nothing_is_left_open() -> None:
    expected = Value(F32, np.array([1, 0.0, np.nan, np.inf], np.float32))
    assert found([1, 0.0, -np.nan, np.inf], expected) == [False] * 4
    assert found([1 + 2**-23, -0.0, 0, np.nan], expected) == [True] * 4


@pytest.mark.anywhere
def test_a_sum_may_take_a_product_unrounded_and_nothing_else() -> None:
    x = number(F32, np.array([1 + 2**-12, 3.0, np.nan]))
    product = arithmetic("*", x, x)
    total = arithmetic("+", product, number(F32, -1.0))
    fused = [(1 + 2**-12) ** 2 - 1, 8.0, np.nan]
    assert found(fused, total) == [False] * 3
    assert found([fused[0] + 2**-21, 8 + 2**-20, 0], total) == [True] * 3
    assert found([product.data[0], product.data[1], np.nan], product) == [False] * 3
    assert found([product.data[0] + 2**-23, 9.0, 1], product) == [True, False, True]


@pytest.mark.anywhere
def test_a_step_within_the_error_is_open() -> None:
    near = dataclasses.replace(number(F32, np.array([2.0, 2.5, 3.0])), error=np.array([0.1, 0.1, 0.0]))
    assert cast(near, TYPES["i8"]).open.tolist() == [True, False, False]
    assert compared("<", near, number(F32, 2.05)).open.tolist() == [True, False, False]
    assert cast(number(F32, np.array([np.nan, 127.9, 128.0])), TYPES["i8"]).open.tolist() == [True, False, True]
