"""Check who imports whom: import-linter with the packages of backends/, by the contracts in pyproject.toml.

python -m toolchains.testing.import_layers
"""

from __future__ import annotations

import sys

from importlinter.cli import lint_imports_command

from toolchains.system import paths

if __name__ == "__main__":
    sys.path[:0] = [str(folder) for folder in sorted(paths.BACKENDS.glob("*/src"))]
    lint_imports_command()
