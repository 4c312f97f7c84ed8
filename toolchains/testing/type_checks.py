"""Check types: the packages and tests/ strictly; scripts and tests with kernels, which import each other by name, too.

    python -m toolchains.testing.type_checks

A group is what mypy cannot see together with the rest, because two groups have modules of one name. In a group, kernels
have no types, because Triton gives them none, and what NumPy computes may be Any; but tests/ and sdks/ are as strict
as a package.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolchains.system import paths
from toolchains.system.children import run

# Folders whose modules the tests of plugins import by name.
_SHARED = ("backends/core/tests", "backends/core/ir", "conformance/language", "e2e")
# Each group with the folders whose modules it imports by name, besides its own and the packages of backends/.
_GROUPS: dict[str, tuple[str, ...]] = {
    "backends/core/host": (),
    "backends/core/ir": (),
    "conformance": ("conformance/language", "conformance/libraries", "backends/core/tests", "e2e"),
    "e2e": (),
    # pytest imports a test by its name, whatever the folder.
    "tests": (
        "e2e",
        *(f"tests/{folder.name}" for folder in sorted((paths.ROOT / "tests").iterdir()) if folder.is_dir()),
    ),
    # It has UPMEM's module dpu; e2e has another of this name.
    "sdks/upmem/host/tests": ("sdks/upmem/host/python",),
}
_OPTIONS = ("--explicit-package-bases", "--follow-imports=silent")
_UNTYPED = ("--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-decorators", "--allow-untyped-calls")
_WITH_KERNELS = (*_UNTYPED, "--no-warn-return-any")


def main() -> int:
    """Check everything, and return 1 if there was an error, else 0."""
    packages = [str(folder) for folder in sorted(paths.BACKENDS.glob("*/src"))]
    failed = False
    plugins = {str(folder.relative_to(paths.ROOT)): _SHARED for folder in sorted(paths.BACKENDS.glob("*/tests"))}
    for group, imported in ({"": ()} | _GROUPS | plugins).items():
        own = str(Path(group).parent) if (paths.ROOT / group / "__init__.py").exists() else group
        search_path = os.pathsep.join([*packages, *(str(paths.ROOT / folder) for folder in (own, *imported) if folder)])
        kernels = bool(group) and not group.startswith(("tests", "sdks"))
        inner = [f"--exclude=^{other}/" for other in _GROUPS if group and other.startswith(f"{group}/")]
        options = [*_OPTIONS, *inner, *(_WITH_KERNELS if kernels else ()), group] if group else []
        # mypy cannot use a cache that it wrote with other options.
        cache = f"--cache-dir=.mypy_cache/{'kernels' if kernels else group}"
        argv = [sys.executable, "-m", "mypy", cache, *options]
        failed |= (
            run(argv, log="mypy", cwd=paths.ROOT, env={"MYPYPATH": search_path}, check=False, line=print).status != 0
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
