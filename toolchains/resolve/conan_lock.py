"""toolchains/conan.lock: the versions of each other that recipes may require, in Conan's format.

lock.json locks sources, and this file locks the packages built from them. They must agree: a package has the version of
its profile in toolchains/upstreams, and a Debian source package has the same upstream version; `pin --check` compares
them. A build does not need the file, because it sets the required version by an option of the recipe.

`./foundry cache lock` writes it with `conan lock create` in a container of the builder, without a network. Revisions
and times are left out, because the recipes are in this checkout, and git identifies them.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from toolchains.artifacts import native
from toolchains.config import projects
from toolchains.config.projects import Profile, Upstream
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.fromsource.build import BASE, LLVM, llvm_profile
from toolchains.fromsource.conan import PROFILE, Conan, option_words
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Lock
from toolchains.system import paths
from toolchains.system.errors import PinError

PATH = paths.ROOT / "toolchains" / "conan.lock"
_NEXT = "./foundry cache lock"
_LOCKFILE = "/foundry/conan.lock"


def disagreements(locked: Lock, path: Path = PATH) -> Iterator[str]:
    """Yield how conan.lock, the profiles and lock.json differ, one sentence each; needs neither engine nor network."""
    try:
        data = json.loads(path.read_text())
        has = {*map(_version, data["requires"]), *map(_version, data["python_requires"])}
    except FileNotFoundError:
        yield f"there is no {path}: {_NEXT}"
        return
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        yield f"{path} is not a lockfile of Conan ({error!r}): {_NEXT}"
        return
    wanted = {f"{upstream.name}/{profile.version}": profile.name for upstream, profile in _profiles()}
    wanted[_base()] = "recipes/upstream"
    yield from (
        f"conan.lock has {reference}, which no profile makes: {_NEXT}" for reference in sorted(has - wanted.keys())
    )
    yield from (
        f"conan.lock does not have {reference} ({wanted[reference]}): {_NEXT}"
        for reference in sorted(wanted.keys() - has)
    )
    for upstream, profile in _profiles():
        source = locked.sources.get(f"{upstream.name}/{profile.name}")
        if source is None or source.kind != "debian":
            continue
        # Upstream's part of a Debian version is "13.0.1" of "1:13.0.1-11".
        if re.sub("^[0-9]+:", "", source.version).rpartition("-")[0] != profile.version:
            yield (
                f"{upstream.name}/{profile.name} is version {profile.version}, and its source package "
                f"{source.version}: correct toolchains/upstreams/{upstream.name}.toml, then {_NEXT}"
            )


def write(store: Store, engine: Engine, path: Path = PATH) -> bool:
    """Let Conan resolve the recipes' requirements; return whether the file changed.

    Raises:
        CommandError: Conan failed: a recipe is wrong, or requires a package without a profile.
        PinError: no builder is locked.
    """
    builders = lock.load().builders
    if not builders:
        raise PinError("nothing is locked to build in", next="./foundry pin --update")
    image = native.builder_image(next(iter(builders.values())), store=store, engine=engine)
    with engine.container(image) as container:
        text = _resolved(Conan(container))
    changed = not path.is_file() or path.read_text() != text
    if changed:
        path.write_text(text)
    return changed


def _resolved(conan: Conan) -> str:
    """Return the text of the lockfile: Conan resolves one recipe after the other into it."""
    conan.export(BASE)
    for upstream, profile in _profiles():
        conan.export(upstream.name, profile.version)
    locked: list[str] = []
    for upstream, profile in _profiles():
        # What determines a recipe's requirements: for a Triton, the version of its LLVM.
        required = projects.load(LLVM).profile(llvm_profile(profile)).version if profile.llvm_hash else ""
        words = ["--requires", f"{upstream.name}/{profile.version}", "--profile:all", PROFILE, "--no-remote"]
        words += ["--lockfile-partial", "--lockfile-out", _LOCKFILE, *locked]
        conan.call("lock", "create", *words, *option_words(f"{upstream.name}/*", {LLVM: required} if required else {}))
        locked = ["--lockfile", _LOCKFILE]
    data = json.loads(conan.container.call(["cat", _LOCKFILE]))
    plain = {
        key: sorted(set(map(_version, value))) if isinstance(value, list) else value for key, value in data.items()
    }
    return json.dumps(plain, indent=4) + "\n"


def _profiles() -> Iterator[tuple[Upstream, Profile]]:
    for name in projects.names():
        upstream = projects.load(name)
        for profile in upstream.profiles.values():
            yield upstream, profile


def _base() -> str:
    """Return the reference of the recipe that the others are based on, from its file."""
    tree = ast.parse((paths.RECIPES / BASE / "conanfile.py").read_text())
    values = {
        target.id: str(ast.literal_eval(statement.value))
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id in ("name", "version")
    }
    return f"{values['name']}/{values['version']}"


def _version(reference: str) -> str:
    """Return a reference without its revision and time: "llvm/20.0.0#abc%1700000000.0" becomes "llvm/20.0.0"."""
    return reference.partition("#")[0].partition("%")[0]
