"""Find what a SPIR-V module needs from a device: capabilities and extensions, from its first instructions.

Numbers are those of the SPIR-V specification, section "Capability".
"""

from __future__ import annotations

import struct

_NUMBERS = {
    0: "Matrix",
    1: "Shader",
    4: "Addresses",
    5: "Linkage",
    6: "Kernel",
    7: "Vector16",
    8: "Float16Buffer",
    9: "Float16",
    10: "Float64",
    11: "Int64",
    12: "Int64Atomics",
    13: "ImageBasic",
    14: "ImageReadWrite",
    15: "ImageMipmap",
    17: "Pipes",
    18: "Groups",
    19: "DeviceEnqueue",
    20: "LiteralSampler",
    21: "AtomicStorage",
    22: "Int16",
    38: "GenericPointer",
    39: "Int8",
    58: "SubgroupDispatch",
    59: "NamedBarrier",
    60: "PipeStorage",
    61: "GroupNonUniform",
    62: "GroupNonUniformVote",
    63: "GroupNonUniformArithmetic",
    64: "GroupNonUniformBallot",
    65: "GroupNonUniformShuffle",
    66: "GroupNonUniformShuffleRelative",
    67: "GroupNonUniformClustered",
}
# VeriSilicon's capabilities, which the specification does not list. Here they are accepted and change nothing.
_VENDOR = ("Vector32", "TensorCoreVSI")
CAPABILITIES = frozenset((*_NUMBERS.values(), *_VENDOR))
EXTENSIONS = frozenset(
    (
        "SPV_KHR_storage_buffer_storage_class",
        "SPV_VSI_TC_inst",
        "SPV_KHR_no_integer_wrap_decoration",
        "SPV_KHR_float_controls",
        "SPV_KHR_expect_assume",
        "SPV_KHR_linkonce_odr",
        "SPV_EXT_shader_atomic_float_add",
    )
)
# No property of a device: it states that the module has functions with names.
_OF_THE_MODULE = frozenset(("Linkage",))

_MAGIC = 0x07230203
_HEADER_WORDS = 5
_OP_EXTENSION, _OP_CAPABILITY = 10, 17


def requirements(module: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the capabilities and of the extensions that a module uses, and a device may lack."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    assert words[0] == _MAGIC
    capabilities, extensions = set(), set()
    at = _HEADER_WORDS
    # The specification has them come first, capabilities before extensions.
    while words[at] & 0xFFFF in (_OP_CAPABILITY, _OP_EXTENSION):
        length = words[at] >> 16
        if words[at] & 0xFFFF == _OP_CAPABILITY:
            capabilities.add(_NUMBERS.get(words[at + 1], f"number {words[at + 1]}"))
        else:
            extensions.add(module[4 * (at + 1) : 4 * (at + length)].rstrip(b"\0").decode())
        at += length
    return frozenset(capabilities - _OF_THE_MODULE), frozenset(extensions)
