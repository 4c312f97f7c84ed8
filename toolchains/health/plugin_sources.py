"""Compare the sources of a plugin's wheel with what each release of Triton has: triton_releases.json.

imports     modules and names of Triton, and functions of libtriton.so, that a release does not have
abstract    methods that the plugin's compiler or driver must have and has not
parameters  methods that Triton calls with other arguments than they take

Nothing is imported. What stands below `if` or `try` is for some releases only, and is left out. Base classes are looked
for in the wheel and in the packages of backends/; of one that is in neither, nothing is known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from packaging.requirements import Requirement

from toolchains.health.machine import Problem
from toolchains.health.triton_probe import OTHERS
from toolchains.health.triton_releases import TritonRelease
from toolchains.system import paths

_BASES = {"BaseBackend": "triton.backends.compiler"}
_BASES |= dict.fromkeys(("DriverBase", "GPUDriver"), "triton.backends.driver")
# Of these, functions are compared too. Classes are not looked into.
_FUNCTIONS = ("triton._C.libtriton.passes.", "triton._C.libtriton.llvm.")
# The base classes of the class in each module of a backend's package.
_PARTS = {"compiler": ("BaseBackend",), "driver": ("DriverBase", "GPUDriver")}


@dataclass(frozen=True)
class _Class:
    """The definition of a class, and its module."""

    module: str
    node: ast.ClassDef


def check(
    sources: Mapping[str, str],
    packages: Sequence[str],
    requires: Iterable[str],
    releases: Mapping[str, TritonRelease],
    must: str,
) -> Iterator[Problem]:
    """Yield what fails with which releases.

    Args:
        sources: the Python files of the wheel, by module.
        packages: of its backends.
        requires: what the wheel requires; a bound on Triton says with which releases it must work.
        releases: what the releases of Triton have.
        must: a release with which it must work; "" if what it requires says so.
    """
    trees, broken = {}, []
    for module, text in sources.items():
        try:
            trees[module] = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as error:
            broken.append(Problem(f"{module} is not Python", str(error), "build the wheel again"))
    yield from broken
    specifiers = [each.specifier for each in map(Requirement, requires) if each.name == "triton" and each.specifier]
    promised = {release for release in releases if specifiers and all(release in each for each in specifiers)}
    promised = {must} if must else promised
    uses = dict.fromkeys(use for module, tree in trees.items() for use in _uses(module, tree))
    found: dict[tuple[str, str], list[str]] = {}
    for version, release in releases.items():
        problems = [
            (f"there is no {module}.{name}", where)
            for where, module, name in uses
            if name != "*"
            and not OTHERS.match(f"{module}.{name}")
            and f"{module}.{name}" not in release.names
            and name not in release.names.get(module, ())
        ]
        for package in packages:
            problems += _parts(package, trees, release)
        for problem in problems:
            found.setdefault(problem, []).append(version)
    bad = {version for versions in found.values() for version in versions}
    for (what, why), versions in found.items():
        fatal = bool(promised & set(versions)) or (not promised and not set(releases) - bad)
        yield Problem(
            f"Triton {', '.join(versions)}: {what}",
            why,
            "change it, or let `triton` in its pyproject.toml leave these releases out" if fatal else "",
            fatal=fatal,
        )
    if bad and not broken:
        good = [version for version in releases if version not in bad]
        yield Problem(f"nothing was found with Triton {', '.join(good) or 'of any release'}", fatal=False)


def _uses(module: str, tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield the names of Triton that a module uses in each release: where, the module of Triton, and the name."""
    modules: dict[str, str] = {}
    for node in _unconditional(tree):
        where = f"{module}, line {getattr(node, 'lineno', 0)}"
        match node:
            case ast.Import(names):
                for alias in names:
                    if alias.name.startswith("triton."):
                        owner, _, name = alias.name.rpartition(".")
                        yield where, owner, name
                    if alias.name.partition(".")[0] == "triton":
                        modules[alias.asname or "triton"] = alias.name if alias.asname else "triton"
            case ast.ImportFrom(str(origin), names, 0) if origin.partition(".")[0] == "triton":
                for alias in names:
                    yield where, origin, alias.name
                    modules[alias.asname or alias.name] = f"{origin}.{alias.name}"
            case ast.Attribute():
                first, _, rest = ast.unparse(node).partition(".")
                whole = f"{modules.get(first, '')}.{rest}"
                if whole.startswith(_FUNCTIONS) and re.fullmatch(r"[\w.]+", whole):
                    owner, _, name = whole.rpartition(".")
                    yield where, owner, name


def _unconditional(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module, outer ones first, that are not below `if` or `try`."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.If | ast.IfExp | ast.Try):
            yield node
            yield from _unconditional(node)


def _parts(package: str, trees: Mapping[str, ast.Module], release: TritonRelease) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the classes of a backend's compiler.py and driver.py."""
    for part, bases in _PARTS.items():
        module = f"{package}.{part}"
        for node in trees[module].body if module in trees else ():
            if not isinstance(node, ast.ClassDef):
                continue
            classes, base, unknown = _ancestors(_Class(module, node), trees)
            if base not in bases:
                continue
            methods: dict[str, tuple[_Class, ast.FunctionDef]] = {}
            for each in classes:
                for member in each.node.body:
                    if isinstance(member, ast.FunctionDef):
                        methods.setdefault(member.name, (each, member))
            # Names that are set in a class or on `self` may be methods, too.
            having = set(methods)
            for owner in classes:
                for inner in ast.walk(owner.node):
                    if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Store):
                        having.add(inner.id if isinstance(inner, ast.Name) else inner.attr)
            for name, method in release.classes[base].items():
                if method.abstract and name not in having and not unknown:
                    yield (
                        f"{node.name} has no {name}{method.signature}, which is abstract",
                        f"{module}, line {node.lineno}",
                    )
            for name, (each, member) in methods.items():
                for call in release.calls.get(name, ()):
                    if each.module in trees and (why := _misfit(member, call)):
                        yield (
                            f"{each.node.name}.{name} {why}",
                            f"{each.module}, line {member.lineno}; Triton calls {call}",
                        )


def _misfit(method: ast.FunctionDef, call: str) -> str:
    """Return why a method cannot be called so; "" if it can, or if that is not known."""
    (statement,) = ast.parse(call).body
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    given, arguments = statement.value, method.args
    if any(isinstance(each, ast.Starred) for each in given.args) or any(not each.arg for each in given.keywords):
        return ""
    own = [*arguments.posonlyargs, *arguments.args]
    if not any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in method.decorator_list):
        own = own[1:]
    least, count = len(own) - len(arguments.defaults), len(given.args) + len(given.keywords)
    if count > len(own) + len(arguments.kwonlyargs) and not arguments.vararg:
        return f"takes {len(own)} arguments, and gets {count}"
    return f"needs {least} arguments, and gets {count}" if count < least else ""


def _ancestors(first: _Class, trees: Mapping[str, ast.Module]) -> tuple[list[_Class], str, bool]:
    """Return a class and those that it derives from, Triton's base class or "", and whether a base is unknown."""
    classes, base, unknown, pending = [first], "", False, [first]
    while pending:
        derived = pending.pop(0)
        for expression in derived.node.bases:
            module, name = _origin(ast.unparse(expression), derived.module, _tree(derived.module, trees))
            if _BASES.get(name) == module or (module == "triton.backends" and name in _BASES):
                base = base or name
            elif node := _class(module, name, trees):
                if all(each.node is not node.node for each in classes):
                    classes.append(node)
                    pending.append(node)
            else:
                unknown = unknown or module.partition(".")[0] not in ("abc", "typing", "builtins")
    return classes, base, unknown


def _class(module: str, name: str, trees: Mapping[str, ast.Module], depth: int = 0) -> _Class | None:
    tree = _tree(module, trees)
    for node in tree.body if tree else ():
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _Class(module, node)
    # It may be imported there from where it is defined.
    origin = _origin(name, module, tree)
    return _class(*origin, trees, depth + 1) if tree and origin != (module, name) and depth < 9 else None


def _origin(dotted: str, module: str, tree: ast.Module | None) -> tuple[str, str]:
    """Return the module and the name that an expression of a module stands for."""
    first, _, rest = dotted.partition("[")[0].partition(".")
    whole = f"{module}.{dotted}"
    for node in tree.body if tree else ():
        match node:
            case ast.ImportFrom(origin, names, level):
                above = module.split(".")[: -level or None] if level else []
                for alias in names:
                    if first == (alias.asname or alias.name):
                        whole = ".".join(filter(None, [*above, origin, alias.name, rest]))
            case ast.Import(names):
                for alias in names:
                    if first == (alias.asname or alias.name.partition(".")[0]):
                        whole = ".".join(filter(None, [alias.name if alias.asname else first, rest]))
    found, _, name = whole.rpartition(".")
    return found, name


def _tree(module: str, trees: Mapping[str, ast.Module]) -> ast.Module | None:
    return trees.get(module) or _own(module)


@cache
def _own(module: str) -> ast.Module | None:
    """Return the source of a module of backends/, from which plugins derive."""
    place = module.replace(".", "/")
    for found in (*paths.BACKENDS.glob(f"*/src/{place}.py"), *paths.BACKENDS.glob(f"*/src/{place}/__init__.py")):
        return ast.parse(found.read_text(encoding="utf-8"))
    return None
