"""Write the files of a new target: its TOML, its Dockerfile and its plugin, modelled on an existing target.

The TOML and the Dockerfile are copied from the existing target and adapted. The plugin is written from
toolchains/templates: a small package whose classes derive from those of the existing target's plugin. It has a link to
the repository's VERSION. In a template, @WORD@ is replaced by a value of _words(), and NAME in a file's name by the
name of the target.

    templates/plugin        the package and its tests
    templates/target        what it needs in this tree
    templates/repository    what it needs in a repository of its own, which runs in the image of the existing target
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.version import Version

from toolchains.config import components, projects
from toolchains.config.components import Target
from toolchains.config.reading import read_table
from toolchains.system import durable, paths
from toolchains.system.children import run
from toolchains.system.errors import FileError, UsageError, suggestion

_TEMPLATES = paths.ROOT / "toolchains" / "templates"
_SUFFIX = ".in"
# The expression of SPDX by the word for --licence; "none" for terms that nobody grants.
_LICENCES = {"MIT": "MIT", "Apache-2.0": "Apache-2.0", "none": "LicenseRef-Proprietary"}
# The name is also used for a Python package, an image and a folder.
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 20
# Keys that belong only to the existing target and are not copied: its vendor's SDK, its users' folders, its proof and
# its measurements.
_NOT_COPIED = ("sdk", "user-folders", "proof", "bench", "peers", "packing")
_LINE = 120
_HEADER = """\
#:schema ../schemas/target.json
# TODO: say what the hardware is. Suite, components and recipes are those of {like}; toolchains/targets/{like}.toml says
# why. Add what the hardware's compiler and runtime need, and remove what they do not.
"""
_FOOTER = """
# TODO: sdk = "{name}" enables --sdk, if toolchains/sdks/{name}.toml describes the vendor's SDK, and proof = ["{name}"]
# makes e2e run the cases in e2e/{name}.py, too. See docs/new-target.md.
"""
_DOCKER_HEADER = """\
# The {name} target. TODO: say what the hardware is. Install its compiler and runtime, and remove what only {like} has.
# PYTHON is the image that python.Dockerfile made. Own packages come last, so that an edit in backends/ costs one step.
"""


def sources() -> list[str]:
    """Return the targets that a new one can be modelled on: those with their own plugin."""
    found = (components.target(name) for name in components.names())
    return [target.name for target in found if target.backend == target.name]


def default_source() -> str:
    """Return the target to copy if the user names none: the one with the fewest parts."""

    def parts(name: str) -> tuple[int, int]:
        target = components.target(name)
        return len(target.recipes), len(target.plugins)

    return min(sources(), key=parts)


def write(name: str, like: str = "") -> list[Path]:
    """Write the files of a new target, all of them or none.

    Args:
        name: the name of the target.
        like: the target to copy; default_source() if empty.

    Returns:
        The written paths: files, and the plugin's folder.

    Raises:
        UsageError: the name cannot be the name of a target, or no target is called `like`.
        FileError: a file or a folder with such a path exists. Nothing is ever overwritten.
    """
    source = _source(name, like)
    _check_name(name)
    # The target's file is written last, because the target exists as soon as its file exists.
    places = [paths.BACKENDS / name, paths.DOCKER / f"{name}.Dockerfile", paths.TARGETS / f"{name}.toml"]
    there = [str(place.relative_to(paths.ROOT)) for place in places if place.exists()]
    if there:
        raise FileError(
            f"{', '.join(there)} exists already",
            why="the files of a new target never replace others",
            next="take another name, or remove what is left of a run that was killed",
        )
    paths.BUILD.mkdir(parents=True, exist_ok=True)
    # Inside this repository, so that files can be renamed to their places.
    with TemporaryDirectory(dir=paths.BUILD, prefix="target-") as folder:
        work = Path(folder)
        (work / f"{name}.toml").write_text(_toml(name, source), encoding="utf-8")
        (work / f"{name}.Dockerfile").write_text(_dockerfile(name, source), encoding="utf-8")
        how = {"TESTED": f"./foundry test --target={name} --plugin"}
        _fill(work / name, ("plugin", "target"), _words(name, source) | how)
        (work / name / paths.VERSION.name).symlink_to(Path("..", "..", paths.VERSION.name))
        # Read the file, so that a mistake in it does not become a target.
        components.target(name, work)
        moved: list[Path] = []
        try:
            for place in places:
                durable.move(work / place.name, place)
                moved.append(place)
        except BaseException:
            for place in moved:
                durable.move(place, work / place.name)
            raise
    return places


def write_repository(name: str, folder: Path, *, commit: str, like: str = "", licence: str = "") -> Target:
    """Write a plugin that is a repository of its own, all of it or nothing.

    Args:
        name: the name of the backend.
        folder: where to write; it must be new or empty.
        commit: the commit of Triton Foundry that its CI takes.
        like: the target whose plugin it derives from, and in whose image it is proven; default_source() if empty.
        licence: a key of _LICENCES; MIT if empty.

    Returns:
        The target that it is like.

    Raises:
        UsageError: the name cannot be the name of a backend, or there is no such target or licence.
        FileError: the folder has something in it. Nothing is ever overwritten.
    """
    source, licence = _source(name, like), licence or "MIT"
    if licence not in _LICENCES:
        raise UsageError(
            f"--licence={licence} is not known", why=f"known: {', '.join(_LICENCES)}", next="--licence=MIT"
        )
    if why := _unfit(name):
        raise UsageError(
            f"{name!r} cannot be the name of a backend", why=why, next="./foundry target new NAME --out=FOLDER"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(
            f"{folder} exists already", why="nothing is ever overwritten", next="name a new folder by --out"
        )
    durable.require_writable(folder, f"--out={folder}")
    releases = sorted(source.triton.release, key=Version)
    first, last = Version(releases[0]), Version(releases[-1])
    words = _words(name, source) | {
        "LICENCE": _LICENCES[licence],
        "COMMIT": commit,
        "RELEASES": ", ".join(map(json.dumps, releases)),
        "RANGE": f">={first.major}.{first.minor},<{last.major}.{last.minor + 1}",
        "REFUSED": "\n".join(_line(key, value) for key, value in _raw(source).get("refused", {}).items()),
        "TESTED": f"FOUNDRY/foundry run {source.name} --plugin=. -m pytest tests",
    }
    terms = ""
    if licence == "MIT":
        holder = f"the authors of triton-{words['DISTRIBUTION']}-backend"
        ours = (paths.ROOT / "LICENSE").read_text(encoding="utf-8")
        terms = re.sub(r"(?m)^(Copyright \(c\) \d+) .*", rf"\1 {holder}", ours)
    elif licence == "Apache-2.0":
        # A locked package that has this licence.
        terms = metadata.distribution("packaging").read_text("licenses/LICENSE.APACHE") or ""
        assert terms, "packaging has no licence"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
        work = Path(temporary, folder.name)
        _fill(work, ("plugin", "repository"), words)
        if terms:
            (work / "LICENSE").write_text(terms, encoding="utf-8")
        durable.move(work, folder)
    return source


def _source(name: str, like: str) -> Target:
    """Return the target that a new one is made like.

    Raises:
        UsageError: no target with its own plugin is called so.
    """
    like = like or default_source()
    if like not in sources():
        raise UsageError(
            f"a target cannot be made like {like}{suggestion(like, sources())}",
            why=f"known: {', '.join(sources())}",
            next=f"./foundry target new {name} --like={default_source()}",
        )
    return components.target(like)


def _unfit(name: str) -> str:
    """Return why no backend and no target may have a name; "" if one may."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or keyword.iskeyword(name):
        return (
            f"it must be a word of at most {_LONGEST} lower-case letters and digits that begins with a letter; "
            "underscores may separate words"
        )
    return "there is a target of this name" if name in components.names() else ""


def _check_name(name: str) -> None:
    """Raise UsageError with the reason if a name cannot be the name of a target."""
    why = _unfit(name)
    if not why and name in {path.stem for path in paths.PINS.glob("*.toml")} | {*projects.names()}:
        why = "a component or an upstream project has this name, and `./foundry pin --update=NAME` accepts these, too"
    elif not why and (found := next(_uses(name), "")):
        why = f"the code uses this word ({found}), and no code may name a target: tests/tree/test_names.py"
    if why:
        raise UsageError(f"{name!r} cannot be the name of a target", why=why, next="./foundry target new NAME")


def _uses(name: str) -> Iterator[str]:
    """Yield the places in Foundry's code where an identifier or a text contains this word."""
    pattern = word(name)
    for path in code():
        text = path.read_text(encoding="utf-8")
        if pattern.search(text):
            yield from (f"{path.relative_to(paths.ROOT)}:{line}" for line, each in words(text) if pattern.search(each))


def word(*names: str) -> re.Pattern[str]:
    """Return a pattern of names as words or parts of identifiers: dpu, DPU_HOME and make_dpu, but not nr_dpus."""
    return re.compile(rf"(?i)(?<![a-z])({'|'.join(map(re.escape, names))})(?![a-z])")


def code() -> list[Path]:
    """Return the files of Foundry's code, which must not name a target."""
    found = [*paths.ROOT.glob("*.py"), *(paths.ROOT / "toolchains").rglob("*.py")]
    return sorted(path for path in found if not path.is_relative_to(paths.RECIPES))


def words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the identifiers and texts in Python source, with their lines, without docstrings, which have examples."""
    tree = ast.parse(text)
    documentation = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                documentation.add(first.value)
    for node in ast.walk(tree):
        if node in documentation:
            continue
        for _, value in ast.iter_fields(node):
            # Identifiers are attributes of many kinds of nodes, all of them plain strings.
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, bytes):
                    each = each.decode(errors="replace")
                if isinstance(each, str):
                    yield getattr(node, "lineno", 0), each


def _fill(folder: Path, kinds: Sequence[str], words: Mapping[str, str]) -> None:
    """Write the templates of these kinds into a folder."""
    for kind in kinds:
        for template in sorted(path for path in (_TEMPLATES / kind).rglob(f"*{_SUFFIX}") if path.is_file()):
            place = str(template.relative_to(_TEMPLATES / kind)).removesuffix(_SUFFIX).replace("NAME", words["NAME"])
            file = folder / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_filled(template.read_text(encoding="utf-8"), words), encoding="utf-8")
    # The names determine the length of lines and the order of imports.
    code = [str(path) for path in sorted(folder.resolve().rglob("*.py"))]
    for command in (["check", "--no-cache", "--quiet", "--select=I", "--fix"], ["format", "--no-cache", "--quiet"]):
        run([sys.executable, "-m", "ruff", *command, *code], cwd=paths.ROOT, log="target-new")


def _words(name: str, like: Target) -> dict[str, str]:
    """Return the values of the words between @ in a template."""
    package = _package(like.backend)
    # By Triton's convention, the only class in compiler.py that derives from BaseBackend.
    found = re.search(r"^class (\w+)Backend\(", (package / "compiler.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{package}/compiler.py has no class whose name ends in Backend"
    projects_below = [f"backends/{plugin}" for plugin in like.plugins]
    return {
        "NAME": name,
        "DISTRIBUTION": name.replace("_", "-"),
        "CLASS": "".join(part.capitalize() for part in name.split("_")),
        "LIKE": like.name,
        "LIKEPACKAGE": package.name,
        "LIKECLASS": found[1],
        "FOLDERS": " and ".join((", ".join(projects_below[:-1]), projects_below[-1])),
        "PACKAGES": "\n".join(f'    "{_distribution(plugin)}",' for plugin in like.plugins),
    }


def _package(plugin: str) -> Path:
    """Return the folder of a plugin's Python package."""
    (found,) = (paths.BACKENDS / plugin / "src").glob("*/compiler.py")
    return found.parent


def _distribution(plugin: str) -> str:
    return str(read_table(paths.BACKENDS / plugin / "pyproject.toml")["project"]["name"])


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub("@([A-Z]+)@", lambda found: words[found[1]], text)


def _toml(name: str, like: Target) -> str:
    """Return the target's file: that of `like` without the keys in _NOT_COPIED."""
    table = {key: value for key, value in _raw(like).items() if key not in _NOT_COPIED}
    table |= {"backend": name, "plugins": [*like.plugins, name]}
    plain = [_line(key, value) for key, value in table.items() if not isinstance(value, dict)]
    tables = [
        "\n".join([f"\n[{key}]", *(_line(inner, each) for inner, each in value.items())])
        for key, value in table.items()
        if isinstance(value, dict)
    ]
    return _HEADER.format(like=like.name) + "\n".join([*plain, _FOOTER.format(name=name).strip(), *tables, ""])


def _raw(target: Target) -> dict[str, Any]:
    return read_table(paths.TARGETS / f"{target.name}.toml")


def _line(key: str, value: str | list[str]) -> str:
    """Return one key of a TOML file; strings and lists of strings have the same form in JSON and TOML."""
    line = f"{key} = {json.dumps(value)}"
    if len(line) <= _LINE or isinstance(value, str):
        return line
    items = textwrap.wrap(", ".join(map(json.dumps, value)) + ",", _LINE - 4, break_on_hyphens=False)
    return "\n".join([f"{key} = [", *(f"    {items_line}" for items_line in items), "]"])


def _dockerfile(name: str, like: Target) -> str:
    """Return the Dockerfile: that of `like` with another heading and another default backend."""
    text = (paths.DOCKER / f"{like.backend}.Dockerfile").read_text(encoding="utf-8")
    heading = _DOCKER_HEADER.format(name=name, like=like.name)
    text = re.sub(r"\A(#.*\n)+", lambda _: heading, text)
    text = text.replace(f"TRITON_DEFAULT_BACKEND={like.backend} ", f"TRITON_DEFAULT_BACKEND={name} ")
    return re.sub(r"(#.*\n)+(?=WORKDIR)", "# Where e2e/ is copied to.\n", text)
