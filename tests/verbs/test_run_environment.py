"""Which variables of this machine a container gets: those that authors of kernels set, and all that advice names."""

from __future__ import annotations

import re
import signal

import pytest

from toolchains.system import paths
from toolchains.verbs import run

PAGE = (paths.ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
# In the text of the sources: variables that an advice sets, and constants with the name of one.
_NAMES = "[A-Z]\\w*VARIABLE|(?:FOUNDRY|TRITON|POCL|VSI|DPU|UPMEM)_[A-Z_]+"
SETS = re.compile(rf"""(?:\b(?:set|with|do without|unset|export) |\{{)({_NAMES})\}}?(?:=|[ "'])""")


def test_each_variable_that_advice_in_a_container_sets_reaches_the_container() -> None:
    sources = [path.read_text(encoding="utf-8") for path in paths.BACKENDS.glob("*/src/**/*.py")]
    constants = dict(
        pair for text in sources for pair in re.findall(r'^(\w*VARIABLE) = "([A-Z_]+)"', text, re.MULTILINE)
    )
    advice = [line for text in sources for line in text.splitlines() if re.search(r"\bnext ?=", line)]
    named = {constants.get(name, name) for line in advice for name in SETS.findall(line)}
    assert {"FOUNDRY_CHECK", "FOUNDRY_SPIRV_MAPPING", "FOUNDRY_VULKAN_TIMEOUT", "TRITON_ALWAYS_COMPILE"} <= named
    # The files of an SDK, and a library: no path of this machine is one in a container.
    files = {name for name in named if re.search("_(DIR|PATH|LIBRARY|BIN)$", name)}
    assert {name for name in named - files if not run.is_passed(name)} == set()


def test_the_documentation_names_what_is_passed_and_what_is_not() -> None:
    for pattern in (*run.passed(), *run.KEPT):
        assert f"`{pattern}`" in PAGE, pattern


def test_variables_of_this_machine_do_not_reach_a_script() -> None:
    here = PAGE[
        PAGE.index("## Environment variables on this machine") : PAGE.index("## Environment variables for kernels")
    ]
    names = re.findall(r"`([A-Z_]+)`", here[here.index("|---") :])
    assert {"FOUNDRY_CACHE", "FOUNDRY_YES", "DOCKER_HOST", "CONAN_PASSWORD"} <= {*names}
    assert [name for name in names if run.is_passed(name)] == []


def test_options_win_over_the_machine() -> None:
    machine = {"FOUNDRY_CHECK": "report", "TRITON_DEBUG": "1", "TRITON_HOME": "/home", "A": "1", "SECRET": "x"}
    assert run.read_environment([], environ=machine) == {"FOUNDRY_CHECK": "report", "TRITON_DEBUG": "1"}
    found = run.read_environment(["A", "TRITON_DEBUG=", "B=c=d"], [run.CHECK], environ=machine)
    assert found == {"FOUNDRY_CHECK": "1", "TRITON_DEBUG": "", "A": "1", "B": "c=d"}


@pytest.mark.parametrize(("status", "said"), [(134, "SIGABRT"), (139, "SIGSEGV"), (135, "SIGBUS"), (137, ""), (1, "")])
def test_a_crash_is_told_from_other_ends(status: int, said: str) -> None:
    assert run.crash(status) == said
    assert not said or signal.Signals[said] + 128 == status
