"""Install a user's own plugin in a container of a target's image, and make it Triton's active backend there.

Nothing of the plugin runs on this machine: its wheel is built in the container, too, if there are only sources. What is
installed comes before the image's packages, and TRITON_DEFAULT_BACKEND names it; the target's own plugin stays
installed, because the other one may derive from it, but is not active.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.archives.received import LEFT_OUT
from toolchains.assembly.plugin import Plugin
from toolchains.engine.container import Container
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import json_text, paths
from toolchains.system.errors import CheckError
from toolchains.system.waiting import doing
from toolchains.testing import proof

HOME = f"{proof.HOME}/plugin"
_WORK = f"{proof.HOME}/plugin-work"
_TOOLS = f"{_WORK}/tools"
# Without dependencies: the image has them, or a wheel in the same folder is one. `pip check` says what is missing.
_PIP = ("python", "-m", "pip", "--disable-pip-version-check")
_INSTALL = ("install", "--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--quiet", "--target", HOME)
# What results are compared with, and what a release of Triton stands for, must be the image's.
_COMPARED = {"numpy", "triton"}
# The limit for importing the plugin (seconds), the status of timeout(1) at it, and the most characters of a message.
_SECONDS, _TIMED_OUT, _SHOWN = 300, 124, 3000
# Prints which driver Triton chose, and the backend that its target has.
_ACTIVE = """
import json, triton
driver = triton.runtime.driver.active
# In 3.2, active is a proxy, and only its methods are the driver's.
owner = getattr(driver.get_current_target, "__self__", driver)
owner = owner if isinstance(owner, type) else type(owner)
print(json.dumps([owner.__module__, driver.get_current_target().backend]))
"""


def environment(plugin: Plugin | None, *path: str) -> dict[str, str]:
    """Return the variables of programs that run with a plugin; `path` are other folders that Python imports from."""
    if plugin is None:
        return {"PYTHONPATH": ":".join(path)} if path else {}
    return {"PYTHONPATH": ":".join((HOME, *path)), "TRITON_DEFAULT_BACKEND": plugin.name}


@doing("installing the plugin in the container, and asking Triton for it")
def install(container: Container, plugin: Plugin | None, target: LockedTarget) -> None:
    """Install a plugin in a container, and check that Triton's driver is the plugin's.

    Raises:
        CheckError: it cannot be built or installed, requires what is not there, or is not the active backend.
    """
    if plugin is None:
        return
    container.call(["mkdir", "-p", HOME, _TOOLS])
    if plugin.sources:
        with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
            copy, distribution = Path(work, "sources"), Path(work, "tools")
            shutil.copytree(plugin.sources, copy, ignore=_left_out)
            container.copy_into(copy, f"{_WORK}/sources")
            distribution.mkdir()
            proof.copy_distribution("hatchling", distribution)
            container.copy_into(distribution, _TOOLS)
        what = [f"{_WORK}/sources"]
    else:
        for wheel in plugin.wheels:
            container.copy_into(wheel, f"{_WORK}/{wheel.name}")
        what = [f"{_WORK}/{wheel.name}" for wheel in plugin.wheels]
        # It may have been built again while the image was.
        if plugin.described.rpartition(" ")[2] not in container.call(["sha256sum", *what]):
            raise CheckError(f"--plugin={plugin.option} has changed since this command began", next="try again")
    done = container.run([*_PIP, *_INSTALL, *what], env={"PYTHONPATH": f"{HOME}:{_TOOLS}"})
    if done.status != 0:
        raise CheckError(
            f"--plugin={plugin.option} cannot be installed in the image of {target.name}",
            why=(done.stdout + done.stderr).strip()[-_SHOWN:],
            next="a build backend other than hatchling needs a wheel: pip wheel --no-deps --wheel-dir=dist ."
            if plugin.sources
            else f"./foundry target show {target.name}, which names the Python that a wheel must be for",
        )
    if replaced := _COMPARED.intersection(container.call(["ls", HOME]).split()):
        raise CheckError(
            f"--plugin={plugin.option} has a {replaced.pop()} of its own",
            why=f"it would replace that in the image of {target.name}, and nothing would be proven with it",
            next="leave it out of the wheels",
        )
    checked = container.run([*_PIP, "check"], env={"PYTHONPATH": HOME})
    named = plugin.distribution.replace("_", "-").lower()
    if missing := [
        line for line in checked.stdout.splitlines() if line.replace("_", "-").lower().startswith(f"{named} ")
    ]:
        raise CheckError(
            f"--plugin={plugin.option} requires what the image of {target.name} does not have",
            why="\n".join(missing),
            next="put the wheels of what is missing beside the plugin's into one folder, and name it by --plugin",
        )
    asked = container.run(["timeout", str(_SECONDS), "python", "-c", _ACTIVE], env=environment(plugin))
    try:
        if asked.status != 0:
            raise ValueError("it failed")
        module, backend = json_text.parse(asked.stdout.strip().rpartition("\n")[2], tuple[str, str])
    except ValueError as error:
        ended = f"Python ended with status {asked.status} before Triton chose a driver"
        if asked.status == _TIMED_OUT:
            ended = f"it did not answer within {_SECONDS} s"
        raise CheckError(
            f"Triton cannot use --plugin={plugin.option} in the image of {target.name}",
            why=f"{(asked.stdout + asked.stderr).strip()[-_SHOWN:]}\n{ended}".strip(),
            next="fix the error in the plugin's driver.py or compiler.py: both are imported with Triton",
        ) from error
    if not f"{module}.".startswith(f"{plugin.package}.") or backend != plugin.name:
        raise CheckError(
            f"--plugin={plugin.option} is not what runs kernels",
            why=f"Triton's driver is in {module}, its target's backend is {backend}; the plugin is {plugin.package}",
            next=f'let get_current_target of its driver.py return GPUTarget("{plugin.name}", ...)',
        )
    # What e2e reads as the file of the active backend's target.
    with TemporaryDirectory(prefix="foundry-", dir=paths.scratch()) as work:
        settings = Path(work, f"{plugin.name}.toml")
        settings.write_text(plugin.settings, encoding="utf-8")
        place = paths.TARGETS.relative_to(paths.ROOT)
        container.copy_into(settings, f"{proof.HOME}/{place}/{settings.name}")


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Return which files of a folder are no sources: environments, repositories of git, links, what was built."""
    return {
        name
        for name in names
        if name in LEFT_OUT
        or name == "dist"
        or Path(folder, name).is_symlink()
        or Path(folder, name, "pyvenv.cfg").exists()
        or not (Path(folder, name).is_file() or Path(folder, name).is_dir())
    }
