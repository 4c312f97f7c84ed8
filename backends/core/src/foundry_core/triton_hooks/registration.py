"""Every place where Triton is extended: what a module replaces, in which releases, when, and why.

A plugin's own classes extend Triton, too, and import_order.py orders imports.

Each function does nothing at a second call. How it replaces is in its module.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from ..strings import StrEnum


class When(StrEnum):
    """When Triton has what a hook replaces, and no user has used it yet."""

    DRIVER = "a plugin's driver is imported"
    COMPILER = "a plugin's compiler is imported"
    BACKEND = "Triton makes a plugin's backend"
    FRONT = "Triton's front end begins with a kernel"


class Hook(NamedTuple):
    """A function of foundry_core, and what it does to Triton."""

    install: str
    replaces: str
    releases: str
    when: When
    reason: str


HOOKS = (
    Hook(
        "triton_hooks.drivers.install",
        "the function that chooses a driver",
        "all, where Triton has no patches of ours",
        When.DRIVER,
        "the error says which backends there are, and why none is active",
    ),
    Hook(
        "triton_hooks.drivers.install_limits",
        "the function that says how much memory a program's work-items share",
        "3.6, 3.9",
        When.DRIVER,
        "Triton keeps the answer of one driver for all others",
    ),
    Hook(
        "runtime.descriptors.install",
        "TensorDescriptor's checks",
        "3.6, 3.9",
        When.DRIVER,
        "a descriptor of a NumPy array",
    ),
    Hook(
        "triton_hooks.gpu_scripts.install",
        "nothing that is there: it adds triton.profiler, and names of torch.cuda",
        "all",
        When.DRIVER,
        "Triton's tutorials run as they are",
    ),
    Hook(
        "triton_hooks.clock.install",
        "triton.testing.do_bench, where our driver is active",
        "all",
        When.DRIVER,
        "Triton's takes one sample where clearing a large cache takes long",
    ),
    Hook(
        "triton_hooks.tuning.install",
        "the autotuner's choice and measurement of candidates",
        "3.6, 3.9",
        When.COMPILER,
        "candidates are compiled in parallel",
    ),
    Hook(
        "triton_hooks.grids.install",
        "KernelInterface.__getitem__, and a kernel that is called without a grid",
        "all",
        When.COMPILER,
        "a grid or constexpr that cannot be is named before anything is compiled",
    ),
    Hook(
        "codegen.programs.replace_triton_key",
        "triton_key",
        "all",
        When.BACKEND,
        "Triton reads 190 MB of libtriton for it in each process",
    ),
    Hook(
        "triton_hooks.specialization.install",
        "the specialization of arguments",
        "3.6, 3.9",
        When.BACKEND,
        "a NumPy array is an argument, and torch is not imported for it",
    ),
    Hook(
        "triton_hooks.front_errors.install",
        "ASTSource.make_ir",
        "all",
        When.BACKEND,
        "errors name the file's line and the remedy",
    ),
    Hook(
        "triton_hooks.binding.install",
        "the function that binds a launch's arguments",
        "all",
        When.BACKEND,
        "errors name the kernel, the parameter and the launch's line",
    ),
    Hook(
        "triton_hooks.front_errors.install_recursion",
        "CodeGenerator's calls of functions",
        "all",
        When.FRONT,
        "a function that calls itself is named, instead of a KeyError",
    ),
)


def install(when: When, backends: type = object) -> None:
    """Install the hooks of a moment.

    Args:
        backends: the class whose backends' launches are concerned.
    """
    for hook in HOOKS:
        if hook.when == when:
            module, _, function = hook.install.rpartition(".")
            getattr(import_module(f"foundry_core.{module}"), function)(backends)
