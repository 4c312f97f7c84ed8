"""The option --gpus: which GPUs of the engine's machine a container gets, as the engine's API has it.

    all, 2, device=0,1, device=UUID    NVIDIA's, as for `docker run --gpus`: the engine asks NVIDIA's container toolkit,
                                       which puts the driver's files into the container
    /dev/dri, /dev/dri/renderD129      AMD's and Intel's: the device files. Their drivers are in the image

The image's own Vulkan device on the CPU is hidden then, so that no kernel runs there if the GPU cannot be used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker.types

from toolchains.engine import diagnosis
from toolchains.system.errors import UsageError

_DEV = Path("/dev")
_NODES = "/dev/dri"
# What NVIDIA's toolkit is to put into the container. Vulkan is among the graphics.
_CAPABILITIES = ("compute", "graphics", "utility")
_HIDES_CPU = {"VK_LOADER_DRIVERS_DISABLE": "lvp_icd*"}
_FORMS = "all, a number, device=NAME of NVIDIA's GPUs, or /dev/dri for AMD's and Intel's"


@dataclass(frozen=True)
class Gpus:
    """What --gpus says.

    Attributes:
        text: the option's value.
        count: how many of NVIDIA's GPUs; -1 for all.
        names: NVIDIA's GPUs by number or UUID.
        nodes: device files of GPUs, or the folder of all of them.
    """

    text: str
    count: int = 0
    names: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Gpus | None:
        """Return what the option's value says; None if it is empty.

        Raises:
            UsageError: it has no form that is known.
        """
        if not text:
            return None
        names = text.removeprefix("device=").split(",")
        if text == "all":
            return cls(text, count=-1)
        if re.fullmatch("[1-9][0-9]*", text):
            return cls(text, count=int(text))
        if text.startswith("device=") and all(re.fullmatch(r"[\w:.-]+", name) for name in names):
            return cls(text, names=tuple(names))
        if text == _NODES or all(re.fullmatch(rf"{_NODES}/renderD[0-9]+", node) for node in names):
            return cls(text, nodes=tuple(names))
        raise UsageError(f"--gpus={text}: it names no GPU", next=f"--gpus= {_FORMS}")

    def settings(self) -> dict[str, Any]:
        """Return the engine's settings of a container that has these GPUs.

        Raises:
            UsageError: this machine has no such device file, or the engine is on another machine, whose device files
                are not known here.
        """
        if not self.nodes:
            count = {"device_ids": [*self.names]} if self.names else {"count": self.count}
            wanted = docker.types.DeviceRequest(driver="nvidia", capabilities=[["gpu", *_CAPABILITIES]], **count)
            return {"device_requests": [wanted]}
        if not diagnosis.address().startswith("unix://"):
            raise UsageError(
                f"--gpus={self.text} needs an engine on this machine",
                why=f"the engine is at {diagnosis.address()}, and the groups that may use its devices are not known",
                next="run Foundry on that machine",
            )
        files = [Path(node) for node in self.nodes]
        if self.nodes == (_NODES,):
            files = _render_nodes()
        if not files or not all(file.exists() for file in files):
            raise UsageError(
                f"--gpus={self.text}: there is no such device",
                why=f"this machine has {', '.join(map(str, _render_nodes())) or f'no {_NODES}/renderD*'}",
                next="install the kernel's driver of the GPU, or leave out --gpus",
            )
        # A sandbox's user is in no group of the machine, and the device files are for one, mostly `render`.
        groups = sorted({file.stat().st_gid for file in files})
        return {"devices": [f"{file}:{file}:rw" for file in files], "group_add": [str(group) for group in groups]}

    @property
    def environment(self) -> Mapping[str, str]:
        """Return environment variables of the container."""
        own = {} if self.nodes else {"NVIDIA_DRIVER_CAPABILITIES": ",".join(_CAPABILITIES)}
        return _HIDES_CPU | own

    @property
    def advice(self) -> str:
        """Return what helps if the engine cannot start a container with these GPUs."""
        if self.nodes:
            return "see that your user's engine may use these devices, or leave out --gpus"
        return "install NVIDIA's container toolkit, and let the engine know of it: nvidia-ctk runtime configure"


def unused(given: Gpus | None) -> str:
    """Return a sentence on GPUs of this machine that a container does not use; "" if there is nothing to say.

    Nothing is known of the GPUs of an engine on another machine.
    """
    if given or not diagnosis.address().startswith("unix://"):
        return ""
    nvidia, nodes = sorted(_DEV.glob("nvidia[0-9]*")), _render_nodes()
    options = [f"--gpus={text}" for text, devices in (("all", nvidia), (_NODES, nodes)) if devices]
    devices = ", ".join(map(str, (*nvidia, *nodes)))
    return f"{devices}: on this machine, and not used; {' or '.join(options)} would use it" if devices else ""


def _render_nodes() -> list[Path]:
    return sorted(_DEV.glob("dri/renderD*"))
