"""The verb devcontainer: write .devcontainer/ for a user's own repository, so that editors open it in a target's image.

The image is named by its digest in a registry, or else by the name that the engine of this machine has for it. The
Dockerfile adds only a user to it, because an editor works as a user who may write the files of the repository.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Inputs
from toolchains.config import components
from toolchains.images import provenance
from toolchains.repro import expected
from toolchains.share.registry import Repository
from toolchains.system import durable, foreign, paths
from toolchains.system.errors import AbsentError, UsageError, VerificationError
from toolchains.system.terminal import make_console

_console = make_console()
_USER = "foundry"
_DOCKERFILE = """\
# Written by the verb devcontainer of Triton Foundry: the image of the target {target} with Triton {release}.
FROM {image}
# Editors work as this user. On Linux they give it the number of the user who opens the folder.
RUN useradd --uid 1000 --create-home --shell /bin/bash {user}
USER {user}
"""
# Editing Python with its types, and reading the IR of kernels.
_EXTENSIONS = ("ms-python.python", "llvm-vs-code-extensions.vscode-mlir")
_PYTHON = "/opt/foundry/bin/python"


def devcontainer(request: Request, folder: str, *, registry: str, force: bool) -> None:
    """Write the files into a folder's .devcontainer.

    Raises:
        UsageError: the folder is not there, is this checkout, cannot be written to, or has other files of these names.
        AbsentError: the registry does not have the image.
        VerificationError: the registry has another image than this checkout asks for.
    """
    top = Path(folder or ".").absolute()
    if not top.is_dir() or top.resolve() == paths.ROOT:
        raise UsageError(
            f"{top} is not the folder of a repository of yours",
            why="it is this checkout" if top.is_dir() else "there is no such folder",
            next=f"{request.command('devcontainer')} FOLDER",
        )
    place = top / ".devcontainer"
    durable.require_writable(place, str(place))
    image = _in_registry(request, registry) if registry else ensure.ensure_image(request)[1].name
    texts = {
        "devcontainer.json": json.dumps(_settings(request), indent=2) + "\n",
        "Dockerfile": _DOCKERFILE.format(
            target=request.target.name, release=request.release.version, image=image, user=_USER
        ),
    }
    found = [name for name in texts if (place / name).exists()]
    other = [name for name in found if foreign.read_file(place / name) != texts[name].encode()]
    if other and not force:
        raise UsageError(
            f"{place} has {' and '.join(other)} already, with another text",
            next="the same command with --force, which replaces it",
        )
    for name, text in texts.items():
        durable.write(place / name, text)
    _console.print(f"written: {', '.join(str(place / name) for name in texts)}")
    _console.print(f"image: {image}")
    if not registry:
        _console.notice(
            "only this machine has that image: others, and GitHub Codespaces, cannot pull it. To change that: "
            f"./foundry push {request.target.name} REGISTRY, then this command with --from=REGISTRY"
        )
    _console.print(f"next: open {top} in VS Code or a JetBrains IDE, or: devcontainer up --workspace-folder {top}")


def _in_registry(request: Request, registry: str) -> str:
    """Return an image's name by its digest in a registry, after a look at whether it is the one of this checkout.

    Its ID must be the published one, or that of an image which was built or pulled here.
    """
    inputs, store = Inputs(request.target, request.release), request.store()
    repository = Repository(registry, request.target.label)
    tag = inputs.name.rpartition(":")[2]
    answer = repository.manifest(tag)
    if answer is None:
        raise AbsentError(
            f"{repository.name} has no image of {request.target.name} as this checkout asks for it",
            why=f"it would be called {repository.name}:{tag}",
            next=f"./foundry push {request.target.name} {registry}",
        )
    descriptor, manifest = answer
    known = {*provenance.configs(inputs.name, store), provenance.recorded(store).get(inputs.name)}
    published = expected.load().image(request.target.label, request.release.version)
    if published and published.inputs == inputs.identity():
        known = {published.image}
    if manifest.config.digest not in known:
        raise VerificationError(
            f"{repository.name}:{tag} is not known to be the image of this checkout",
            why=f"its ID is {manifest.config.digest}; nobody published it, and it was neither built nor pulled here",
            next=f"./foundry pull {request.target.name} {registry} --key=FILE.pub",
        )
    return f"{repository.name}@{descriptor.digest}"


def _settings(request: Request) -> dict[str, Any]:
    """Return what is in devcontainer.json."""
    inside = "/workspaces/${localWorkspaceFolderBasename}"
    settings: dict[str, Any] = {
        "name": f"Triton {request.release.version} on {request.target.name}",
        # Nothing is fetched by the step that adds the user.
        "build": {"dockerfile": "Dockerfile", "options": ["--network=none"]},
        "workspaceMount": f"source=${{localWorkspaceFolder}},target={inside},type=bind",
        "workspaceFolder": inside,
        "remoteUser": _USER,
        # A login shell would set another PATH.
        "userEnvProbe": "none",
        "customizations": {
            "vscode": {"extensions": _EXTENSIONS, "settings": {"python.defaultInterpreterPath": _PYTHON}},
            "jetbrains": {"backend": "PyCharm"},
        },
    }
    if components.target(request.target.name).gpus:
        settings["hostRequirements"] = {"gpu": "optional"}
    return settings
