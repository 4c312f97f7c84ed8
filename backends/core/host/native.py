"""Run what a work-item or a tasklet becomes on this processor, with llvmlite, whose LLVM is the lowering's.

The arrays are at addresses that no pointer has; llvm.py lets every access ask for the pointer. Workgroups run one after
the other, tasklets too; the work-items of a work-group are threads, which wait for each other at barriers only.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as binding
import numpy as np
from foundry_core.emit.mlir import LLVM_INTRINSIC

from .llvm import Translation, type_text
from .memory import Array, Fault, Reached, Result

# Numbers in an array's row of the table in native.ll.
_ROW = 7
# What the table of private memory has room for: arrays of one work-item.
_OWN = 256
_GAP = 1 << 20
# How many seconds a work-item waits for the others.
PATIENCE = 60.0
_FAULTS = {
    1: "an access out of bounds of all arrays",
    2: "an address is no multiple of its access' alignment",
    3: "a DMA that is not of a multiple of 8 bytes between multiples of 8",
    4: "an access out of bounds of private memory",
    5: "a division by zero",
    6: "a copy of a negative number of bytes",
}
_PRELUDE = Path(__file__).with_name("native.ll").read_text()
_DEFINED = frozenset(re.findall(r"^(?:define|declare) .*@(\w+)\(", _PRELUDE, re.MULTILINE))
_PROCESS = ctypes.CDLL(None)
_LIBRARY = re.compile(r"_Z(\d+)__spirv_ocl_")
_CTYPES: dict[str, Any] = {"i64": ctypes.c_int64, "i32": ctypes.c_int32, "i16": ctypes.c_int16, "i8": ctypes.c_int8}
_CTYPES |= {"f32": ctypes.c_float, "f64": ctypes.c_double}
_Function = Callable[..., None]


def _library(name: str, parameters: Sequence[str], result: str) -> tuple[str, str]:
    """Define a function of OpenCL by that of the C library, element by element; return it and its declaration."""
    found = _LIBRARY.match(name)
    if found is None:
        raise NotImplementedError(name)
    lanes = int(whole[1]) if (whole := re.match(r"vector<(\d+)x", result)) else 1
    elems = [re.sub(r"vector<\d+x(\w+)>", r"\1", type) for type in (*parameters, result)]
    # The number is the length of the name that follows it.
    symbol = name[found.end() : found.end(1) + int(found[1])] + "f" * (elems[-1] == "f32")
    if symbol not in _DEFINED and not hasattr(_PROCESS, symbol):
        raise NotImplementedError(symbol)
    *kinds, kind = map(type_text, elems)
    lines, last = [], "poison"
    for lane in range(lanes):
        arguments = [f"%a{k}" + f"l{lane}" * (lanes > 1) for k in range(len(parameters))]
        for k, type in enumerate(parameters):
            if lanes > 1:
                lines.append(f"  %a{k}l{lane} = extractelement {type_text(type)} %a{k}, i32 {lane}")
        passed = ", ".join(f"{type} {argument}" for type, argument in zip(kinds, arguments, strict=True))
        lines.append(f"  %r{lane} = call {kind} @{symbol}({passed})")
        if lanes > 1:
            lines.append(f"  %v{lane} = insertelement {type_text(result)} {last}, {kind} %r{lane}, i32 {lane}")
            last = f"%v{lane}"
    head = ", ".join(f"{type_text(type)} %a{k}" for k, type in enumerate(parameters))
    text = [
        f'define {type_text(result)} @"{name}"({head}) {{',
        *lines,
        f"  ret {type_text(result)} {last if lanes > 1 else '%r0'}",
        "}",
    ]
    return "\n".join(text), "" if symbol in _DEFINED else f"declare {kind} @{symbol}({', '.join(kinds)})"


def _masked(name: str, way: str, lanes: int, elem: str) -> str:
    """Define an access of the lanes of a vector that a mask has; the others do not reach memory."""
    vector, kind, size = f"<{lanes} x {type_text(elem)}>", type_text(elem), int(elem[1:]) // 8
    others = {
        "load": f"ptr %base, i32 %align, <{lanes} x i1> %mask, {vector} %r",
        "store": f"{vector} %r, ptr %base, i32 %align, <{lanes} x i1> %mask",
    }
    lines = [
        f'define {vector if way == "load" else "void"} @"{name}"({others[way]}) {{',
        "  %wide = zext i32 %align to i64",
    ]
    last, how = "%r", 1 if way == "load" else 2
    for lane in range(lanes):
        lines += [
            f"  %is{lane} = extractelement <{lanes} x i1> %mask, i32 {lane}",
            f"  %at{lane} = getelementptr {kind}, ptr %base, i32 {lane}",
            f"  %p{lane} = call ptr @reach_if(i1 %is{lane}, ptr %at{lane}, i64 {size}, i64 %wide, i32 {how})",
            f"  %o{lane} = extractelement {vector} %r, i32 {lane}",
        ]
        if way == "store":
            lines.append(f"  store {kind} %o{lane}, ptr %p{lane}, align 1")
        else:
            lines += [
                f"  %l{lane} = load {kind}, ptr %p{lane}, align 1",
                f"  %c{lane} = select i1 %is{lane}, {kind} %l{lane}, {kind} %o{lane}",
                f"  %v{lane} = insertelement {vector} {last}, {kind} %c{lane}, i32 {lane}",
            ]
            last = f"%v{lane}"
    return "\n".join([*lines, f"  ret {f'{vector} {last}' if way == 'load' else 'void'}", "}"])


# x86's conversions of eight numbers.
_F16 = {
    "xlvm.x86.vcvtph2ps.256": "<8 x float> @{name}(<8 x i16> %x) {{\n  %h = bitcast <8 x i16> %x to <8 x half>\n"
    "  %f = fpext <8 x half> %h to <8 x float>\n  ret <8 x float> %f\n}}",
    "xlvm.x86.vcvtps2ph.256": "<8 x i16> @{name}(<8 x float> %x, i32 %how) {{\n"
    "  %h = fptrunc <8 x float> %x to <8 x half>\n  %b = bitcast <8 x half> %h to <8 x i16>\n  ret <8 x i16> %b\n}}",
}


def _intrinsic(name: str, parameters: Sequence[str], result: str) -> str:
    """Define what the lowering calls for an intrinsic of LLVM: an access under a mask, or arithmetic."""
    if name in _F16:
        return "define " + _F16[name].format(name=f'"{name}"')
    if found := re.fullmatch(r"xlvm\.masked\.(load|store)\.v(\d+)(\w+)\.p1", name):
        return _masked(name, found[1], int(found[2]), found[3])
    head = ", ".join(f"{type_text(type)} %a{k}" for k, type in enumerate(parameters))
    if name == "xlvm.prefetch.p1":
        return f'define void @"{name}"({head}) {{\n  ret void\n}}'
    if name.startswith("xlvm.fma."):
        kind = type_text(result)
        call = f"call {kind} @llvm.{name.removeprefix('xlvm.')}({head})"
        return f'define {kind} @"{name}"({head}) {{\n  %r = {call}\n  ret {kind} %r\n}}'
    raise NotImplementedError(name)


class _Waiting:
    """The work-items of a work-group, each a thread; what they call."""

    calls = frozenset({"_Z12get_local_idj", "_Z7barrierj"})

    def __init__(self, count: int) -> None:
        self.count, self.here, self.barrier = count, threading.local(), threading.Barrier(count, timeout=PATIENCE)
        self.left: list[BaseException] = []
        self.symbols: dict[str, Any] = {
            "_Z12get_local_idj": ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int32)(lambda axis: self.here.number),
            "_Z7barrierj": ctypes.CFUNCTYPE(None, ctypes.c_int32)(self.wait),
        }

    def wait(self, fences: int) -> None:
        try:
            self.barrier.wait()
        except threading.BrokenBarrierError as error:
            # An exception does not pass through native code: the others go on, and the run has failed.
            self.left.append(error)

    def run(self, kernel: _Function, values: Sequence[Any]) -> None:
        def one(number: int) -> None:
            self.here.number = number
            kernel(*values)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.left:
            raise Fault("a barrier that some work-items do not reach")


class Native:
    """A compiled kernel.

    Args:
        mlir: what `to_tasklet_mlir`, `to_mlir` or `to_work_group_mlir` returns.
        rows: how many arrays it gets, with the log.
        work_items: of a work-group.
    """

    def __init__(self, mlir: str, rows: int, work_items: int = 1) -> None:
        self._module, self._rows = Translation(mlir), rows
        self._group = _Waiting(work_items) if work_items > 1 else None
        defined, declared = [], set[str]()
        for name, (parameters, result) in self._module.declared.items():
            if name in _Waiting.calls:
                declared.add(f"declare {type_text(result)} @{name}(i32)")
            elif name.startswith(LLVM_INTRINSIC):
                defined.append(_intrinsic(name, parameters, result))
            elif name not in _DEFINED:
                text, needed = _library(name, parameters, result)
                defined.append(text)
                declared.add(needed)
        if self._group:
            for name, function in self._group.symbols.items():
                binding.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
        words = {"ROWS": rows, "OWNED": _OWN, "IS_GROUP": int(work_items > 1)}
        prelude = re.sub("|".join(words), lambda word: str(words[word[0]]), _PRELUDE)
        self._engine = _compiled("\n".join([prelude, *defined, *sorted(declared), self._module.text]))

    def _global(self, name: str, type: Any, count: int) -> Array:
        return np.ctypeslib.as_array((type * count).from_address(self._engine.get_global_value_address(name)))

    def launch(
        self, arguments: Sequence[Any], grid: Sequence[int] = (1, 1, 1), *, slices: int = 1, log: Array | None = None
    ) -> Result:
        """Run each program of a grid; see `run`."""
        given = [x for x in arguments if isinstance(x, np.ndarray)] + ([log] if log is not None else [])
        table = self._global("spans", ctypes.c_int64, self._rows * _ROW).reshape(self._rows, _ROW)
        memory: list[Array] = []
        address = _GAP
        for number, array in enumerate(given):
            # A DMA moves whole words of 8 bytes.
            size = -(-array.nbytes // 8) * 8
            room = np.full(size + 64, 0xAB, np.uint8)
            memory.append(room[-room.ctypes.data % 64 :][:size])
            memory[-1][: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
            table[number] = address, address + size, memory[-1].ctypes.data, 1 << 62, 0, 1 << 62, 0
            address += -(-size // 256) * 256 + _GAP
        fault, program = self._global("fault", ctypes.c_int64, 1), self._global("program", ctypes.c_int32, 7)
        fault[:] = 0
        values, types = self._values(arguments, grid, table[:, 0].tolist())
        kernel: _Function = ctypes.CFUNCTYPE(None, *types)(self._engine.get_function_address(self._module.kernel))
        for z, y, x, part in itertools.product(*map(range, reversed(list(grid))), range(slices)):
            program[:] = (x, y, z, *grid, part)
            self._group.run(kernel, values) if self._group else kernel(*values)
        if fault[0]:
            raise Fault(_FAULTS[int(fault[0])])
        arrays = [part[: x.nbytes].copy().view(x.dtype).reshape(x.shape) for part, x in zip(memory, given, strict=True)]

        def reached(first: int) -> list[Reached]:
            spans = zip(table[:, first], table[:, first + 1], given, strict=True)
            return [(int(low), min(int(high), x.nbytes)) if high else None for low, high, x in spans]

        return Result(arrays, reached(3), reached(5))

    def _values(self, arguments: Sequence[Any], grid: Sequence[int], lows: list[int]) -> tuple[list[Any], list[Any]]:
        """Return what the kernel is called with, and the types of it."""
        numbers = iter([x.item() for x in arguments if not isinstance(x, np.ndarray)])
        arrays, values, types = iter(lows), [], []
        for name, type in self._module.parameters:
            is_pointer = type_text(type) == "ptr"
            types.append(ctypes.c_void_p if is_pointer else _CTYPES[type])
            if name.startswith("%grid_"):
                values.append(grid["xyz".index(name[-1])])
            elif name.startswith("%internal_"):
                values.append(0)
            else:
                values.append(next(arrays if is_pointer else numbers))
        return values, types


@functools.cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def _compiled(ir: str) -> Any:
    _initialize()
    module = binding.parse_assembly(ir)
    module.verify()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=0
    )
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def run(
    mlir: str,
    arguments: Sequence[Any],
    grid: Sequence[int] = (1, 1, 1),
    *,
    slices: int = 1,
    work_items: int = 1,
    log: Array | None = None,
) -> Result:
    """Run each program of a grid, one after the other.

    Args:
        arguments: arrays, and NumPy's numbers.
        slices: the parts of a program of a tasklet that is too long for one.
        work_items: of a work-group.
        log: the launch's log, for a kernel that has sites. It is the last array of the result.

    Raises:
        Fault: the kernel does what no device promises.
    """
    rows = sum(isinstance(x, np.ndarray) for x in arguments) + (log is not None)
    return Native(mlir, rows, work_items).launch(arguments, grid, slices=slices, log=log)
