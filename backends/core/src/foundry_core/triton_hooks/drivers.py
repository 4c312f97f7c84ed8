"""Triton's drivers: its error where it chooses none, and the limits that it asks of the active one."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import triton

from .import_order import call_after

BACKEND_VARIABLE = "TRITON_DEFAULT_BACKEND"
_SELECTION = "triton.runtime.driver"
_ACTIVE = "active"


def install(_: type) -> None:
    """Replace what chooses the driver, as soon as Triton has defined it."""
    call_after(explain_selection)


def explain_selection() -> None:
    """Make Triton's error for want of a backend list those that are installed, and why they are inactive.

    A Triton with this project's patches lists them itself.
    """
    module: Any = sys.modules[_SELECTION]
    native = getattr(module, "_create_driver", None)
    if native is None or hasattr(module, "_explain_drivers"):
        return

    @functools.wraps(native)
    def create_driver() -> Any:
        try:
            return native()
        except RuntimeError as error:
            states = {name: _state(each.driver) for name, each in triton.backends.backends.items()}
            lines = [str(error), *(f"  {name}: {state}" for name, state in states.items())]
            active = [f"{BACKEND_VARIABLE}={name}" for name, state in states.items() if state == _ACTIVE]
            if active and reads_variable():
                lines.append(f"Choose one: {' or '.join(active)}")
            error.args = ("\n".join(lines),)
            raise

    module._create_driver = create_driver


def _state(driver: Any) -> str:
    if driver.is_active():
        return _ACTIVE
    reason = driver.inactive_reason() if hasattr(driver, "inactive_reason") else "its driver finds no device"
    return "inactive, " + reason.replace("\n", "\n    ")


def reads_variable() -> bool:
    """Return whether this Triton lets a variable choose among backends: 3.9.0 does, 3.6.0 does not."""
    module: Any = sys.modules[_SELECTION]
    return BACKEND_VARIABLE in inspect.unwrap(module._create_driver).__code__.co_consts


def install_limits(_: type) -> None:
    """Ask the active driver for each kernel how much memory the work-items of a program can share.

    Triton 3.6 and 3.9 keep it by the number of the device, so the driver that is asked first answers for all: a kernel
    of CUDA was held to 48 KiB after one of Vulkan, and refused with OutOfResources.
    """

    def replace() -> None:
        module: Any = sys.modules["triton.compiler.compiler"]
        module.max_shared_mem = module.max_shared_mem.__wrapped__

    call_after(replace, "triton.compiler.compiler", "max_shared_mem")
