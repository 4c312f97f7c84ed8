"""Matrix products by cooperative matrices: which values are kept in them, and how these exchange elements with others.

`plan_cooperative` decides before anything is written. A product of f16, bf16 or i8 whose extents are multiples of those
of a fragment (what the device multiplies) is cooperative: each subgroup computes some fragments of the result. The
result is kept in fragments through loops and operations that treat all elements alike. Registers for its elements are
only made where something needs them: then the fragments go through workgroup memory, in as many pieces as that asks
for.

If the left factor of a product comes from another product, as in attention, each subgroup computes whole rows, if there
are enough of them. Products that share a factor or a sum with these do the same. The blocked layout of the first
product is replaced by one in which a subgroup has the same rows. Then a subgroup exchanges elements through workgroup
memory only with itself, and needs no barrier of the workgroup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from ....analysis.flow import branch, counted_loop, entry_targets, loop_blocks, yield_targets, yields
from ....front.order import accessed_pointer
from ....ir import tt, ttg
from ....ir.arith import ConstantOp, SelectOp
from ....ir.effects import reads, writes
from ....ir.elements import index_mapping, is_same, source
from ....ir.facts import combined_axis
from ....ops.numeric import element_name
from .. import layouts
from ..layouts import Layout
from ..steps import OF
from ..target import Arrangement, Fragment, SimtTarget
from ..tiles import Rows, is_permutation
from .epilogues import encode, encoding_of, is_line, store_from_registers
from .instructions import Matrix, Use

# The operations that are one instruction on matrices, by the type of the result.
PAIRS = {
    "f32": {"arith.addf": "FAdd", "arith.subf": "FSub", "arith.mulf": "FMul"},
    "i32": {"arith.addi": "IAdd", "arith.subi": "ISub"},
}
_CONVERSIONS = {("arith.truncf", "f32", "f16"), ("arith.extf", "f16", "f32")}


@dataclass(frozen=True)
class Fragments:
    """How the subgroups of a program divide a tile.

    Attributes:
        matrix: the type of one fragment.
        layout: the first element of each fragment. A register is a fragment; there are no lanes.
    """

    matrix: Matrix
    layout: Layout

    def retype(self, elem: str) -> Fragments:
        """Return the same division of a tile of elements of another type."""
        return Fragments(Matrix(self.matrix.use, elem, self.matrix.rows, self.matrix.columns), self.layout)

    def spread(self, arrangement: Arrangement) -> Layout:
        """Return the layout of the tile's elements: the components of a fragment, and then those of the next one."""
        columns = self.layout.shape[1]

        def placed(bases: Sequence[int]) -> tuple[int, ...]:
            return tuple(at // self.matrix.columns * columns + at % self.matrix.columns for at in bases)

        registers = placed(arrangement.components) + self.layout.registers
        return Layout(self.layout.shape, registers, placed(arrangement.lanes), self.layout.warps)


def _doublings(first: int, count: int) -> tuple[int, ...]:
    """Return `first` doubled again and again, to reach `count` places."""
    return tuple(first << bit for bit in range(count.bit_length() - 1))


@dataclass(frozen=True)
class Product:
    """A cooperative product of a tile of `rows` x `depth` and one of `depth` x `columns`.

    Attributes:
        fragment: what the device multiplies.
        down, across: how many subgroups there are along the result's rows and columns.
        warps: all subgroups. If there are more, they compute the same.
    """

    fragment: Fragment
    rows: int
    columns: int
    depth: int
    down: int
    across: int
    warps: int

    def _divided(self, use: Use, elem: str) -> Fragments:
        f = self.fragment
        by_use = {
            Use.LEFT: (self.rows, self.depth, f.rows, f.depth, self.down, 1),
            Use.RIGHT: (self.depth, self.columns, f.depth, f.columns, 1, self.across),
            Use.TOTAL: (self.rows, self.columns, f.rows, f.columns, self.down, self.across),
        }
        rows, columns, height, width, down, across = by_use[use]
        registers = _doublings(width, columns // across // width)
        registers += tuple(columns * step for step in _doublings(height, rows // down // height))
        of_columns = _doublings(columns // across, across) if across > 1 else (0,) * (self.across.bit_length() - 1)
        of_rows = tuple(columns * step for step in _doublings(rows // down, down))
        warps = of_columns + (of_rows if down > 1 else (0,) * (self.down.bit_length() - 1))
        warps += (0,) * (self.warps.bit_length() - 1 - len(warps))
        return Fragments(Matrix(use, elem, height, width), Layout((rows, columns), registers, (), warps))

    @property
    def left(self) -> Fragments:
        return self._divided(Use.LEFT, self.fragment.factor)

    @property
    def right(self) -> Fragments:
        return self._divided(Use.RIGHT, self.fragment.factor)

    @property
    def total(self) -> Fragments:
        return self._divided(Use.TOTAL, self.fragment.total)


def choose_product(op: tt.DotOp, target: SimtTarget, by_rows: bool) -> Product | None:
    """Return how a product is divided among subgroups; None if it is no product for cooperative matrices.

    Args:
        by_rows: a subgroup gets whole rows of the result.
    """
    assert isinstance(op.a.type, TensorType) and isinstance(op.result.type, TensorType)
    if len(op.a.type.get_shape()) != 2:
        return None
    (rows, depth), (_, columns) = op.a.type.get_shape(), op.result.type.get_shape()
    factor, right, total = (element_name(value.type, op) for value in (op.a, op.b, op.c))
    # A sum of f16 is kept in f32 while it is computed, as the other road does.
    wide = {("f16", "f32"): "f32", ("f16", "f16"): "f32", ("bf16", "f32"): "f32", ("i8", "i32"): "i32"}
    if factor != right or (factor, total) not in wide:
        return None
    fitting = [
        each
        for each in target.fragments
        if (each.factor, each.total) == (factor, wide[factor, total])
        and not (rows % each.rows or columns % each.columns or depth % each.depth)
        and (total != "f16" or each._replace(total="f16") in target.fragments)
    ]
    if not fitting:
        return None
    best = max(fitting, key=lambda each: (each.rows * each.columns * each.depth, each.rows))
    high, wide_count = rows // best.rows, columns // best.columns
    ways = [
        (down, across)
        for down in _powers(min(high, target.warps))
        for across in _powers(min(wide_count, target.warps // down))
        if across == 1 or not by_rows
    ]
    # As many subgroups as possible, then squares: they read least of the factors.
    down, across = max(ways, key=lambda way: (way[0] * way[1], -(rows // way[0] + columns // way[1]), way[0]))
    return Product(best, rows, columns, depth, down, across, target.warps)


def _powers(most: int) -> list[int]:
    return [1 << bit for bit in range(most.bit_length())]


@dataclass
class CooperativePlan:
    """What is cooperative in a kernel.

    Attributes:
        products: the cooperative products.
        fragments: the values that are kept as fragments of totals.
        in_registers: those of them whose elements are needed in registers, too.
        factors: loads and conversions whose result is only a factor of products: its fragments.
        passed: loads among them that are not made from workgroup memory, and what they load: the operand of an
            allocation, which is not made either.
        scratch: bytes of workgroup memory that each subgroup has for itself.
        last: the last operation of the kernel's block that may use them.
        arranged: layouts that are replaced.
        arrangements: which invocation holds which element, of the matrices of which that is known.
    """

    products: dict[Operation, Product] = field(default_factory=dict)
    fragments: dict[SSAValue, Fragments] = field(default_factory=dict)
    in_registers: set[SSAValue] = field(default_factory=set)
    factors: dict[Operation, Fragments] = field(default_factory=dict)
    passed: dict[Operation, SSAValue] = field(default_factory=dict)
    arranged: dict[Attribute, Attribute] = field(default_factory=dict)
    scratch: int = 0
    last: Operation | None = None
    arrangements: Sequence[Arrangement] = ()

    def held(self, fragments: Fragments) -> Layout | None:
        """Return which invocation holds which element of fragments; None if that is not known."""
        matrix = fragments.matrix
        for each in self.arrangements:
            if each[:4] == (matrix.use, matrix.elem, matrix.rows, matrix.columns):
                return fragments.spread(each)
        return None

    def layout(self, value: SSAValue) -> Layout:
        """Return the layout of a tile in registers."""
        type = value.type
        assert isinstance(type, TensorType)
        return layouts.layout(self._encoding(type.encoding), type.get_shape())

    def _encoding(self, encoding: Attribute) -> Attribute:
        if encoding in self.arranged or not self.arranged:
            return self.arranged.get(encoding, encoding)
        found = encoding
        if isinstance(encoding, (ttg.SliceLayout, ttg.DotOperandLayout)):
            fields = dict(encoding.fields.data)
            fields["parent"] = self._encoding(fields["parent"])
            # Operands of products by matrices have layouts of their own.
            if isinstance(encoding, ttg.SliceLayout) or isinstance(fields["parent"], ttg.BlockedLayout):
                found = type(encoding)(DictionaryAttr(fields))
        self.arranged[encoding] = found
        return found


def plan_cooperative(function: tt.FuncOp, target: SimtTarget) -> CooperativePlan:
    """Decide what is cooperative. Moves what is the same in all iterations of a loop before it."""
    plan = CooperativePlan(arrangements=target.arrangements)
    _join_selects(function)
    dots = [op for op in function.body.walk() if isinstance(op, tt.DotOp)] if target.fragments else []
    able = [op for op in dots if choose_product(op, target, False) is not None]
    chained = _chained(able, target)
    for op in able:
        product = choose_product(op, target, op in chained)
        assert product is not None
        plan.products[op] = product
    if plan.products:
        _keep(function, plan)
        layouts_held = {value: plan.held(fragments) for value, fragments in plan.fragments.items()}
        store_from_registers(function, {value: layout for value, layout in layouts_held.items() if layout})
        _arrange(function, plan, target, chained)
        _load(function, plan)
        _find_registers(plan)
        _shorten_lives(function, plan)
        plan.last = _last(function, plan)
    return plan


def _arrange(function: tt.FuncOp, plan: CooperativePlan, target: SimtTarget, chained: Sequence[tt.DotOp]) -> None:
    """Replace layouts of products, so that registers of one hold what matrices hold, or subgroups the same rows."""
    # Layouts that are needed for their own sake: for products without matrices, and for wide accesses.
    needed: set[Attribute] = set()
    for op in function.body.walk():
        if isinstance(op, tt.DotOp) and op not in plan.products:
            needed.add(encoding_of(op.result))
        pointer = accessed_pointer(op)
        if pointer is not None and not is_line(pointer) and (reads(op) or writes(op)):
            needed.add(encoding_of(pointer))
    for op in (*(op for op in plan.products if op not in chained), *chained):
        product = plan.products[op]
        encoding, held = encoding_of(op.results[0]), plan.held(product.total)
        if held is not None and encoding not in needed:
            plan.arranged.setdefault(encoding, encode(held))
        elif op in chained:
            plan.arranged[encoding] = _by_rows(product, target)


def _chained(able: Sequence[tt.DotOp], target: SimtTarget) -> list[tt.DotOp]:
    """Return the products of which a subgroup computes whole rows, if all subgroups get some.

    Those on the way to a left factor of another product come last. Before them are those that share a factor or a sum
    with others of them: divided in two ways, it would pass through registers.
    """
    able = [op for op in able if (made := choose_product(op, target, True)) and made.down == target.warps]
    lefts, totals = ({op: _makers(op.operands[k]).intersection(able) for op in able} for k in (0, 2))
    makers = set[Operation]().union(*lefts.values())
    chained = [op for op in able if op in makers or lefts[op]]
    left = [op for op in able if op not in chained]
    while more := [
        op
        for op in left
        if any(op.a is other.a or op.b is other.b or op in totals[other] or other in totals[op] for other in chained)
    ]:
        chained = more + chained
        left = [op for op in left if op not in more]
    return chained


def _last(function: tt.FuncOp, plan: CooperativePlan) -> Operation | None:
    """Return the last operation of a kernel in which there are fragments."""

    def touches(op: Operation) -> bool:
        return op in plan.factors or any(value in plan.fragments for value in (*op.operands, *op.results))

    ops = [op for op in function.body.block.ops if any(touches(inner) for inner in op.walk())]
    return ops[-1] if ops else None


def _join_selects(function: tt.FuncOp) -> None:
    """Let a branch give what a selection makes of its result under the same condition.

    Pipelined loops end in select(c, if c {x} else {y}, z). Where y is replaced by z, the tile z is not kept beside x.
    """
    for op in list(function.body.walk()):
        if not isinstance(op, SelectOp) or isinstance(op.operands[0].type, TensorType):
            continue
        condition, chosen, other = op.operands
        block, choice = op.parent_block(), branch(chosen.owner) if isinstance(chosen, OpResult) else None
        if choice is None or choice.condition is not condition or len(_users(chosen)) != 1 or len(choice.ways) < 2:
            continue
        assert isinstance(chosen, OpResult) and block is not None
        if chosen.op.parent_block() is not block or not _is_before(other, chosen.op):
            continue
        last = choice.ways[1].last_op
        assert last is not None
        last.operands[chosen.index] = other
        op.results[0].replace_all_uses_with(chosen)
        block.erase_op(op)


def _is_before(value: SSAValue, op: Operation) -> bool:
    """Return whether a value that is known later in the block of an operation is known before it, too."""
    if isinstance(value, BlockArgument):
        return True
    assert isinstance(value, OpResult)
    return value.op.parent_block() is not op.parent_block() or value.op.is_before_in_block(op)


def _makers(value: SSAValue) -> set[Operation]:
    """Return the operations that a value is made by, up to the block arguments it depends on."""
    found: set[Operation] = set()
    open_values = [value]
    while open_values:
        owner = open_values.pop().owner
        if not isinstance(owner, Operation) or owner in found or loop_blocks(owner):
            continue
        found.add(owner)
        open_values += [*owner.operands, *(operand for last in yields(owner) for operand in last.operands)]
    return found


def _by_rows(product: Product, target: SimtTarget) -> ttg.BlockedLayout:
    """Return the blocked layout in which a subgroup has the rows that it computes, and an invocation as much of a row
    as there is."""
    rows = product.rows // target.warps
    high = min(rows, target.warp_size)
    wide = target.warp_size // high
    each = max(1, min(8, product.columns // wide))
    fields = {
        "sizePerThread": (rows // high, each),
        "threadsPerWarp": (high, wide),
        "warpsPerCTA": (target.warps, 1),
        "order": (0, 1),
    }
    return ttg.BlockedLayout(
        DictionaryAttr({name: ArrayAttr([IntAttr(number) for number in numbers]) for name, numbers in fields.items()})
    )


def _users(value: SSAValue) -> list[Operation]:
    return [use.operation for use in value.uses]


def is_splat(value: SSAValue) -> bool:
    """Return whether all elements of a tile are one number."""
    owner, of = value.owner, source(value)
    scalar = of is not None and not isinstance(of.type, TensorType)
    return scalar or (isinstance(owner, ConstantOp) and owner.splat is not None)


def find_repetition(value: SSAValue) -> tuple[SSAValue, int] | None:
    """Return the column or row that a tile repeats, and the dimension along which it does; None if it does not."""
    of = index_mapping(value)
    if of is None or of.index != (0, 1) or not of.repeats:
        return None
    return of.source, 1 if of.is_along(0) else 0


def _combination(op: Operation, plan: CooperativePlan) -> Fragments | None:
    """Return what the result of an operation is if it is computed on fragments; None if it cannot be."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, TensorType):
        return None
    kept = [plan.fragments[operand] for operand in op.operands if operand in plan.fragments]
    if not kept or any(each.layout != kept[0].layout for each in kept):
        return None
    elem = element_name(op.results[0].type, op)
    if isinstance(op, SelectOp):
        same = not isinstance(op.operands[0].type, TensorType) and len(kept) == 2
        return kept[0] if same and kept[0] == kept[1] else None
    if len(op.operands) == 1:
        found = (op.name, kept[0].matrix.elem, elem) in _CONVERSIONS
        return kept[0].retype(elem) if found else None
    if op.name not in PAIRS.get(elem, {}):
        return None
    others = [operand for operand in op.operands if operand not in plan.fragments]
    return kept[0] if all(is_splat(each) or find_repetition(each) for each in others) else None


def _keep(function: tt.FuncOp, plan: CooperativePlan) -> None:
    """Find the values that are kept as fragments."""
    for op, product in plan.products.items():
        plan.fragments[op.results[0]] = product.total.retype(element_name(op.results[0].type, op))
    operations = list(function.body.walk())
    changed = True
    while changed:
        before = len(plan.fragments)
        for op in operations:
            for last in yields(op):
                for number, operand in enumerate(last.operands):
                    if operand in plan.fragments:
                        for target in yield_targets(last, number):
                            plan.fragments.setdefault(target, plan.fragments[operand])
            if not op.regions and not any(result in plan.fragments for result in op.results):
                found = _combination(op, plan)
                if found is not None and _pays(op, found, plan):
                    plan.fragments[op.results[0]] = found
        changed = len(plan.fragments) > before


def _find_registers(plan: CooperativePlan) -> None:
    """Find which of the values that are kept as fragments are needed in registers."""
    for value, fragments in plan.fragments.items():
        if not all(_takes(use.operation, use.index, fragments, plan) for use in value.uses):
            plan.in_registers.add(value)


def _pays(op: Operation, result: Fragments, plan: CooperativePlan) -> bool:
    """Return whether to compute an operation on fragments, and not on registers that are there anyway."""
    if isinstance(op, SelectOp):
        return True
    # A row or a column passes through workgroup memory to become fragments.
    is_cheap = plan.held(result) is None or not any(find_repetition(operand) for operand in op.operands)
    if is_cheap and all(len(_users(operand)) == 1 for operand in op.operands if operand in plan.fragments):
        return True
    users = _users(op.results[0])
    if all(isinstance(user, ttg.LocalAllocOp) for user in users):
        return True
    return any(user in plan.products and user.operands[2] is op.results[0] for user in users)


def _takes(user: Operation, index: int, fragments: Fragments, plan: CooperativePlan) -> bool:
    """Return whether an operation takes an operand as fragments."""
    if user in plan.products:
        return index == 2 and plan.products[user].total.layout == fragments.layout
    if targets := entry_targets(user, index) or yield_targets(user, index):
        return plan.fragments.get(targets[-1]) == fragments
    if isinstance(user, ttg.LocalAllocOp):
        # Fragments are written to workgroup memory as they are.
        return OF not in user.attributes and not any(load in plan.passed for load in _users(user.result))
    if is_same(user):
        return True
    return len(user.results) == 1 and user.results[0] in plan.fragments


def _load(function: tt.FuncOp, plan: CooperativePlan) -> None:
    """Find what is read as fragments of factors, and what is written to workgroup memory for that only."""
    for op in list(function.body.walk()):
        if isinstance(op, ttg.LocalLoadOp) or is_same(op):
            fragments = _factor(op.results[0], plan)
            if fragments is not None:
                plan.factors[op] = fragments
                if is_same(op):
                    _passes(op.operands[0], fragments, plan)
    for op in list(function.body.walk()):
        if isinstance(op, ttg.LocalAllocOp) and op.src is not None and OF not in op.attributes:
            loads = _users(op.result)
            divisions = {plan.factors.get(load) for load in loads if isinstance(load, ttg.LocalLoadOp)}
            fragments = next(iter(divisions), None)
            if fragments is None or len(divisions) > 1 or not all(load in plan.factors for load in loads):
                continue
            # In this order, the allocation comes before its loads.
            for each in (*loads, op):
                _move_out(each, op.src)
            known = op.src in plan.passed.values()
            if _passes(op.src, fragments, plan) or known or any(_is_kept(load) for load in loads):
                plan.passed.update(dict.fromkeys(loads, op.src))


def _shorten_lives(function: tt.FuncOp, plan: CooperativePlan) -> None:
    """Move what makes less of a tile to where the tile is made: sums, narrower numbers, and what a product reads.

    Triton moves the sums of attention's weights behind the product of these: all of them would live on beside it. What
    is loaded from global memory keeps its place: it is to be written when it has come.
    """
    for op in list(function.body.walk()):
        combined = combined_axis(op)
        is_sum = combined is not None and not combined.is_kept
        is_less = is_sum or op.name == "arith.truncf" or (isinstance(op, ttg.LocalAllocOp) and op.src is not None)
        if not is_less or any(isinstance(operand.owner, tt.LoadOp) for operand in op.operands):
            continue
        _move_behind(op, op.operands)
        if isinstance(op, ttg.LocalAllocOp):
            for load in _users(op.result):
                if load in plan.passed:
                    _move_behind(load, load.operands)


def _move_behind(op: Operation, values: Sequence[SSAValue]) -> None:
    """Move an operation behind the last one of its block that makes one of some values."""
    makers, before, block = [value.owner for value in values], op.prev_op, op.parent_block()
    while before is not None and before not in makers:
        before = before.prev_op
    if before is not None and block is not None and before is not op.prev_op:
        block.detach_op(op)
        block.insert_op_after(op, before)


def _passes(source: SSAValue, fragments: Fragments, plan: CooperativePlan) -> bool:
    """Return whether fragments are made from a tile within each subgroup; see that there is memory if it needs some."""
    held = plan.held(fragments)
    if held is not None and is_permutation(plan.layout(source), held):
        return True
    local = fragments.matrix.use is Use.LEFT and is_local(plan.layout(source), fragments)
    if local:
        plan.scratch = max(plan.scratch, scratch_bytes(fragments))
    return local


def _move_out(op: Operation, source: SSAValue) -> None:
    """Move an operation out of the loops in which its source does not change, to where the source is made.

    There is more workgroup memory there than before the loop, where tiles that the loop reads are allocated.
    """
    loop = op.parent_op()
    if loop is None or not counted_loop(loop) or not isinstance(source, OpResult) or loop.is_ancestor(source.op):
        return
    own, block = op.parent_block(), source.op.parent_block()
    assert own is not None and block is not None
    own.detach_op(op)
    block.insert_op_after(op, source.op)


def _is_kept(load: Operation) -> bool:
    """Return whether a loop uses what is loaded before it."""
    for user in _users(load.results[0]):
        parent = user.parent_op()
        while parent is not None and parent is not load.parent_op():
            if loop_blocks(parent):
                return True
            parent = parent.parent_op()
    return False


def _factor(value: SSAValue, plan: CooperativePlan) -> Fragments | None:
    """Return the fragments in which all uses of a value take it as a factor; None if they differ."""
    found: set[Fragments] = set()
    for use in value.uses:
        product = plan.products.get(use.operation)
        if product is None or use.index > 1:
            return None
        found.add(product.left if use.index == 0 else product.right)
    return found.pop() if len(found) == 1 else None


def is_local(layout: Layout, fragments: Fragments) -> bool:
    """Return whether each subgroup has the same elements in a layout as in fragments, and no other subgroup has them.

    Single bits of the index tell the subgroups apart.
    """
    warps = fragments.layout.warps
    alone = not any(basis & sum(warps) for basis in (*layout.registers, *layout.lanes))
    return alone and layout.warps == warps and 0 not in warps and all(basis & basis - 1 == 0 for basis in warps)


def scratch_bytes(fragments: Fragments) -> int:
    """Return the workgroup memory through which the part of one subgroup passes."""
    own = layouts.shape_without(fragments.layout.shape, sum(fragments.layout.warps))
    return Rows(own, fragments.matrix.elem).bytes
