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


def test_the_one_active_driver_is_chosen_by_itself(launch: Launch) -> None:
    done = outcome(launch())
    assert (done["backend"], done["result"]) == ("spirv", [2.0])
    assert "+foundry." in done["version"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"TOY_IS_ACTIVE": "1"},
            "2 active drivers|TRITON_DEFAULT_BACKEND=spirv|TRITON_DEFAULT_BACKEND=toy",
        ),
        ({"OCL_ICD_VENDORS": "/none"}, "0 active drivers|spirv: inactive|toy: inactive, the toy box is empty"),
        ({"TRITON_DEFAULT_BACKEND": "toy"}, "'toy' is not active: the toy box is empty"),
        (
            {"TRITON_SPIRV_BACKEND": "1", "TRITON_BACKENDS_IN_TREE": "1"},
            "TRITON_SPIRV_BACKEND is set, but the spirv backend is unavailable",
        ),
        (
            {"TRITON_SPIRV_BACKEND": "1", "TRITON_DEFAULT_BACKEND": "toy"},
            "TRITON_SPIRV_BACKEND is set, and TRITON_DEFAULT_BACKEND is 'toy'",
        ),
        ({"TRITON_COMPILE_ONLY": "ptx", "TRITON_DEFAULT_BACKEND": "toy"}, "no such stage|['ttir', 'toytext']"),
    ],
    ids=("several active", "none active", "an inactive one", "none there", "contradicting variables", "no such stage"),
)
def test_refusal_says_what_was_found_and_how_to_choose(launch: Launch, variables: dict[str, str], said: str) -> None:
    done = launch(**variables)
    assert done.status != 0, done.stdout
    message = done.stderr[done.stderr.rindex("RuntimeError") :]
    for text in said.split("|"):
        assert text in message


@pytest.mark.parametrize("variable", [{"TRITON_DEFAULT_BACKEND": "spirv"}, {"TRITON_SPIRV_BACKEND": "1"}])
def test_either_variable_chooses_among_several(launch: Launch, variable: dict[str, str]) -> None:
    done = outcome(launch(TOY_IS_ACTIVE="1", **variable))
    assert (done["backend"], done["result"]) == ("spirv", [2.0])


@pytest.mark.parametrize(
    ("variables", "cached", "backend"),
    [
        ({"TRITON_COMPILE_ONLY": "1", "TRITON_DEFAULT_BACKEND": "toy"}, {".ttir", ".toytext", ".json"}, "toy"),
        ({"TRITON_COMPILE_ONLY": "ttir", "TRITON_DEFAULT_BACKEND": "toy"}, {".ttir"}, "toy"),
        (
            {"TRITON_COMPILE_ONLY": "1", "TRITON_SPIRV_BACKEND": "1", "OCL_ICD_VENDORS": "/none"},
            {".ttir", ".spv"},
            "spirv",
        ),
    ],
    ids=("all stages", "the named stage", "without a device"),
)
def test_compile_only_runs_stages_and_launches_nothing(
    launch: Launch, variables: dict[str, str], cached: set[str], backend: str
) -> None:
    done = outcome(launch(**variables))
    assert (done["backend"], done["result"]) == (backend, [-1.0])
    assert cached <= set(done["cached"])
    assert (".toytext" in done["cached"]) == (".toytext" in cached)


def test_partial_compilation_in_the_cache_is_not_taken_for_a_whole_kernel(launch: Launch) -> None:
    cache = {"TRITON_CACHE_DIR": "/tmp/shared-cache"}
    assert outcome(launch(TRITON_COMPILE_ONLY="ttir", **cache))["result"] == [-1.0]
    assert outcome(launch(**cache))["result"] == [2.0]
