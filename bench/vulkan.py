"""List the measurements of a target that runs on a Vulkan device; vulkan.toml has their rows.

On a GPU there is no peer in the image; gpu.py compares with Triton's CUDA backend and torch where they are. On lavapipe
the sizes are small, and the peer is the same kernel through OpenCL on PoCL: both are the same processor.
FOUNDRY_BENCH_PEER names another peer: cuda, opencl or none. FOUNDRY_BENCH_TINY=1 takes the small sizes on a GPU, too.
"""

from __future__ import annotations

import functools
import os
import struct
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import corpus
from .devices import ByHostClock, Cuda, Triton, Vulkan
from .measurement import Measurement, Measuring, Row, Suite
from .problem import Problem, measure
from .problems import attention, kernels, layer_norm, matmul, reductions, softmax, vec_add
from .turns import Candidate, Candidates, Plan, ratios, take_turns

CUDA, CUBLAS, TORCH, SHADER = "Triton, CUDA", "cuBLAS", "torch", "shader by hand"
# For 4 subgroups of 32. Without the file there is no such candidate. What makes it:
# glslang --target-env vulkan1.3 -DBM=128 -DBN=128 -DBK=32 -DWR=2 -DWC=2 -DSE=0 -DST=1 -DPAD=8 X.comp -o X.spv
_SHADER = Path(__file__).parent / "vulkan_peers" / "matmul_f16_cooperative.spv"
# A GPU adds in trees of less than this many levels, each of which rounds.
_LEVELS = 40
_ON_GPU = Plan(10e-3, seconds=0.3, least=7, most=7, warm=0.5)
_ON_CPU = Plan(1e-3, seconds=0.0, least=3, most=3)
_ROWS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@functools.cache
def devices() -> tuple[Triton, ...]:
    """Return our device, and the peer's if there is one."""
    ours = Vulkan()
    match os.environ.get("FOUNDRY_BENCH_PEER") or ("opencl" if _on_cpu(ours) else "none"):
        case "cuda":
            return ours, Cuda()
        case "opencl":
            from triton_spirv_backend.opencl import SpirvDriver

            return ours, Triton("Triton, OpenCL", SpirvDriver())
    return (ours,)


def _on_cpu(device: Triton) -> bool:
    from foundry_core.runtime.device_report import Kind

    return device.driver.device_report().kind is not Kind.HARDWARE


def tiny() -> bool:
    """Return whether to take the sizes and tiles for a CPU."""
    return _on_cpu(devices()[0]) or os.environ.get("FOUNDRY_BENCH_TINY") == "1"


def _plan() -> Plan:
    return Plan(5e-3, least=9, most=9, warm=0.05) if tiny() else Plan(25e-3, least=9, most=9, warm=3.0)


def _on() -> dict[str, str]:
    return {device.name: device.described() for device in devices()}


def prepared(name: str, size: str) -> tuple[Problem, dict[str, Any]]:
    """Return a problem of vulkan.toml for a "gpu" or a "cpu", and its launch options by their labels."""
    own = _ROWS[name]
    shared = _ROWS[own.get("like", name)]
    found = {**shared[size], **own.get(size, {})}
    launches = [dict(zip(shared["names"], each, strict=True)) for each in found["launches"]]
    labelled = {", ".join(f"{key}={value}" for key, value in each.items()): each for each in launches}
    return replace(_MAKERS[name](*found["row"]), aim="", others={}), labelled


def compare(name: str, torch: str = TORCH) -> list[Measurement]:
    """Compare our device with the peer, and with torch where that is.

    Args:
        name: of the problem in vulkan.toml.
        torch: the name of torch's candidate.
    """
    problem, labelled = prepared(name, "cpu" if tiny() else "gpu")
    groups = {device.name: device.candidates(problem, labelled) for device in devices()}
    ours, *peers = devices()
    if by_hand := _by_hand(problem, ours):
        groups[SHADER] = by_hand
    for peer in peers:
        if isinstance(peer, Cuda):
            groups[torch] = peer.torchs(problem)
    return [measure(problem, groups, _plan(), on=_on(), aims=_ROWS[name]["aims"])]


def _by_hand(problem: Problem, ours: Triton) -> Candidates:
    """Return a shader for products of f16 on tensor cores, if the sizes are those that it was compiled for."""
    if not problem.title.startswith("matmul f16") or not _SHADER.exists():
        return {}
    (m, k), n = problem.inputs[0].shape, problem.output.shape[1]
    if m % 128 or n % 128 or k % 32:
        return {}
    from foundry_core.vulkan.device import Pipeline, opened

    device = opened()
    pipeline = Pipeline(device, _SHADER.read_bytes(), "main", 36, device.properties.subgroup)
    arrays = [ours.put(array) for array in (*problem.inputs, problem.output)]
    block = struct.pack("<QQQIII", *(array.data_ptr() for array in arrays), m, n, k)
    grid = (m // 128 * (n // 128), 1, 1)
    # The arrays must live as long as the candidate, which has their addresses only.
    return {"": Candidate(lambda _=arrays: device.launch(pipeline, grid, block), ours, arrays[-1])}  # type: ignore[misc]


def launch() -> list[Measurement]:
    """Time launches of kernels that do next to nothing, by the host's clock until the last has finished."""
    return [
        _launches("launch of an empty kernel", kernels.nothing),
        _launches("launch of a kernel with eight arguments", kernels.nothing_of_eight, 1, 2, 3, 2.5),
    ]


def _launches(title: str, kernel: Any, *numbers: float) -> Measurement:
    candidates = {}
    for device in devices():
        arrays = [device.put(np.zeros(16, np.float32)) for _ in range(len(numbers) or 1)]
        call = partial(device.jit(kernel)[(1,)], *arrays, *numbers, num_warps=4)
        candidates[device.name] = Candidate(call, ByHostClock(device))
    times = take_turns(candidates, _plan())
    (ours, taken), *peers = times.items()
    compared: dict[str, float] = {}
    for name, theirs in peers:
        compared |= ratios(f"{ours} over {name}", taken, theirs)
    rows = [Row(name, each, 1e-3 / each.median) for name, each in times.items()]
    return Measurement(title, rows, "launches/ms", compared, on=_on(), aims={CUDA: (0.3, 1.0)})


def _spread(rows: int, count: int = 64) -> Any:
    return np.unique(np.linspace(0, rows - 1, count).astype(int))


def _rows(problem: Callable[..., Problem], rows: int, columns: int) -> Problem:
    return problem(rows, columns, "f32", roundings=_LEVELS, checked=_spread(rows))


def _product(m: int, n: int, k: int, kind: str = "f32") -> Problem:
    # A tensor core may cut instead of rounding.
    units = 1 if kind == "f32" else 2
    made = matmul.problem(m, n, k, kind, to="f32", units=units, checked=_spread(m, 48))
    title = made.title.replace(" f32,", " f32 ieee,") if kind == "f32" else made.title
    return replace(made, title=title, unit="TFLOP/s", launch=partial(matmul.row_major, (m, n, k)))


def _attention(heads: int, length: int, depth: int) -> Problem:
    made = attention.problem(heads, length, depth, "f16", True, checked=[0, heads - 1])
    return replace(made, unit="TFLOP/s")


def _sum(n: int) -> Problem:
    # A lane adds less than 128 numbers before the trees.
    made = reductions.problem("sum", 1, n, "f32", roundings=256)
    return replace(made, launch=partial(reductions.strided, n))


def _corpus(row: Mapping[str, Any]) -> list[Measurement]:
    """Compare our device with the peer on a row of corpus.toml."""
    size = "cpu" if tiny() else "gpu"
    made, options = corpus.problem(row, size), corpus.launches(row, size)
    groups = {device.name: device.candidates(made, options) for device in devices()}
    plan = _ON_CPU if size == "cpu" else _ON_GPU
    return [measure(made, groups, plan, on=_on(), aims={CUDA: (row["least"], 1.0)})]


def _corpus_measurements(quick: bool) -> dict[str, Measuring]:
    return {name: partial(_corpus, row) for name, row in corpus.ROWS.items() if bool(row.get("quick")) == quick}


_MAKERS: dict[str, Callable[..., Problem]] = {
    **dict.fromkeys(("matmul-f32", "matmul-f32-2048", "matmul-f32-ragged", "matmul-f16"), _product),
    "attention": _attention,
    "vec_add": partial(vec_add.problem, kind="f32"),
    "softmax": partial(_rows, softmax.problem),
    "layer-norm": partial(_rows, layer_norm.problem),
    "sum": _sum,
}
MEASUREMENTS: dict[str, Measuring | Suite] = {
    "matmul": Suite(
        {"matmul-f32": partial(compare, "matmul-f32", CUBLAS)},
        {name: partial(compare, name, CUBLAS) for name in ("matmul-f32-2048", "matmul-f32-ragged")},
    ),
    "matmul-f16": partial(compare, "matmul-f16", CUBLAS),
    "attention": partial(compare, "attention"),
    "vec_add": partial(compare, "vec_add"),
    "softmax": partial(compare, "softmax"),
    "layer-norm": partial(compare, "layer-norm"),
    "sum": partial(compare, "sum"),
    "launch": launch,
    "corpus": Suite(_corpus_measurements(True), _corpus_measurements(False)),
}
