"""Pack files as one executable file, a zip application: pack.py TARGET FILE...

The same files give the same bytes: sorted, dated 1980, not compressed (which would save a few kilobytes and depend on
the version of zlib).
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

_FIRST_LINE = b"#!/usr/bin/env python3\n"
_PACKAGE = "zen_compiler"
_START = f"""\
import sys

from {_PACKAGE}.__main__ import main

sys.exit(main())
"""


def pack(target: Path, sources: list[Path]) -> None:
    """Write the application, with all files in one package, which has a `main` in `__main__`."""
    files = {f"{_PACKAGE}/{source.name}": source.read_text() for source in sources} | {"__main__.py": _START}
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
