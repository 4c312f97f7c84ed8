"""One Triton program as a workgroup of invocations: what every device has, however SPIR-V writes it down.

SPIR-V has two flavours, by the capability that a module declares. vulkan.py writes that of Vulkan, opencl.py that of
OpenCL. They differ in how arguments, addresses and workgroup memory are declared, and in their memory models. All else
is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from ....emit.mlir import WIDTHS, Reg
from ....spirv_numbers import numbers
from ..target import FEATURES, SimtTarget
from .instructions import Code
from .module import STORAGE, SpirvModule
from .shared_memory import EVERYTHING, Span

(_BUILTIN,) = numbers("Decoration", "BuiltIn")
(_VOLATILE,) = numbers("MemoryAccess", "Volatile")
SCOPE_DEVICE, SCOPE_WORKGROUP, SCOPE_SUBGROUP = numbers("Scope", "Device Workgroup Subgroup")
# A vector of Vulkan's SPIR-V has no more components; one of OpenCL's has them with another capability.
_COMPONENTS = 4


def _form(elem: str, lanes: int) -> tuple[str, int]:
    """Return the type and number of components in which neighbouring elements are read and written."""
    return (elem, lanes) if lanes <= _COMPONENTS else ("i32", lanes * WIDTHS[elem] // 32)


class Workgroup(ABC):
    """What invocations are to a device.

    Attributes:
        code: the body of the kernel.
        local_bytes: the workgroup memory that is used, in bytes.
        tables: the number of tables, see `table`.
        aligned: memory operands of an access of global memory; the alignment follows.
        shared: memory operands of an access of workgroup memory.
        ordered: memory semantics of a fence, between everything before it and everything after it.
        all_memory, workgroup_memory: memory semantics of a barrier.

    Args:
        module: an empty module of the flavour.
    """

    aligned: ClassVar[int]
    shared: ClassVar[tuple[int, ...]]
    ordered: ClassVar[int]
    all_memory: ClassVar[int]
    workgroup_memory: ClassVar[int]

    def __init__(self, target: SimtTarget, module: SpirvModule) -> None:
        self._target = target
        self.module = module
        module.lacks = {name: FEATURES[name] for name in target.lacks}
        self.code = Code(module)
        self.local_bytes = self.tables = 0
        self._function = module.new()
        # What the next accesses of workgroup memory touch, and whether they write.
        self._touched, self._writes = EVERYTHING, True
        # Words that were divided into elements, by these: those that are only moved are written as they were read.
        self._words: dict[tuple[str, ...], Reg] = {}
        self._neighbours: dict[str, tuple[str, ...]] = {}
        self._inputs: dict[int, int] = {}
        self._constants: dict[str, Reg] = {}
        self._parameters: list[tuple[str, int]] = []

    # Arguments.

    def parameter(self, elem: str) -> None:
        """Declare the next parameter: a number."""
        size = max(1, WIDTHS[elem] // 8)
        offset = -(-self.argument_bytes // size) * size
        self._parameters.append((elem, offset))

    def pointer(self) -> None:
        """Declare the next parameter: a pointer to global memory. Its register is the address, an i64."""
        self.parameter("i64")

    def table(self) -> None:
        """Declare memory of ours that a launch passes after the arguments of the kernel."""
        self.tables += 1

    @property
    def argument_bytes(self) -> int:
        """Return the size of the arguments so far, in a structure in which each is aligned to its size."""
        return max((offset + max(1, WIDTHS[elem] // 8) for elem, offset in self._parameters), default=0)

    @property
    def argument_offsets(self) -> list[int]:
        return [offset for _, offset in self._parameters]

    @abstractmethod
    def begin(self) -> list[Reg]:
        """Write the head of the kernel; return its arguments.

        Called once, after the last parameter is declared and before anything is written to `code`.
        """

    # What an invocation is told.

    def _input(self, builtin: int, elem: str, rank: int = 1) -> int:
        """Return the value of an input: a number, or a vector of them."""
        m, type = self.module, self._vector(elem, rank)
        if builtin not in self._inputs:
            self._inputs[builtin] = m.variable(m.type("Pointer", STORAGE["Input"], type), "Input")
            m.decorate(self._inputs[builtin], _BUILTIN, builtin)
        return m.result("Load", type, self._inputs[builtin])

    def _component(self, builtin: int, elem: str, axis: int) -> Reg:
        """Return a component of an input that has one for each dimension of the grid."""
        whole = self._input(builtin, elem, 3)
        return Reg(f"%{self.module.result('CompositeExtract', self.code.type(elem), whole, axis)}", elem)

    @abstractmethod
    def program_id(self, axis: int) -> Reg:
        """Return the index of this program in the grid along an axis, an i32."""

    @abstractmethod
    def num_programs(self, axis: int) -> Reg:
        """Return the extent of the grid along an axis, an i32."""

    def lane(self) -> Reg:
        """Return the number of this invocation in its subgroup, an i32."""
        if "lane" not in self._constants:
            self._constants["lane"] = self.code.assume_bounds(self._lane(), 0, self._target.warp_size - 1)
        return self._constants["lane"]

    def warp(self) -> Reg:
        """Return the number of this subgroup in the workgroup, an i32."""
        if "warp" not in self._constants:
            self._constants["warp"] = self.code.assume_bounds(self._warp(), 0, self._target.warps - 1)
        return self._constants["warp"]

    @abstractmethod
    def _lane(self) -> Reg: ...

    @abstractmethod
    def _warp(self) -> Reg: ...

    # Registers and vectors.

    def _vector(self, elem: str, lanes: int) -> int:
        type = self.code.type(elem)
        return self.module.type("Vector", type, lanes) if lanes > 1 else type

    def _unpacked(self, vector: int, elem: str, lanes: int) -> list[Reg]:
        """Return the elements of what was read."""
        return self._elements(self._split(vector, *_form(elem, lanes)), elem, lanes)

    def _elements(self, words: Sequence[Reg], elem: str, lanes: int) -> list[Reg]:
        """Return the elements of words, which may be elements."""
        if words[0].elem == elem:
            return list(words)
        return [reg for word in words for reg in self.divide_word(word, elem)]

    def divide_word(self, word: Reg, elem: str) -> list[Reg]:
        """Return the elements of a word."""
        part = WIDTHS[word.elem] // WIDTHS[elem]
        found = self._split(self.module.result("Bitcast", self._vector(elem, part), self.code.id(word)), elem, part)
        names = tuple(reg.name for reg in found)
        self._words[names] = word
        self._neighbours.update(dict.fromkeys(names, names))
        return found

    def neighbours(self, element: Reg) -> tuple[str, ...]:
        """Return the names of all elements of the word that an element was taken from; none if it was not."""
        return self._neighbours.get(element.name, ())

    def word(self, elements: Sequence[str]) -> Reg | None:
        """Return the word that consists of these elements, by their names, if it has been divided into them."""
        return self._words.get(tuple(elements))

    def _packed(self, values: Sequence[Reg]) -> tuple[int, str, int]:
        """Return what is written, and the type and number of its components."""
        kind, count = _form(values[0].elem, len(values))
        return self._joined(self._in_words(values, kind, count)), kind, count

    def _in_words(self, values: Sequence[Reg], kind: str, count: int) -> Sequence[Reg]:
        """Return elements as so many words of a type, which may be theirs."""
        if values[0].elem == kind:
            return values
        part = len(values) // count
        return [self._word(values[k : k + part], kind) for k in range(0, len(values), part)]

    def _word(self, values: Sequence[Reg], kind: str) -> Reg:
        known = self.word([value.name for value in values])
        return known or Reg(f"%{self.module.result('Bitcast', self.code.type(kind), self._joined(values))}", kind)

    def _split(self, vector: int, elem: str, lanes: int) -> list[Reg]:
        if lanes == 1:
            return [Reg(f"%{vector}", elem)]
        m, type = self.module, self.code.type(elem)
        return [Reg(f"%{m.result('CompositeExtract', type, vector, lane)}", elem) for lane in range(lanes)]

    def _joined(self, values: Sequence[Reg]) -> int:
        ids = [self.code.id(value) for value in values]
        if len(ids) == 1:
            return ids[0]
        return self.module.result("CompositeConstruct", self._vector(values[0].elem, len(ids)), *ids)

    def _constant(self, number: int) -> int:
        """Return the constant that names a scope, or memory semantics."""
        return self.code.id(self.code.integer(number, "i32"))

    # Global memory: an address is an i64.

    @abstractmethod
    def _pointer(self, address: Reg, elem: str, lanes: int) -> int:
        """Return a pointer to neighbouring elements of global memory."""

    def load(
        self,
        address: Reg,
        elem: str,
        lanes: int,
        alignment: int,
        *,
        volatile: bool = False,
        otherwise: tuple[Reg, Sequence[Reg]] | None = None,
    ) -> list[Reg]:
        """Read neighbouring elements of global memory, 1 to 16 bytes.

        Args:
            volatile: whether to read each time and from memory.
            otherwise: a condition, and the elements that are taken for those of memory where it does not hold.
        """
        kind, count = _form(elem, lanes)
        pointer, how = self._pointer(address, kind, count), self.aligned | _VOLATILE * volatile
        read = self.module.result("Load", self._vector(kind, count), pointer, how, alignment)
        words = self._split(read, kind, count)
        if otherwise is not None:
            # Whole words: what is only moved on is never taken apart by the device's compiler.
            condition, others = otherwise
            others = self._in_words(others, kind, count)
            words = [self.code.select(condition, *row) for row in zip(words, others, strict=True)]
        return self._elements(words, elem, lanes)

    def store(self, address: Reg, values: Sequence[Reg], alignment: int, *, volatile: bool = False) -> None:
        """Write neighbouring elements of global memory, 1 to 16 bytes."""
        value, kind, count = self._packed(values)
        how = self.aligned | _VOLATILE * volatile
        self.module.do("Store", self._pointer(address, kind, count), value, how, alignment)

    def fence(self) -> None:
        """Order this invocation's accesses of global memory before it and after it, as other workgroups see them."""
        self.module.do("MemoryBarrier", self._constant(SCOPE_DEVICE), self._constant(self.ordered))

    def atomic(self, name: str, address: Reg, value: Reg, compared: Reg | None = None) -> Reg:
        """Change a number of global memory in one step, in no order with other accesses; return the old one.

        It has 32 or 64 bits. A float can be added if the device does that (SimtTarget.atomic_adds).
        """
        m, code = self.module, self.code
        if value.elem == "i64":
            m.capability("Int64Atomics")
        relaxed = self._constant(0)
        operands = [self._pointer(address, value.elem, 1), self._constant(SCOPE_DEVICE), relaxed]
        if compared is not None:
            operands += [relaxed, code.id(value), code.id(compared)]
        else:
            operands.append(code.id(value))
        return Reg(f"%{m.result(name, code.type(value.elem), *operands)}", value.elem)

    def add_halves(self, address: Reg, values: Sequence[Reg]) -> list[Reg]:
        """Add to two or four neighbouring f16 of global memory, each in one step; return the old ones.

        A device of Vulkan does that if it has 16 among SimtTarget.atomic_adds.
        """
        m = self.module
        m.capability("VulkanMemoryModelDeviceScope")
        m.capability("AtomicFloat16VectorNV", "SPV_NV_shader_atomic_fp16_vector")
        value, kind, count = self._packed(values)
        operands = (self._pointer(address, kind, count), self._constant(SCOPE_DEVICE), self._constant(0), value)
        return self._split(m.result("AtomicFAdd", self._vector(kind, count), *operands), kind, count)

    # Workgroup memory, one range of bytes that is read and written as any type.

    def place(self, index: Reg, elem: str, lanes: int) -> int:
        """Return a pointer to an element of workgroup memory, as an array of vectors, for an access."""
        self.code.accesses.add(self._touched, writes=self._writes)
        return self._place(index, elem, lanes)

    @abstractmethod
    def _place(self, index: Reg, elem: str, lanes: int) -> int:
        """Return a pointer to an element of workgroup memory, as an array of vectors."""

    def read_shared(self, index: Reg, elem: str, lanes: int = 1, span: Span = EVERYTHING) -> list[Reg]:
        """Read workgroup memory as an array of vectors of `lanes` elements.

        Args:
            span: bytes that include these.
        """
        width = min(32, lanes * WIDTHS[elem])
        if self.code.zero is not None and lanes > 1 and WIDTHS[elem] < width:
            # NVIDIA 580 was seen to take another number for the second of two i16, if it is taken out of a vector.
            code, word = self.code, f"i{width}"
            return [
                code.cast("arith.trunci", code.binary("arith.shrui", read, code.integer(at, word)), elem)
                for read in self.read_shared(index, word, lanes * WIDTHS[elem] // width, span)
                for at in range(0, width, WIDTHS[elem])
            ]
        kind, count = _form(elem, lanes)
        with self.limit_accesses(*span, writes=False):
            place = self.place(index, kind, count)
        return self._unpacked(self.module.result("Load", self._vector(kind, count), place, *self.shared), elem, lanes)

    def write_shared(self, index: Reg, values: Sequence[Reg], span: Span = EVERYTHING) -> None:
        """Write workgroup memory as an array of vectors."""
        value, kind, count = self._packed(values)
        with self.limit_accesses(*span):
            place = self.place(index, kind, count)
        self.module.do("Store", place, value, *self.shared)

    def count_shared(self, index: Reg) -> None:
        """Add one to an i32 of workgroup memory in one step."""
        operands = (self.place(index, "i32", 1), self._constant(SCOPE_WORKGROUP), self._constant(0), self._constant(1))
        self.module.result("AtomicIAdd", self.code.type("i32"), *operands)

    def lower_shared(self, index: Reg, number: Reg) -> None:
        """Replace an i32 of workgroup memory, without a sign, by a smaller number, in one step."""
        operands = (self.place(index, "i32", 1), self._constant(SCOPE_WORKGROUP), self._constant(0))
        self.module.result("AtomicUMin", self.code.type("i32"), *operands, self.code.id(number))

    @contextmanager
    def limit_accesses(self, low: int, high: int, *, writes: bool = True) -> Iterator[None]:
        """Record that accesses of workgroup memory touch these bytes, and no others."""
        before = self._touched, self._writes
        self._writes = writes
        if (low, high) != EVERYTHING:
            self._touched = low, high
        yield
        self._touched, self._writes = before

    def barrier(self, *, of_all: bool = False) -> None:
        """Wait for all invocations of the workgroup; what they wrote before is visible after it.

        Nothing is written if workgroup memory has not been touched since the last one, except if the barrier is one of
        all memory.
        """
        if of_all or self.code.accesses.spans:
            self._barrier(self.all_memory)

    def _barrier(self, memory: int) -> None:
        scope = self._constant(SCOPE_WORKGROUP)
        self.module.do("ControlBarrier", scope, scope, self._constant(memory))
        self.code.accesses.barrier()

    def order(self, span: Span, *, writes: bool, pins: bool = False) -> None:
        """Wait if accesses of some bytes of workgroup memory must come after earlier ones, by other invocations.

        Where only some invocations come, nothing is written: there the caller sees to it.

        Args:
            pins: whether accesses of global memory keep their place before or after the barrier.
        """
        known = self._touched if span == EVERYTHING else span
        if self.code.accesses.conflict(known, writes=writes) and not self.code.accesses.some:
            self._barrier(self.all_memory if pins else self.workgroup_memory)

    # Subgroups.

    def shuffle_xor(self, x: Reg, mask: int) -> Reg:
        """Return a register of the invocation whose lane differs in the bits of a mask."""
        return self._shuffled("GroupNonUniformShuffleXor", x, self.code.integer(mask, "i32"))

    def shuffle(self, x: Reg, lane: Reg) -> Reg:
        """Return a register of the invocation with this lane."""
        return self._shuffled("GroupNonUniformShuffle", x, lane)

    def _shuffled(self, name: str, x: Reg, other: Reg) -> Reg:
        m, code = self.module, self.code
        m.capability("GroupNonUniformShuffle")
        operands = (self._constant(SCOPE_SUBGROUP), code.id(x), code.id(other))
        return Reg(f"%{m.result(name, code.type(x.elem), *operands)}", x.elem)

    # The end.

    @abstractmethod
    def finish(self, name: str) -> bytes:
        """Return the module, whose kernel has this name."""

    def _end(self, name: str) -> None:
        """Write the end of the kernel."""
        self.module.do("Return")
        self.module.do("FunctionEnd")
        self.module.finish_function()
        self.module.name(self._function, name)
