"""Compile the kernels of bench for GPUs that are not here, by the compilers of their drivers: nothing is run.

    export PYTHONPATH=e2e FOUNDRY_SPIRV_API=vulkan
    python -m bench.other_gpus --out=DIR                    where Mesa's drivers and Debian's mesa-drm-shim are
    python -m bench.other_gpus --out=DIR --shims=FOLDER     where the files lib*_noop_drm_shim.so are elsewhere
                                                            (Intel's is built with Mesa: -Dtools=drm-shim,intel)
    python -m bench.other_gpus --out=DIR --gpus=navi31 --only=softmax,matmul-bias
    python -m bench.other_gpus --out=DIR --all              all configurations, and not the first that compiles
    python -m bench.other_gpus --out=DIR --validate         with the validation layer, and spirv-val
    python -m bench.other_gpus --out=DIR --render           write the Markdown again from the JSON

A shim answers the driver in place of Linux, as if there was a GPU. The driver says what that GPU can do, and compiles
for it as usual. DIR gets other-gpus.json and other-gpus.md, written after each kernel. A compiler that crashes or takes
longer than --limit is reported, and a new process goes on. The exit status is 1 if a kernel was compiled in none of its
configurations, or a compiler crashed or took too long.
"""

from __future__ import annotations

import argparse
import inspect
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from .gpu import CORPUS

# The kernels of vulkan.toml that are not in the corpus.
_TUNED = ("vec_add", "softmax", "matmul-f32", "matmul-f16", "attention")
NAMES = [*_TUNED, *CORPUS]
# What AMD's and Intel's compilers call a figure; several are added.
_FIGURES = {
    "registers": ("VGPRs", "Max live registers"),
    "spilled": ("Spilled VGPRs", "Spilled SGPRs", "Spills"),
    "code": ("Code size",),
}
# How much of a reason is printed; the JSON has all.
_REASON = 400
_SHIMS = Path("/usr/lib/x86_64-linux-gnu")
_DRIVERS = Path("/usr/share/vulkan/icd.d")


@dataclass(frozen=True)
class Gpu:
    """A GPU to compile for.

    Attributes:
        what: its kind, in words.
        name: the shim's name of it.
        lanes: of a subgroup; 0 for as many as the driver says.
        shim, variable, driver: the shim's file, its variable for the name, and the file that names the driver.
    """

    what: str
    name: str
    lanes: int = 0
    shim: str = "libamdgpu_noop_drm_shim.so"
    variable: str = "AMDGPU_GPU_ID"
    driver: str = "radeon_icd.json"


_INTEL = ("libintel_noop_drm_shim.so", "INTEL_STUB_GPU_PLATFORM", "intel_icd.json")
GPUS = {
    "vega10": Gpu("GCN 5", "vega10"),
    "navi21-32": Gpu("RDNA 2", "navi21", 32),
    "navi31": Gpu("RDNA 3", "navi31"),
    "navi31-32": Gpu("RDNA 3", "navi31", 32),
    "gfx1201-32": Gpu("RDNA 4", "gfx1201", 32),
    "tgl-16": Gpu("Xe", "tgl", 16, *_INTEL),
    "dg2-8": Gpu("Xe-HPG", "dg2", 8, *_INTEL),
    "dg2-16": Gpu("Xe-HPG", "dg2", 16, *_INTEL),
    "dg2": Gpu("Xe-HPG", "dg2", 0, *_INTEL),
    "bmg-16": Gpu("Xe 2", "bmg", 16, *_INTEL),
    "bmg": Gpu("Xe 2", "bmg", 0, *_INTEL),
}


@dataclass(frozen=True)
class Pointer:
    """An array among the arguments of a launch, without its elements."""

    kind: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """What Triton compiles a kernel for: the kernel's place, numbers and pointers, and the launch options."""

    module: str
    name: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]


def launches(name: str) -> dict[str, list[Launch]]:
    """Return the launches of a kernel of bench, by configuration."""
    from . import corpus, vulkan

    if name in corpus.ROWS:
        problem, options = corpus.problem(corpus.ROWS[name], "gpu"), corpus.launches(corpus.ROWS[name], "gpu")
    else:
        problem, options = vulkan.prepared(name, "gpu")
    pointers = [Pointer(array.dtype.name, array.shape) for array in (*problem.inputs, problem.output)]
    found: dict[str, list[Launch]] = {label: [] for label in options}
    for label, given in options.items():
        problem.launch(lambda kernel, taken=found[label]: _Recorder(kernel, taken), *pointers, **given)
    return found


class _Recorder:
    """Stands for a kernel, and keeps its launches."""

    def __init__(self, kernel: Any, taken: list[Launch]) -> None:
        self._kernel, self._taken = kernel.fn, taken

    def __getitem__(self, grid: Any) -> Any:
        def launch(*arguments: Any, **options: Any) -> None:
            self._taken.append(Launch(self._kernel.__module__, self._kernel.__name__, arguments, options))

        return launch


def serve(connection: Any, lanes: int) -> None:
    """Compile what comes through a connection, for the GPU that the shim of this process describes."""
    import triton
    from foundry_core.vulkan.device import Pipeline, opened

    types = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
    device = opened()
    if lanes:
        assert device.properties.least_subgroup <= lanes <= device.properties.most_subgroup
        device.properties.subgroup = lanes
    # It is found by a launch, and there are none here: both are assumed.
    vars(device)["fuses"] = (32, 64)
    known = device.target()
    connection.send(
        {
            "device": device.name,
            "driver": device.properties.driver.decode(),
            "subgroup": known.warp_size,
            "workgroup_bytes": known.workgroup_bytes,
            "invocations": known.invocations,
            "matrices": sorted({f"{each.factor} {each.rows}x{each.columns}x{each.depth}" for each in known.fragments}),
            "lacks": list(known.lacks),
        }
    )
    while True:
        figures: dict[str, float] = {}
        who = "refused"
        try:
            for launch in connection.recv():
                arguments = [
                    triton.MockTensor(
                        triton.language.dtype(types.get(each.kind, each.kind.replace("bool", "int1"))), each.shape
                    )
                    if isinstance(each, Pointer)
                    else each
                    for each in launch.arguments
                ]
                kernel = getattr(import_module(launch.module), launch.name)
                who = "refused"
                made = kernel.warmup(*arguments, grid=(1,), **launch.options)
                who = "refused by the driver"
                said = Pipeline(
                    device, made.asm["spv"], made.metadata.name, made.metadata.argument_bytes, known.warp_size
                ).describe()
                for name, figure in figures_of(said).items():
                    figures[name] = max(figures.get(name, 0), figure)
                figures["spirv"] = max(figures.get("spirv", 0), len(made.asm["spv"]))
            connection.send(figures)
        except EOFError:
            return
        except Exception as failure:
            connection.send({who: f"{type(failure).__name__}: {failure}"})


def figures_of(said: Mapping[str, float]) -> dict[str, float]:
    """Return the figures of what a compiler said of a kernel.

    Raises:
        LookupError: it says nothing of one.
    """
    found = {name: [said[label] for label in labels if label in said] for name, labels in _FIGURES.items()}
    if missing := [name for name, each in found.items() if not each]:
        raise LookupError(f"the compiler says nothing of {', '.join(missing)}, only of {', '.join(said)}")
    return {name: sum(each) for name, each in found.items()}


class Compiler:
    """A process that compiles for a GPU. After a crash there is a new one.

    Attributes:
        known: what the driver says of the GPU.
    """

    def __init__(self, gpu: Gpu, cache: Path, options: argparse.Namespace) -> None:
        self._gpu, self._limit = gpu, options.limit
        self._env = {
            "LD_PRELOAD": str(options.shims / gpu.shim),
            gpu.variable: gpu.name,
            "VK_DRIVER_FILES": str(_DRIVERS / gpu.driver),
            "MESA_SHADER_CACHE_DISABLE": "1",
            "FOUNDRY_VULKAN_VALIDATION": str(int(options.validate)),
            # Nothing is taken from earlier runs, nor left for others.
            "TRITON_CACHE_DIR": str(cache / "triton"),
            "XDG_CACHE_HOME": str(cache),
        }
        self._start()

    def _start(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._connection, end = spawning.Pipe()
        self._process = spawning.Process(target=serve, args=(end, self._gpu.lanes), daemon=True)
        before = dict(os.environ)
        os.environ.update(self._env)
        try:
            self._process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        end.close()
        self.known = self._answer()
        if "device" not in self.known:
            raise SystemExit(
                f"the driver does not describe {self._gpu.name}: {self.known}\n"
                f"It needs {self._env['LD_PRELOAD']}, of Debian's package mesa-drm-shim (--shims= names another "
                f"folder), and {self._env['VK_DRIVER_FILES']}, of the same version of mesa-vulkan-drivers."
            )

    def compile(self, launches: list[Launch]) -> dict[str, Any]:
        """Return the figures of a configuration, the largest of its kernels; or why there are none."""
        self._connection.send(launches)
        found = self._answer()
        if "crashed" in found:
            self.close()
            self._start()
        return found

    def _answer(self) -> dict[str, Any]:
        if not self._connection.poll(self._limit):
            return {"crashed": f"it took more than {self._limit:g} s"}
        try:
            return self._connection.recv()  # type: ignore[no-any-return]
        except EOFError:
            self._process.join()
            return {"crashed": f"its process ended with status {self._process.exitcode}"}

    def close(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.join()


def compiled(compiler: Compiler, configurations: Mapping[str, list[Launch]], every: bool) -> dict[str, Any]:
    """Return what a compiler made of each configuration up to the first that it takes, or of every one."""
    found: dict[str, Any] = {}
    for label, launches in configurations.items():
        found[label] = compiler.compile(launches)
        if "registers" in found[label] and not every:
            break
    return found


def main(words: list[str]) -> int:
    """Do what the module says; return the exit status."""
    parser = argparse.ArgumentParser(
        "bench.other_gpus",
        description=inspect.cleandoc(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--shims", type=Path, default=_SHIMS, help="the folder with the shims")
    parser.add_argument("--gpus", help=f"some of {', '.join(GPUS)}; default: those whose shim is there")
    parser.add_argument("--only", default=",".join(NAMES), help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--all", action="store_true", help="all configurations, and not the first that compiles")
    parser.add_argument("--validate", action="store_true", help="a message of the validation layer is a refusal")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one configuration")
    parser.add_argument("--render", action="store_true", help="write the Markdown again, and compile nothing")
    options = parser.parse_args(words)
    options.gpus = options.gpus or ",".join(name for name, gpu in GPUS.items() if (options.shims / gpu.shim).exists())
    if not options.gpus and not options.render:
        parser.error(f"no shim in {options.shims}; install Debian's mesa-drm-shim, or name its folder by --shims")
    for what, given, names in (("GPU", options.gpus, GPUS), ("kernel", options.only, NAMES)):
        if unknown := [name for name in given.split(",") if name and name not in names]:
            parser.error(f"no {what} {', '.join(unknown)}; known: {', '.join(names)}")
    path = options.out / "other-gpus.json"
    if options.render:
        results = json.loads(path.read_text())
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        results = run(options, path, words)
    write(path, results)
    return int(any(not _best(each) or _crashes(each) for row in results["kernels"].values() for each in row.values()))


def run(options: argparse.Namespace, path: Path, words: list[str]) -> dict[str, Any]:
    """Compile the kernels and return what came of it; it is written after each of them."""
    results: dict[str, Any] = {"command": " ".join(["python -m bench.other_gpus", *words]), "gpus": {}, "kernels": {}}
    compilers: dict[str, Compiler] = {}
    with tempfile.TemporaryDirectory() as cache:
        try:
            for name in options.gpus.split(","):
                compilers[name] = Compiler(GPUS[name], Path(cache) / name, options)
                results["gpus"][name] = {"what": GPUS[name].what, **compilers[name].known}
            for name in options.only.split(","):
                configurations = launches(name)
                row = results["kernels"][name] = {}
                for gpu, compiler in compilers.items():
                    row[gpu] = compiled(compiler, configurations, options.all)
                    print(f"{name}, {gpu}: {_cell(row[gpu])}", flush=True)
                write(path, results)
        finally:
            for compiler in compilers.values():
                compiler.close()
    return results


def write(path: Path, results: Mapping[str, Any]) -> None:
    """Write the JSON and the Markdown; a run that is killed leaves whole files."""
    for file, text in ((path, json.dumps(results, indent=1) + "\n"), (path.with_suffix(".md"), markdown(results))):
        beside = file.with_name(f"{file.name}.part")
        beside.write_text(text)
        beside.replace(file)


def markdown(results: Mapping[str, Any]) -> str:
    """Return the report of what `run` returns."""
    gpus, kernels = results["gpus"], results["kernels"]
    lines = [
        "# Kernels compiled for GPUs that are not here",
        "",
        f"Written by `{results['command']}`. Compiled, not run: none of these GPUs was there, so this says nothing of "
        "values or times. The figures are those of the driver's own compiler (VK_KHR_pipeline_executable_properties).",
        "",
        "| GPU | what it is | driver | subgroup | workgroup memory | cooperative matrices |",
        "|---|---|---|--:|--:|---|",
    ]
    for name, gpu in gpus.items():
        lacks = f", without {', '.join(gpu['lacks'])}" if gpu["lacks"] else ""
        cells = (
            name,
            f"{gpu['what']}: {gpu['device']}{lacks}",
            gpu["driver"],
            str(gpu["subgroup"]),
            f"{gpu['workgroup_bytes'] >> 10} KiB",
            ", ".join(gpu["matrices"]) or "none",
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "A cell has the vector registers of an invocation, and KiB of code, of the first configuration of bench that "
        "compiles, with how many registers were spilled to memory, if any. Of several kernels it is the most. Intel's "
        "compiler counts a subgroup's registers that are live at once before it allocates, and spilling instructions.",
        "",
        f"| kernel | {' | '.join(gpus)} |",
        f"|---|{'--:|' * len(gpus)}",
    ]
    for name, row in kernels.items():
        lines.append(f"| {name} | {' | '.join(_cell(row.get(gpu, {})) for gpu in gpus)} |")
    counted = [
        f"| {gpu} | {sum(bool(_best(row.get(gpu, {}))) for row in kernels.values())} of {len(kernels)} "
        f"| {sum(_best(row.get(gpu, {})).get('spilled', 0) > 0 for row in kernels.values())} |"
        for gpu in gpus
    ]
    if left := [name for name in GPUS if name not in gpus]:
        lines += ["", f"Not compiled for: {', '.join(left)}."]
    lines += ["", "| GPU | kernels that compile | of which spill |", "|---|--:|--:|", *counted, ""]
    reasons: dict[str, list[str]] = {}
    for name, row in kernels.items():
        for gpu, found in row.items():
            for label, each in found.items():
                if "registers" not in each:
                    reason = " ".join(": ".join(*each.items()).split())[:_REASON]
                    reasons.setdefault(f"{name}, {label}: {reason}", []).append(gpu)
    lines += ["Configurations that were not compiled:", ""] if reasons else ["No configuration was refused."]
    lines += [f"- {reason} ({', '.join(where)})" for reason, where in reasons.items()]
    return "\n".join(lines) + "\n"


def _best(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the configuration with the fewest spilled registers; {} if none was compiled."""
    made = [each for each in found.values() if "registers" in each]
    return min(made, key=lambda each: each["spilled"], default={})


def _crashes(found: Mapping[str, Any]) -> bool:
    return any("crashed" in each for each in found.values())


def _cell(found: Mapping[str, Any]) -> str:
    best = _best(found)
    if not found:
        return "not compiled"
    if not best:
        return "**crashed**" if _crashes(found) else "**refused**"
    spilled = f", **{best['spilled']:g} spilled**" if best["spilled"] else ""
    return f"{best['registers']:g}, {best['code'] / 1024:.1f}{spilled}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
