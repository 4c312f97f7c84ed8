"""No code knows a target by its name: what differs between targets is in toolchains/targets/*.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchains.config import components, scaffold
from toolchains.system import paths

TARGETS = sorted({*components.names(), *(components.target(name).backend for name in components.names())})
TARGET = scaffold.word(*TARGETS)


def named(text: str) -> list[tuple[int, str]]:
    return [(line, word) for line, word in scaffold.words(text) if TARGET.search(word)]


@pytest.mark.parametrize("path", scaffold.code(), ids=lambda path: str(path.relative_to(paths.ROOT)))
def test_code_names_no_target(path: Path) -> None:
    assert named(path.read_text()) == [], "move what differs between targets to toolchains/targets/*.toml"


@pytest.mark.parametrize(
    "text",
    [
        'NAME = "dpu"',
        'NAME = f"{x}/spirv-bench"',
        "NAME = b'--target=vsi'",
        "dpu = 1",
        "import dpu.x",
        "from a import make_vsi",
        "class Dpu: pass",
        "def f(*, vsi): pass",
        "f(spirv=1)",
        "x.dpu = 1",
        'match x:\n    case {"a": "dpu", **vsi}: pass',
    ],
)
def test_a_name_in_code_is_found(text: str) -> None:
    assert named(text)


def test_examples_in_docstrings_and_other_words_are_none() -> None:
    assert not named(
        '"""./foundry e2e spirv"""\n# dpu\ndef f(nr_dpus):\n    """./foundry build dpu"""\n    return "spirvs"\n'
    )


@pytest.mark.parametrize("name", components.names())
def test_the_files_that_a_target_names_are_there(name: str) -> None:
    target = components.target(name)
    for plugin in (*target.plugins, *target.peers):
        assert (paths.BACKENDS / plugin / "pyproject.toml").is_file(), plugin
    for folder in target.user_folders:
        assert (paths.BACKENDS / folder).is_dir(), folder
    if target.packing:
        assert (paths.BACKENDS / target.packing.example).is_file()
        assert (paths.BACKENDS / target.packing.scripts / target.packing.runner).is_file()
