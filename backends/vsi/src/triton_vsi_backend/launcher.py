"""Launch a compiled kernel on the device: pass its arguments and command buffers, and dump it if that is requested."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foundry_core.runtime.launches import Grid, SynchronousLauncher
from triton.runtime.cache import get_cache_manager

from . import launches
from .commands import Commands, log_sites
from .compiler import cmd_gen_name
from .devices import open_device
from .errors import VsiError
from .launches import LaunchedCommands

if TYPE_CHECKING:
    from foundry_core.runtime.opencl import OpenCLLauncher

DUMP_VARIABLE = "VSI_DUMP_DIR"


class VsiLauncher(SynchronousLauncher[tuple[Any, str]]):
    """Launches one compiled kernel.

    The kernel takes the passed arguments of the Triton function, the grid's x, y and z, its command buffers, and a log
    if it prints or asserts.

    Args:
        src: Triton's source object.
        metadata: of the compiled kernel: its name, its options, the location of its files.
    """

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        self._metadata = metadata
        self._source_name = src.name
        self._launcher: OpenCLLauncher | None = None
        self._commands: Commands | None = None
        # The folder of the last dump; "" if no folder was named.
        self._dumped: str | None = None

    def prepare(self, function: tuple[Any, str]) -> None:
        if self._launcher is None:
            device, library = open_device(), self._library()
            self.take_log(log_sites(library))
            types = self.parameters.types
            commands = Commands(library, types, most_bytes=device.cl.max_mem_alloc_size)
            self._launcher = device.launcher(
                *function,
                types,
                threads=self._metadata.threads,
                tables=commands.count + (self.log is not None),
                cl_mem=True,
                addresses=self.addresses,
            )
            self._commands = commands if commands.count else None
        if self._metadata.dump_standalone:
            self._dump(os.environ.get(DUMP_VARIABLE, ""))

    def launch(self, grid: Grid, function: tuple[Any, str], arguments: Sequence[Any]) -> None:
        launcher, commands = self._launcher, self._commands
        assert launcher is not None
        buffers = commands.make(grid, arguments) if commands else ()
        with open_device().logging(self.log) as log:
            launcher(grid, arguments, [*buffers, *log])
        launches.note(
            LaunchedCommands(
                self._metadata.name,
                grid,
                launcher.threads,
                commands.matmuls if commands else 0,
                commands.dmas if commands else 0,
                sum(buffer.nbytes for buffer in buffers),
            )
        )

    def _library(self) -> Path:
        wanted = cmd_gen_name(self._metadata.name)
        path = get_cache_manager(self._metadata.hash).get_file(wanted)
        if path is None:
            raise self._gone(wanted)
        return Path(path)

    def _gone(self, file: str) -> VsiError:
        return VsiError(
            f"a file of kernel {self._metadata.name} is gone",
            why=f"Triton's cache has the kernel, {self._metadata.hash}, and no {file}",
            next="compile it again: run once with TRITON_ALWAYS_COMPILE=1",
        )

    def _dump(self, folder: str) -> None:
        """Write the kernel and its launcher, once for each folder that the environment names."""
        if folder == self._dumped:
            return
        if not folder:
            self._dumped = folder
            warnings.warn(
                f"dump_standalone=True wrote nothing of kernel {self._metadata.name}: {DUMP_VARIABLE} is not set; "
                f"export {DUMP_VARIABLE}=/path/to/folder",
                stacklevel=3,
            )
            return
        if self.log is not None:
            raise VsiError(
                f"dump_standalone=True is not possible for kernel {self._metadata.name}",
                why="it prints or asserts, and the C++ launcher has no log to read",
                next="leave out the prints, and launch without debug=True",
            )
        from .standalone import dump

        group = f"{self._source_name[:150]}.json"
        files = get_cache_manager(self._metadata.hash).get_group(group)
        if files is None:
            raise self._gone(group)
        stages = {Path(path).suffix[1:]: Path(path) for path in files.values()}
        spirv = stages.pop("spv").read_bytes()
        irs, library = {suffix: path.read_text() for suffix, path in stages.items()}, self._library().read_bytes()
        try:
            dump(
                Path(folder, self._metadata.name),
                name=self._metadata.name,
                parameters=self.parameters.types,
                names=self.parameters.names,
                irs=irs,
                spirv=spirv,
                cmd_gen=library,
                num_warps=self._metadata.num_warps,
                threads=self._metadata.threads,
            )
        except OSError as error:
            raise VsiError(
                f"{DUMP_VARIABLE}={folder} cannot be written to, for kernel {self._metadata.name}",
                why=f"{error.filename or folder}: {error.strerror}",
                next=f"export {DUMP_VARIABLE}=/path/to/folder",
            ) from error
        self._dumped = folder
