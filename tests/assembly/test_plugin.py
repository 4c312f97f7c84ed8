"""A user's own plugin, as --plugin names it: what is read of a wheel and of sources, and what is refused."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from toolchains.assembly.plugin import Plugin
from toolchains.assembly.request import Request
from toolchains.system.errors import FoundryError, UsageError

POINTS = "[triton.backends]\nmy_npu = triton_my_npu_backend\n"
SETTINGS = '[refused]\nf64 = "Float64"\n'
PROJECT = (
    '[project]\nname = "triton-my-npu-backend"\n[project.entry-points."triton.backends"]\nmy_npu = "triton_my_npu"\n'
)


def wheel(folder: Path, name: str = "triton_my_npu", points: str = POINTS, **files: str) -> Path:
    path = folder / f"{name}-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.2.dist-info/entry_points.txt", points)
        for place, text in files.items():
            archive.writestr(place, text)
    return path


def read(path: Path) -> Plugin:
    plugin = Plugin.read(str(path))
    assert plugin is not None
    return plugin


def test_wheel_says_its_backend_package_digest_and_settings(tmp_path: Path) -> None:
    path = wheel(tmp_path, **{"triton_my_npu_backend/foundry.toml": SETTINGS})
    plugin = read(path)
    assert (plugin.name, plugin.package, plugin.distribution) == ("my_npu", "triton_my_npu_backend", "triton-my-npu")
    assert (plugin.wheels, plugin.sources, plugin.settings) == ((path,), None, SETTINGS)
    assert plugin.described == f"{path.name}, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"


def test_folder_of_wheels_has_one_plugin_and_what_it_requires(tmp_path: Path) -> None:
    own, other = wheel(tmp_path), wheel(tmp_path, "other", points="[console_scripts]\nx = y\n")
    assert read(tmp_path).wheels == tuple(sorted([own, other]))


def test_sources_say_their_backend_and_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    package = tmp_path / "src/triton_my_npu"
    package.mkdir(parents=True)
    (package / "foundry.toml").write_text(SETTINGS)
    plugin = read(tmp_path)
    assert (plugin.name, plugin.package, plugin.sources) == ("my_npu", "triton_my_npu", tmp_path)
    assert (plugin.wheels, plugin.settings) == ((), SETTINGS)


@pytest.mark.parametrize(
    ("points", "settings", "why"),
    [
        ("", "", "0 name a backend"),
        ("[triton.backends]\na = x\nb = y\n", "", "2 name a backend"),
        ("[triton.backends]\nmy-npu = x\n", "", "names no backend and package"),
        ("[triton.backends]\nnpu = ../x\n", "", "names no backend and package"),
        ("[triton.backends]\nspirv = x\n", "", "the target's own backend"),
        ("no section\n", "", "its entry points cannot be read"),
        (POINTS, "proof = ['x']\n", "may have one table"),
        (POINTS, "[refused]\nf64 = '('\n", "may have one table"),
        (POINTS, "[refused\n", "cannot be read"),
    ],
)
def test_wheel_that_is_no_plugin_is_refused_with_the_reason(
    points: str, settings: str, why: str, tmp_path: Path
) -> None:
    path = wheel(tmp_path, points=points, **{"triton_my_npu_backend/foundry.toml": settings})
    with pytest.raises(UsageError) as caught:
        Plugin.read(str(path))
    assert why in caught.value.why


def test_wheel_with_a_path_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path, **{"../x.py": ""})
    with pytest.raises(FoundryError, match=rf"{path} has a path that leaves its folder: \.\./x\.py"):
        Plugin.read(str(path))


@pytest.mark.parametrize("project", ["[project]\nname = 'x'\n", "x", PROJECT + "other = 'y'\n", "project = 1\n"])
def test_sources_without_one_backend_are_refused(project: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(project)
    with pytest.raises(UsageError, match="is no plugin of Triton"):
        Plugin.read(str(tmp_path))


def test_path_without_a_plugin_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "x.whl", tmp_path / "x"):
        with pytest.raises(UsageError, match="is no plugin of Triton"):
            Plugin.read(str(path))


def test_results_of_a_plugin_have_another_name_and_commands_name_it(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    request = Request.read("spirv", plugin=str(path))
    assert request.subject == "my_npu-in-spirv"
    assert request.command("e2e") == f"./foundry e2e spirv --plugin={path}"
    assert Request.read("spirv").subject == "spirv"
