"""Check what is packed of a kernel for Vulkan, and that a device is refused that lacks what its module needs."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import foundry_core
import numpy as np
import pytest
from foundry_core.codegen.spirv import instructions, words_of
from foundry_core.mapping.arch import read_arch
from foundry_core.mapping.simt.lower import Simt, lower_simt
from foundry_core.mapping.simt.target import FEATURES, SimtTarget
from foundry_core.packed.roads import Form, PackError
from foundry_core.packed.vulkan_road import VulkanRoad, form
from foundry_core.spirv_numbers import numbers
from foundry_core.vulkan.library import DeviceProperties

from ..cases import CASES
from ..devices import DEVICES, H100, LAVAPIPE, RADV, SECRET, arranged, mixed, promised
from ..kernels import elementwise
from ..machine import launch

_CORE = Path(foundry_core.__file__).parent
_DEVICES = {"h100": H100, "lavapipe": LAVAPIPE, "radv": RADV}
# What no feature among FEATURES says, with the member of Properties that does.
_MORE = {
    "GroupNonUniformShuffle": "shuffle",
    "WorkgroupMemoryExplicitLayoutKHR": "explicit_layout",
    "AtomicFloat16VectorNV": "half_atomics",
    "AtomicFloat32AddEXT": "float_atomics",
    "AtomicFloat64AddEXT": "float_atomic_add64",
    "BFloat16CooperativeMatrixKHR": "bfloat16",
    "CooperativeMatrixKHR": "cooperative",
    "Int64": "shaderInt64",
    "PhysicalStorageBufferAddresses": "bufferDeviceAddress",
    "VulkanMemoryModel": "vulkanMemoryModel",
}
_COMPONENTS = {"f16": 0, "f32": 1, "i8": 3, "i32": 5, "bf16": 1000141000}


def lowered(name: str, target: SimtTarget) -> Simt:
    return lower_simt(CASES[name]().kernel(target.warp_size).ttgir, target)


def doubles(target: SimtTarget) -> Simt:
    """Return a kernel that adds f64, i8 and f16, and multiplies and adds f64."""
    lines = ["%v = arith.addf %x0, %x0 : TILE(f64)", "%w = arith.addi %x1, %x1 : TILE(i8)"]
    lines += ["%u = math.fma %x0, %x0, %v : TILE(f64)", "%h = arith.addf %x2, %x2 : TILE(f16)"]
    outputs = {"%u": "f64", "%w": "i8", "%h": "f16"}
    size = 4 * target.warp_size * 4
    text = elementwise(["f64", "i8", "f16"], outputs, lines, lanes=target.warp_size, size=size)
    return lower_simt(text, replace(target, fuses=(32, 64)))


def packed(made: Simt, target: SimtTarget) -> Form:
    return form(
        made.module,
        target,
        SimpleNamespace(
            name="kernel",
            shared=max(1, made.local_bytes),
            tables=made.tables,
            argument_offsets=made.offsets,
            argument_bytes=made.argument_bytes,
            threads=target.warps * target.warp_size,
        ),
    )


# What the road reads of a device.


class Fits(NamedTuple):
    """The answer of device_fits: why not, "" if the device fits, and the threads of a workgroup."""

    why: str
    threads: int


@pytest.fixture(scope="module")
def device_fits(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Fits]:
    """Compile device_fits of vulkan_needs.h, with a device whose matrices the caller names."""
    folder = tmp_path_factory.mktemp("needs")
    folder.joinpath("needs.c").write_text(
        "#define _GNU_SOURCE\n"
        "#define EXPORT static __attribute__((unused))\n"
        '#include "vulkan.c"\n'
        "#include <stddef.h>\n"
        "static uint32_t (*shapes)[5];\nstatic int shape_count;\n"
        "static int some_fragments(int device, uint32_t (*to)[5], int most) {\n"
        "    (void)device;\n"
        "    for (int i = 0; i < shape_count && i < most; i++) memcpy(to[i], shapes[i], sizeof to[i]);\n"
        "    return shape_count < most ? shape_count : most;\n"
        "}\n"
        "#define foundry_vulkan_fragments some_fragments\n"
        '#include "vulkan_needs.h"\n'
        '#define SEEN __attribute__((visibility("default")))\n'
        "SEEN const char *reason(void) { return error_text; }\n"
        "SEEN int fits(const Properties *p, const uint32_t *w, size_t n, uint32_t (*s)[5], int c, uint32_t *t) {\n"
        "    return shapes = s, shape_count = c, device_fits(0, p, w, n, t);\n"
        "}\n"
    )
    library = folder / "needs.so"
    words = [
        "cc",
        "-std=c11",
        "-Wall",
        "-Werror",
        "-fsanitize=undefined",
        "-fsanitize-undefined-trap-on-error",
    ]
    words += ["-shared", "-fPIC", "-fvisibility=hidden", f"-I{_CORE}/vulkan", f"-I{_CORE}/packed"]
    subprocess.run([*words, folder / "needs.c", "-o", library], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.reason.restype = ctypes.c_char_p

    def fits(properties: DeviceProperties, module: bytes, target: SimtTarget) -> Fits:
        rows = [
            (each.rows, each.columns, each.depth, _COMPONENTS[each.factor], _COMPONENTS[each.total])
            for each in target.fragments
        ]
        row = ctypes.c_uint32 * 5
        shapes = (row * max(1, len(rows)))(*(row(*each) for each in rows))
        # The words end where the buffer ends, so that a read behind them is one behind it.
        words = (ctypes.c_uint32 * (len(module) // 4)).from_buffer_copy(module[: len(module) // 4 * 4])
        threads = ctypes.c_uint32()
        found = loaded.fits(ctypes.byref(properties), words, len(words), shapes, len(rows), ctypes.byref(threads))
        return Fits("" if found else loaded.reason().decode(), threads.value)

    return fits


def properties_of_a_device_that_has_all() -> DeviceProperties:
    found = DeviceProperties()
    for name, type in DeviceProperties._fields_:
        if type is ctypes.c_uint32:
            setattr(found, name, 1)
    found.invocations, found.workgroup_bytes = 1024, 1 << 16
    return found


def capabilities(module: bytes) -> set[str]:
    (op,) = numbers("Op", "Capability")
    names = [*FEATURES, *_MORE]
    named = dict(zip(numbers("Capability", " ".join(names)), names, strict=True))
    words = words_of(module)
    return {named[words[at + 1]] for at, opcode, _ in instructions(words) if opcode == op and words[at + 1] in named}


def modules() -> Iterator[Any]:
    for device, target in _DEVICES.items():
        for name in ("softmax", "activated", "histogram", "halves", "decoded"):
            yield pytest.param(target, lambda target=target, name=name: lowered(name, target), id=f"{device}-{name}")
        yield pytest.param(target, lambda target=target: doubles(target), id=f"{device}-doubles")


@pytest.mark.slow
@pytest.mark.parametrize(("target", "make"), [*modules()])
def test_a_device_is_refused_exactly_if_it_lacks_a_feature_that_the_module_declares(
    device_fits: Callable[..., Fits], target: SimtTarget, make: Callable[[], Simt]
) -> None:
    module = make().module
    assert device_fits(properties_of_a_device_that_has_all(), module, target) == ("", target.warp_size * target.warps)
    declared = capabilities(module)
    assert declared
    for capability, member in {**FEATURES, **_MORE}.items():
        without = properties_of_a_device_that_has_all()
        setattr(without, member, 0)
        why = device_fits(without, module, target).why
        assert bool(why) == any({**FEATURES, **_MORE}[each] == member for each in declared), (capability, why)
        assert not why or why.startswith("it lacks ")


@pytest.mark.slow
def test_a_device_is_refused_for_its_matrices_its_floats_and_its_workgroups(device_fits: Callable[..., Fits]) -> None:
    module = lowered("activated", SECRET).module
    all_of_it = properties_of_a_device_that_has_all()
    other = replace(SECRET, fragments=tuple(each for each in SECRET.fragments if each[:2] != ("f16", "f32")))
    assert "do not multiply matrices" in device_fits(all_of_it, module, other).why
    swapped = replace(SECRET, fragments=tuple(each._replace(factor="bf16", total="f16") for each in SECRET.fragments))
    assert "do not multiply matrices" in device_fits(all_of_it, module, swapped).why
    for member, words in (("denorm16", "subnormal"), ("special32", "NaNs"), ("nearest64", "round to nearest")):
        without = properties_of_a_device_that_has_all()
        setattr(without, member, 0)
        assert words in device_fits(without, module, SECRET).why, member
    small = properties_of_a_device_that_has_all()
    small.invocations = SECRET.warps * SECRET.warp_size - 1
    assert "invocations" in device_fits(small, module, SECRET).why


@pytest.mark.slow
def test_a_module_that_is_damaged_is_refused(device_fits: Callable[..., Fits]) -> None:
    module = lowered("softmax", LAVAPIPE).module
    known = properties_of_a_device_that_has_all()
    words = list(words_of(module))
    starts = [at for at, _, end in instructions(words) if end - at > 1]

    def why(changed: Sequence[int]) -> str:
        return device_fits(known, struct.pack(f"<{len(changed)}I", *changed), LAVAPIPE).why

    assert not why(words)
    for changed in ([], words[:4], [1, *words[1:]], [*words[:3], 1 << 31, *words[4:]], words[: starts[9] + 1]):
        assert "damaged" in why(changed)
    assert "damaged" in why([*words[: starts[3]], words[starts[3]] & 0xFFFF, *words[starts[3] + 1 :]])
    assert "damaged" in why(words[: starts[4]]), "no workgroup size"
    # Any other damage is read without undefined behaviour, whatever the answer is.
    random = np.random.default_rng(0)
    for _ in range(2000):
        changed = list(words)
        changed[random.integers(len(words))] = int(random.integers(1 << 32))
        why(changed)


# What the packing says of a kernel.


@pytest.mark.parametrize(("device", "name"), [(device, name) for device in _DEVICES for name in ("softmax", "matmul")])
def test_arguments_that_the_road_adds_are_at_the_end_of_the_block(device: str, name: str) -> None:
    target, case = _DEVICES[device], CASES[name]()
    made = lowered(name, target)
    found = packed(made, target)
    assert found.offsets == made.offsets[: len(case.arguments)]
    added = 8 * found.buffers + 4 + 16 * target.splits_grids
    assert found.argument_bytes == made.offsets[-1] + 4 >= found.offsets[-1] + added
    assert f"subgroup={target.warp_size} " in found.needs and f"pushed={target.argument_bytes}" in found.needs
    assert ("in_parts" in found.needs.split()) == target.splits_grids


def test_only_what_a_kernel_relies_on_is_needed() -> None:
    assert set(packed(lowered("histogram", H100), H100).files) == {"spv"}
    softmax = packed(lowered("softmax", H100), H100)
    assert "vendor=4318" in softmax.needs and set(softmax.files) == {"spv", "f32.probe"}
    plain = replace(H100, accurate_exp2=False)
    assert "vendor" not in packed(lowered("softmax", plain), plain).needs
    assert {"f64.probe", "spv"} == set(packed(doubles(H100), H100).files) - {"f32.probe"}
    assert set(packed(lowered("activated", SECRET), SECRET).files) == {"spv"}
    assert "matrices.probe" in packed(lowered("activated", H100), H100).files


def probe(found: bytes) -> tuple[int, bytes, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return a probe's argument bytes, its module, and the words before and after it."""
    argument_bytes, module_bytes, data = struct.unpack_from("<3I", found)
    assert len(found) == 12 + module_bytes + 2 * data
    at = 12 + module_bytes
    words = [np.frombuffer(found, np.int32, data // 4, first) for first in (at, at + data)]
    return argument_bytes, found[12:at], *words


@pytest.mark.parametrize("fuses", [(), (32,), (32, 64)])
def test_probe_of_fused_operations_tells_devices_apart(fuses: tuple[int, ...]) -> None:
    for width in (32, 64):
        file = packed(doubles(H100), H100).files[f"f{width}.probe"] if width == 64 else None
        file = file or packed(lowered("softmax", H100), H100).files["f32.probe"]
        argument_bytes, module, before, after = probe(file)
        floats = before.view(np.float32 if width == 32 else np.float64)
        found = launch(module, promised(replace(H100, fuses=fuses)), [floats], offsets=[0, argument_bytes - 4])
        assert (found.arrays[0].tobytes() == after.tobytes()) == (width in fuses)


@pytest.mark.parametrize("right", [True, False])
def test_probe_of_matrices_tells_arrangements_apart(right: bool) -> None:
    argument_bytes, module, before, after = probe(packed(lowered("activated", H100), H100).files["matrices.probe"])
    device = H100 if right else arranged(SECRET, mixed)
    found = launch(module, promised(device), [before], offsets=[0, argument_bytes - 4], shared=1 << 16)
    assert np.array_equal(found.arrays[0], after) == right


# Devices that are not here.


class Target(NamedTuple):
    backend: str
    arch: str
    warp_size: int


@pytest.mark.parametrize("name", ["any-8", "any-16", "any-32", "any-64", "h100"])
def test_a_device_can_be_named_and_relies_on_no_more_than_it_says(name: str) -> None:
    found = VulkanRoad().named_device(name, Target("spirv", "vulkan {}", 32))
    assert found.backend == "spirv" and found == VulkanRoad().named_device(found.arch, Target("spirv", "", 1))
    if name == "h100":
        # Kinds of matrices that the packing need not know are left out.
        made = read_arch(found.arch)
        assert isinstance(made, SimtTarget) and set(made.arrangements) < set(H100.arrangements)
        assert replace(made, arrangements=()) == SECRET
    else:
        assert found.warp_size == int(name.removeprefix("any-"))
        assert not {"fragments", "arrangements", "accurate_exp2", "atomic_adds"} & set(found.arch.split('"'))


@pytest.mark.parametrize("name", ["h200", "", "vulkan {", 'opencl {"warp_size": 8}', "workitem {}"])
def test_a_device_that_nobody_described_is_refused(name: str) -> None:
    with pytest.raises(PackError, match="any-32"):
        VulkanRoad().named_device(name, Target("spirv", "", 1))


def test_devices_of_these_tests_are_those_that_can_be_named() -> None:
    assert DEVICES["h100"] is H100
