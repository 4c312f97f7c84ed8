"""The common base of all plugins' launchers, and a record of launches for later queries.

This module does not import Triton, which imports all plugins: a plugin's launcher may be imported before Triton.
"""

from __future__ import annotations

import operator
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import checked
from ..failure import Failure
from ..log import DeviceAssertionError, FoundRecords, Log
from .arguments import Parameters

if TYPE_CHECKING:
    from ..checked.arrays import Watch

Grid = tuple[int, int, int]
Function = TypeVar("Function")
Entry = TypeVar("Entry")


# The ids of programs are int32. PoCL counts the programs of a launch in 32 bits.
MOST_PROGRAMS = 2**31 - 1


# Options of a triton.Config.
_TUNED = ("num_warps", "num_ctas", "num_stages")

# Called in place of each launch with the launcher, the grid, the arguments, and the launch itself: see profile.
observer: Callable[[Any, Grid, Sequence[Any], Callable[[], None]], None] | None = None


def is_recorded() -> bool:
    """Return whether launches are recorded for a profile."""
    return observer is not None


class GridError(Failure, ValueError):
    """A grid that no launch can have."""


class SynchronousLauncher(Generic[Function]):
    """Launches one compiled kernel when Triton's runtime calls it. A plugin implements `launch`.

    Args:
        src: Triton's source object.
        metadata: the compiled kernel's metadata: its name, which arguments it writes, where it prints and asserts,
            whether it makes pointers of numbers, and what the plugin's compiler added.

    Attributes:
        log: what the kernel prints and asserts; None if it takes no log.
        addresses: whether it makes pointers of numbers.
        configuration: what is compiled in, and the options that an autotuner chooses, by name.
        source, metadata: the arguments.
    """

    def __init__(self, src: Any, metadata: Any) -> None:
        self.source, self.metadata = src, metadata
        self._noted = False
        # What findings do; "" without checks.
        self._check: str = getattr(metadata, "check", "")
        self.parameters = Parameters(src, metadata.name, metadata.written, extents=bool(self._check))
        self._kernel = metadata.name
        # Where Triton's cache has the stages of the kernel's compilation.
        self.hash: str = getattr(metadata, "hash", "")
        self.log: Log | None = None
        self.take_log(getattr(metadata, "sites", []))
        self.addresses: bool = metadata.addresses
        options = {name: getattr(metadata, name) for name in _TUNED if hasattr(metadata, name)}
        self.configuration = self.parameters.constants | options

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        function: Function,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None,
        exit_hook: Callable[[Any], None] | None,
        *arguments: Any,
    ) -> None:
        grid = self._checked(x, y, z)
        self.prepare(function)
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if 0 not in grid:
            picked = self.parameters.pick(arguments)
            if self._check and not self._noted:
                self._noted = True
                for note in self.log.notes if self.log is not None else []:
                    print(f"checked mode: kernel {self._kernel}: {note}", file=sys.stderr)
            watch = self._watch(grid, arguments, picked) if self._check else None
            try:
                if observer is None:
                    self.launch(grid, function, picked)
                else:

                    def finish() -> None:
                        self.launch(grid, function, picked)
                        self.wait()

                    observer(self, grid, picked, finish)
            except (struct.error, TypeError):
                self.parameters.refuse_scalars(picked)
                raise
            except FoundRecords as found:
                from ..checked.findings import handle

                names = self.parameters.names
                handle(self._kernel, found.records, found.count, names, picked, grid, self._check)
            except DeviceAssertionError as error:
                if self._check != checked.REPORT:
                    raise
                print(error, file=sys.stderr, flush=True)
            if watch is not None:
                watch.finish()
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def take_log(self, sites: Sequence[Mapping[str, Any]]) -> None:
        """Pass the kernel a log if it has sites, and what its checks need."""
        if sites:
            self.log = Log(self._kernel, sites)
            self.parameters.add_checks(self.log.sites)

    def _checked(self, *sides: Any) -> Grid:
        """Return a grid as Python's integers.

        Raises:
            GridError: a side is no integer, or negative, or there are too many programs.
        """
        try:
            x, y, z = map(operator.index, sides)
        except TypeError:
            x = y = z = -1
        if min(x, y, z) < 0:
            why, next = "a side is an int, and 0 or more", "divide by triton.cdiv(n, BLOCK), or by n // BLOCK"
        elif x * y * z > MOST_PROGRAMS or max(x, y, z) > MOST_PROGRAMS:
            why, next = f"a launch can have {MOST_PROGRAMS} programs", "let each program do more"
        else:
            return x, y, z
        shown = " x ".join(map(str, sides))
        raise GridError(f"kernel {self._kernel} is launched on a grid of {shown} programs", why=why, next=next)

    def _watch(self, grid: Grid, arguments: Sequence[Any], picked: Sequence[Any]) -> Watch:
        from ..checked.arrays import Launch, Watch

        parameters = self.parameters
        return Watch(
            Launch(
                kernel=self._kernel,
                grid=grid,
                arrays={i: picked[i] for i in parameters.pointers},
                stored=parameters.outputs,
                named=parameters.named_arguments(arguments),
                names=parameters.names,
                sites=self.log.sites if self.log is not None else [],
            )
        )

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return str(self._kernel)

    def modelled(self) -> dict[str, Any]:
        """Return what a model says of the last launch, by name, such as `cycles`; nothing on a real device.

        `lines`, if it is there, has what each source line cost: its place, its instructions and its DMA cycles.
        """
        return {}

    def described(self) -> dict[str, Any]:
        """Return what profile.bound.examine_shader takes of a kernel that was launched; {} if it is no shader.

        `statistics` are the driver's figures by name, and `chosen` says what the compiler did not take as it was asked
        for. `hopes` are those of mapping.simt.lower.Simt, each by the names of its fields, and `names` the names of the
        arguments. Of the device there are `workgroup_limit`, its bytes of workgroup memory, `subgroup`, the lanes of
        one, and `matrices`, the types of the factors that it multiplies by matrices.
        """
        return {}

    def prepare(self, function: Function) -> None:
        """Prepare a launch before the hooks, which measure time; called for every launch, even of an empty grid."""

    def wait(self) -> None:
        """Wait until every launch has finished, where `launch` returns earlier."""

    def launch(self, grid: Grid, function: Function, arguments: Sequence[Any]) -> None:
        """Run the kernel until it has finished.

        Args:
            grid: programs along x, y and z, each at least 1.
            function: what the driver's load_binary returned as the function.
            arguments: the arguments that are passed to the kernel: a tensor for each pointer, a number for each scalar.
        """
        raise NotImplementedError


class LaunchLog(Generic[Entry]):
    """The launches of a process, one entry for each."""

    def __init__(self) -> None:
        self._last: Entry | None = None
        self._listeners: list[list[Entry]] = []

    def last(self) -> Entry | None:
        """Return the launch that finished last; None before the first."""
        return self._last

    def note(self, launch: Entry) -> None:
        """Add a launch that has finished."""
        self._last = launch
        for listener in self._listeners:
            listener.append(launch)

    @contextmanager
    def profile(self) -> Iterator[list[Entry]]:
        """Collect the launches made inside the `with`, in order, from any thread.

        with triton_dpu_backend.profile() as launches:
            kernel[grid](...)
        launches[0].cycles
        """
        launches: list[Entry] = []
        self._listeners.append(launches)
        try:
            yield launches
        finally:
            # Compare by identity: two lists that recorded the same launches are equal.
            self._listeners[:] = [listener for listener in self._listeners if listener is not launches]
