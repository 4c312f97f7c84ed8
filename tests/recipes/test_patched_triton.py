"""Check what the patches promise, in the image, with a second backend next to spirv: a toy that only compiles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolchains.engine.container import Container
from toolchains.lockfile import lock
from toolchains.system.children import Completed

TOYS = Path(__file__).parents[1] / "toys"
RELEASES = sorted(lock.load().targets["spirv"].tritons)

pytestmark = pytest.mark.docker
Launch = Callable[..., Completed]


@pytest.fixture(scope="module", params=RELEASES)
def launch(request: pytest.FixtureRequest, container: Callable[[str], Container]) -> Iterator[Launch]:
    """Return a function that runs toys/launch.py with exactly these variables of Triton's, and an empty cache."""
    with container(request.param) as box:
        box.copy_into(TOYS, "/toys")

        def launch(**variables: str) -> Completed:
            cache = box.call(["mktemp", "-d"]).strip()
            env = {"PYTHONPATH": "/toys", "TRITON_CACHE_DIR": cache, **variables}
            command = ["env", "--unset=TRITON_DEFAULT_BACKEND", *(f"{key}={value}" for key, value in env.items())]
            return box.run([*command, "python", "/toys/launch.py"])

        yield launch


def outcome(done: Completed) -> dict[str, Any]:
    assert done.status == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def refusal(done: Completed) -> str:
    assert done.status != 0, done.stdout
    return done.stderr[done.stderr.rindex("RuntimeError") :]


def test_the_one_active_driver_is_chosen_by_itself(launch: Launch) -> None:
    done = outcome(launch())
    assert (done["backend"], done["result"]) == ("spirv", [2.0])
    assert "+foundry." in done["version"]


def test_several_active_drivers_are_listed_with_the_way_to_choose(launch: Launch) -> None:
    message = refusal(launch(TOY_IS_ACTIVE="1"))
    assert "2 active drivers" in message
    assert "TRITON_DEFAULT_BACKEND=spirv" in message
    assert "TRITON_DEFAULT_BACKEND=toy" in message


@pytest.mark.parametrize("variable", [{"TRITON_DEFAULT_BACKEND": "spirv"}, {"TRITON_SPIRV_BACKEND": "1"}])
def test_either_variable_chooses_among_several(launch: Launch, variable: dict[str, str]) -> None:
    done = outcome(launch(TOY_IS_ACTIVE="1", **variable))
    assert (done["backend"], done["result"]) == ("spirv", [2.0])


def test_no_active_driver_is_an_error_that_says_what_was_found_and_why_not(launch: Launch) -> None:
    message = refusal(launch(OCL_ICD_VENDORS="/none"))
    assert "0 active drivers" in message
    assert "spirv: inactive" in message
    assert "toy: inactive, the toy box is empty" in message


def test_a_chosen_backend_that_is_inactive_is_an_error_with_the_reason(launch: Launch) -> None:
    assert "'toy' is not active: the toy box is empty" in refusal(launch(TRITON_DEFAULT_BACKEND="toy"))


def test_a_missing_spirv_backend_is_an_error_that_says_so(launch: Launch) -> None:
    message = refusal(launch(TRITON_SPIRV_BACKEND="1", TRITON_BACKENDS_IN_TREE="1"))
    assert "TRITON_SPIRV_BACKEND is set, but the spirv backend is unavailable" in message


def test_variables_that_contradict_each_other_are_refused(launch: Launch) -> None:
    message = refusal(launch(TRITON_SPIRV_BACKEND="1", TRITON_DEFAULT_BACKEND="toy"))
    assert "TRITON_SPIRV_BACKEND is set, and TRITON_DEFAULT_BACKEND is 'toy'" in message


def test_compile_only_runs_all_stages_there_are_and_launches_nothing(launch: Launch) -> None:
    done = outcome(launch(TRITON_COMPILE_ONLY="1", TRITON_DEFAULT_BACKEND="toy"))
    assert (done["backend"], done["result"]) == ("toy", [-1.0])
    assert {".ttir", ".toytext", ".json"} <= set(done["cached"])


def test_compile_only_stops_after_the_stage_that_is_named(launch: Launch) -> None:
    done = outcome(launch(TRITON_COMPILE_ONLY="ttir", TRITON_DEFAULT_BACKEND="toy"))
    assert done["result"] == [-1.0]
    assert ".ttir" in done["cached"]
    assert ".toytext" not in done["cached"]


def test_compile_only_compiles_for_spirv_where_there_is_no_device(launch: Launch) -> None:
    done = outcome(launch(TRITON_COMPILE_ONLY="1", TRITON_SPIRV_BACKEND="1", OCL_ICD_VENDORS="/none"))
    assert done["result"] == [-1.0]
    assert {".ttir", ".spv"} <= set(done["cached"])


def test_compile_only_refuses_a_stage_that_does_not_exist_and_lists_those_that_do(launch: Launch) -> None:
    message = refusal(launch(TRITON_COMPILE_ONLY="ptx", TRITON_DEFAULT_BACKEND="toy"))
    assert "no such stage" in message
    assert "['ttir', 'toytext']" in message


def test_partial_compilation_in_the_cache_is_not_taken_for_a_whole_kernel(launch: Launch) -> None:
    cache = {"TRITON_CACHE_DIR": "/tmp/shared-cache"}
    assert outcome(launch(TRITON_COMPILE_ONLY="ttir", **cache))["result"] == [-1.0]
    assert outcome(launch(**cache))["result"] == [2.0]
