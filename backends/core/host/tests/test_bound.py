"""What a profile counts in a module, what it takes from a driver, and what it advises."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foundry_core.codegen.counts import count
from foundry_core.mapping.simt.lower import lower_simt
from foundry_core.profile.bound import advice, examine_shader, format_shader
from foundry_core.spirv_numbers import numbers
from foundry_core.vulkan.device import read_statistics

from ..devices import H100, LAVAPIPE
from ..kernels import elementwise, product
from ..spirv import WORKGROUP, Module
from .test_neighbours import four_neighbours

TEXTS = Path(__file__).parents[2] / "tests" / "texts"
GLOBAL = numbers("StorageClass", "PhysicalStorageBuffer CrossWorkgroup")
MODULES = {
    **{
        f"{name}-{lanes}": lower_simt(
            (TEXTS / f"{name}.{lanes}.ttgir").read_text(), replace(device, compiles_slowly=False)
        ).module
        for name in ("matmul", "histogram", "chosen", "branches", "halves")
        for lanes, device in ((32, H100), (8, LAVAPIPE))
    },
    "matrices": lower_simt(product("f16", "f32", 2, {"%d0": "f32", "%d1": "f32"}, [], lanes=32), H100).module,
}


def described(**changes: Any) -> dict[str, Any]:
    return {
        "statistics": {},
        "chosen": "",
        "workgroup_limit": 48 << 10,
        "subgroup": 32,
        "matrices": ["f16"],
        "hopes": None,
        "names": [],
    } | changes


def counted_by_the_machine(binary: bytes) -> Counter[str]:
    """Count with the reader that the machine of the tests has, which shares no code with the one of the profile."""
    module, found = Module(binary), Counter[str]()
    for function in module.functions.values():
        for _, block in function.blocks:
            for name, words in block:
                if name in ("Load", "Store"):
                    pointer = words[2] if name == "Load" else words[0]
                    storage = module.types[module.type_of[pointer]].parts[0]
                    if storage == WORKGROUP:
                        found[f"{name.lower()}s of workgroup memory"] += 1
                    elif storage in GLOBAL:
                        found[f"{name.lower()}s of {module.types[module.pointee(pointer)].size} bytes"] += 1
                for start, what in (
                    ("ControlBarrier", "barriers"),
                    ("Atomic", "atomics"),
                    ("GroupNonUniform", "exchanges between lanes"),
                    ("CooperativeMatrixMulAdd", "products of matrices"),
                    ("CooperativeMatrixLoad", "loads of matrices"),
                    ("CooperativeMatrixStore", "stores of matrices"),
                ):
                    found[what] += name.startswith(start)
    return +found


@pytest.mark.parametrize("name", MODULES)
def test_counts_are_those_of_another_reader(name: str) -> None:
    found, module = count(MODULES[name]), Module(MODULES[name])
    loops = {name: found.everywhere.pop(name, 0) for name in ("loops", "loops with barriers")}
    assert found.everywhere == counted_by_the_machine(MODULES[name])
    assert found.invocations == module.invocations
    assert all(number <= found.everywhere[what] for what, number in found.in_loops.items())
    assert loops["loops with barriers"] <= loops["loops"]


def test_instructions_in_a_loop_are_counted_apart() -> None:
    found = count(MODULES["matmul-32"])
    assert found.everywhere["loops with barriers"] == 1
    # Both factors of each step are loaded in the loop, and the result is stored behind it.
    assert found.in_loops["barriers"] >= 2 and found.in_loops["loads of 4 bytes"]
    assert not any(name.endswith("bytes") and name.startswith("stores") for name in found.in_loops)


def test_module_with_matrices_has_its_products_and_its_workgroup_memory() -> None:
    made = lower_simt(product("f16", "f32", 1, {"%d0": "f32"}, [], lanes=32), H100)
    found = count(made.module)
    assert found.everywhere["products of matrices"] and found.workgroup_bytes >= made.local_bytes > 0


@pytest.mark.parametrize("cut", [3, 21, 400, -2])
def test_damaged_module_is_refused_and_not_counted_wrongly(cut: int) -> None:
    module = MODULES["matmul-32"]
    with pytest.raises(ValueError, match="damaged"):
        count(module[: cut * 4 - 1] if cut > 0 else module[:-2])


def test_module_whose_instruction_has_no_words_ends() -> None:
    with pytest.raises(ValueError, match="damaged"):
        count(MODULES["matmul-32"][:20] + bytes(400))


def test_statistics_of_a_driver_are_bounded_and_have_no_control_characters() -> None:
    said = (
        b"Register Count: 96\n\x1b[2JSpill: 4\nno number\nX: nan\nY: inf\n" + b"n" * 300 + b": 1\n\xff\xc3\xa9\t: 2\n"
    )
    found = read_statistics(said)
    assert found == {"Register Count": 96, "?[2JSpill": 4, "n" * 60: 1, "????": 2} | {
        name: 2 for name in found if name.startswith("?") and name != "?[2JSpill"
    }
    assert all(name.isprintable() and name.isascii() for name in found)
    assert len(read_statistics(b"".join(b"%d: 1\n" % number for number in range(1000)))) <= 64
    assert read_statistics(b"") == {}


def kinds(module: bytes, products: dict[str, float] | None = None, **changes: Any) -> list[str]:
    return [sign["kind"] for sign in examine_shader(module, described(**changes), products or {})["signs"]]


@pytest.mark.parametrize(("aligned", "kind"), [(True, []), (False, ["bytes"])])
def test_halves_that_are_loaded_one_by_one_are_named(aligned: bool, kind: list[str]) -> None:
    text = elementwise(["f16"], {"%x0": "f16"}, [], lanes=32, size=4096, each=8)
    if not aligned:
        text = text.replace("{tt.divisibility = 16 : i32}", "")
    module = lower_simt(text, H100).module
    assert ("loads of 16 bytes" in count(module).everywhere) == aligned
    assert kinds(module)[:1] == kind


@pytest.mark.parametrize(
    "said", ["Spilled VGPRs", "Spill Count", "Local Memory Size", "Scratch Memory Size", "SLM Size"]
)
def test_spills_come_first_under_each_driver_s_name(said: str) -> None:
    assert kinds(MODULES["matmul-32"], statistics={said: 128.0, "Register Count": 255.0})[0] == "spills"
    assert "spills" not in kinds(MODULES["matmul-32"], statistics={said: 0.0, "Register Count": 255.0})


def test_a_product_that_has_no_matrices_is_named_where_the_device_has_them() -> None:
    made = lower_simt(product("f16", "f32", 1, {"%d0": "f32"}, [], lanes=32), replace(H100, fragments=())).module
    assert "matrix units" in kinds(made, {"f16": 1e9})
    assert "matrix units" not in kinds(made, {"f16": 1e9}, matrices=[])
    assert "matrix units" not in kinds(MODULES["matrices"], {"f16": 1e9})


def test_reduction_that_fits_a_kernel_is_named() -> None:
    chosen = "num_stages=1 instead of 3, products in 2 parts along K"
    assert kinds(MODULES["matrices"], chosen=chosen).count("workgroup memory") == 1
    rows = format_shader({"shader": examine_shader(MODULES["matrices"], described(chosen=chosen), {})})
    assert f"  chosen: {chosen}" in rows


def test_roof_gives_the_advice_and_signs_do_only_below_it() -> None:
    shader = examine_shader(MODULES["matmul-32"], described(statistics={"Spill Count": 9.0}), {})
    for bound, share in (("memory", 0.95), ("arithmetic", None), ("launch", 0.9)):
        figures = {"shader": shader, "bound": bound, "share": share}
        assert len(advice(figures)) == 1 and not any("spills" in row for row in format_shader(figures))
    below: list[dict[str, Any]] = [{"shader": shader, "bound": "memory", "share": 0.3}, {"shader": shader}]
    for figures in below:
        assert advice(figures)[0] == "a smaller BLOCK, or more num_warps"
        assert any(row.startswith("    spills: ") for row in format_shader(figures))


def test_only_the_variant_that_a_launch_takes_is_counted() -> None:
    made = lower_simt(four_neighbours(divisible=False), H100)
    assert made.hopes is not None
    hopes = [hope._asdict() for hope in made.hopes]
    names = ["a", "b", "c", "m", "n", "k", "sa", "sb", "sc"]
    known = described(hopes=hopes, names=names)
    shown = {}
    for n in (24, 21):
        values = [None, None, None, 27, n, 40, 40, n, n]
        shown[n] = examine_shader(made.module, known, {}, values)
    assert (shown[24]["variant"], shown[21]["variant"]) == ("wide", "narrow")
    wide, narrow = (
        sum(v for name, v in shown[n]["counts"].items() if name.startswith("loads of 4 b")) for n in (24, 21)
    )
    assert wide < narrow
    both = count(made.module).everywhere
    for name in ("loads of 4 bytes", "loads of 16 bytes", "stores of 16 bytes", "barriers", "loops"):
        assert shown[24]["counts"].get(name, 0) + shown[21]["counts"].get(name, 0) == both[name], name
    signs = shown[21]["signs"]
    assert any(sign["next"].startswith("pad n to a multiple of") and "n=21" in sign["shows"] for sign in signs)
    assert not any("variant" in sign["shows"] for sign in shown[24]["signs"])


def test_a_short_launch_without_signs_is_told_to_do_more() -> None:
    shader = examine_shader(MODULES["matmul-32"], described(), {}) | {"signs": []}
    assert advice({"shader": shader, "bound": "launch", "share": 0.2})[0].startswith("give it more work")
    assert advice({"shader": shader, "bound": "memory", "share": 0.2})[0].startswith("more programs")
