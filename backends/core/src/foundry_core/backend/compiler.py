"""The common base of every plugin's compiler.py: launch options, Triton's own passes, and the stage `tile`."""

from __future__ import annotations

import gc
import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, ClassVar

from triton import __version__
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget

from .. import checked
from ..checked import memory as poison
from ..failure import Failure, nearest
from ..runtime import crash, descriptors
from ..scalars import FP8
from ..triton_hooks import registration, specialization
from ..triton_hooks.registration import When

_RELEASE = tuple(int(number) for number in __version__.split(".")[:2])
# The bytes of shared memory that a kernel without any says it needs: upstream's tutorials divide by this number.
LEAST_SHARED = 1
_KERNEL = re.compile(r'^ *tt\.func public @"?([^"(\s]+)', re.MULTILINE)


# Keywords of a launch that Triton itself refuses, with a reason.
_TRITONS_OWN = ("device", "device_type", "stream")
# Frames between Triton's kernel and `launch_options`: the backend's parse_options, in some releases one function more.
_CALLERS = 4


# Where Triton writes a module whose passes fail; without it, to the terminal.
_REPRODUCER = "TRITON_REPRODUCER_PATH"
# Held while _REPRODUCER is set: all threads have one environment.
_one_environment = threading.Lock()


class PassError(Failure, RuntimeError):
    """A pass of Triton failed."""


class OptionError(Failure, ValueError):
    """An option of a launch has an invalid value."""


@dataclass(frozen=True)
class ProgramOptions:
    """Options that a launch may set by keyword, as `kernel[grid](..., num_warps=4)`. One program is one thread of work.

    The options that only make a program faster on a GPU (num_warps, num_stages, num_ctas, maxnreg, launch_pdl) are
    accepted, because kernels and their autotuner configurations contain them, but they change nothing. Their values
    must be valid on a GPU; as in triton-cpu and triton-spirv, num_warps=0 and num_ctas=0 mean the default. Options of
    one vendor's GPUs (waves_per_eu) may have any value. launch_cooperative_grid is refused: it promises that programs
    can wait for each other.

    Attributes:
        extern_libs: names and paths of libraries, as a dict or as pairs. Only `libdevice` is known, and its file
            must exist, but is not read: the lowering has its functions.
        ir_override: a file with TTIR that replaces the kernel's.
        num_threads: an option of triton-cpu and triton-spirv; only their default, 0, is valid. The device decides how
            many threads execute a launch.
        check: what findings of the checked mode do; "" without checks (foundry_core.checked.mode).
        threads_instead: what to use instead of num_threads, for the message.

    Raises:
        OptionError: an option has an invalid value.
    """

    backend_name: str = ""
    arch: str = ""
    num_warps: int = 1
    num_stages: int = 1
    num_ctas: int = 1
    warp_size: int = 1
    enable_fp_fusion: bool = True
    debug: bool = False
    # With debug=True, as in Triton's own backends.
    sanitize_overflow: bool = True
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    extern_libs: tuple[tuple[str, str], ...] = ()
    ir_override: str | None = None
    supported_fp8_dtypes: tuple[str, ...] = FP8
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    # The modes of tf32 and bf16 permit a loss of precision but do not require it, so they are computed like ieee.
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    # Names of 3.2: its Config passes all its options to every backend, and its runtime reads the first two.
    cluster_dims: tuple[int, int, int] = (1, 1, 1)
    deprecated_fp8_dtypes: tuple[str, ...] = ()
    num_buffers_warp_spec: int = 0
    num_consumer_groups: int = 0
    reg_dec_producer: int = 0
    reg_inc_consumer: int = 0
    maxnreg: int | None = None
    # Of AMD's GPUs, in several releases.
    waves_per_eu: Any = None
    matrix_instr_nonkdim: Any = None
    kpack: Any = None
    schedule_hint: Any = None
    instruction_sched_variant: Any = None
    allow_flush_denorm: Any = None
    # Of NVIDIA's GPUs.
    ptx_version: Any = None
    ptx_options: Any = None
    enable_reflect_ftz: Any = None
    minRegAutoWS: Any = None
    maxRegAutoWS: Any = None
    pingpongAutoWS: Any = None
    # Of Intel's GPUs.
    grf_mode: Any = None
    num_threads: int = 0
    check: str = ""

    threads_instead: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name in ("num_warps", "num_ctas"):
            if getattr(self, name) == 0 and type(getattr(self, name)) is int:
                object.__setattr__(self, name, getattr(type(self), name))
        self._require("num_warps", "a power of two", lambda number: number > 0 and number & (number - 1) == 0)
        self._require("num_ctas", "1 or more", lambda number: number > 0)
        self._require("num_stages", "0 or more", lambda number: number >= 0)
        if self.maxnreg is not None:
            self._require("maxnreg", "1 or more", lambda number: number > 0)
        for field in fields(self):
            if field.type == "bool" and (value := getattr(self, field.name)) not in (False, True):
                raise OptionError(f"{field.name}={value!r} is not possible", why="it is True or False")
        if self.launch_cooperative_grid:
            raise OptionError(
                f"launch_cooperative_grid={self.launch_cooperative_grid!r} is not possible on {self.backend_name}",
                why="it promises that all programs of the grid run at the same time, so that they can wait for each "
                "other; the device runs some of them at a time, in the order of their ids",
                next="leave it out if programs wait only for programs with lower ids",
            )
        if self.ir_override is not None and not self.ir_override.endswith(".ttir"):
            raise OptionError(
                f"ir_override={self.ir_override!r} is not possible", why="only TTIR, a file *.ttir, can be replaced"
            )
        object.__setattr__(self, "extern_libs", tuple(dict(self.extern_libs).items()))
        if other := [name for name, _ in self.extern_libs if name != "libdevice"]:
            raise OptionError(
                f"extern_libs names {other[0]}, which cannot be linked",
                why="kernels are compiled without LLVM bitcode; only libdevice is known, whose functions are built in",
                next="write its functions as functions with @triton.jit",
            )
        if missing := [path for _, path in self.extern_libs if path and not Path(path).exists()]:
            raise OptionError(
                f"extern_libs names {missing[0]}, which does not exist",
                why="a launch that names a library expects its code",
                next="leave extern_libs out: the functions of libdevice are built in",
            )
        if self.num_threads != 0:
            raise OptionError(
                f"num_threads={self.num_threads!r} is not possible on {self.backend_name}",
                why="a launch does not choose how many threads the device works with",
                next=f"leave it out; {self.threads_instead}",
            )

    def _require(self, name: str, what: str, holds: Callable[[int], bool]) -> None:
        value = getattr(self, name)
        if type(value) is not int or not holds(value):
            raise OptionError(
                f"{name}={value!r} of a launch, or of its triton.Config, is not possible",
                why=f"it must be {what}, as an int",
            )

    def hash(self) -> str:
        """Return this object's part of the key of Triton's cache."""
        key = "_".join(f"{name}-{value}" for name, value in sorted(self.__dict__.items()))
        return hashlib.sha256(key.encode()).hexdigest()


class ProgramBackend(BaseBackend):  # type: ignore[misc]
    """Triton's interface to a compiler that makes one thread of work of a program. A plugin adds stages and a hash.

    Attributes:
        options_type: the options that a launch may set by keyword. Its backend_name is the name of the backend.
    """

    options_type: ClassVar[type[ProgramOptions]] = ProgramOptions

    @classmethod
    def supports_target(cls, target: GPUTarget) -> bool:
        return bool(target.backend == cls.options_type.backend_name)

    def parse_options(self, opts: dict[str, Any]) -> Any:
        return self.options_type(**launch_options(self.options_type, opts) | {"arch": self.target.arch})

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        registration.install(When.BACKEND, ProgramBackend)
        if poison.is_installed():
            # torch may have been imported since.
            poison.install()

    def pack_metadata(self, metadata: Any) -> Any:
        return metadata

    def get_codegen_implementation(self, options: ProgramOptions | None = None) -> dict[str, Any]:  # 3.2: none
        # Triton calls this for a kernel that is not in its cache, before it does anything else. The compiler of a
        # device that this process has opened starts meanwhile.
        if (opencl := sys.modules.get("foundry_core.runtime.opencl")) is not None:
            opencl.start_compilers()
        registration.install(When.FRONT)
        # Tiles of any size can be multiplied: no matrix instruction requires a minimum size.
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1), "convert_custom_types": convert_fp8e4b15}

    def get_module_map(self) -> dict[str, ModuleType]:
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def compute_spec_key(self, argument: Any, align: bool) -> Any:
        """Return the key of an argument, for Triton 3.2, which treats anything with a dtype as a tensor.

        Raises:
            TypeError: see specialization.as_tensors.
        """
        return super().compute_spec_key(specialization.as_tensors(argument), align)

    def load_dialects(self, ctx: Any) -> None:
        """Do nothing: TTIR uses Triton's own dialects only, and later stages are not in Triton's MLIR."""


registration.install(When.COMPILER, ProgramBackend)


def convert_fp8e4b15(source: Any, target: Any, rounding: Any = None, **context: Any) -> Any:
    """Convert from or to tl.float8e4b15, which is an i8 in Triton's IR: call a function of ops/conversions.py.

    Args:
        source: a tensor or number of Triton. One of its type and the target type is fp8e4b15.
        rounding: Triton's rounding mode; None to nearest.
        context: Triton's own arguments: _semantic, or until 3.2 _builder.
    """
    from triton.language import core  # imported by now; Triton imports its backends before its language

    number = source.type.scalar
    if number.is_fp8e4b15():
        symbols = {(number,): ("__foundry_fp8e4b15_to_fp32", core.float32)}
        wide = core.extern_elementwise("", "", [source], symbols, is_pure=True, **context)
        return wide if target.scalar.is_fp32() else core.cast(wide, target.scalar, **context)
    mode = "rtz" if rounding == ir.ROUNDING_MODE.RTZ else "rtne"
    symbols = {(number,): (f"__foundry_to_fp8e4b15_{mode}", core.float8e4b15)}
    return core.extern_elementwise("", "", [source], symbols, is_pure=True, **context)


def launch_options(known: type[ProgramOptions], options: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a launch that are fields of a dataclass of options.

    Raises:
        OptionError: a keyword is neither an option nor a parameter of the kernel.
    """
    _refuse_unknown(list(known.__dataclass_fields__), options)
    found = {name: options[name] for name in known.__dataclass_fields__ if options.get(name) is not None}
    found["check"] = checked.mode(found.get("check"))
    if found["check"] and not found.get("debug"):
        # Assertions are compiled in; Triton's own assertions of every sum are not.
        found |= {"debug": True, "sanitize_overflow": False}
    return found


def _refuse_unknown(known: list[str], options: dict[str, Any]) -> None:
    """Report a wrong keyword of a launch and the nearest valid one; Triton's own error is a bare KeyError.

    Triton passes the kernel's own parameters among the options if they are given by keyword. Only the Triton function
    that called the backend knows them: its `self` is the kernel.
    """
    unknown = [name for name in options if name not in known and name not in _TRITONS_OWN]
    frame = sys._getframe() if unknown else None
    for _ in range(_CALLERS):
        frame = frame.f_back if frame else None
        parameters = getattr(frame.f_locals.get("self"), "arg_names", None) if frame else None
        if parameters is None:
            continue
        wrong = [name for name in unknown if name not in parameters]
        if wrong:
            near = nearest(wrong[0], [*known, *parameters])
            raise OptionError(
                f"a launch has no option {wrong[0]}",
                why=f"it is no parameter of the kernel either, which has {', '.join(parameters)}",
                next=f"did you mean {near}?" if near else f"the options are {', '.join(sorted(known))}",
            )


def make_ttir(module: Any, metadata: dict[str, Any]) -> Any:
    """Run the stage ttir: Triton's own clean-up, which keeps a `while` that only waits."""
    _keep_loops(module)
    return clean_up(module, metadata)


def _keep_loops(module: Any) -> None:
    """Insert a barrier into the condition of every `while`.

    MLIR deletes a loop without effects whose result nobody uses, even if it never ends. The front removes the barriers
    again from loops that are kept for another reason (front/structured.py).
    """
    builder = ir.builder(module.context)
    builder.set_loc("", 0, 0)

    def keep(op: Any) -> None:
        if op.get_name() == "scf.condition":
            builder.set_insertion_point_to_start(op.get_block())
            builder.create_barrier()

    module.walk(keep)


def clean_up(module: Any, metadata: dict[str, Any], *, block_pointers: bool = False) -> Any:
    """Run the passes that Triton's other backends run on TTIR, as the first stage of every backend.

    With `block_pointers`, Triton also rewrites them to tensors of pointers; without, that is left to the lowering.
    """
    ones = _last_strides(module)
    manager = _passes(module)
    # Before descriptors are rewritten: the pass that does so cannot rewrite a function that returns one.
    passes.common.add_inliner(manager)
    if block_pointers and hasattr(passes.ttir, "add_rewrite_tensor_pointer"):  # 3.9 has no block pointers
        passes.ttir.add_rewrite_tensor_pointer(manager)
    if hasattr(passes.ttir, "add_rewrite_tensor_descriptor_to_pointer"):  # 3.2 has no descriptors
        passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    if ones:
        run_passes(manager, module, metadata, "make_ttir")
        _set_to_one(module, ones)
        manager = _passes(module)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.ttir.add_reorder_broadcast(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.ttir.add_loop_unroll(manager)
    run_passes(manager, module, metadata, "make_ttir")
    return module


def inline_all(module: Any) -> None:
    """Make clean_up inline the functions that are marked noinline, too: an invocation has no stack for calls."""
    builder = ir.builder(module.context)
    names: list[str] = []

    def note(op: Any) -> None:
        if op.get_name() == "tt.func":
            names.append(op.get_str_attr("sym_name"))

    module.walk(note)
    for name in names:
        module.get_function(name).set_attr("noinline", builder.get_bool_attr(False))


def _passes(module: Any) -> Any:
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    return manager


def run_passes(manager: Any, module: Any, metadata: dict[str, Any], stage: str) -> None:
    """Run passes of Triton. If one fails, Triton writes the module to a file, and not to the terminal.

    Args:
        metadata: of the kernel, with the hash by which Triton's cache knows it.
        stage: the name of the stage, for the file.

    Raises:
        PassError: a pass failed; names the file.
    """
    # Later releases name the passes, for the reproducer that they write if a pass fails.
    named = (stage,) if _RELEASE > (3, 2) else ()
    if os.environ.get(_REPRODUCER):
        manager.run(module, *named)
        return
    with _one_environment, TemporaryDirectory() as folder, crash.kept_handlers():
        os.environ[_REPRODUCER] = str(Path(folder, "module"))
        try:
            manager.run(module, *named)
        except RuntimeError as error:
            from triton.runtime.cache import get_cache_manager  # Triton imports its backends before it

            text = "".join(path.read_text() for path in Path(folder).iterdir())
            cache = get_cache_manager(metadata["hash"])
            raise PassError(
                f"a pass of Triton failed in the stage {stage}: {error}",
                why="Triton prints the reason to stderr, before this error",
                next=f"report it with the module and its passes: {cache.put(text, f'{stage}.mlir', binary=False)}",
            ) from error
        finally:
            del os.environ[_REPRODUCER]


def _last_strides(module: Any) -> list[int]:
    """Return the numbers that the last strides of a kernel's descriptors have, once these are rewritten to numbers.

    Triton's TensorDescriptor accepts only 1 for them, but the IR of the kernel does not say so.
    """
    if not hasattr(passes.ttir, "add_rewrite_tensor_descriptor_to_pointer"):
        return []
    found, position = [], 0
    for type in module.get_function_signature(module.get_function(kernel_name(module))):
        rank = descriptors.rank(type)
        if rank is None:
            position += 1
        else:
            # The strides of the descriptor, and those that the front end passes after it.
            size = descriptors.size(rank)
            found += [position + 2 * rank, position + size + 2 * rank - 1]
            position += size
    return found


def _set_to_one(module: Any, arguments: list[int]) -> None:
    kernel = module.get_function(kernel_name(module))
    builder = ir.builder(module.context)
    builder.set_loc("", 0, 0)
    region, blocks = kernel.get_region(0).id(), []

    def note(op: Any) -> None:
        block = op.get_block()
        if block is not None and block.get_parent().id() == region:
            blocks.append(block)

    module.walk(note)
    builder.set_insertion_point_to_start(blocks[0])
    for argument in arguments:
        kernel.args(argument).replace_all_uses_with(builder.get_int64(1))


def kernel_name(module: Any) -> str:
    if hasattr(module, "get_entry_func_name"):
        return str(module.get_entry_func_name())
    found = _KERNEL.search(str(module))  # 3.2
    assert found is not None, "a module of TTIR without a kernel"
    return found[1]


def uses_addresses(ttir: str) -> bool:
    """Return whether a kernel makes pointers of numbers: addresses in the host's memory."""
    return "tt.int_to_ptr" in ttir


@contextmanager
def without_collections() -> Iterator[None]:
    """Import without garbage collections: what is imported stays, and searching it takes a fifth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:
            # All objects become old ones, so that the next collection of young objects does not search them either.
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()


def make_tile(module: Any, metadata: dict[str, Any], *, shares: bool = True, compares: bool = True) -> str:
    """Run the stage tile: return structured form, and set the metadata that Triton's runtime needs for every kernel.

    Args:
        shares, compares: see pipeline.read_kernel.
    """
    # The lowering is imported at its first use, so that a kernel from Triton's cache does not load it.
    with without_collections():
        from ..codegen.pipeline import read_kernel

    metadata["name"] = kernel_name(module)
    metadata["shared"] = LEAST_SHARED
    ttir = str(module)
    found = read_kernel(ttir, check=bool(metadata.get("check")), shares=shares, compares=compares)
    metadata["written"] = found.writes
    metadata["sites"] = [asdict(site) for site in found.sites]
    metadata["addresses"] = uses_addresses(ttir)
    return found.text
