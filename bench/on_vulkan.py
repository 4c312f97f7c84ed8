"""List the measurements of a target that runs on a Vulkan device: those of bench/vulkan.

On a GPU there is no peer in the image; `python bench/vulkan` compares with Triton's CUDA backend where that is. On
lavapipe the sizes are small, and the peer is the same kernel through OpenCL on PoCL: both are the same processor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from measure import Times
from measurement import Measurement, Row

# Behind this folder, whose modules have other names.
sys.path.append(str(Path(__file__).with_name("vulkan")))


def measure(name: str) -> list[Measurement]:
    """Take a measure of bench/vulkan."""
    import devices
    import measures
    import taking_turns
    from foundry_core.runtime.device_report import Kind

    ours = devices.Vulkan()
    on_cpu = ours.driver.device_report().kind is not Kind.HARDWARE
    plan = taking_turns.Plan(warm=0.05, rounds=9, batch=5.0) if on_cpu else taking_turns.Plan(3.0, 9, 25.0)
    peer = devices.peer("opencl" if on_cpu else "none")
    taken = taking_turns.take(measures.measures(tiny=on_cpu)[name], ours, peer, plan)
    assert not taken["failed"], taken["failed"]
    wrong = [each["name"] for each in taken["candidates"] if not each["right"]]
    assert not wrong, f"{', '.join(wrong)}: the result is wrong"
    rows = []
    for each in taken["candidates"]:
        seconds = [took / 1e3 for took in each["milliseconds"]]
        chosen = ", ".join(f"{key}={value}" for key, value in each["config"].items())
        rows.append(Row(f"{each['name']}: {chosen}" if chosen else each["name"], Times.of(seconds), each["rate"]))
    others = {each["name"]: taken["candidates"][0]["rate"] / each["rate"] for each in taken["candidates"][1:]}
    return [
        Measurement(taken["title"], rows, taken["unit"], {f"{ours.name} over {it}": by for it, by in others.items()})
    ]


MEASUREMENTS: dict[str, Callable[[], list[Measurement]]] = {
    "launch": lambda: measure("launch"),
    "vec_add": lambda: measure("vec_add"),
    "sum": lambda: measure("sum"),
    "softmax": lambda: measure("softmax"),
    "layer-norm": lambda: measure("layer-norm"),
    "matmul": lambda: measure("matmul-f32"),
    "matmul-f16": lambda: measure("matmul-f16"),
    "attention": lambda: measure("attention"),
}
