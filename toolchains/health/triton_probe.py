"""Print what a release of Triton asks of a backend and gives it, as JSON. It runs in a container, without a device.

It imports no other file of ours. Of the Python files it reads how Triton calls a backend; all else is asked of the
imported modules, those of libtriton.so among them.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import json
import pkgutil
import re
import sys
import types
from dataclasses import fields
from pathlib import Path
from typing import Any

# Packages that are left out: no other backend imports from them, or they need a device or torch.
OTHERS = re.compile(
    r"triton\.(backends\.(nvidia|amd)|experimental|language\.extra|tools|profiler|plugins|instrumentation|_internal_testing)\b"
)
# Objects of a backend in Triton's code, by the end of their text, and the packages whose calls are read.
_OBJECTS = re.compile(r"(^|\.)(backend|driver|active|utils)$")
# Methods of other objects that stand for a backend's: a launcher is made, and called.
_METHODS = {"launcher_cls", "load_binary"}
_LAUNCHED = {"kernel.run"}
_CALLERS = ("compiler", "runtime", "testing.py")
_HOOK = re.compile(r"hook|listener")


def signature(function: Any) -> str:
    """Return a function's parameters without types."""
    given = inspect.signature(function)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in given.parameters.values()]
    return str(given.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def methods(owner: type) -> dict[str, dict[str, Any]]:
    """Return the methods of a base class: parameters, and whether it is abstract."""
    found = {}
    for name, value in inspect.getmembers_static(owner):
        function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if isinstance(function, types.FunctionType) and (not name.startswith("__") or name == "__init__"):
            found[name] = {
                "signature": signature(function),
                "abstract": name in getattr(owner, "__abstractmethods__", ()),
            }
    return found


def calls(package: Path) -> dict[str, list[str]]:
    """Return how Triton calls its backends and drivers, by the method's name."""
    found: dict[str, set[str]] = {}
    for top in _CALLERS:
        place = package / top
        for path in sorted(place.rglob("*.py") if place.is_dir() else [place]):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Assign) and ".load_binary(" in ast.unparse(node.value):
                    found.setdefault("load_binary returns", set()).update(map(ast.unparse, node.targets))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    name, owner = node.func.attr, ast.unparse(node.func.value)
                    if ast.unparse(node.func) in _LAUNCHED:
                        found.setdefault("the launcher", set()).add(ast.unparse(node))
                    elif _OBJECTS.search(owner) or name in _METHODS:
                        found.setdefault(name, set()).add(ast.unparse(node))
    return {name: sorted(texts) for name, texts in sorted(found.items())}


def stages(path: Path) -> list[str]:
    """Return the names of stages that a backend's compiler.py adds, in the order of its lines."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Subscript(ast.Name("stages"), ast.Constant(name), ast.Store()):
                found.append((node.lineno, str(name)))
    return list(dict.fromkeys(name for _, name in sorted(found)))


def modules() -> dict[str, list[str]]:
    """Return the public names of each module, those of libtriton.so among them."""
    import triton

    found = {}
    for info in pkgutil.walk_packages(triton.__path__, "triton.", onerror=lambda name: None):
        if not OTHERS.match(info.name):
            try:
                importlib.import_module(info.name)
            # Some need torch, or a device.
            except BaseException as error:
                print(f"{info.name}: {error}", file=sys.stderr)
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == "triton" and not OTHERS.match(name):
            found[name] = public(module)
    pending = [sys.modules["triton._C.libtriton"]]
    while pending:
        module = pending.pop()
        found[module.__name__] = public(module)
        pending += [value for value in vars(module).values() if isinstance(value, types.ModuleType)]
    return found


def public(module: types.ModuleType) -> list[str]:
    """Return the names of a module that are no modules of others."""
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not (isinstance(value, types.ModuleType) and not value.__name__.startswith(("triton", "libtriton")))
        and getattr(value, "__module__", "triton") not in ("typing", "abc", "functools", "dataclasses", "pathlib")
        and type(value).__module__ not in ("typing", "__future__")
    )


def hooks() -> list[str]:
    """Return the hooks that programs may set."""
    import triton
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime.jit import JITFunction

    owners = {"CompiledKernel": CompiledKernel, "JITFunction": JITFunction}
    if knobs := getattr(triton, "knobs", None):
        owners |= {f"knobs.{name}": value for name, value in vars(knobs).items() if name in ("runtime", "compilation")}
    return [
        f"{owner}.{name}"
        for owner, value in owners.items()
        for name in sorted(dir(value))
        if _HOOK.search(name) and not name.startswith("_")
    ]


def main() -> None:
    sys.path[:0] = sys.argv[1:]
    # Plugins that are installed here are for other releases. 3.2 imports setuptools, and uses it to compile only.
    importlib.metadata.entry_points = lambda **_: importlib.metadata.EntryPoints()  # type: ignore[assignment]
    sys.modules.setdefault("setuptools", types.ModuleType("setuptools"))
    import triton
    from triton.backends import compiler, driver
    from triton.compiler.compiler import ASTSource

    package = Path(triton.__file__).parent
    options = {}
    for vendor, name in (("nvidia", "CUDAOptions"), ("amd", "HIPOptions")):
        owner = getattr(importlib.import_module(f"triton.backends.{vendor}.compiler"), name)
        options[vendor] = [field.name for field in fields(owner)]
    bases = {"BaseBackend": compiler.BaseBackend, "DriverBase": driver.DriverBase, "GPUDriver": driver.GPUDriver}
    made = {
        "ASTSource.make_ir": [f"make_ir{signature(ASTSource.make_ir)}"],
        "GPUTarget": [f"GPUTarget({', '.join(field.name for field in fields(compiler.GPUTarget))})"],
    }
    print(
        json.dumps(
            {
                "version": triton.__version__,
                "classes": {name: methods(base) for name, base in bases.items()},
                "calls": {**made, **calls(package)},
                "stages": {vendor: stages(package / "backends" / vendor / "compiler.py") for vendor in options},
                "options": options,
                "hooks": hooks(),
                "names": modules(),
            }
        )
    )


if __name__ == "__main__":
    main()
