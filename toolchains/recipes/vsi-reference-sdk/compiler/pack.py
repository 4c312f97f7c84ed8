"""Packs modules as one executable file, a zip application: pack.py FILE MODULE.py...

The same modules give the same bytes: sorted, dated 1980, not compressed (which would save a few kilobytes and depend on
the version of zlib).
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

_FIRST_LINE = b"#!/usr/bin/env python3\n"
_START = """\
import sys

from zen_compiler.__main__ import main

sys.exit(main())
"""


def pack(target: Path, modules: list[Path]) -> None:
    """Write the application; all modules are of one package, which has a `main` in `__main__`."""
    files = {f"{module.parent.name}/{module.name}": module.read_text() for module in modules} | {"__main__.py": _START}
    with target.open("wb") as file:
        file.write(_FIRST_LINE)
        with ZipFile(file, "w") as archive:
            for name in sorted(files):
                entry = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                entry.create_system = 3
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, files[name], ZIP_STORED)
    target.chmod(0o755)


if __name__ == "__main__":
    pack(Path(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]])
