"""Triton's error where it chooses no driver: lists the installed backends, and why each is inactive."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import triton

from . import deferred

BACKEND_VARIABLE = "TRITON_DEFAULT_BACKEND"
_SELECTION = "triton.runtime.driver"
_ACTIVE = "active"


def install(_: type) -> None:
    """Replace what chooses the driver, as soon as Triton has defined it."""
    deferred.call(explain_selection)


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
