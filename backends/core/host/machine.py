"""Runs a SPIR-V module in NumPy: one element of an array is one invocation.

An invocation has a block where it is. The first of them in the order of execution is executed next, by those
invocations that are there; so paths meet again as early as they can. All workgroups of a grid run at once.

It is no more lenient than a device. It refuses an access out of bounds of all arrays or at an address that is no
multiple of the alignment that it states, a barrier, a shuffle or a cooperative matrix that some invocations do not
reach, a race in workgroup memory. Which invocation holds which element of a cooperative matrix is scrambled, where the
device promises nothing. `Device` says what else a device may do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from foundry_core.mapping.simt.target import Arrangement
from foundry_core.spirv_numbers import numbers

from .memory import Array, Fault, GlobalMemory, Result, SharedMemory
from .spirv import PRIVATE, PUSH, WORKGROUP, Function, Instruction, Module, Type

# What an invocation is told, by the numbers of SPIR-V's BuiltIn.
_NUM_WORKGROUPS, _WORKGROUP_ID, _LOCAL_ID, _SUBGROUP_ID, _LANE = numbers(
    "BuiltIn", "NumWorkgroups WorkgroupId LocalInvocationId SubgroupId SubgroupLocalInvocationId"
)
_ALIGNED = 0x2
_SCOPE_SUBGROUP, _COLUMN_MAJOR, _SIGNED = 3, 1, 0x4
_OF_BF16 = {
    *("CooperativeMatrixLoad", "CooperativeMatrixMulAdd", "Bitcast"),
    *("CompositeExtract", "CompositeInsert", "CompositeConstruct"),
}
# The most blocks that a function executes, and how often a workgroup is preferred that would have to wait.
_TURNS, _FAIR = 1 << 20, 64
# The most invocations that run at the same time; further workgroups follow.
_MOST = 1 << 15


@dataclass(frozen=True)
class Device:
    """What a device promises of arithmetic, where devices differ.

    Attributes:
        lanes: the invocations of a subgroup.
        fuses: the widths of floats of which it rounds a fused multiply and add once, and not twice.
        accurate_exp2: whether its exp2 of an f32 errs by 2 units in the last place at most.
        keeps: the widths of floats whose subnormal numbers are no zeros in arithmetic.
        nearest: the widths of floats to which it rounds to nearest. To others it rounds towards zero.
        arrangements: which invocation holds which element of some matrices.
    """

    lanes: int = 32
    fuses: tuple[int, ...] = (32, 64)
    accurate_exp2: bool = True
    keeps: tuple[int, ...] = (16, 32, 64)
    nearest: tuple[int, ...] = (16, 32, 64)
    arrangements: tuple[Arrangement, ...] = ()

    def flush(self, x: Array) -> Array:
        """Return operands or results of arithmetic as the device takes them."""
        if x.dtype.kind != "f" or 8 * x.dtype.itemsize in self.keeps:
            return x
        return np.where(np.abs(x) < np.finfo(x.dtype).smallest_normal, np.copysign(x.dtype.type(0), x), x)

    def convert(self, x: Array, to: Any) -> Array:
        """Return floats as floats of another width. No bits of a NaN are kept, as on NVIDIA's GPUs."""
        found = x.astype(to)
        found[np.isnan(found)] = np.array(-1, f"i{found.itemsize}").view(found.dtype)
        if 8 * found.itemsize not in self.nearest and found.itemsize < x.itemsize:
            found = np.where(np.abs(found.astype(x.dtype)) > np.abs(x), np.nextafter(found, found.dtype.type(0)), found)
        return found

    def exp2(self, x: Array) -> Array:
        """Return 2^x of f32 with all errors that it may have, from none to the most. A whole power is exact."""
        exact = np.exp2(x.astype(np.float64))
        most = 1.5 if self.accurate_exp2 else 2.5 + 2 * np.abs(x.astype(np.float64))
        part = (x.view(np.int32) ^ x.view(np.int32) >> 7) % 5 - 2
        unit = np.exp2(np.clip(np.floor(x.astype(np.float64)), -126, 128) - 23)
        err = np.maximum(exact + unit * most * part / 2, 0)
        return np.where((x == np.rint(x)) | np.isnan(x), exact, err).astype(x.dtype)

    def fma(self, a: Array, b: Array, c: Array) -> Array:
        """Return a b + c, rounded once, or twice where it may."""
        if 8 * a.itemsize not in self.fuses:
            return a * b + c
        if a.dtype == np.float64:
            return np.array([_fused(*each) for each in zip(a, b, c, strict=True)])
        # The product of two f32 is exact in f64. The sum is rounded to odd, and then to f32.
        product, addend = a.astype(np.float64) * b, c.astype(np.float64)
        total = product + addend
        part = total - product
        error = (product - (total - part)) + (addend - part)
        is_even = (total.view(np.int64) & 1) == 0
        odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
        return np.where((error != 0) & is_even & np.isfinite(total), odd, total).astype(a.dtype)


def _unsigned(x: Array) -> Array:
    return x.view(x.dtype.str.replace("i", "u"))


def _signed(x: Array) -> Array:
    return x.view(x.dtype.str.replace("u", "i"))


def _divided(a: Array, b: Array) -> tuple[Array, Array]:
    """Return quotients that are rounded towards zero, and remainders."""
    b = np.where(b == 0, b.dtype.type(1), b)
    quotient, remainder = a // b, a % b
    up = (remainder != 0) & ((a < 0) != (b < 0))
    return quotient + up.astype(a.dtype), np.where(up, remainder - b, remainder)


def _shift(x: Array, by: Array, how: Callable[[Array, Array], Array]) -> Array:
    return how(x, by & (8 * x.dtype.itemsize - 1))


def _fused(a: Any, b: Any, c: Any) -> Any:
    """Return a b + c of f64, rounded once."""
    total = a * b + c
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return c if math.isfinite(a) and math.isfinite(b) else total
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    try:
        # The quotient of two int is rounded once.
        return np.float64(exact.numerator / exact.denominator) if exact else total
    except OverflowError:
        return np.float64(math.inf if exact > 0 else -math.inf)


def _sums(bases: Sequence[int]) -> Array:
    """Return the exclusive or of the bases whose bits are set, for each number."""
    found = np.zeros(1, np.int64)
    for basis in bases:
        found = np.concatenate([found, found ^ basis])
    return found


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    **dict.fromkeys(("IAdd", "FAdd"), np.add),
    **dict.fromkeys(("ISub", "FSub"), np.subtract),
    **dict.fromkeys(("IMul", "FMul"), np.multiply),
    "FDiv": np.divide,
    "FRem": np.fmod,
    "SDiv": lambda a, b: _divided(a, b)[0],
    "SRem": lambda a, b: _divided(a, b)[1],
    "UDiv": lambda a, b: _signed(_divided(_unsigned(a), _unsigned(b))[0]),
    "UMod": lambda a, b: _signed(_divided(_unsigned(a), _unsigned(b))[1]),
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "ShiftLeftLogical": lambda a, b: _shift(a, b, np.left_shift),
    "ShiftRightArithmetic": lambda a, b: _shift(a, b, np.right_shift),
    "ShiftRightLogical": lambda a, b: _signed(_shift(_unsigned(a), _unsigned(b), np.right_shift)),
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalEqual": np.equal,
    "LogicalNotEqual": np.not_equal,
    "IEqual": np.equal,
    "INotEqual": np.not_equal,
    "Ordered": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "Unordered": lambda a, b: np.isnan(a) | np.isnan(b),
}
_ORDERS = {
    "LessThan": np.less,
    "LessThanEqual": np.less_equal,
    "GreaterThan": np.greater,
    "GreaterThanEqual": np.greater_equal,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
}


def _order(kind: str, compare: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def compared(a: Array, b: Array) -> Array:
        if kind == "U":
            return compare(_unsigned(a), _unsigned(b))
        if kind == "S":
            return compare(a, b)
        unordered = np.isnan(a) | np.isnan(b)
        return compare(a, b) & ~unordered if kind == "FOrd" else compare(a, b) | unordered

    return compared


_BINARY |= {
    f"{kind}{name}": _order(kind, how) for name, how in _ORDERS.items() for kind in ("U", "S", "FOrd", "FUnord")
}
_UNARY: dict[str, Callable[[Array, Any], Array]] = {
    **dict.fromkeys(("SConvert", "ConvertSToF", "ConvertFToS"), lambda x, to: x.astype(to)),
    "UConvert": lambda x, to: _signed(_unsigned(x).astype(np.dtype(to).str.replace("i", "u"))),
    "ConvertUToF": lambda x, to: _unsigned(x).astype(to),
    "ConvertFToU": lambda x, to: _signed(x.astype(np.dtype(to).str.replace("i", "u"))),
    **dict.fromkeys(("LogicalNot", "Not"), lambda x, to: ~x),
    **dict.fromkeys(("SNegate", "FNegate"), lambda x, to: -x),
    "IsNan": lambda x, to: np.isnan(x),
    "CopyObject": lambda x, to: x,
    "BitCount": lambda x, to: np.bitwise_count(_unsigned(x)).astype(to),
}
# Arithmetic in which a device may take subnormal numbers for zeros.
_FLUSHED = frozenset({"FConvert", *(name for name in _BINARY if name[0] == "F")})
_EXTENDED: dict[str, Callable[..., Array]] = {
    "rint": np.rint,
    "trunc": np.trunc,
    "floor": np.floor,
    "ceil": np.ceil,
    "fabs": np.abs,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "sqrt": np.sqrt,
    "exp": lambda x: np.exp(x.astype(np.float64)).astype(x.dtype),
    "log": lambda x: np.log(x.astype(np.float64)).astype(x.dtype),
}
_ATOMIC: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("AtomicExchange", "AtomicStore"), lambda old, new: new),
    **dict.fromkeys(("AtomicIAdd", "AtomicFAdd"), lambda old, new: old + new),
    "AtomicSMin": min,
    "AtomicSMax": max,
    "AtomicUMin": lambda old, new: old if old.view(f"u{old.nbytes}") <= new.view(f"u{old.nbytes}") else new,
    "AtomicUMax": lambda old, new: old if old.view(f"u{old.nbytes}") >= new.view(f"u{old.nbytes}") else new,
    "AtomicAnd": lambda old, new: old & new,
    "AtomicOr": lambda old, new: old | new,
    "AtomicXor": lambda old, new: old ^ new,
}


class _Run:
    """Workgroups of one launch that run at the same time; see `launch`."""

    def __init__(
        self,
        module: Module,
        device: Device,
        memory: GlobalMemory,
        grid: Sequence[int],
        arguments: Any,
        shared: int,
        programs: range,
    ) -> None:
        self.module, self.device, self.memory, self.lanes = module, device, memory, device.lanes
        self.size, self.groups = module.invocations, len(programs)
        self.count = self.groups * self.size
        number = np.arange(self.count)
        self.group, local = number // self.size, number % self.size
        x, y, program = grid[0], grid[1], self.group + programs.start
        self.inputs = {
            _NUM_WORKGROUPS: np.broadcast_to(np.array(grid), (self.count, 3)),
            _WORKGROUP_ID: np.stack([program % x, program // x % y, program // (x * y)], 1),
            _LOCAL_ID: np.stack([local, local * 0, local * 0], 1),
            _SUBGROUP_ID: local // self.lanes,
            _LANE: local % self.lanes,
        }
        self.arguments = arguments
        self.places: dict[int, int] = {}
        total = 0
        for id, storage in module.variables.items():
            if storage == WORKGROUP:
                # The views of a shader are aliases: all begin at 0. OpenCL's variables are apart from each other.
                self.places[id] = 0 if shared else total
                total += -(-module.types[module.pointee(id)].size // 64) * 64
        self.shared = SharedMemory(self.groups, -(-max(shared or total, 1) // 16) * 16, self.lanes)
        # Variables of functions: each invocation has its own.
        self.private_size = 0
        for function in module.functions.values():
            for name, words in (each for _, instructions in function.blocks for each in instructions):
                if name == "Variable":
                    self.places[words[1]] = self.private_size
                    self.private_size += -(-module.types[module.pointee(words[1])].size // 64) * 64
        self.private = np.full(self.count * self.private_size, 0xAB, np.uint8)

    def start(self) -> None:
        function = self.module.functions[self.module.entry]
        values = self.arguments if function.parameters else []
        with np.errstate(all="ignore"):
            self.call(function, [np.full(self.count, value) for value in values], np.ones(self.count, bool))

    def whole_subgroups(self, here: Array, what: str) -> None:
        """Refuse what some invocations of a subgroup do not reach."""
        if np.any(here.reshape(-1, self.lanes).any(1) != here.reshape(-1, self.lanes).all(1)):
            raise Fault(f"{what} that some invocations of a subgroup do not reach")

    def call(self, function: Function, arguments: Sequence[Array], active: Array) -> Array | None:
        frame = _Frame(self, dict(zip(function.parameters, arguments, strict=True)))
        order = {id: place for place, (id, _) in enumerate(function.blocks)}
        end = len(function.blocks)
        place, before = np.where(active, 0, end), np.full(self.count, -1)
        returned: Array | None = None
        for turn in range(_TURNS):
            least = place.reshape(self.groups, self.size).min(1)
            now = int(least.min())
            here = place == now
            if turn % _FAIR == _FAIR - 1:
                # Workgroups may wait for each other: now and then the one goes on that has come farthest.
                farthest = int(np.argmax(np.where(least < end, least, -1)))
                now = int(least[farthest])
                here = (place == now) & (self.group == farthest)
            if now == end:
                return returned
            id, instructions = function.blocks[now]
            for name, words in instructions[frame.phis(instructions, before, here) :]:
                if name == "ControlBarrier":
                    of_subgroup = int(self.module.constants[words[0]]) == _SCOPE_SUBGROUP
                    groups = np.unique(self.group[here])
                    self.whole_subgroups(here, "a barrier")
                    if not of_subgroup and np.count_nonzero(here) != len(groups) * self.size:
                        raise Fault("a barrier that some invocations of a workgroup do not reach")
                    self.shared.barrier(groups, of_subgroup=of_subgroup)
                elif name == "Branch":
                    place[here], before[here] = order[words[0]], id
                elif name == "BranchConditional":
                    way = frame.get(words[0])
                    place[here] = np.where(way, order[words[1]], order[words[2]])[here]
                    before[here] = id
                elif name in ("Return", "ReturnValue"):
                    if name == "ReturnValue":
                        value = frame.get(words[0])
                        returned = value if returned is None else np.where(here, value, returned)
                    place[here] = end
                else:
                    frame.do(name, words, here)
        raise Fault("the kernel does not end")


class _Frame:
    """The registers of one call."""

    def __init__(self, run: _Run, registers: dict[int, Array]) -> None:
        self._run, self._module, self._device, self._registers = run, run.module, run.device, registers

    def get(self, id: int) -> Array:
        found = self._registers.get(id)
        if found is None:
            module, run = self._module, self._run
            if id in module.constants:
                value = module.constants[id]
                type = module.types[module.type_of[id]]
                if type.kind == "CooperativeMatrix":
                    value = np.full(type.lanes // run.lanes, np.ravel(value)[0], type.dtype)
                found = np.broadcast_to(value, (run.count, *np.shape(value)))
            elif id in module.variables:
                found = np.full(run.count, id if id in module.builtins else run.places.get(id, 0))
            else:
                raise Fault(f"%{id} is read where it is not defined")
            self._registers[id] = found
        return found

    def _set(self, id: int, value: Array, here: Array) -> None:
        if not here.all() and (old := self._registers.get(id)) is not None:
            value = np.where(here if value.ndim == 1 else here[:, None], value, old)
        self._registers[id] = value

    def phis(self, instructions: Sequence[Instruction], before: Array, here: Array) -> int:
        """Compute the phis that a block begins with; return how many there are."""
        made = []
        for name, words in instructions:
            if name != "Phi":
                break
            value: Array | None = None
            for id, block in zip(words[2::2], words[3::2], strict=True):
                came = here & (before == block)
                if came.any():
                    given = self.get(id)
                    came = came if given.ndim == 1 else came[:, None]
                    value = given if value is None else np.where(came, given, value)
            if value is None:
                raise Fault("a phi without the block that came before")
            made.append((words[1], value))
        for id, value in made:
            self._set(id, value, here)
        return len(made)

    def do(self, name: str, words: Sequence[int], here: Array) -> None:
        """Execute an instruction."""
        module, device = self._module, self._device
        match name:
            case "Store":
                self._store(words, here)
                return
            case "CooperativeMatrixStore":
                at = self._matrix_places(words[0], module.types[module.type_of[words[1]]], words[2], words[3], here)
                self._run.shared.touch(at, here, np.ascontiguousarray(self.get(words[1])).view(np.uint8))
                return
            case "AtomicStore":
                self._atomic(name, words[0], self.get(words[3]), None, here)
                return
            case "MemoryBarrier" | "Nop" | "LifetimeStart" | "LifetimeStop":
                return
        type, id, *rest = words
        kind = module.types[type]
        # Arithmetic of bf16 is another feature of a device.
        operand = module.types.get(module.type_of.get(rest[0], 0), kind) if rest else kind
        if (kind.is_bf16 or operand.is_bf16) and name not in _OF_BF16:
            raise Fault(f"{name} of bf16")
        if name in _BINARY or name in _UNARY or name == "FConvert":
            operands = [self.get(x) for x in rest]
            if name in _FLUSHED:
                operands = [device.flush(x) for x in operands]
            if name == "FConvert":
                value = device.convert(operands[0], kind.dtype)
            else:
                value = _BINARY[name](*operands) if name in _BINARY else _UNARY[name](operands[0], kind.dtype)
            value = device.flush(value) if name in _FLUSHED else value
        else:
            value = self._other(name, id, kind, rest, here)
        if kind.dtype is not None and value.dtype != kind.dtype:
            raise Fault(f"{name} gives {value.dtype} and not {kind.dtype}")
        self._set(id, value, here)

    def _other(self, name: str, id: int, kind: Type, rest: Sequence[int], here: Array) -> Array:
        module, run, get = self._module, self._run, self.get
        match name:
            case "Variable":
                return np.full(run.count, run.places[id])
            case "Load":
                return self._load(rest, kind, here)
            case "Select":
                condition, x, y = map(get, rest)
                return np.where(condition if condition.ndim == x.ndim else condition[:, None], x, y)
            case "Bitcast" | "ConvertPtrToU" | "ConvertUToPtr":
                x = np.ascontiguousarray(get(rest[0]))
                found = x.reshape(run.count, -1).view(kind.dtype)
                return found if kind.lanes > 1 else found[:, 0]
            case "CompositeExtract":
                found = get(rest[0])
                if rest[1] >= found.shape[1]:
                    raise Fault("a component that a matrix or a vector does not have")
                return found[:, rest[1]]
            case "CompositeInsert":
                found = np.array(get(rest[1]))
                found[:, rest[2]] = get(rest[0])
                return found
            case "CompositeConstruct" if kind.kind == "CooperativeMatrix":
                return np.repeat(get(rest[0])[:, None], kind.lanes // run.lanes, 1)
            case "CompositeConstruct":
                return np.concatenate([x if x.ndim > 1 else x[:, None] for x in map(get, rest)], 1)
            case "VectorShuffle":
                both = np.concatenate([get(rest[0]), get(rest[1])], 1)
                return both[:, [0 if place == 0xFFFFFFFF else place for place in rest[2:]]]
            case "MatrixTimesScalar":
                return get(rest[0]) * get(rest[1])[:, None]
            case "ExtInst":
                return self._extended(module.sets[rest[0]][rest[1]], [get(x) for x in rest[2:]])
            case "AccessChain" | "InBoundsAccessChain":
                return self._chain(get(rest[0]), module.pointee(rest[0]), rest[1:])
            case "PtrAccessChain" | "InBoundsPtrAccessChain":
                pointee = module.pointee(rest[0])
                base = get(rest[0]) + get(rest[1]).astype(np.int64) * module.types[pointee].size
                return self._chain(base, pointee, rest[2:])
            case "FunctionCall":
                result = run.call(module.functions[rest[0]], [get(x) for x in rest[1:]], here)
                assert result is not None
                return result
            case "GroupNonUniformShuffleXor" | "GroupNonUniformShuffle" | "GroupNonUniformBroadcast":
                lane = run.inputs[_LANE]
                other = lane ^ get(rest[2]) if name.endswith("Xor") else get(rest[2]).astype(np.int64)
                if np.any(((other < 0) | (other >= run.lanes))[here]):
                    raise Fault("a shuffle from a lane that does not exist")
                source = np.where(here, np.arange(run.count) - lane + other, 0)
                if not np.all(here[source][here]):
                    raise Fault("a shuffle from an invocation that is not there")
                return get(rest[1])[source]
            case "CooperativeMatrixLoad":
                at = self._matrix_places(rest[0], kind, rest[1], rest[2], here)
                run.shared.touch(at, here)
                return np.ascontiguousarray(run.shared.bytes[at]).view(kind.dtype)
            case "CooperativeMatrixMulAdd":
                run.whole_subgroups(here, "a product of matrices")
                return self._multiply_add(kind, rest)
            case "AtomicLoad":
                return self._atomic(name, rest[0], np.zeros(run.count, kind.dtype), None, here)
            case "AtomicCompareExchange":
                return self._atomic(name, rest[0], get(rest[4]), get(rest[5]), here)
            case _ if name in _ATOMIC:
                return self._atomic(name, rest[0], get(rest[3]), None, here)
        raise NotImplementedError(name)

    def _extended(self, name: str, operands: Sequence[Array]) -> Array:
        device = self._device
        match name:
            case "exp2" if operands[0].dtype == np.float32:
                return device.flush(device.exp2(device.flush(operands[0])))
            case "fma":
                return device.flush(device.fma(*map(device.flush, operands)))
            case "fabs" | "fmin" | "fmax":
                return _EXTENDED[name](*operands)
        return device.flush(_EXTENDED[name](*map(device.flush, operands)))

    # Cooperative matrices: an invocation holds some elements of each.

    def _arrangement(self, type: Type) -> tuple[Array, Array]:
        """Return the row and the column of each element that an invocation of a subgroup holds."""
        rows, columns = type.shape
        use = int(self._module.constants[type.parts[-1]])
        places = np.random.default_rng([rows, columns, use]).permutation(rows * columns).reshape(self._run.lanes, -1)
        elem = "bf16" if type.is_bf16 else f"{type.dtype.kind}{8 * type.size}"
        for each in self._device.arrangements:
            if each[:4] == (use, elem, rows, columns):
                places = _sums(each.lanes)[:, None] ^ _sums(each.components)
        return places // columns, places % columns

    def _matrix_places(self, pointer: int, matrix: Type, layout: int, stride: int, here: Array) -> Array:
        """Return the places in workgroup memory of the bytes of the elements that each invocation holds."""
        run, module = self._run, self._module
        if module.types[module.type_of[pointer]].parts[0] != WORKGROUP:
            raise NotImplementedError("a cooperative matrix in other memory")
        run.whole_subgroups(here, "a cooperative matrix")
        address, distance = (
            self.get(pointer),
            self.get(stride).astype(np.int64) * module.types[module.pointee(pointer)].size,
        )
        for same in (address, distance):
            if np.any((same.reshape(-1, run.lanes) != same.reshape(-1, run.lanes)[:, :1])[here.reshape(-1, run.lanes)]):
                raise Fault("a cooperative matrix at different places")
        row, column = (np.tile(part, (run.count // run.lanes, 1)) for part in self._arrangement(matrix))
        if int(module.constants[layout]) == _COLUMN_MAJOR:
            row, column = column, row
        offsets = address[:, None] + row * distance[:, None] + column * matrix.size
        parts = [run.shared.places(offsets[:, k], matrix.size, run.group, here) for k in range(offsets.shape[1])]
        return np.concatenate(parts, 1)

    def _whole(self, id: int) -> Array:
        """Return the matrices of all subgroups, in numbers that are wide enough for exact products."""
        type = self._module.types[self._module.type_of[id]]
        row, column = self._arrangement(type)
        value = self.get(id)
        if type.is_bf16:
            value = (value.astype(np.uint32) << 16).view(np.float32)
        found = np.empty(
            (self._run.count // self._run.lanes, *type.shape), np.float64 if value.dtype.kind == "f" else np.int64
        )
        found[:, row, column] = value.reshape(len(found), *row.shape)
        return found

    def _multiply_add(self, kind: Type, rest: Sequence[int]) -> Array:
        left, right, total = map(self._whole, rest[:3])
        if kind.dtype.kind == "i" and not (len(rest) > 3 and rest[3] & _SIGNED):
            raise NotImplementedError("products of integers without signs")
        row, column = self._arrangement(kind)
        return (left @ right + total).astype(kind.dtype)[:, row, column].reshape(self._run.count, -1)

    # Memory.

    def _chain(self, base: Array, type: int, indices: Sequence[int]) -> Array:
        module = self._module
        for index in indices:
            kind = module.types[type]
            if kind.kind == "Struct":
                member = int(module.constants[index])
                base, type = base + module.offsets.get((type, member), 0), kind.parts[member]
            else:
                part = kind.parts[0]
                stride = module.strides.get(type, module.types[part].size)
                base, type = base + self.get(index).astype(np.int64) * stride, part
        return base

    def _access(self, pointer: int, size: int, how: Sequence[int], here: Array, ways: str) -> tuple[Array, Array]:
        """Return memory, and the places in it of the bytes; `ways` as in GlobalMemory.places."""
        run, address = self._run, self.get(pointer)
        storage = self._module.types[self._module.type_of[pointer]].parts[0]
        if storage == WORKGROUP:
            return run.shared.bytes, run.shared.places(address, size, run.group, here)
        if storage == PRIVATE:
            if np.any(((address < 0) | (address + size > run.private_size))[here]):
                raise Fault("an access out of bounds of private memory")
            first = np.where(here, address + np.arange(run.count) * run.private_size, 0)
            return run.private, first[:, None] + np.arange(size)
        alignment = how[1] if how and how[0] & _ALIGNED else 0
        return run.memory.bytes, run.memory.places(address, size, alignment, here, ways)

    def _load(self, words: Sequence[int], kind: Type, here: Array) -> Array:
        run, module, pointer = self._run, self._module, words[0]
        if pointer in module.builtins:
            return run.inputs[module.builtins[pointer]].astype(kind.dtype)
        if module.types[module.type_of[pointer]].parts[0] == PUSH:
            raw = np.stack([run.arguments[at : at + kind.size] for at in self.get(pointer)])
        else:
            memory, at = self._access(pointer, kind.size, words[1:], here, "r")
            if memory is run.shared.bytes:
                run.shared.touch(at, here)
            raw = memory[at]
        found = np.ascontiguousarray(raw).view(kind.dtype)
        return found if kind.lanes > 1 else found[:, 0]

    def _store(self, words: Sequence[int], here: Array) -> None:
        value = np.ascontiguousarray(self.get(words[1]))
        raw = value.reshape(self._run.count, -1).view(np.uint8)
        memory, at = self._access(words[0], raw.shape[1], words[2:], here, "w")
        if memory is self._run.shared.bytes:
            self._run.shared.touch(at, here, raw)
        else:
            memory[at[here]] = raw[here]

    def _atomic(self, name: str, pointer: int, value: Array, compared: Array | None, here: Array) -> Array:
        """Change a number in one step, invocation by invocation; return what was there."""
        size = value.dtype.itemsize * (value.shape[1] if value.ndim > 1 else 1)
        ways = {"AtomicLoad": "r", "AtomicStore": "w"}.get(name, "rw")
        memory, at = self._access(pointer, size, (_ALIGNED, size), here, ways)
        old = np.zeros(value.shape, value.dtype)
        for number in np.flatnonzero(here):
            place = slice(at[number, 0], at[number, 0] + size)
            before = memory[place].view(value.dtype)
            before = old[number] = before.copy() if value.ndim > 1 else before[0]
            if name == "AtomicLoad" or (compared is not None and before != compared[number]):
                continue
            new = value[number] if compared is not None else _ATOMIC[name](before, value[number])
            memory[place] = np.array(new, value.dtype).reshape(-1).view(np.uint8)
        return old


def launch(
    binary: bytes,
    device: Device,
    arguments: Sequence[Any],
    grid: Sequence[int] = (1, 1, 1),
    *,
    offsets: Sequence[int] = (),
    tables: int = 0,
    trailing: Sequence[int] = (),
    push_bytes: int = 256,
    shared: int = 0,
    log: Array | None = None,
) -> Result:
    """Launch a kernel.

    Args:
        arguments: arrays, and NumPy's numbers.
        offsets: of a module for Vulkan, where its arguments and tables are among the push constants, in bytes. Without
            them, the module is one for OpenCL.
        tables: how many arrays of ours follow the arguments.
        trailing: the numbers of 32 bits at the last offsets.
        push_bytes: the most push constants. More arguments are in memory, and their address is pushed.
        shared: of a module for Vulkan, the bytes of workgroup memory.
        log: the launch's log, for a kernel that has sites: the first table, and the last array of the result.

    Raises:
        Fault: the module does what no device promises.
    """
    arrays = [x for x in arguments if isinstance(x, np.ndarray)]
    block = np.zeros(max(offsets, default=0) + 8, np.uint8)
    logs = [log] if log is not None else []
    memory = GlobalMemory([*arrays, *logs, *[np.zeros(1024, np.uint8)] * (tables - len(logs)), block])
    *lows, of_block = map(np.int64, memory.lows)
    rest = iter(lows)
    values: Any = [next(rest) if isinstance(x, np.ndarray) else x for x in arguments]
    if offsets:
        values = [*values, *rest, *map(np.int32, (0, *trailing))]
        for offset, value in zip(offsets, values, strict=True):
            block[offset : offset + value.nbytes] = np.frombuffer(value.tobytes(), np.uint8)
        memory.fill(len(lows), block)
        size = max(offset + value.nbytes for offset, value in zip(offsets, values, strict=True))
        values = block if size <= push_bytes else np.frombuffer(of_block.tobytes(), np.uint8)
    else:
        values = [*values, *map(np.int32, grid), *rest]
    execute(Module(binary), device, memory, grid, values, shared)
    return memory.result([*arrays, *logs])


def execute(
    module: Module, device: Device, memory: GlobalMemory, grid: Sequence[int], arguments: Any, shared: int
) -> None:
    """Run all workgroups of a launch, some at a time.

    Args:
        arguments: the bytes of the push constants; of a module for OpenCL, the kernel's arguments.
        shared: as for `launch`.
    """
    count = math.prod(grid)
    step = max(1, _MOST // module.invocations)
    for first in range(0, count, step):
        _Run(module, device, memory, grid, arguments, shared, range(first, min(first + step, count))).start()
