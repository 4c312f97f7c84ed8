"""A device as text: what its mapping must know of it, where that differs from the mapping's default, as JSON.

    vulkan {"warp_size": 8, "workgroup_bytes": 32768, "fuses": []}

The fields are those of SimtTarget for `vulkan` and `opencl`, where a program is a workgroup, and of WorkItemTarget for
`workitem`, where it is one work-item. The text is the `arch` of Triton's GPUTarget, and so a part of the key of its
cache. A user who compiles for the device of another machine writes it.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any, TypeAlias

from .base.target import WorkItemTarget
from .simt.target import Arrangement, Fragment, SimtTarget

Device: TypeAlias = SimtTarget | WorkItemTarget
_DEFAULTS: dict[str, Device] = {
    "vulkan": SimtTarget(),
    "opencl": SimtTarget(flavour="kernel"),
    "workitem": WorkItemTarget(),
}


def arch(device: Device) -> str:
    """Return the text of a device."""
    flavour = getattr(device, "flavour", None)
    kind = next(kind for kind, default in _DEFAULTS.items() if getattr(default, "flavour", None) == flavour)
    values = ((field.name, getattr(device, field.name)) for field in fields(device))
    return f"{kind} {json.dumps({name: x for name, x in values if x != getattr(_DEFAULTS[kind], name)})}"


def read_arch(text: str) -> Device:
    """Return the device of a text.

    Raises:
        ValueError: it is not such a text.
    """
    kind, _, known = text.partition(" ")
    try:
        default = _DEFAULTS[kind]
        return replace(default, **{name: _value(name, x, default) for name, x in json.loads(known or "{}").items()})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{text!r} describes no device ({type(error).__name__}: {error}); "
            'such a text is vulkan {"warp_size": 32}, opencl {} or workitem {"vector_bytes": 64}'
        ) from error


def _value(name: str, value: Any, default: Device) -> Any:
    """Return the value of a field.

    Raises:
        AttributeError, TypeError: there is no such field, or it has another type.
    """
    if isinstance(value, list):
        made = {"fragments": Fragment, "arrangements": Arrangement}.get(name)
        value = tuple(made(*(_tuple(part) for part in each)) if made else each for each in value)
    if type(value) is not type(getattr(default, name)):
        raise TypeError(f"{name} is {value!r}")
    return value


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
