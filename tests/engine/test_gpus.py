"""--gpus: what is sent to the engine, as recorded by an engine that is made up; and what is said of GPUs.

No machine with a GPU and an engine was there to run it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import docker.errors
import pytest

import docker
from toolchains.assembly.request import Request
from toolchains.engine import gpus
from toolchains.engine.client import Engine
from toolchains.engine.gpus import Gpus
from toolchains.system.errors import EngineError, UsageError


class MadeUp(docker.APIClient):
    """An engine of API 1.41 that records the body of each request, and refuses to create containers."""

    def __init__(self) -> None:
        super().__init__(base_url="tcp://engine.invalid:1", version="1.41")
        self.sent: list[dict[str, Any]] = []

    def info(self) -> dict[str, Any]:
        return {"MemTotal": 8 << 30, "MemoryLimit": True, "PidsLimit": True, "NCPU": 4}

    def _post_json(self, url: str, data: dict[str, Any], **_: Any) -> Any:
        self.sent.append(data)
        raise docker.errors.DockerException('could not select device driver "nvidia" with capabilities: [[gpu]]')

    def remove_container(self, *_: Any, **__: Any) -> None:
        raise docker.errors.DockerException("there is none")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a machine whose engine is its own, with two render nodes."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    for name in ("dri/card0", "dri/renderD128", "dri/renderD129"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(gpus, "_DEV", tmp_path)
    monkeypatch.setattr(gpus, "_NODES", f"{tmp_path}/dri")
    return tmp_path


def sent(given: str) -> dict[str, Any]:
    """Return the body of the request that creates a sandbox with --gpus=GIVEN."""
    api = MadeUp()
    with pytest.raises(EngineError), Engine(api).sandbox("image", gpus=Gpus.read(given)):
        pytest.fail("it was not created")
    (body,) = api.sent
    return body


@pytest.mark.parametrize(
    ("given", "which"),
    [
        ("all", {"Count": -1, "DeviceIDs": []}),
        ("2", {"Count": 2, "DeviceIDs": []}),
        ("device=0,3", {"Count": 0, "DeviceIDs": ["0", "3"]}),
        ("device=GPU-3faa8f21-1b2c", {"Count": 0, "DeviceIDs": ["GPU-3faa8f21-1b2c"]}),
    ],
)
def test_gpus_of_nvidia_are_requested_from_its_toolkit_with_graphics(given: str, which: dict[str, Any]) -> None:
    body = sent(given)
    assert body["HostConfig"]["DeviceRequests"] == [
        {"Driver": "nvidia", **which, "Capabilities": [["gpu", "compute", "graphics", "utility"]], "Options": {}}
    ]
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,graphics,utility" in body["Env"]
    assert body["HostConfig"].get("Devices") is None


def test_other_gpus_are_device_files_with_the_groups_that_may_use_them(machine: Path) -> None:
    nodes = [f"{machine}/dri/renderD{number}" for number in (128, 129)]
    body = sent(f"{machine}/dri")
    expected = [{"PathOnHost": node, "PathInContainer": node, "CgroupPermissions": "rw"} for node in nodes]
    assert body["HostConfig"]["Devices"] == expected
    assert body["HostConfig"]["GroupAdd"] == [str(Path(nodes[0]).stat().st_gid)]
    assert "DeviceRequests" not in body["HostConfig"]
    assert not any(variable.startswith("NVIDIA") for variable in body["Env"])
    assert sent(nodes[1])["HostConfig"]["Devices"] == expected[1:]


@pytest.mark.parametrize("given", ["all", "1"])
def test_a_container_with_a_gpu_is_as_confined_as_any_and_hides_the_device_on_the_cpu(given: str) -> None:
    plain, body = sent(""), sent(given)
    assert not {"DeviceRequests", "Devices", "GroupAdd"} & {k for k, v in plain["HostConfig"].items() if v}
    added = {"DeviceRequests"}
    assert {key: value for key, value in body["HostConfig"].items() if key not in added} == plain["HostConfig"]
    assert body["User"] == plain["User"] and body["HostConfig"]["CapDrop"] == ["ALL"]
    assert set(body["Env"]) - set(plain["Env"]) >= {"VK_LOADER_DRIVERS_DISABLE=lvp_icd*"}


def test_an_engine_without_the_toolkit_says_what_to_install() -> None:
    api, wanted = MadeUp(), Gpus.read("all")
    with (
        pytest.raises(EngineError, match=r"could not select device driver(?s:.)*container toolkit"),
        Engine(api).sandbox("image", gpus=wanted),
    ):
        pytest.fail("it was not created")


@pytest.mark.parametrize(
    "given", ["0", "-1", "some", "device=", "device=a,,b", "/dev/dri/card0", "/dev/nvidia0", "none"]
)
def test_invalid_gpus_option_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match=f"--gpus={given}"):
        Gpus.read(given)


def test_absent_or_remote_device_files_are_refused(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Gpus.read(f"{machine}/dri/renderD130")
    assert absent is not None
    with pytest.raises(UsageError, match=r"renderD128, .*renderD129"):
        absent.settings()
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    with pytest.raises(UsageError, match="needs an engine on this machine"):
        sent(f"{machine}/dri")
    assert sent("all")["HostConfig"]["DeviceRequests"]


def test_gpus_that_are_there_and_not_used_are_said(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "nvidia0").touch()
    (machine / "nvidiactl").touch()
    said = gpus.unused(None)
    assert f"{machine}/nvidia0, {machine}/dri/renderD128, {machine}/dri/renderD129" in said and "nvidiactl" not in said
    assert f"--gpus=all or --gpus={machine}/dri" in said
    assert gpus.unused(Gpus.read("all")) == ""
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    assert gpus.unused(None) == ""


def test_a_target_without_a_driver_refuses_gpus_and_names_one_that_has() -> None:
    with pytest.raises(UsageError, match=r"(?s)dpu takes no GPU.*spirv-vulkan"):
        Request.read("dpu", gpus="all")
    request = Request.read("spirv-vulkan", gpus="device=0")
    assert request.command("shell") == "./foundry shell spirv-vulkan --gpus=device=0"
