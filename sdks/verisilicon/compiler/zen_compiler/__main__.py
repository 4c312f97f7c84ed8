"""zen-compiler: from the command line to the two files.

Most of the time goes into starting Python and LLVM's tools. So modules are imported where they are needed, and the
command library is made beside the lowering where it does not depend on it.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .commandline import Options

_NAME = "zen-compiler"


class _Refused(Exception):
    """There is no output. The message tells the user why."""


def main() -> int:
    """Run as a command; return the exit status: 0, or 1 with a message on standard error."""
    from . import commandline

    try:
        options = commandline.parse(sys.argv[1:])
    except commandline.UsageError as error:
        print(f"{_NAME}: {error}", file=sys.stderr)
        return 1
    if options is None:
        print(commandline.usage())
        return 0
    try:
        # A run that fails must not leave what looks like its result.
        for path in (options.output, options.library):
            if path.is_file():
                path.unlink()
        spirv, library = _compiled(options)
        _write({options.output: spirv, options.library: library})
    except _Refused as error:
        print(f"{options.input}: error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{_NAME}: {error}", file=sys.stderr)
        return 1
    return 0


def _compiled(options: Options) -> tuple[bytes, bytes]:
    """Return the module and the command library.

    Raises:
        _Refused: there is none.
        OSError: the input cannot be read.
    """
    gc.disable()
    try:
        import foundry_core  # noqa: F401
        import xdsl  # noqa: F401
    except ModuleNotFoundError as error:
        raise _Refused(
            f"the Python that runs {_NAME}, {sys.executable}, has no {error.name}; the reference compiler needs "
            "foundry_core and xdsl: put the environment that has them first on PATH"
        ) from error
    from concurrent.futures import ThreadPoolExecutor
    from tempfile import TemporaryDirectory

    from . import commands

    try:
        ttir = options.input.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise _Refused("it is not text, TTIR is") from error
    with TemporaryDirectory(prefix=f"{_NAME}-") as scratch, ThreadPoolExecutor(1) as aside:
        library = None
        if options.bridge is None:
            # There are no commands, whatever the kernel is. One that prints has another library.
            library = aside.submit(commands.compile, commands.source((), (), {}), Path(scratch))
        # Ask the tools for their versions in the meantime. The lowering asks again, and gets the remembered answer or
        # its own error.
        from foundry_core.codegen.tools import tool
        from foundry_core.errors import LoweringError

        aside.submit(tool, "llc")
        from .bridge import Bridge, BridgeError
        from .lowering import lower

        # Imported objects live until the end. Searching them for garbage took a fifth of the time of importing.
        gc.freeze()
        gc.enable()
        try:
            bridge = Bridge(options.bridge) if options.bridge is not None else None
            lowered = lower(ttir, threads=options.threads, bridge=bridge, check=options.check)
            _check(options, lowered.name, lowered.spirv)
            if bridge is not None:
                fields = {name: bridge.field(name) for name in ("grid", "program", "checksum")}
                source = commands.source(lowered.parameters, lowered.matmuls, fields)
                return lowered.spirv, commands.compile(source + commands.sites_source(lowered.sites), Path(scratch))
            assert library is not None
            if lowered.sites:
                library.result()
                source = commands.source((), (), {}) + commands.sites_source(lowered.sites)
                return lowered.spirv, commands.compile(source, Path(scratch))
            return lowered.spirv, library.result()
        except (LoweringError, BridgeError, commands.CommandsError) as error:
            raise _Refused(str(error)) from error


def _check(options: Options, name: str, spirv: bytes) -> None:
    """Check that the command line asks for this kernel, and that its device takes the module.

    Raises:
        _Refused: it does not.
    """
    from .spirv import requirements

    if not options.module.search(name):
        raise _Refused(f"no module matches {options.module.pattern!r}: the kernel is {name}")
    for what, needed, asked in zip(
        ("capability", "extension"), requirements(spirv), (options.capabilities, options.extensions), strict=True
    ):
        lacking = sorted(needed - asked)
        if lacking:
            raise _Refused(
                f"kernel {name} needs the SPIR-V {what} {', '.join(lacking)}, which is not among those that "
                f"--spirv-target-options gives: {', '.join(sorted(asked)) or 'none'}"
            )


def _write(contents: Mapping[Path, bytes]) -> None:
    """Write files, all or none: to temporary names first. A device such as /dev/null is written to, not replaced.

    Raises:
        OSError: one of them cannot be written.
    """
    created: list[Path] = []
    temporary: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            if path.is_file() or not path.exists():
                temporary[path] = path.with_name(f"{path.name}.{os.getpid()}.part")
                created.append(temporary[path])
            temporary.get(path, path).write_bytes(content)
        for path, part in temporary.items():
            part.replace(path)
            created.append(path)
    except BaseException:
        for path in created:
            path.unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    sys.exit(main())
