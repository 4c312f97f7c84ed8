"""The verb devcontainer: what editors read is valid, names the image by its digest, and replaces no file unasked."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Inputs
from toolchains.repro import expected
from toolchains.share.registry import Descriptor, RegistryManifest, Repository
from toolchains.system import paths
from toolchains.system.errors import AbsentError, FileError, UsageError, VerificationError
from toolchains.verbs.devcontainer import devcontainer

TEXT = {"type": "string"}
# What containers.dev says of the properties that ours has.
SCHEMA = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "build": {
            "type": "object",
            "properties": {"dockerfile": TEXT, "options": {"type": "array", "items": TEXT}},
            "required": ["dockerfile"],
            "additionalProperties": False,
        },
        "workspaceMount": {"type": "string", "pattern": r"^source=\S+,target=/\S+,type=bind$"},
        "workspaceFolder": TEXT,
        "remoteUser": TEXT,
        "userEnvProbe": {"enum": ["none", "loginShell", "loginInteractiveShell", "interactiveShell"]},
        "hostRequirements": {
            "type": "object",
            "properties": {"gpu": {"enum": [True, False, "optional"]}},
            "additionalProperties": False,
        },
        "customizations": {"type": "object"},
    },
    # With one of them the other is needed.
    "required": ["build", "workspaceMount", "workspaceFolder"],
    "additionalProperties": False,
}


@pytest.fixture
def image(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name that the engine gives to the image of spirv, which is not built."""
    monkeypatch.setattr(
        ensure, "ensure_image", lambda request: (None, SimpleNamespace(name=f"local/{request.target.name}:1"))
    )
    return "local/spirv:1"


@pytest.mark.parametrize("target", ["spirv", "spirv-vulkan", "dpu"])
def test_settings_are_valid_and_name_the_users_folder(tmp_path: Path, image: str, target: str) -> None:
    devcontainer(Request.read(target), str(tmp_path), registry="", force=False)
    settings = json.loads((tmp_path / ".devcontainer/devcontainer.json").read_text())
    jsonschema.validate(settings, SCHEMA)
    assert settings["workspaceMount"].split(",")[1] == f"target={settings['workspaceFolder']}"
    assert ("hostRequirements" in settings) == (target == "spirv-vulkan"), "the others take no GPU"
    assert (tmp_path / ".devcontainer" / settings["build"]["dockerfile"]).is_file()


def test_local_image_is_named_and_the_user_is_told_who_cannot_pull_it(
    tmp_path: Path, image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    devcontainer(Request.read("spirv"), str(tmp_path), registry="", force=False)
    assert f"\nFROM {image}\n" in (tmp_path / ".devcontainer/Dockerfile").read_text()
    assert "GitHub Codespaces, cannot pull it" in capsys.readouterr().out


def test_files_of_the_user_are_replaced_by_force_only(tmp_path: Path, image: str) -> None:
    request, file = Request.read("spirv"), tmp_path / ".devcontainer/devcontainer.json"
    devcontainer(request, str(tmp_path), registry="", force=False)
    devcontainer(request, str(tmp_path), registry="", force=False)
    written = file.read_text()
    file.write_text("of the user")
    (tmp_path / ".devcontainer/Dockerfile").unlink()
    with pytest.raises(UsageError, match=r"has devcontainer.json already") as caught:
        devcontainer(request, str(tmp_path), registry="", force=False)
    assert "--force" in caught.value.next
    assert file.read_text() == "of the user"
    assert not (tmp_path / ".devcontainer/Dockerfile").exists(), "all or nothing"
    devcontainer(request, str(tmp_path), registry="", force=True)
    assert file.read_text() == written
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(FileError, match="a pipe"):
        devcontainer(request, str(tmp_path), registry="", force=False)


@pytest.mark.parametrize("folder", ["absent", str(paths.ROOT)])
def test_folder_that_is_no_repository_of_the_user_is_refused(folder: str, image: str) -> None:
    with pytest.raises(UsageError, match="not the folder of a repository of yours"):
        devcontainer(Request.read("spirv"), folder, registry="", force=False)


DIGEST, PUBLISHED, OTHER = (f"sha256:{digit * 64}" for digit in "abc")


@pytest.mark.parametrize(("id", "error"), [(PUBLISHED, None), (OTHER, VerificationError), ("", AbsentError)])
def test_image_of_a_registry_is_named_by_its_digest_if_it_is_the_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, id: str, error: type[Exception] | None
) -> None:
    request = Request.read("spirv")
    asked = []

    def manifest(self: Repository, reference: str) -> tuple[Descriptor, RegistryManifest] | None:
        asked.append(f"{self.name}:{reference}")
        described = Descriptor("image", DIGEST, 7)
        return (described, RegistryManifest(2, "image", Descriptor("configuration", id, 9), ())) if id else None

    published: Any = SimpleNamespace(inputs=Inputs(request.target, request.release).identity(), image=PUBLISHED)
    monkeypatch.setattr(Repository, "manifest", manifest)
    monkeypatch.setattr(expected, "load", lambda: SimpleNamespace(image=lambda *names: published))
    monkeypatch.setenv("FOUNDRY_CACHE", str(tmp_path / "store"))
    file = tmp_path / ".devcontainer/Dockerfile"
    if error:
        with pytest.raises(error):
            devcontainer(request, str(tmp_path), registry="registry.example/team", force=False)
        assert not file.exists()
    else:
        devcontainer(request, str(tmp_path), registry="registry.example/team", force=False)
        assert f"\nFROM registry.example/team/spirv@{DIGEST}\n" in file.read_text()
    assert asked == [f"registry.example/team/spirv:{Inputs(request.target, request.release).name.partition(':')[2]}"]


VEC_ADD = """
import os, numpy as np, triton, triton.language as tl
from foundry_core.tensor import Tensor

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

x, y, out = np.arange(1000, dtype="f4"), np.ones(1000, dtype="f4"), np.full(1000, np.nan, dtype="f4")
add[(4,)](Tensor(x), Tensor(y), Tensor(out), 1000, BLOCK=256)
assert (out == x + y).all()
open("written", "w").write(os.environ["USER"] if "USER" in os.environ else str(os.getuid()))
"""


@pytest.mark.docker
@pytest.mark.network
def test_devcontainers_own_program_opens_the_folder_and_a_kernel_runs_there(
    tmp_path: Path, installed: Callable[[str, str], str]
) -> None:
    installed("npm", "brings the program of devcontainers")
    top = tmp_path / "kernels"
    top.mkdir()
    (top / "vec_add.py").write_text(VEC_ADD)
    # It gives the user of the container the number of who starts it, unless that is root.
    if os.getuid() == 0:
        shutil.chown(top, 1000, 1000)
    devcontainer(Request.read("spirv", allow_drift=True), str(top), registry="", force=False)
    # Without --prefix, with which npm does not read the machine's settings. It trusts whom everything here trusts.
    npm = tmp_path / "npm"
    npm.mkdir()
    trusted = ssl.get_default_verify_paths().cafile
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "@devcontainers/cli@0.88.0"],
        check=True,
        timeout=300,
        cwd=npm,
        env={**({"NODE_EXTRA_CA_CERTS": trusted} if trusted else {}), **os.environ},
    )
    program = npm / "node_modules/.bin/devcontainer"
    where = ["--workspace-folder", str(top)]
    containers = ["docker", "ps", "--all", "--quiet", f"--filter=label=devcontainer.local_folder={top}"]
    try:
        done = subprocess.run([program, "up", *where], check=True, timeout=300, capture_output=True, text=True)
        assert json.loads(done.stdout.splitlines()[-1])["remoteUser"] == "foundry"
        subprocess.run([program, "exec", *where, "python", "vec_add.py"], check=True, timeout=300)
        assert (top / "written").exists()
    finally:
        for container in subprocess.run(containers, capture_output=True, text=True).stdout.split():
            words = ["docker", "inspect", "--format={{.Config.Image}}", container]
            name = subprocess.run(words, capture_output=True, text=True).stdout.strip()
            subprocess.run(["docker", "rm", "--force", container])
            subprocess.run(["docker", "rmi", name, name.removesuffix("-uid")])
