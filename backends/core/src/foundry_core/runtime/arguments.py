"""Finds which arguments of a launch a compiled kernel takes, and their types, from Triton's source object."""

from __future__ import annotations

import functools
import operator
import reprlib
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..failure import Failure
from ..log import AFTER_LOAD, AFTER_STORE, MAPPED, Site
from ..scalars import passed, pointer_element
from ..spans import overlaps, strides_overlap
from ..tensor import Tensor
from .descriptors import descriptor_arguments, descriptor_types, is_descriptor

# What a kernel takes for the sites of checks, by their kind, as Triton's types.
_ADDED = {
    **{kind: ["*i32", "i64"] for kind in ("conflict", AFTER_LOAD, AFTER_STORE)},
    MAPPED: ["*i8", "i64"],
    "stray": ["*i64", "i32"],
}


class ArgumentError(Failure, TypeError):
    """An argument of a launch cannot be passed to its kernel."""


class Parameters:
    """The arguments that are passed to a kernel: all except constants; tuples are flattened, descriptors decomposed.

    Args:
        source: Triton's source object. Its signature has the type of every parameter; `constexpr` means that the
            parameter is compiled in. The type of a tuple is a tuple. Triton 3.2 omits parameters that are declared
            tl.constexpr, and gives arguments that it compiles in because they are 1 or None an ordinary type: only its
            constants, which are by name, identify them (in later releases constants are by position).
        kernel: the kernel's name, for messages.
        writes: the numbers of the passed arguments that the kernel may write through, and of those that it may store
            through (front.writes.WriteSet, or a list of its lists); None means any of them.
        extents: whether the kernel checks its accesses. Then it takes two more numbers for each pointer, after all
            others: the extent of its array (foundry_core.checked.extents).

    Attributes:
        types: Triton's names of the types, in the order in which the kernel takes the arguments.
        names: the Python function's parameters to which they belong.
        pointers: the numbers of those that are pointers.
        outputs: the numbers of those through which the kernel may write.
        constants: what is compiled in, by the names of the parameters, and of parts of tuples as `x[0]`.
        adopt: returns what a launch takes of a tensor on CUDA; None if that is CUDA's own memory.
        shadows: the numbers of the arrays in which checks compare what several programs store, each with that of the
            argument for which they do.

    Raises:
        NotImplementedError: see descriptors.descriptor_types.
    """

    def __init__(
        self,
        source: Any,
        kernel: str,
        writes: Sequence[Collection[int]] | None = None,
        *,
        extents: bool = False,
    ) -> None:
        constants = getattr(source, "constants", {})
        self.adopt: Callable[[Any], Any] | None = None
        self._kernel = kernel
        self._signature = list(source.signature)
        self._constants = {name: value for name, value in constants.items() if isinstance(name, str)}
        self.constants = {
            key
            if isinstance(key, str)
            else "".join([self._signature[key[0]], *(f"[{part}]" for part in key[1:])]): value
            for key, value in constants.items()
        }
        # The position of each in a launch's arguments. A compiled-in parameter is one argument, even if it is a tuple.
        self._paths: list[tuple[int, ...]] = []
        # The paths to descriptors, and the number of the first argument that is passed for each.
        self._descriptors: dict[tuple[int, ...], int] = {}
        self.names: list[str] = []
        self.types: list[str] = []
        for position, (name, type) in enumerate(source.signature.items()):
            for path, leaf in _leaves(type, (position,)):
                if leaf == "constexpr" or name in constants:
                    continue
                if descriptor := is_descriptor(leaf):
                    self._descriptors[path] = len(self.types)
                types = descriptor_types(leaf) if descriptor else [leaf]
                self._paths.append(path)
                self.names += [str(name)] * len(types)
                self.types += types
        self.pointers = [i for i, type in enumerate(self.types) if type.startswith("*")]
        self.outputs, self._stored = (
            [i for i in self.pointers if found is None or i in found] for found in writes or (None, None)
        )
        self._extents = list(self.pointers) if extents else []
        self.names += [self.names[i] for i in self._extents for _ in range(2)]
        self.types += ["i64"] * (2 * len(self._extents))
        # What checks take, with the number of the argument for which they do.
        self._added: list[tuple[str, int]] = []
        self.shadows: dict[int, int] = {}

    def add_checks(self, sites: Iterable[Site]) -> None:
        """Add what the checks of a kernel take, after the extents, in the order in which its sites need it.

        Each is an array and its size (foundry_core.checked.extents): the shadow of an argument whose stores are
        compared, or whose accesses are, the map of the poison of one, and the table of reachable memory, which there is
        only once.
        """
        for site in sites:
            added = site.kind, site.arguments[0] if site.arguments else 0
            if site.kind in _ADDED and added not in self._added:
                self._added.append(added)
                if site.kind == "conflict":
                    self.shadows[len(self.types)] = added[1]
                self.names += [self.names[added[1]]] * 2
                self.types += _ADDED[site.kind]

    def positions(self) -> list[int] | None:
        """Return where the passed arguments are in those of a launch; None if some are parts of one."""
        if self._extents or self._descriptors or any(len(path) > 1 for path in self._paths):
            return None
        return [position for (position,) in self._paths]

    def named_arguments(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments of a launch, and what is compiled in, by the names of the parameters."""
        return {**self._constants, **dict(zip(self._signature, arguments, strict=True))}

    def pick(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments of a launch that are passed: of an array the Tensor over it, of a wrapper its base.

        Raises:
            ArgumentError: the kernel stores through an argument that must not be written, or a tensor is on a device
                of CUDA, or has no memory.
        """
        picked: list[Any] = [functools.reduce(operator.getitem, path, arguments) for path in self._paths]
        if self._descriptors:
            parts = zip(self._paths, picked, strict=True)
            picked = [part for path, value in parts for part in self._parts(path, value)]
        for i in self.pointers:
            if isinstance(picked[i], np.ndarray):
                picked[i] = Tensor(picked[i])
                continue
            # triton.reinterpret wraps a tensor. The wrapper of Triton 3.2 has no strides and no storage.
            picked[i] = getattr(picked[i], "base", picked[i])
            if self.adopt is not None and getattr(picked[i], "is_cuda", False):
                picked[i] = self._adopted(self.names[i], picked[i])
            if getattr(picked[i], "is_cuda", False) or getattr(picked[i], "is_meta", False):
                raise ArgumentError(
                    f"kernel {self._kernel} cannot reach {self.names[i]}, a tensor on {picked[i].device}",
                    why="a launch takes tensors in the host's memory",
                    next=f"pass {self.names[i]}.cpu(), and copy the result back",
                )
        for i in self.outputs:
            self._refuse(self.names[i], picked[i], is_stored=i in self._stored)
        if self._extents:
            from ..checked.extents import extent

            picked += [number for i in self._extents for number in extent(picked[i])]
        for kind, i in self._added:
            from ..checked import extents

            make = {MAPPED: extents.poison_map, "stray": extents.table}.get(kind, extents.shadow)
            picked += make(picked[i], pointer_element(self.types[i]).bytes)
        return picked

    def _adopted(self, name: str, tensor: Any) -> Any:
        assert self.adopt is not None
        if (found := self.adopt(tensor)) is None:
            raise ArgumentError(
                f"kernel {self._kernel} cannot reach {name}, a tensor on {tensor.device}",
                why="its memory is CUDA's own, and not of a DeviceTensor (foundry_core.vulkan.array)",
                next=f"pass DeviceTensor.from_dlpack({name}), a copy on the device; or allocate {name} as "
                "torch.from_dlpack(DeviceTensor(shape, dtype)), which torch and kernels share without a copy",
            )
        return found

    def refuse_scalars(self, picked: Sequence[Any]) -> None:
        """Refuse the first number that is not of its parameter's declared type.

        Args:
            picked: what `pick` returned.

        Raises:
            ArgumentError: there is one.
        """
        for name, type, value in zip(self.names, self.types, picked, strict=True):
            if type.startswith("*"):
                continue
            row = passed(type)
            try:
                struct.pack(row.code, row.convert(value))
            except (struct.error, TypeError, ValueError, OverflowError):
                last = (1 << row.bits) - 1
                low, high = (0, last) if row.dtype.startswith("u") else (-(last // 2) - 1, last // 2)
                of = f"integers of {low} to {high}" if "int" in row.dtype else "numbers"
                raise ArgumentError(
                    f"kernel {self._kernel} cannot take {name}={reprlib.repr(value)}",
                    why=f"the parameter is declared as tl.{row.dtype}, and takes {of}",
                    next=f"pass such a number, or declare {name} without a type, which then follows from the number",
                ) from None

    def _parts(self, path: tuple[int, ...], value: Any) -> list[Any]:
        if path not in self._descriptors:
            return [value]
        first = self._descriptors[path]
        if first in self._stored and strides_overlap(value.shape, value.strides):
            raise ArgumentError(
                f"kernel {self._kernel} writes to {self.names[first]}, whose elements share memory with each other",
                why=f"it is a descriptor of shape {list(value.shape)} with strides {list(value.strides)}",
                next="describe memory without overlap",
            )
        return descriptor_arguments(value)

    def _refuse(self, name: str, tensor: Any, *, is_stored: bool) -> None:
        if getattr(tensor, "readonly", False):
            raise ArgumentError(
                f"kernel {self._kernel} writes to {name}, which is read-only",
                why="its NumPy array has flags.writeable = False: it is a view of bytes, a broadcast, or was set so",
                next="pass a copy: Tensor(array.copy())",
            )
        if is_stored and overlaps(tensor):
            raise ArgumentError(
                f"kernel {self._kernel} writes to {name}, whose elements share memory with each other",
                why=f"it is a view of shape {tuple(tensor.shape)}, a broadcast or a sliding window",
                next="pass a copy: Tensor(array.copy()), or of a torch tensor its clone(memory_format="
                "torch.contiguous_format)",
            )


def _leaves(type: Any, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    if isinstance(type, tuple):
        for position, part in enumerate(type):
            yield from _leaves(part, (*path, position))
    else:
        yield path, type
