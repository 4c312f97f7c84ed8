"""Writers of operations that are not elementwise: one module per kind, which registers its functions in emission.py."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
