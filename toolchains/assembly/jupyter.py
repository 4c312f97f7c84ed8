"""Bring Jupyter into a container: locked wheels that are in no image, which the image's own pip installed once.

Input: the wheels of the lock. Output: a tar in the store with what pip made of them, and its byte code. Containers get
it unpacked to FOLDER, which their environment looks into last: a kernel sees the image's own packages first.
"""

from __future__ import annotations

from pathlib import Path

from toolchains.config.components import JUPYTER
from toolchains.engine.client import Engine
from toolchains.engine.sandbox import HOME
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget, digest, tool_name
from toolchains.system.errors import PinError
from toolchains.system.steps import step

FOLDER = f"{HOME}/jupyter"
# Where Jupyter finds its kernel, its settings, and the pages of JupyterLab.
ENVIRONMENT = {
    "JUPYTER_PATH": f"{FOLDER}/share/jupyter",
    "JUPYTER_CONFIG_PATH": f"{FOLDER}/etc/jupyter",
    "JUPYTERLAB_DIR": f"{FOLDER}/share/jupyter/lab",
}
# The kind of part in the store.
KIND = "jupyter"
# The revision of how wheels become a tar: raise it whenever that changes.
_FORMAT = 1
_PIP = ("--no-index", "--no-deps", "--no-cache-dir", "--no-compile", "--quiet", "--disable-pip-version-check")
_PACKED = f"{HOME}/packed.tar"


def identity(tool: LockedTarget) -> str:
    """Return the digest of all inputs of the tar."""
    return digest({"format": _FORMAT, "wheels": [wheel.sha256 for wheel in tool.wheels], "python": tool.python})


def ensure_tar(target: LockedTarget, image: str, *, store: Store, engine: Engine) -> Path:
    """Return the tar for the Python of a target, from the store or made now.

    Args:
        image: an image of the target, in which pip runs; nothing of the wheels is executed.

    Raises:
        PinError: Jupyter is not locked for this Python.
        OfflineError, FetchError: a wheel is not in the store and cannot be fetched.
        CommandError: pip failed.
    """
    tool = lock.load(platform=target.platform).tools.get(tool_name(JUPYTER, target.suite))
    if tool is None:
        raise PinError(f"Jupyter is not locked for {target.name}", next=f"./foundry pin --update={JUPYTER}")

    def build(folder: Path) -> None:
        with step(f"Jupyter for Python {tool.python}: {len(tool.wheels)} locked wheels"):
            store.fetch(tool.wheels, suite=tool.suite, python=tool.python, platform=tool.platform)
            with engine.sandbox(image) as container:
                places = []
                for wheel in tool.wheels:
                    places.append(f"{HOME}/wheels/{wheel.filename}")
                    container.copy_into(store.path(wheel), places[-1])
                container.call(["python", "-m", "pip", "install", *_PIP, "--target", FOLDER, *places])
                container.call(["python", "-m", "compileall", "-q", "-j", "0", FOLDER])
                container.call(["tar", "-C", HOME, "-cf", _PACKED, Path(FOLDER).name])
                container.copy_out(_PACKED, folder / "jupyter.tar", only="file")

    return store.part(KIND, identity(tool), build) / "jupyter.tar"
