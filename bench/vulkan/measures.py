"""What is measured: inputs, launches, peers, the check against float64, and the aims of each measure."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import kernels
import numpy as np
import numpy.typing as npt
import triton
from devices import Backend, Vulkan

Config = Mapping[str, int]
Arrays = dict[str, Any]
Launch = Callable[[], Any]
HALF_ULP = 2.0**-24  # of f32, relative
# For 4 subgroups of 32. Without the file there is no such candidate. What makes it:
# glslang --target-env vulkan1.3 -DBM=128 -DBN=128 -DBK=32 -DWR=2 -DWC=2 -DSE=0 -DST=1 -DPAD=8 X.comp -o X.spv
SHADER = Path(__file__).parent / "peers" / "matmul_f16_cooperative.spv"


@dataclass(frozen=True)
class Aim:
    """A share that the project wants to reach.

    Attributes:
        peer: the name of the candidate that ours is compared with.
        least, aim: shares of the peer's speed.
    """

    peer: str
    least: float
    aim: float


@dataclass
class Measure:
    """One thing to measure.

    Attributes:
        title: with sizes and types.
        amount: of work in one call: bytes, floating-point operations, or 1 for launches.
        unit: of the rate.
        scale: the rate is amount / seconds / scale.
        configs: launch options to choose the fastest of, the same for each backend of Triton.
        aims: what ours is compared with.
        output: the name of the array with the result.
    """

    title: str
    amount: float
    unit: str
    scale: float
    configs: Sequence[Config]
    aims: Sequence[Aim] = ()
    output: ClassVar[str] = "out"
    inputs: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def make(self, random: np.random.Generator) -> None:
        """Fill `inputs`."""
        raise NotImplementedError

    def result(self) -> tuple[tuple[int, ...], Any]:
        """Return the result's shape and type."""
        raise NotImplementedError

    def place(self, backend: Backend) -> Arrays:
        """Return the inputs and the poisoned result on a backend's device."""
        placed = {name: backend.put(array) for name, array in self.inputs.items()}
        return {**placed, self.output: backend.poisoned(*self.result())}

    def launch(self, backend: Backend, arrays: Arrays, config: Config) -> Any:
        """Launch the kernel once; return what Triton returns."""
        raise NotImplementedError

    def others(self, ours: Vulkan, arrays: Arrays) -> dict[str, Launch]:
        """Return more candidates on the Vulkan device, which write the same result."""
        return {}

    def torch(self, torch: Any, arrays: Arrays) -> dict[str, Launch]:
        """Return torch's own candidates; each returns its result."""
        return {}

    def error(self, found: npt.NDArray[Any]) -> float:
        """Return the largest error of a part of a result, divided by what is allowed; NaN counts as wrong."""
        raise NotImplementedError


def blocks(sizes: Sequence[int], warps: Sequence[int]) -> list[Config]:
    """Return all pairs."""
    return [{"BLOCK": block, "num_warps": count} for block in sizes for count in warps]


class Addition(Measure):
    def __init__(self, n: int) -> None:
        configs = blocks([block for block in (1024, 2048, 4096) if block <= n], [4, 8])
        super().__init__(f"vec_add f32, {n}", 12.0 * n, "GB/s", 1e9, configs, [Aim("torch", 0.97, 1.0)])
        self.n = n

    def make(self, random: np.random.Generator) -> None:
        self.inputs = {name: random.random(self.n, np.float32) for name in ("x", "y")}

    def result(self) -> tuple[tuple[int, ...], Any]:
        return (self.n,), np.float32

    def launch(self, backend: Backend, arrays: Arrays, config: Config) -> Any:
        grid = (triton.cdiv(self.n, config["BLOCK"]),)
        return backend.jit(kernels.add)[grid](arrays["x"], arrays["y"], arrays["out"], self.n, **config)

    def torch(self, torch: Any, arrays: Arrays) -> dict[str, Launch]:
        out = torch.empty_like(arrays["x"])
        return {"torch": lambda: torch.add(arrays["x"], arrays["y"], out=out)}

    def error(self, found: npt.NDArray[Any]) -> float:
        # One rounding, which NumPy does alike: the sums are equal.
        return 0.0 if np.array_equal(found, self.inputs["x"] + self.inputs["y"]) else float("inf")


class Rows(Measure):
    """A kernel that has one row a program."""

    def __init__(self, title: str, rows: int, columns: int) -> None:
        configs = blocks([triton.next_power_of_2(columns)], [4, 8, 16] if columns > 1024 else [4])
        aims = [Aim("Triton, CUDA", 0.9, 1.0)]
        super().__init__(f"{title}, {rows} x {columns}", 8.0 * rows * columns, "GB/s", 1e9, configs, aims)
        self.rows, self.columns = rows, columns
        self.checked = np.unique(np.linspace(0, rows - 1, 64).astype(int))

    def result(self) -> tuple[tuple[int, ...], Any]:
        return (self.rows, self.columns), np.float32

    def part(self) -> npt.NDArray[np.float64]:
        """Return the rows of the input that are checked."""
        return self.inputs["x"][self.checked].astype(np.float64)


class Softmax(Rows):
    def __init__(self, rows: int, columns: int) -> None:
        super().__init__("softmax f32", rows, columns)

    def make(self, random: np.random.Generator) -> None:
        self.inputs = {"x": random.standard_normal((self.rows, self.columns), np.float32)}

    def launch(self, backend: Backend, arrays: Arrays, config: Config) -> Any:
        return backend.jit(kernels.softmax)[(self.rows,)](arrays["x"], arrays["out"], self.columns, **config)

    def torch(self, torch: Any, arrays: Arrays) -> dict[str, Launch]:
        return {"torch": lambda: torch.softmax(arrays["x"], dim=1)}

    def error(self, found: npt.NDArray[Any]) -> float:
        powers = np.exp(self.part() - self.part().max(1, keepdims=True))
        exact = powers / powers.sum(1, keepdims=True)
        # An exponent of up to 12 is rounded in f32 (12 half units), the power has 2 ulp, the sum, of positive terms in
        # a tree of less than 40 levels, one half unit a level, the quotient 2 ulp.
        return float(np.max(np.abs(found[self.checked] - exact) / exact) / (64 * HALF_ULP))


class LayerNorm(Rows):
    def __init__(self, rows: int, columns: int) -> None:
        super().__init__("layer norm f32", rows, columns)

    def make(self, random: np.random.Generator) -> None:
        self.inputs = {"x": random.standard_normal((self.rows, self.columns), np.float32)}
        self.inputs |= {name: random.standard_normal(self.columns, np.float32) for name in ("weight", "bias")}

    def launch(self, backend: Backend, arrays: Arrays, config: Config) -> Any:
        x, weight, bias, out = (arrays[name] for name in ("x", "weight", "bias", "out"))
        return backend.jit(kernels.layer_norm)[(self.rows,)](x, weight, bias, out, self.columns, 1e-5, **config)

    def torch(self, torch: Any, arrays: Arrays) -> dict[str, Launch]:
        norm, shape = torch.nn.functional.layer_norm, (self.columns,)
        return {"torch": lambda: norm(arrays["x"], shape, arrays["weight"], arrays["bias"], 1e-5)}

    def error(self, found: npt.NDArray[Any]) -> float:
        part = self.part()
        centred = part - part.mean(1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        exact = normal * self.inputs["weight"] + self.inputs["bias"]
        # Sums in trees of less than 40 levels, one half unit a level of the sum of magnitudes, which is about that of
        # the numbers; then five operations.
        allowed = 64 * HALF_ULP * ((np.abs(normal) + 1) * np.abs(self.inputs["weight"]) + np.abs(self.inputs["bias"]))
        return float(np.max(np.abs(found[self.checked] - exact) / allowed))


class Sum(Measure):
    """The sums of blocks, then their sum.

    Args:
        options: elements of a block, warps, and programs; 0 programs for one a block.
    """

    def __init__(self, n: int, *options: tuple[int, int, int]) -> None:
        configs = [dict(zip(("BLOCK", "num_warps", "programs"), each, strict=True)) for each in options]
        super().__init__(f"sum f32, {n}", 4.0 * n, "GB/s", 1e9, configs, [Aim("torch", 0.95, 1.0)])
        self.n = n

    def make(self, random: np.random.Generator) -> None:
        self.inputs = {"x": random.random(self.n, np.float32)}

    def result(self) -> tuple[tuple[int, ...], Any]:
        return (1,), np.float32

    def place(self, backend: Backend) -> Arrays:
        return {**super().place(backend), "partial": backend.poisoned((1 << 15,), np.float32)}

    def launch(self, backend: Backend, arrays: Arrays, config: Config) -> Any:
        add = backend.jit(kernels.partial_sums)
        programs = config["programs"] or self.n // config["BLOCK"]
        options = {"BLOCK": config["BLOCK"], "num_warps": config["num_warps"], "LOOP": config["programs"] > 0}
        kernel = add[(programs,)](arrays["x"], arrays["partial"], self.n, **options)
        block = triton.next_power_of_2(programs)
        warps = 16 if block > 4096 else 4
        add[(1,)](arrays["partial"], arrays["out"], programs, BLOCK=block, num_warps=warps, LOOP=False)
        return kernel

    def torch(self, torch: Any, arrays: Arrays) -> dict[str, Launch]:
        return {"torch": lambda: torch.sum(arrays["x"])}

    def error(self, found: npt.NDArray[Any]) -> float:
        exact = self.inputs["x"].sum(dtype=np.float64)
        # Positive terms: each addition rounds once. A lane adds less than 128, and the trees have less than 40 levels.
        return float(abs(found.reshape(-1)[0] - exact) / (256 * HALF_ULP * exact))


class Product(Measure):
    """c = a @ b in f32, from f32 or f16."""

    def __init__(self, shape: tuple[int, int, int], dtype: Any, configs: Sequence[Config], aims: Sequence[Aim]) -> None:
        m, n, k = shape
        name = "f32 ieee" if dtype == np.float32 else "f16 -> f32"
        title = f"matmul {name}, {'x'.join(map(str, shape))}"
        super().__init__(title, 2.0 * m * n * k, "TFLOP/s", 1e12, configs, aims)
        self.m, self.n, self.k, self.dtype = m, n, k, dtype
        self.checked = np.unique(np.linspace(0, m - 1, 48).astype(int))

    def make(self, random: np.random.Generator) -> None:
        self.inputs = {
            name: random.standard_normal(shape, np.float32).astype(self.dtype)
            for name, shape in (("a", (self.m, self.k)), ("b", (self.k, self.n)))
        }

    def result(self) -> tuple[tuple[int, ...], Any]:
        return (self.m, self.n), np.float32

    def launch(self, backend: Backend, arrays: Arrays, config: Config) -> Any:
        grid = (triton.cdiv(self.m, config["BM"]) * triton.cdiv(self.n, config["BN"]),)
        sizes = ((self.m, config["BM"]), (self.n, config["BN"]), (self.k, config["BK"]))
        ragged = any(extent % block for extent, block in sizes)
        product = backend.jit(kernels.matmul)[grid]
        return product(arrays["a"], arrays["b"], arrays["out"], self.m, self.n, self.k, RAGGED=ragged, **config)

    def others(self, ours: Vulkan, arrays: Arrays) -> dict[str, Launch]:
        if self.dtype != np.float16 or not SHADER.exists() or self.m % 128 or self.n % 128 or self.k % 32:
            return {}
        from foundry_core.vulkan.device import Pipeline, opened

        device = opened()
        # The sizes that SHADER was compiled for.
        pipeline = Pipeline(device, SHADER.read_bytes(), "main", 36, device.properties.subgroup)
        pointers = [arrays[name].data_ptr() for name in ("a", "b", "out")]
        block = struct.pack("<QQQIII", *pointers, self.m, self.n, self.k)
        grid = (self.m // 128 * (self.n // 128), 1, 1)
        return {"shader by hand": lambda: device.launch(pipeline, grid, block)}

    def torch(self, torch: Any, arrays: Arrays) -> dict[str, Launch]:
        # In f16, cuBLAS rounds its result to f16.
        return {"cuBLAS": lambda: torch.mm(arrays["a"], arrays["b"])}

    def error(self, found: npt.NDArray[Any]) -> float:
        a, b = self.inputs["a"][self.checked].astype(np.float64), self.inputs["b"].astype(np.float64)
        # Each addition rounds once; a tensor core may cut instead, which is a whole unit.
        unit = HALF_ULP if self.dtype == np.float32 else 2 * HALF_ULP
        allowed = (self.k + 1) * unit * (np.abs(a) @ np.abs(b))
        if found.dtype == np.float16:
            allowed += 2.0**-11 * np.abs(a @ b)
        return float(np.max(np.abs(found[self.checked] - a @ b) / allowed))


class Attention(Measure):
    def __init__(self, batch: int, heads: int, length: int, depth: int, configs: Sequence[Config]) -> None:
        # Half of the two products, by the mask.
        flops = 2.0 * batch * heads * length * length * depth
        title = f"attention forward f16, {batch} x {heads} x {length} x {depth}, causal"
        super().__init__(title, flops, "TFLOP/s", 1e12, configs, [Aim("Triton, CUDA", 0.25, 0.5)])
        self.shape = (batch, heads, length, depth)

    def make(self, random: np.random.Generator) -> None:
        self.inputs = {name: random.standard_normal(self.shape, np.float32).astype(np.float16) for name in "qkv"}

    def result(self) -> tuple[tuple[int, ...], Any]:
        return self.shape, np.float16

    def launch(self, backend: Backend, arrays: Arrays, config: Config) -> Any:
        batch, heads, length, depth = self.shape
        grid = (length // config["BM"], batch * heads)
        q, k, v, out = (arrays[name] for name in ("q", "k", "v", "out"))
        return backend.jit(kernels.attention)[grid](q, k, v, out, depth**-0.5, length, D=depth, **config)

    def torch(self, torch: Any, arrays: Arrays) -> dict[str, Launch]:
        attention = torch.nn.functional.scaled_dot_product_attention
        return {"torch": lambda: attention(arrays["q"], arrays["k"], arrays["v"], is_causal=True)}

    def error(self, found: npt.NDArray[Any]) -> float:
        worst = 0.0
        for head in ((0, 0), (self.shape[0] - 1, self.shape[1] - 1)):
            q, k, v = (self.inputs[name][head].astype(np.float64) for name in "qkv")
            rows = np.unique(np.linspace(0, self.shape[2] - 1, 64).astype(int))
            scores = q[rows] @ k.T * self.shape[3] ** -0.5
            scores[np.arange(len(k))[None, :] > rows[:, None]] = -np.inf
            powers = np.exp(scores - scores.max(1, keepdims=True))
            weights = powers / powers.sum(1, keepdims=True)
            exact = weights @ v
            # The weights and the result are rounded to f16; all else is in f32, and smaller by far.
            allowed = 2 * 2.0**-11 * (weights @ np.abs(v)) + 2.0**-11 * np.abs(exact) + 2.0**-24
            worst = max(worst, float(np.max(np.abs(found[head][rows] - exact) / allowed)))
        return worst


class EmptyLaunch(Measure):
    """Launches of a kernel that does nothing, timed by the host's clock until the last has finished."""

    def __init__(self) -> None:
        aims = [Aim("Triton, CUDA", 0.3, 1.0)]
        super().__init__("launch of an empty kernel", 1.0, "launches/ms", 1e3, [{"num_warps": 4}], aims)

    def make(self, random: np.random.Generator) -> None:
        self.inputs = {}

    def result(self) -> tuple[tuple[int, ...], Any]:
        return (16,), np.float32

    def launch(self, backend: Backend, arrays: Arrays, config: Config) -> Any:
        return backend.jit(kernels.nothing)[(1,)](arrays["out"], **config)

    def error(self, found: npt.NDArray[Any]) -> float:
        return 0.0 if np.isnan(found).all() else float("inf")


def _tiles(*tiles: tuple[int, int, int, int, int]) -> list[Config]:
    return [dict(zip(("BM", "BN", "BK", "num_warps", "num_stages"), tile, strict=True)) for tile in tiles]


def _heads(*tiles: tuple[int, int, int, int, int]) -> list[Config]:
    return [dict(zip(("BM", "BN", "num_warps", "num_stages", "TRANS"), tile, strict=True)) for tile in tiles]


_F32 = _tiles(
    (128, 128, 16, 8, 2),
    (128, 128, 16, 8, 3),
    (128, 128, 32, 8, 2),
    # CUDA's products have a depth of at least 16.
    (128, 128, 8, 8, 2),
    (128, 64, 16, 4, 2),
    (64, 128, 16, 4, 3),
    (64, 64, 16, 4, 3),
)
_F16 = _tiles(
    (128, 128, 32, 4, 2),
    (128, 128, 32, 4, 3),
    (128, 128, 64, 8, 3),
    (128, 256, 64, 8, 3),
    (128, 256, 32, 8, 2),
    (128, 128, 32, 8, 2),
    (64, 128, 32, 4, 2),
)
_ATTENTION = _heads(
    (128, 64, 4, 2, 1),
    (128, 64, 8, 2, 1),
    (128, 64, 4, 3, 1),
    (128, 128, 8, 3, 1),
    (64, 64, 4, 2, 1),
    (128, 32, 4, 2, 1),
    (128, 64, 4, 2, 0),
    (64, 64, 4, 2, 0),
)
_CUDA = "Triton, CUDA"


def measures(*, tiny: bool) -> dict[str, Measure]:
    """Return the measures by name.

    Args:
        tiny: sizes and tiles for a CPU device, to try the program.
    """
    f32, f16 = (_tiles((16, 16, 16, 2, 2), (16, 16, 16, 1, 1)),) * 2 if tiny else (_F32, _F16)
    cublas = [Aim(_CUDA, 0.9, 1.02), Aim("cuBLAS", 0.8, 0.9)]
    sizes = [(48, 48, 48), (32, 32, 32), (35, 45, 51)] if tiny else [(4096,) * 3, (2048,) * 3, (4001, 3999, 4003)]
    tensor_cores = [Aim(_CUDA, 0.35, 0.5), Aim("shader by hand", 0.85, 1.1)]
    return {
        "matmul-f32": Product(sizes[0], np.float32, f32, cublas),  # type: ignore[arg-type]
        "matmul-f16": Product(sizes[0], np.float16, f16, tensor_cores),  # type: ignore[arg-type]
        "attention": Attention(1, 2, 64, 16, _heads((16, 16, 2, 2, 1), (16, 16, 2, 2, 0)))
        if tiny
        else Attention(4, 32, 2048, 64, _ATTENTION),
        "vec_add": Addition(1 << 10 if tiny else 1 << 28),
        "softmax": Softmax(8, 512) if tiny else Softmax(32768, 4096),
        "layer-norm": LayerNorm(8, 512) if tiny else LayerNorm(32768, 4096),
        "sum": Sum(1 << 14, (256, 4, 0), (256, 4, 16))
        if tiny
        else Sum(1 << 28, (16384, 8, 0), (8192, 8, 0), (8192, 8, 1056), (4096, 8, 1056)),
        "launch": EmptyLaunch(),
        "matmul-f32-2048": Product(sizes[1], np.float32, f32, [Aim(_CUDA, 0.9, 1.02)]),  # type: ignore[arg-type]
        "matmul-f32-ragged": Product(sizes[2], np.float32, f32, [Aim(_CUDA, 0.9, 1.02)]),  # type: ignore[arg-type]
    }
