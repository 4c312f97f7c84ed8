"""How operations that are not elementwise are written: a module for each kind, which enters itself in emission.py."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
