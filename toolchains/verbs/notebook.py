"""The verb notebook: start Jupyter in a target's container, in a copy of the user's folder.

Files are copied in and back as for `shell --with`. The container has no network: engine/relay.py connects a loopback
address of this machine with Jupyter's port in it.
"""

from __future__ import annotations

import secrets
import sys
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from toolchains.archives import cell_outputs
from toolchains.assembly.request import Request
from toolchains.engine import relay
from toolchains.engine.sandbox import HOME
from toolchains.system.errors import FoundryError, UsageError
from toolchains.verbs import run
from toolchains.verbs.run import Place

# Jupyter's port in the container.
_PORT = 8888
# Seconds until Jupyter is considered dead; it starts in three.
_STARTUP_SECONDS = 120
_JUPYTER = (
    *("python", "-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={_PORT}"),
    *("--ServerApp.port_retries=0", "--Application.log_level=WARN", f"--ServerApp.root_dir={run.WORK}"),
    # By sockets in a folder, not by ports.
    "--KernelManager.transport=ipc",
    # Not in the user's folder.
    f"--FileCheckpoints.checkpoint_dir={HOME}/checkpoints",
    # What asks servers on the Internet.
    *("--LabApp.news_url=None", "--LabApp.extension_manager=readonly"),
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
)


def place(given: str, **options: str | list[str]) -> tuple[Place, str]:
    """Return the user's folders for a folder, a notebook or nothing, and the notebook's name in the folder.

    Args:
        given: a folder, or a notebook, whose folder is copied; the current folder if empty.
        options: those of Place.read.

    Raises:
        UsageError: there is neither; the folder is not given and is the user's home, or large; or see Place.read.
    """
    path = Path(given or ".")
    if path.is_dir():
        folder = path if given else run.unnamed(Path.cwd())
        return Place.read(folder=str(folder), **options), ""  # type: ignore[arg-type]
    if path.suffix != cell_outputs.SUFFIX:
        raise UsageError(f"{given} is neither a folder nor a notebook", next="./foundry help notebook")
    if path.exists():
        cell_outputs.read(path)
    folder = run.unnamed(path.absolute().parent)
    return Place.read(folder=str(folder), **options), path.name  # type: ignore[arg-type]


def serve(request: Request, place: Place, name: str, port: int) -> int:
    """Serve Jupyter until Ctrl-C, or until it is shut down in the browser; return the exit status.

    Args:
        name: a notebook in the place's folder to open; "" for none.
        port: the port of this machine; 0 for a free one.

    Raises:
        CommandError: a wheel cannot be installed.
    """
    token = secrets.token_urlsafe(24)
    address = relay.own_address()
    environment = {**place.environment, "JUPYTER_TOKEN": token}
    with (
        run.open_container(request, place, with_jupyter=True) as container,
        run.open_folder(container, place),
        relay.listening(container, _PORT, address, port) as own,
    ):

        def announce() -> None:
            # If Jupyter ends before it answers, its own message says why.
            with suppress(FoundryError):
                relay.wait(container, _PORT, _STARTUP_SECONDS)
                page = f"http://{address}:{own}/lab{f'/tree/{quote(name)}' if name else ''}?token={token}"
                print(page, flush=True)
                print(
                    f"Ctrl-C ends Jupyter; what is saved then comes back to {place.results}",
                    file=sys.stderr,
                    flush=True,
                )

        threading.Thread(target=announce, daemon=True).start()
        with suppress(KeyboardInterrupt):
            return container.run(
                run.inside(_JUPYTER, environment),
                cwd=run.WORK,
                line=lambda text: print(text, file=sys.stderr, flush=True),
            ).status
    return 0
