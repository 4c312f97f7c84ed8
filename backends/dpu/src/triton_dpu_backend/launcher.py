"""Launch a compiled kernel on DPUs: pass its arguments, plan the launch, run its rounds."""

from __future__ import annotations

import functools
import hashlib
import os
import struct
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from foundry_core import scalars
from foundry_core.footprint import Footprints
from foundry_core.log import LINES_VARIABLE, Words
from foundry_core.mapping.base.target import DMA_ALIGNMENT, FULL_PIPELINE
from foundry_core.runtime.launches import Grid, SynchronousLauncher, is_recorded

from . import launches, slices
from .comparing import Comparisons
from .counts import MOST_DPUS
from .counts import count as count_of
from .host.dpus import MRAM_BYTES, DpuSet, Pool, Stats, is_emulator
from .host.errors import DpuError
from .launches import LaunchCost, LineCost
from .merging import Merge
from .plan import Array, Inseparable, LaunchPlan, MemoryExceeded, Placement, Round, plan_launch
from .transfer import receive, receive_logs, send, send_header

NUM_DPUS = "TRITON_DPU_NUM_DPUS"
SHARD = "TRITON_DPU_SHARD"
VERBOSE = "TRITON_DPU_VERBOSE"
MRAM = "TRITON_DPU_MRAM_BYTES"

# DPUs of a rank. More DPUs than this run only if the user asks for them.
_MOST_DPUS = 64
# Number of plans that a kernel keeps for later launches on the same arrays.
_REMEMBERED = 64

_GRID = "DPU_GRID"
_ARGUMENTS = "DPU_INPUT_ARGUMENTS"
# The file, in the folder of a program in slices, that has the number of its tasklets.
_NOTE = "tasklets"
_PROGRAM_FIELDS = struct.Struct("@6I")

_NO_ROOM = "the arrays of this launch do not fit into MRAM"

pool = Pool()
# The DPUs are one resource: launches from several threads run one after the other.
_turn = threading.Lock()


@dataclass(frozen=True)
class DpuProgram:
    """A DPU program in a file, and the kernel in it."""

    path: Path
    kernel: str


class DpuLauncher(SynchronousLauncher[DpuProgram]):
    """Launches one compiled kernel.

    Args:
        src: Triton's source object.
        metadata: of the compiled kernel: its name, its options and its structured form.
    """

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        self._tasklets = int(metadata.num_tasklets)
        self._parts = int(metadata.parts)
        self._most_parts = int(metadata.most_parts)
        self._most_tasklets = int(metadata.most_tasklets)
        self._computes = bool(metadata.computes)
        self._built = functools.cache(functools.partial(_compiled, metadata))
        self._room = functools.cache(functools.partial(_room, metadata))
        self._asked: int | None = metadata.num_dpus
        self._globals: Mapping[str, Any] = getattr(getattr(src, "fn", None), "__globals__", {})
        self._structured = metadata.structured
        shadows = self.parameters.shadows
        self._comparisons = Comparisons(self.log, shadows) if self.log is not None and shadows else None
        self._atomics: dict[int, Merge | str] = {
            **{int(i): Merge.read(how) for i, how in metadata.merged.items()},
            **{int(i): why for i, why in metadata.ordered.items()},
            **(self._comparisons.merges if self._comparisons else {}),
        }
        types = self.parameters.types
        # Size of the elements of each pointer, by the pointer's index.
        self._pointers = {
            i: scalars.pointer_element(type).bytes for i, type in enumerate(types) if type.startswith("*")
        }
        # C's layout: every field is at a multiple of its size, and a uint64 follows. artifact/arguments.py writes the
        # struct of the DPU program; the two sizes are compared when the program is loaded.
        codes = ["I" if type.startswith("*") else scalars.passed(type).code for type in types]
        # The address of the log, if there is one, is the last argument.
        self._fields = struct.Struct("@" + "".join(codes) + ("I" if self.log is not None else "") + "Q")
        self._convert = {i: scalars.passed(type).convert for i, type in enumerate(types) if i not in self._pointers}
        self._plans: OrderedDict[object, LaunchPlan] = OrderedDict()

    @functools.cached_property
    def _footprints(self) -> Footprints:
        return Footprints(self._structured)

    def launch(self, grid: Grid, function: DpuProgram, arguments: Sequence[Any]) -> None:
        began = time.perf_counter()
        values = list(arguments)
        for i, convert in self._convert.items():
            values[i] = convert(values[i])
        programs = grid[0] * grid[1] * grid[2]
        count, reason, is_asked = self._dpus(programs)
        with _turn:
            function, tasklets, parts = self._sliced(function, -(-programs // count), values)
            if is_recorded() and is_emulator():
                function = DpuProgram(self._built(parts, by_line=True)[0], function.kernel)
            try:
                dpus, heap, room, planned = self._ready(grid, values, count, function)
            except Inseparable as error:
                if is_asked:
                    raise DpuError(
                        f"{function.kernel} cannot run on {count} DPUs ({reason})",
                        why=f"DPUs share no memory: {error}",
                        next="launch with num_dpus=1",
                    ) from None
                count, reason = 1, f"because {error}"
                dpus, heap, room, planned = self._ready(grid, values, count, function)
            if os.environ.get(VERBOSE, "0") not in ("", "0"):
                self._explain(planned, grid, count, reason, tasklets, parts)
            shares = [
                [slices.tasklet_count(number * parts, tasklets) for _, number in one.programs] for one in planned.rounds
            ]
            lines: dict[str, LineCost] = {}
            if self._comparisons:
                self._comparisons.begin()
            done, logs = self._run(dpus, planned, grid, values, heap, function, room, shares, lines)
            if self._comparisons:
                logs.append(self._comparisons.log(grid, values, self._pointers))
        cost = LaunchCost(
            kernel=function.kernel,
            programs=programs,
            dpus=count,
            tasklets=max(map(max, shares)),
            parts=parts,
            rounds=len(planned.rounds),
            sent_bytes=sum(sent for sent, _, _ in done),
            received_bytes=sum(received for _, received, _ in done),
            seconds=time.perf_counter() - began,
            lines=lines,
            **_cost([stats for _, _, stats in done]),
        )
        launches.note(cost)
        if self.log is not None:
            self.log.report(logs)

    def _sliced(self, function: DpuProgram, programs: int, values: Sequence[Any]) -> tuple[DpuProgram, int, int]:
        """Return the DPU program to run, its number of tasklets, and its slices of a program.

        Args:
            programs: the programs of a DPU.
        """
        parts = 1
        if self._most_parts > 1:
            arrays = sorted((self._array(i, values[i]) for i in self._pointers), key=lambda array: array.low)
            # Where two arguments are in one allocation, a slice could read what another one has written.
            if not any(one.high > other.low for one, other in pairwise(arrays)):
                parts = slices.slice_count(
                    programs,
                    self._room,
                    self._parts,
                    self._most_parts,
                    most_tasklets=self._most_tasklets,
                    computes=self._computes,
                )
        if parts == self._parts:
            return function, self._tasklets, parts
        path, tasklets = self._built(parts)
        return DpuProgram(path, function.kernel), tasklets, parts

    def modelled(self) -> dict[str, Any]:
        cost = launches.last()
        if cost is None or not cost.cycles or cost.instructions is None or cost.dma_cycles is None:
            return {}
        return {
            "cycles": cost.cycles,
            # The share of the cycles in which the DMA engine is busy, and in which an instruction is issued.
            "dma": cost.dma_cycles / cost.cycles,
            "pipeline": cost.instructions / (cost.dpus * cost.cycles),
            "dpus": cost.dpus,
            "instructions": cost.instructions,
            "lines": [
                {"place": place, "instructions": line.instructions, "dma_cycles": line.dma_cycles}
                for place, line in cost.lines.items()
            ],
        }

    def _ready(
        self, grid: Grid, values: Sequence[Any], count: int, function: DpuProgram
    ) -> tuple[DpuSet, int, int, LaunchPlan]:
        """Load a program and plan its launch; return the DPUs, the address and size of their MRAM, and the plan."""
        dpus = pool.get(count)
        heap, room = self._load(dpus, function)
        return dpus, heap, room, self._plan(grid, values, count, heap, room)

    def _dpus(self, programs: int) -> tuple[int, str, bool]:
        """Return the number of DPUs to run on, what set that number, and whether the user did."""
        environment = os.environ.get(NUM_DPUS, "")
        outside = None
        try:
            if environment:
                outside = count_of(int(environment) if environment.isdecimal() else environment, MOST_DPUS, NUM_DPUS)
            script = self._globals.get(NUM_DPUS)
            script = None if script is None else count_of(script, MOST_DPUS, f"{NUM_DPUS} in the script")
        except ValueError as error:
            raise DpuError("a launch without a number of DPUs", why=str(error)) from None
        if self._asked is not None:
            count, reason = self._asked, "num_dpus of the launch"
        elif script is not None and outside is not None and script != outside:
            raise DpuError(
                f"two numbers of DPUs: {NUM_DPUS} = {script} in the script, {NUM_DPUS}={outside} outside",
                why="neither is the obvious one",
                next="unset one of them, or launch with num_dpus=",
            )
        elif script is not None:
            count, reason = script, f"{NUM_DPUS} in the script"
        elif outside is not None:
            count, reason = outside, f"{NUM_DPUS} in the environment"
        else:
            full = min(self._tasklets, FULL_PIPELINE)
            count, reason = min(-(-programs // full), _MOST_DPUS), f"one for {full} programs, {_MOST_DPUS} at most"
        is_asked = any(number is not None for number in (self._asked, script, outside))
        return (programs, "one for each program", is_asked) if programs < count else (count, reason, is_asked)

    def _load(self, dpus: DpuSet, program: DpuProgram) -> tuple[int, int]:
        """Load the program if it is not loaded. Return the address and size (bytes) of the MRAM for arrays."""
        # A kernel that compares what its programs store reports a race with the programs and the element.
        if dpus.load(program.path, races=self._comparisons is None):
            arguments = dpus.symbol(_ARGUMENTS)
            if arguments.size != self._fields.size:
                pool.drop(dpus)
                raise DpuError(
                    f"{program.kernel} was compiled for other arguments",
                    why=f"{_ARGUMENTS} has {arguments.size} bytes in the DPU program, {self._fields.size} here",
                    next="clear Triton's cache folder",
                )
        heap = dpus.heap
        limit = int(os.environ.get(MRAM) or MRAM_BYTES)
        room = min(limit, MRAM_BYTES) - heap % MRAM_BYTES
        return heap, room if self.log is None else self._log_offset(heap, room)

    def _log_offset(self, heap: int, room: int) -> int:
        """Return where the log starts, in bytes from the heap's start: it ends with the room, and arrays end before it.

        Raises:
            DpuError: the log is larger than MRAM.
        """
        assert self.log is not None
        offset = (heap + room - self.log.bytes) // DMA_ALIGNMENT * DMA_ALIGNMENT - heap
        if offset < 0:
            raise DpuError(
                "the log of this kernel's prints does not fit into MRAM",
                why=f"it has {self.log.bytes} bytes, and a DPU has room for {room}",
                next=f"set {LINES_VARIABLE} to a smaller number of lines",
            )
        return offset

    def _plan(self, grid: Grid, values: Sequence[Any], count: int, heap: int, room: int) -> LaunchPlan:
        wanted = _wanted(os.environ.get(SHARD, ""), [self.parameters.names[i] for i in self._pointers])
        arrays = {i: self._array(i, values[i]) for i in self._pointers}
        numbers = {i: values[i] for i in self._footprints.integers}
        key = (grid, count, heap, room, tuple(arrays.values()), tuple(numbers.items()), tuple(wanted.items()))
        if key not in self._plans:
            try:
                self._plans[key] = plan_launch(
                    arrays,
                    lambda bounds: self._footprints.compute(values, grid, bounds),
                    programs=grid[0] * grid[1] * grid[2],
                    dpus=count,
                    heap=heap,
                    capacity=room,
                    wanted=wanted,
                    atomics=self._atomics,
                )
            except MemoryExceeded as error:
                raise DpuError(_NO_ROOM, why=str(error), next="let each program work on less") from error
        self._plans.move_to_end(key)
        if len(self._plans) > _REMEMBERED:
            self._plans.popitem(last=False)
        return self._plans[key]

    def _array(self, i: int, tensor: Any) -> Array:
        storage = tensor.untyped_storage()
        low = storage.data_ptr()
        return Array(self.parameters.names[i], tensor.data_ptr(), low, low + storage.nbytes(), self._pointers[i])

    def _run(
        self,
        dpus: DpuSet,
        planned: LaunchPlan,
        grid: Grid,
        values: Sequence[Any],
        heap: int,
        program: DpuProgram,
        room: int,
        tasklets: Sequence[Sequence[int]],
        lines: dict[str, LineCost],
    ) -> tuple[list[tuple[int, int, Stats | None]], list[Words]]:
        """Run all rounds. Return for each the bytes sent and received, and what it cost; and all logs.

        Args:
            room: bytes of MRAM for arrays, after which the log is.
            tasklets: for each round and DPU, the number of tasklets that run programs.
            lines: gets what each source line cost, if the program counts that.
        """
        done, logs = [], list[Words]()
        try:
            for one, counts in zip(planned.rounds, tasklets, strict=True):
                programs = zip(one.programs, counts, strict=True)
                dpus.send_each(_GRID, [_PROGRAM_FIELDS.pack(*grid, *part, count) for part, count in programs])
                dpus.send_each(_ARGUMENTS, self._pack(one, values, heap, dpus.count, room))
                sent = send(dpus, one)
                if self.log is not None:
                    send_header(dpus, self.log, room)
                dpus.launch(program.kernel)
                for place, cost in dpus.lines().items():
                    lines[place] = lines.get(place, LineCost(0, 0)).add(cost)
                if self.log is not None:
                    logs += receive_logs(dpus, self.log, room)
                done.append((sent, receive(dpus, one), dpus.stats()))
        except DpuError as error:
            # The state of the DPUs is unknown. The next launch must not use them.
            pool.drop(dpus)
            error.add_note(f"in {program.kernel}, round {len(done) + 1} of {len(planned.rounds)}, on {dpus.count} DPUs")
            raise
        return done, logs

    def _pack(self, one: Round, values: Sequence[Any], heap: int, count: int, room: int) -> list[bytes]:
        """Return the DPU_INPUT_ARGUMENTS of each DPU."""
        fields = list(values)
        regions = {i: region for region in one.regions for i in region.arguments}
        packed = []
        for k in range(count):
            for i, region in regions.items():
                held = region.held[k]
                # A shard's pointer may be before its data: addresses on a DPU are modulo 2^32.
                behind = values[i].data_ptr() - held.low if held is not None else 0
                fields[i] = (heap + region.offset + behind) % (1 << 32)
            log = [] if self.log is None else [(heap + room) % (1 << 32)]
            packed.append(self._fields.pack(*fields, *log, 0))
        return packed

    def _explain(self, planned: LaunchPlan, grid: Grid, count: int, reason: str, tasklets: int, parts: int) -> None:
        def say(text: str) -> None:
            print(f"[dpu] {text}", file=sys.stderr)

        rounds = len(planned.rounds)
        say(
            f"grid {grid} on {count} DPUs ({reason}) x {tasklets} tasklets, "
            f"{rounds} round{'s' if rounds > 1 else ''}" + (f", each program in {parts} slices" if parts > 1 else "")
        )
        for i, (placed, size) in planned.placements.items():
            region = next(region for region in planned.rounds[0].regions if i in region.arguments)
            others = [self.parameters.names[j] for j in region.arguments if j != i]
            shared = f", merged by {region.merge.kind}" if region.merge else ""
            shared += f", shares memory with {', '.join(others)}" if others else ""
            ways = [way for way, there in (("sent", region.sent), ("received", any(region.writes))) if there]
            name = self.parameters.names[i]
            say(f"  {name}: {placed.placement}, {placed.why}; up to {size} bytes a DPU, {' and '.join(ways)}{shared}")


def _compiled(metadata: Any, parts: int, *, by_line: bool = False) -> tuple[Path, int]:
    """Return the file of another DPU program of a kernel, and its tasklets; Triton's cache keeps it.

    Args:
        parts: its slices.
        by_line: whether it counts modelled cycles by source line.
    """
    cache = _cache_of(metadata, parts, by_line=by_line)
    path, note = cache.get_file(f"{metadata.name}.dpu"), cache.get_file(_NOTE)
    if path is None or note is None:
        from .compiler import make_again

        program, tasklets = make_again(metadata, parts, by_line=by_line)
        path = cache.put(program, f"{metadata.name}.dpu")
        note = cache.put(str(tasklets), _NOTE, binary=False)
    return Path(path), int(Path(note).read_text())


def _room(metadata: Any, parts: int) -> int:
    """Return how many tasklets a DPU program with a number of slices has; Triton's cache keeps the number."""
    if parts == metadata.parts:
        return int(metadata.num_tasklets)
    cache = _cache_of(metadata, parts)
    note = cache.get_file(_NOTE)
    if note is None:
        from .compiler import split_tasklets

        note = cache.put(str(split_tasklets(metadata, parts)), _NOTE, binary=False)
    return int(Path(note).read_text())


def _cache_of(metadata: Any, parts: int, *, by_line: bool = False) -> Any:
    from triton.runtime.cache import get_cache_manager

    key = f"{metadata.hash} in {parts} slices{', counted by line' if by_line else ''}"
    return get_cache_manager(hashlib.sha256(key.encode()).hexdigest())


def _wanted(text: str, names: Sequence[str]) -> Mapping[str, Placement]:
    """Read TRITON_DPU_SHARD: `x=replicated,y=sharded`. Unknown names belong to another kernel."""
    wanted = {}
    for part in filter(None, text.split(",")):
        name, _, placement = part.partition("=")
        if placement not in list(Placement):
            raise DpuError(
                f"{SHARD}={text} is not understood",
                why=f"'{part}' is not NAME={' or NAME='.join(Placement)}",
            )
        if name in names:
            wanted[name] = Placement(placement)
    return wanted


def _cost(rounds: Sequence[Stats | None]) -> dict[str, int | None]:
    """Sum what the rounds of a launch cost, in the fields of LaunchCost."""
    slowest, summed = ("cycles", "dma_cycles"), ("instructions", "dma_read_bytes", "dma_write_bytes", "dma_transfers")
    known = [stats for stats in rounds if stats is not None]
    if len(known) < len(rounds):
        return dict.fromkeys((*slowest, *summed))
    return {
        **{name: sum(int(getattr(stats, name).max()) for stats in known) for name in slowest},
        **{name: sum(int(getattr(stats, name).sum()) for stats in known) for name in summed},
    }
