"""Find what a SPIR-V module needs from a device: capabilities and extensions, from its first instructions."""

from __future__ import annotations

import struct

_KNOWN = """
    Matrix Shader Addresses Linkage Kernel Vector16 Float16Buffer Float16 Float64 Int64 Int64Atomics ImageBasic
    ImageReadWrite ImageMipmap Pipes Groups DeviceEnqueue LiteralSampler AtomicStorage Int16 GenericPointer Int8
    SubgroupDispatch NamedBarrier PipeStorage GroupNonUniform GroupNonUniformVote GroupNonUniformArithmetic
    GroupNonUniformBallot GroupNonUniformShuffle GroupNonUniformShuffleRelative GroupNonUniformClustered
"""
# VeriSilicon's capabilities, which the specification does not list. Here they are accepted and change nothing.
_VENDOR = ("Vector32", "TensorCoreVSI")
CAPABILITIES = frozenset((*_KNOWN.split(), *_VENDOR))
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
    """Return the names of the capabilities and of the extensions that a module uses, and a device may lack."""
    # Imported here, because the command line is read before it is known whether there is foundry_core.
    from foundry_core.spirv_numbers import NUMBERS

    names = {number: name for name, number in NUMBERS["Capability"].items()}
    words = struct.unpack(f"<{len(module) // 4}I", module)
    assert words[0] == _MAGIC
    capabilities, extensions = set(), set()
    at = _HEADER_WORDS
    # The specification has them come first, capabilities before extensions.
    while words[at] & 0xFFFF in (_OP_CAPABILITY, _OP_EXTENSION):
        length = words[at] >> 16
        if words[at] & 0xFFFF == _OP_CAPABILITY:
            capabilities.add(names.get(words[at + 1], f"number {words[at + 1]}"))
        else:
            extensions.add(module[4 * (at + 1) : 4 * (at + length)].rstrip(b"\0").decode())
        at += length
    return frozenset(capabilities - _OF_THE_MODULE), frozenset(extensions)
