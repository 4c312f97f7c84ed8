"""Installation as in the vendor's documents: a wheel that contains the SDK's two files, and an editable checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from made_up import FakeSdk

HERE = Path(__file__).parent.parent
# Where ./foundry puts a plugin's sources; otherwise the checkout of this file.
SOURCES = HERE if (HERE / "pyproject.toml").is_file() else Path("/foundry/triton_vsi_backend")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Copy the sources. A build must leave nothing in them, and the copy shows it."""
    folder = tmp_path / "triton_vsi_backend"
    parts = ("src", "pyproject.toml", "VERSION", "hatch_build.py", "README.md")
    for path in SOURCES.rglob("*"):
        if path.is_file() and path.relative_to(SOURCES).parts[0] in parts:
            copy = folder / path.relative_to(SOURCES)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return folder


def pip(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    offline = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1"}
    offline["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "pip", *arguments]
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HATCH_BUILD_NO_HOOKS")
    }
    return subprocess.run(command, cwd=cwd, env=inherited | offline | environment, capture_output=True, text=True)


def build(sources: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the line of the vendor's README."""
    return pip("wheel", "--no-build-isolation", ".", cwd=sources, **environment)


def environment_in(folder: Path) -> Path:
    """Make a new environment over this one. Return its Python."""
    venv.create(folder, system_site_packages=True, with_pip=False)
    packages = Path("lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
    # After the packages installed into it, as the last of its .pth files: this one's packages, and an older plugin.
    (folder / packages / "zz_below.pth").write_text("\n".join(path for path in sys.path if Path(path).is_dir()))
    return folder / "bin" / "python"


def told(python: Path, script: str, **environment: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    done = subprocess.run([python, "-c", script], env=env, capture_output=True, text=True, cwd=python.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_wheel_has_compiler_and_bridge_in_it_and_is_of_this_platform(sources: Path, fake_sdk: FakeSdk) -> None:
    before = set(sources.rglob("*"))
    done = build(sources)
    assert done.returncode == 0, done.stderr
    (wheel,) = sources.glob("*.whl")
    assert set(sources.rglob("*")) - before == {wheel}
    assert wheel.name.startswith("triton_vsi_backend-") and "-py3-none-linux_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        compiler = archive.getinfo("triton_vsi_backend/bin/zen-compiler")
        assert archive.read(compiler) == fake_sdk.compiler.read_bytes()
        assert (compiler.external_attr >> 16) & 0o111 == 0o111
        assert archive.read("triton_vsi_backend/lib/libZenTCBridge.so") == fake_sdk.bridge.read_bytes()
        (info,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        assert "Root-Is-Purelib: false" in archive.read(info).decode()


def test_a_compiler_that_is_not_executable_is_so_in_the_wheel(sources: Path, fake_sdk: FakeSdk) -> None:
    fake_sdk.compiler.chmod(0o600)
    assert build(sources).returncode == 0
    (wheel,) = sources.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert (archive.getinfo("triton_vsi_backend/bin/zen-compiler").external_attr >> 16) & 0o777 == 0o755


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("VSI_ZEN_COMPILER_PATH", "", "is not set"),
        ("VSI_ZEN_COMPILER_PATH", "/", "is not a file"),
        ("VSI_ZEN_TC_BRIDGE_PATH", "/nowhere/at/all", "does not exist"),
    ],
)
def test_a_wheel_is_not_built_without_them(
    variable: str, value: str, why: str, sources: Path, fake_sdk: FakeSdk
) -> None:
    done = build(sources, **{variable: value})
    assert done.returncode != 0
    assert why in done.stderr and f"export {variable}=" in done.stderr
    assert not list(sources.glob("*.whl"))


def test_hatchlings_switch_makes_a_wheel_for_any_platform_without_them(sources: Path) -> None:
    done = build(sources, HATCH_BUILD_NO_HOOKS="1", VSI_ZEN_COMPILER_PATH="", VSI_ZEN_TC_BRIDGE_PATH="")
    assert done.returncode == 0, done.stderr
    (wheel,) = sources.glob("*.whl")
    assert "-none-any" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "/bin/" in name or "/lib/" in name]


_WHERE = """
from triton.backends import backends
from triton_vsi_backend import pieces
print(backends["vsi"].driver.__module__, pieces.__file__, pieces.zen_compiler(), pieces.bridge(), sep="\\n")
"""


def test_an_installed_wheel_uses_what_it_has_in_it(sources: Path, tmp_path: Path, fake_sdk: FakeSdk) -> None:
    assert build(sources).returncode == 0
    python = environment_in(tmp_path / "venv")
    (wheel,) = sources.glob("*.whl")
    done = pip("--python", str(python), "install", "--force-reinstall", str(wheel), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    module, file, compiler, bridge = told(
        python, _WHERE, VSI_ZEN_COMPILER_PATH="", VSI_ZEN_TC_BRIDGE_PATH=""
    ).splitlines()
    package = Path(file).parent
    assert module == "triton_vsi_backend.driver"
    assert package.is_relative_to(tmp_path / "venv")
    assert Path(compiler) == package / "bin" / "zen-compiler"
    assert Path(bridge) == package / "lib" / "libZenTCBridge.so"
    assert Path(compiler).read_bytes() == fake_sdk.compiler.read_bytes()
    assert os.access(compiler, os.X_OK)


def test_an_editable_install_uses_the_checkout_and_the_variables(
    sources: Path, tmp_path: Path, fake_sdk: FakeSdk
) -> None:
    python = environment_in(tmp_path / "venv")
    # As in the vendor's README. No part of an SDK is needed for this.
    done = pip(
        "--python",
        str(python),
        "install",
        "--no-build-isolation",
        "--force-reinstall",
        "--editable",
        ".",
        cwd=sources,
        VSI_ZEN_COMPILER_PATH="",
        VSI_ZEN_TC_BRIDGE_PATH="",
    )
    assert done.returncode == 0, done.stderr
    module, file, compiler, bridge = told(python, _WHERE).splitlines()
    assert module == "triton_vsi_backend.driver"
    assert Path(file) == sources / "src/triton_vsi_backend/pieces.py"
    assert (compiler, bridge) == (str(fake_sdk.compiler), str(fake_sdk.bridge))
