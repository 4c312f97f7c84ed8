"""What a TAB offers after ./foundry, in a real bash; zsh and fish check the syntax of theirs if they are installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchains.config import components
from toolchains.system import paths
from toolchains.verbs import completion

# Calls the function as readline does, with the words that bash makes of a line; compopt works only inside a TAB.
DRIVER = """
compopt() { echo "<$2>"; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_foundry "$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words: str, folder: Path = paths.ROOT) -> list[str]:
    script = completion.bash() + DRIVER
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["./foundry", "targ"], ["target"]),
        (["/any/where/foundry", "e2"], ["e2e"]),
        (["invoke", "e2"], ["e2e"]),
        (["foundry", "target", ""], ["list", "show", "new"]),
        (["foundry", "patch", "sta"], ["status"]),
        (["foundry", "build", ""], components.names()),
        (["foundry", "target", "show", "spirv-v"], ["spirv-vulkan"]),
        (["foundry", "build", "spirv", "--off"], ["--offline"]),
        (["foundry", "build", "spirv", "--trit"], ["<nospace>", "--triton="]),
        (["foundry", "build", "vsi-torch", "--triton", "="], ["3.2.0"]),
        (["foundry", "build", "spirv", "--triton", "=", "3.9"], ["3.9.0"]),
        (["foundry", "test", "--target", "=", "dpu-"], ["dpu-dev"]),
        (["foundry", "run", "spirv", "--with", "=", "doc"], ["<default>"]),
        (["foundry", "run", "spirv", ""], ["<default>"]),
        (["foundry", "verify", "build/wh"], ["<default>"]),
        (["foundry", "test", "--target", "dpu-"], ["dpu-dev"]),
        (["foundry", "build", "--triton", "3.9.0", "spirv-t"], ["spirv-torch"]),
        (["foundry", "bench", "spirv", "--only", "=", ""], []),
    ],
)
def test_bash_offers_what_fits(words: list[str], expected: list[str]) -> None:
    assert sorted(offered(*words)) == sorted(expected)


def test_invoke_elsewhere_is_left_to_files(tmp_path: Path) -> None:
    assert offered("invoke", "e2", folder=tmp_path) == ["<default>"]


def test_every_verb_and_option_is_in_each_script() -> None:
    for text in (completion.bash(), completion.zsh(), completion.fish()):
        for verb in completion.verbs():
            assert verb.name in text and all(option in text for option in verb.options)


@pytest.mark.parametrize(
    "shell", ["bash", *(pytest.param(name, marks=pytest.mark.network) for name in ("zsh", "fish"))]
)
def test_script_has_no_syntax_error(shell: str, tmp_path: Path, installed: Callable[[str, str], str]) -> None:
    script = tmp_path / shell
    script.write_text(getattr(completion, shell)())
    subprocess.run([installed(shell, "parses its completion script"), "-n", script], check=True)
