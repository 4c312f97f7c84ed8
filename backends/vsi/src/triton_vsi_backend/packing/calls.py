"""Write the calls of the functions that make a kernel's commands: they take the kernel's own arguments (see vsi.h)."""

from __future__ import annotations

from collections.abc import Sequence

from foundry_core.scalars import passed

_CALL = """\
static bool NAME_{kind}(
    void *function, size_t index, const struct road_launch *launch, void *const *host, signed char *commands)
{{
    bool (*make)({types});
    const size_t sides[3] = {{launch->grid[0], launch->grid[1], launch->grid[2]}};
    (void)sides, (void)host;
    *(void **)&make = function;
    return make({values});
}}
"""


def calls(types: Sequence[str]) -> str:
    """Return two functions in C and C++, NAME_matmul and NAME_dma: vsi_call of vsi.h for a kernel.

    Args:
        types: Triton's types of the arguments that are passed to the kernel.
    """
    scalars = ["" if type.startswith("*") else passed(type).c_type for type in types]
    arrays = [index for index, scalar in enumerate(scalars) if not scalar]
    taken = [
        *(scalar or "void *" for scalar in scalars),
        *["int"] * 3,
        *["const size_t *"] * len(arrays),
        "signed char *",
    ]
    given = [
        *(_value(index, scalar) for index, scalar in enumerate(scalars)),
        *(f"(int)launch->grid[{axis}]" for axis in range(3)),
        *(f"VSI_SHAPE({index})" for index in arrays),
        "commands",
    ]
    matmul = _CALL.format(
        kind="matmul",
        types=", ".join(["size_t", "const size_t *", *taken]),
        values=", ".join(["index", "sides", *given]),
    )
    dma = _CALL.format(kind="dma", types=", ".join(["size_t", *taken]), values=", ".join(["index", *given]))
    return matmul + dma


def _value(index: int, scalar: str) -> str:
    match scalar:
        case "":
            return f"host[{index}]"
        case "float" | "double":
            return f"vsi_{scalar}(&launch->arguments[{index}])"
        case _:
            return f"VSI_INTEGER({scalar}, {index})"
