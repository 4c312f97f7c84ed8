"""The arithmetic of bench/: the order of turns, the direction of ratios, what is wrong, and the reports."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import dpu_limits, first_launch, gpu, other_gpus, processor, tutorials, variance
from bench.measurement import Measurement, Row
from bench.problem import Problem, empty, measure
from bench.turns import Candidate, Device, Plan, Times, interleaved, pace, ratios
from toolchains.cli.tutorials import sources
from toolchains.system import paths
from toolchains.verbs import bench as bench_verb

PLAN = Plan(seconds=0.01)
CORPUS = paths.ROOT / "bench" / "corpus" / "corpus.toml"


def test_candidates_take_turns_each_on_its_device() -> None:
    calls: list[str] = []

    class Other(Device):
        def use(self) -> None:
            calls.append("|")

    candidates = {"a": Candidate(lambda: calls.append("a")), "b": Candidate(lambda: calls.append("b"), Other())}
    times = interleaved(candidates, rounds=3, batch=2)
    # One warm-up call, then the two calls of a timing.
    assert "".join(calls) == "aaa|bbb" * 3
    assert times["a"].runs == 3


def test_a_ratio_above_one_says_that_ours_is_faster_in_single_rounds() -> None:
    # The second round is slow for both, and the third for one of them.
    ours, peer = Times.of([1.0, 10.0, 1.0]), Times.of([2.0, 20.0, 30.0])
    assert ratios("x", ours, peer) == {"x, median": 2.0, "x, min": 2.0}


def test_a_table_names_every_candidate_with_its_times_rate_and_aim() -> None:
    table = Measurement(
        title="add",
        rows=[
            Row("ours", Times(2e-3, 3e-3, 7), 10.0),
            Row("theirs", Times(5e-6, 1.5, 7)),
            Row("modelled", cycles=1234567, rate=1.5),
        ],
        unit="GB/s",
        ratios={"over theirs": 1.234},
        beyond={"beyond theirs": 0.123, "beyond others": -0.5},
        aim="at least 1",
        failed={"others": "refused"},
    ).table()
    ours, theirs, cycles = table.splitlines()[1:4]
    assert all(text in ours for text in ("ours", "2.00 ms", "3.00 ms", "7 runs", "10.0 GB/s"))
    assert all(text in theirs for text in ("theirs", "5.00 us", "1.50 s"))
    assert "1,234,567 modelled cycles" in cycles and "1.5 GB/s" in cycles
    for text in ("over theirs: 1.23", "aim: at least 1", "not measured: others: refused"):
        assert text in table
    # A ratio of 1 is 20 characters.
    bars = Measurement("t", [], ratios={"a": 1.25, "bc": 0.5, "d": 9.0}).table().splitlines()[1:]
    assert bars == [
        f"  a: 1.25  {'#' * 20}|{'#' * 5}",
        f"  bc: 0.50 {'#' * 10}{' ' * 10}|",
        f"  d: 9.00  {'#' * 20}|{'#' * 20}>",
    ]
    assert "beyond theirs: +0.12 s" in table and "beyond others: -0.50 s" in table


def test_spawn_reads_the_times_that_the_process_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench").mkdir()
    script = "import os, sys; print(1, 2.5, 0.5, len(sys.argv[1] + os.environ['WHERE']), 2)"
    (tmp_path / "bench" / "first_launch.py").write_text(script)
    monkeypatch.setattr(first_launch, "ROOT", tmp_path)
    assert first_launch.spawn("vec_add", tmp_path, WHERE="there") == (1.0, 2.5, 0.5, 12.0, 2.0)


def test_the_bounds_of_a_dpu_follow_from_published_throughputs() -> None:
    # 52 M elements/s at 350 MHz; 350 / 10.3 - 5 and 350 / 58.6 - 5 cycles for an int32 multiplication and an addition.
    assert dpu_limits.addition_bound(52_000_000) == pytest.approx(350_000_000)
    assert dpu_limits.multiplication_bound("i32", 1, 1, 1, 1) == pytest.approx(28.98 + 0.97, abs=0.01)
    assert dpu_limits.dma_bound(2048, 4096) == 77 + 2 * 61 + 3 * 1024
    # PrIM's random accesses of 8 bytes: 72.6 MB/s are read and written.
    assert 16 * 350 / dpu_limits.dma_bound(8, 8, 8) == pytest.approx(72.6, rel=0.01)
    assert dpu_limits.multiplication_bound("f32", 2, 3, 4, 2) == pytest.approx(12 * (179.21 + 66.43), abs=0.1)


def doubling(**candidates: Any) -> tuple[Problem, dict[str, dict[str, Candidate]]]:
    """Return the problem of doubling 8 numbers, and who does so, each twice; each gets the output."""
    output, exact = empty((8,), "f32"), 2 * np.arange(8.0)
    problem = Problem("double", "GB/s", 64, 8, (), output, exact, 0.25, launch=print)
    calls = {name: Candidate(lambda write=write: write(output)) for name, write in candidates.items()}  # type: ignore[misc]
    return problem, {name: {"once": call, "again": call} for name, call in calls.items()}


def right(output: Any) -> None:
    output[...] = range(0, 16, 2)


def all_but_the_last(output: Any) -> None:
    output[:-1] = range(0, 14, 2)


def off(output: Any) -> None:
    right(output)
    output[3] += 0.5


def beyond(output: Any) -> None:
    right(output)
    np.lib.stride_tricks.as_strided(output, (9,), (4,))[8] = 0


def refused(output: Any) -> None:
    raise MemoryError("too large")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (all_but_the_last, "1 of 8 elements are wrong"),
        (off, "1 of 8 elements are wrong"),
        (beyond, "outside of its output"),
        (refused, "MemoryError: too large"),
    ],
)
@pytest.mark.parametrize("names", [("ours", "peer"), ("peer", "ours")])
def test_a_candidate_that_is_wrong_is_not_timed_and_has_no_ratio(wrong: Any, why: str, names: Any) -> None:
    # The first candidate of the other group has written all elements just before.
    found = measure(*doubling(**{"ours": right, "peer": right, names[0]: wrong}), PLAN)
    assert why in found.failed[names[0]] and [row.label for row in found.rows] == [names[1]] and not found.ratios


def test_a_problem_gives_a_rate_for_each_candidate_and_a_ratio_for_each_peer() -> None:
    found = measure(*doubling(ours=right, one=right, two=right), PLAN)
    assert [row.label for row in found.rows] == ["ours", "one", "two"] and not found.failed
    for row in found.rows:
        assert row.times and row.rate == pytest.approx(64e-9 / row.times.median)
        assert row.error == 0.0 and "fastest of 2" in row.detail
    assert {label.partition(",")[0] for label in found.ratios} == {"ours over one", "ours over two"}
    assert (found.bytes, found.operations) == (64, 8)


def test_only_a_device_that_may_refuse_an_option_is_measured_with_the_others() -> None:
    class Gpu(Device):
        refuses = True

    problem, groups = doubling(ours=right)
    ways = {**groups["ours"], "large": Candidate(lambda: refused(None), Gpu())}
    assert "1 refused" in measure(problem, {"ours": ways}, PLAN).rows[0].detail
    every = {"large": ways["large"]}
    assert "no configuration ran: large: MemoryError" in measure(problem, {"ours": every}, PLAN).failed["ours"]


def test_a_turn_is_long_enough_for_the_clock() -> None:
    candidates = {"short": Candidate(lambda: None), "long": Candidate(lambda: time.sleep(0.01))}
    paced = pace(candidates, Plan(seconds=0.1))
    assert paced["batch"]["long"] == 1 < paced["batch"]["short"]
    assert 7 <= paced["rounds"] <= 50


def test_result_is_checked_and_a_smaller_type_may_round_once() -> None:
    problem, _ = doubling()
    assert problem.check("returned", Candidate(lambda: problem.exact + 0.125, returns=True))[0] == 0.5
    with pytest.raises(AssertionError):
        problem.check("returned", Candidate(lambda: problem.exact + 1, returns=True))
    problem = replace(doubling()[0], exact=np.full(8, 1 + 2.0**-11), allowed=0.0)
    problem.check("f16", Candidate(lambda: np.ones(8, np.float16), returns=True))
    with pytest.raises(AssertionError):
        problem.check("f16", Candidate(lambda: np.full(8, 1 - 2.0**-11, np.float16), returns=True))


def test_the_comparison_of_a_tutorial_is_read_from_what_it_prints() -> None:
    lines = (
        "exp     triton       0.250 ms, least 0.200 of 12 runs      1.234 G elements/s",
        "exp     numpy     12.000 ms, least 11.000 of 5 runs      0.1 G elements/s",
    )
    said = "\n".join(["largest error 2.1e-07", *lines, ""])
    (ours, numpy), unit = tutorials.read(said)
    assert (ours.label, ours.rate, numpy.label, unit) == ("exp triton", 1.234, "exp numpy", "G elements/s")
    assert ours.times and ours.times.median == pytest.approx(0.25e-3)
    assert ours.times.min == pytest.approx(0.2e-3) and ours.times.runs == 12
    for nothing in ("largest error 0.1\n", said + said):
        with pytest.raises(AssertionError, match="no comparison"):
            tutorials.read(nothing)


def test_every_tutorial_prints_a_comparison_that_can_be_read() -> None:
    for path in sources():
        # The format string of the line, with its fields filled in.
        (line,) = re.findall(r'print\((f"[^\n]*np.median[^\n]*")\)', path.read_text())
        fields = re.sub(r"\{(name|who):\d+\}", "word    ", line[2:-1]).replace("{runs}", "5")
        assert tutorials.read(re.sub(r"\{[^}]*\}", "  1.00", fields) + "\n"), path.name


def test_a_library_that_uses_more_than_the_limit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "LIMIT", "avx2")
    monkeypatch.setattr(processor, "_openblas", lambda: "Haswell")
    found = processor.described()
    assert found["OpenBLAS"] == "Haswell" and found["limited to"] == "avx2" and int(found["threads"]) > 0
    monkeypatch.setattr(processor, "_openblas", lambda: "SkylakeX")
    with pytest.raises(RuntimeError, match="SkylakeX"):
        processor.described()


def found(ours: float, failed: dict[str, str], **more: object) -> str:
    """Return the Markdown of a measurement with a rate of ours, and 100 of the peer."""
    rows = [
        Row(name, Times.of([1.0, 2.0]), rate, detail="BLOCK=64", error=0.5)
        for name, rate in ((gpu.OURS, ours), ("Triton, CUDA", 100.0))
        if name not in failed
    ]
    measured = Measurement(
        "softmax",
        rows,
        "GB/s",
        {} if failed else {f"{gpu.OURS} over Triton, CUDA, median": ours / 100},
        on={"Triton, CUDA": "a GPU"},
        aims={"Triton, CUDA": (0.9, 1.0)},
        failed=failed,
    )
    return gpu.markdown(
        {"command": "it", "seconds": 60, "measurements": [asdict(measured)], "failed": {"sum": "no time"}, **more}
    )


def test_reports_of_a_gpu_and_of_the_corpus_say_what_is_missed() -> None:
    assert "| 0.95 | 0.9 | 1 |" in found(95, {}) and "- Triton, CUDA: a GPU\n" in found(95, {})
    assert "| **0.85**, missed |" in found(85, {})
    assert "| softmax | Triton, CUDA | 100 GB/s | 75 to 150 | BLOCK=64 | 0.5 |" in found(95, {})
    text = found(95, {gpu.OURS: "3 of 8 elements\nare wrong"})
    assert f"| not measured: {gpu.OURS} |" in text
    assert f"- softmax, {gpu.OURS}: 3 of 8 elements are wrong\n- sum: no time\n" in text
    key = f"{gpu.OURS} over {gpu.CUDA}, median"
    names = "abcdefg"
    each = [{"title": name, "ratios": {key: 2.0**-at} if at < 6 else {}} for at, name in enumerate(names)]
    assert gpu.summary(each) == "Geometric mean of 6 kernels: 0.18. The worst: f 0.03; e 0.06; d 0.12; c 0.25; b 0.50."
    assert "Geometric mean of 1 kernels: 0.95. The worst: softmax 0.95." in found(95, {}, corpus=True)
    assert "Nothing was compared" in found(95, {gpu.OURS: "wrong"}, corpus=True)


@pytest.mark.docker
@pytest.mark.slow
def test_kernels_of_the_corpus_are_right_on_a_vulkan_and_an_opencl_device() -> None:
    chosen = [row for row in tomllib.loads(CORPUS.read_text()).values() if row.get("quick")]
    words = [sys.executable, "-P", "-m", "invoke", "--search-root", str(paths.ROOT), "bench", "spirv-vulkan"]
    done = subprocess.run([*words, "--only=corpus"], capture_output=True, text=True, check=False)
    assert f"{len(chosen)} passed, 0 failed" in done.stdout + done.stderr, done.stdout + done.stderr
    assert done.stdout.count("Triton, OpenCL: ") == len(chosen)


def test_corpus_and_measurements_have_values_and_names_of_their_own() -> None:
    for name, row in tomllib.loads(CORPUS.read_text()).items():
        assert {len(each) for key in ("gpu_launches", "cpu_launches") for each in row[key]} == {len(row["names"])}, name
        assert len(row["gpu"]) == len(row["cpu"]), name
    suites = bench_verb.measurements("spirv-vulkan")
    # A measurement that is no suite has its suite's name.
    parts = [name for name in gpu.NAMES if name not in suites]
    assert len({*suites, *parts, *gpu.CORPUS}) == len(suites) + len(parts) + len(gpu.CORPUS)


def test_ended_or_late_measurement_of_a_gpu_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"began": ["matmul", "a"]}, {"result": {"name": "a", "data": {"measurements": ["of a"]}}}
    crashed = {"began": ["k", "b"]}, {"result": {"name": "b", "data": None, "failure": "SIGSEGV"}}
    program = tmp_path / "python"
    lines = "\n".join(f"echo '{json.dumps(event)}'" for event in (*measured, *crashed))
    program.write_text(f"#!/bin/sh\n{lines}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    options = argparse.Namespace(peer="none", tiny=True, limit=1.0, budget=60.0, corpus=True, no_bounds=False)
    done = gpu.measured(options, ["a", "b", "c"], [], lambda found: None)
    assert done["measurements"] == ["of a"] and done["corpus"]
    assert done["failed"] == {"b": "SIGSEGV", "c": "the run ended before it"}
    options.budget = -1.0
    late = gpu.measured(options, ["a", "c"], [], lambda found: None)
    assert late["failed"] == dict.fromkeys("ac", "there was no time left")


def test_a_run_on_a_gpu_that_is_killed_leaves_what_it_has_measured(tmp_path: Path) -> None:
    row = Measurement("first row", [Row(gpu.OURS, Times.of([1.0]), 1.0, error=0.5)])
    event = json.dumps({"result": {"name": "rms-norm", "data": {"measurements": [asdict(row)]}}})
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho '{event}'\nexec sleep 60\n")
    program.chmod(0o755)
    code = f"import sys; from bench import gpu; sys.executable = {str(program)!r}; gpu.main(sys.argv[1:])"
    out = tmp_path / "out"
    command = [sys.executable, "-c", code, f"--out={out}", "--corpus", "--only=rms-norm,argmax", "--peer=none"]
    with subprocess.Popen(command, cwd=paths.ROOT, stderr=subprocess.DEVNULL, start_new_session=True) as run:
        while not (out / "corpus.md").exists() and run.poll() is None:
            time.sleep(0.01)
        os.killpg(run.pid, signal.SIGKILL)
    written = json.loads((out / "corpus.json").read_text())
    assert [each["title"] for each in written["measurements"]] == ["first row"]
    assert written["failed"] == {"argmax": "the run ended before it"}
    assert "| first row |" in (out / "corpus.md").read_text()


def test_report_of_a_gpu_says_what_bounds_each_kernel() -> None:
    shader = {
        "statistics": {"Register Count": 96.0, "a | b": 1.0},
        "chosen": "num_stages=1 instead of 3",
        "signs": [{"kind": "spills", "shows": "4096 bytes", "next": "a smaller BLOCK"}],
    }
    known = {"kernel": "k", "bound": "memory", "share": 0.25, "shader": shader, "next": ["a smaller BLOCK"]}
    row = Row(gpu.OURS, Times.of([1.0]), 1.0, error=0.5)
    measurement = Measurement("row", [row], kernels=[known, {"kernel": "j", "unknown": "it prints\nnumbers"}])
    results = {"command": "x", "seconds": 1, "failed": {}, "measurements": [asdict(measurement)]}
    text = gpu.markdown(results)
    assert "| row | k | memory, 25% of its roof | spills: 4096 bytes | Register Count 96, a / b 1 | num_sta" in text
    assert " | num_stages=1 instead of 3 | a smaller BLOCK |" in text
    assert "| row | j | not known: it prints numbers |" in text
    results["measurements"] = [asdict(Measurement("row", [row]))]
    assert "What bounds" not in gpu.markdown(results)


def processes(**settings: list[float]) -> list[dict[str, Any]]:
    clocks = {"before": {"clocks.sm": 1200.0}, "after": {"clocks.sm": 1980.0}}
    return [
        {"setting": name, "device": "d", "kernels": {"k": {"turns": [each, each * 1.5, each * 2], **clocks}}}
        for name, times in settings.items()
        for each in times
    ]


def test_setting_is_a_cause_only_if_it_is_elsewhere_or_spreads_far_less() -> None:
    found = processes(
        plain=[1e-5, 2e-5, 3e-5],
        waits=[6e-5, 6e-5, 7e-5],
        offset=[2e-5, 2e-5, 2e-5],
        cold=[1e-5, 2e-5, 3e-5],
        host=[9e-5],
    )
    text = variance.table(found, {"cuda": "no torch"})
    assert "  may be a cause: waits (3.00 times plain), offset (spread 1.00 instead of 3.00)\n" in text
    assert "  ruled out, as far as 3 processes show: cold\n" in text
    assert "1200 to 1980" in text and "not measured: cuda: no torch" in text
    quiet = variance.table(processes(plain=[1e-5, 1e-5, 1.01e-5], cold=[1e-5, 1e-5, 1e-5]), {})
    assert "spread by 1.01: there is nothing to explain" in quiet and "a cause: none" in quiet
    assert "it takes 3 processes" in variance.table(processes(plain=[1e-5, 2e-5]), {})


def test_variance_refuses_a_setting_that_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        variance.main(["--settings=plain,moon"])
    assert "no setting moon; known: plain, offset" in capsys.readouterr().err


def test_kernel_that_is_compiled_for_no_gpu_is_counted_and_told_apart_from_a_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"registers": 24, "spilled": 0, "code": 2048, "spirv": 4000}
    row = {
        "small": {"a": {"refused by the driver": "too\nlarge"}, "b": {**made, "spilled": 3}, "c": made},
        "large": {"a": {**made, "spilled": 7}},
        "none": {"a": {"crashed": "it took more than 1 s"}},
        "few": {"a": {"refused": "no"}},
    }
    gpus = {
        name: {"what": "of two", "device": "G", "driver": "d 1", "subgroup": 16, "workgroup_bytes": 49152, **more}
        for name, more in (("x", {"matrices": [], "lacks": ["Float64"]}), ("y", {"matrices": ["f16"], "lacks": []}))
    }
    results = {"command": "python", "gpus": gpus, "kernels": {name: {"x": found} for name, found in row.items()}}
    (tmp_path / "other-gpus.json").write_text(json.dumps(results))
    assert other_gpus.main([f"--out={tmp_path}", "--render"]) == 1
    text = (tmp_path / "other-gpus.md").read_text()
    assert "| x | of two: G, without Float64 | d 1 | 16 | 48 KiB | none |" in text
    assert "| small | 24, 2.0 | not compiled |" in text and "| large | 24, 2.0, **7 spilled** |" in text
    assert "| none | **crashed** |" in text and "| few | **refused** |" in text
    assert "| x | 2 of 4 | 1 |" in text and "| y | 0 of 4 | 0 |" in text
    assert "- small, a: refused by the driver: too large (x)" in text
    results["kernels"] = {"small": {"x": {"c": made}}}
    (tmp_path / "other-gpus.json").write_text(json.dumps(results))
    assert other_gpus.main([f"--out={tmp_path}", "--render"]) == 0
    with pytest.raises(SystemExit):
        other_gpus.main([f"--out={tmp_path}", "--gpus=voodoo"])
    assert "no GPU voodoo; known: vega10, " in capsys.readouterr().err
    said = {"Max live registers": 9.0, "Spills": 2.0, "Code size": 8.0, "Loops": 1.0}
    assert other_gpus.figures_of(said) == {"registers": 9, "spilled": 2, "code": 8}
    with pytest.raises(LookupError, match="nothing of spilled, only of Max live registers, Code size"):
        other_gpus.figures_of({"Max live registers": 9.0, "Code size": 8.0})
    with pytest.raises(SystemExit):
        other_gpus.main([f"--out={tmp_path}", f"--shims={tmp_path}"])
    assert f"no shim in {tmp_path}; install" in capsys.readouterr().err


def _compiles(connection: Any, lanes: int) -> None:
    """Do in place of other_gpus.serve what the launches say."""
    if os.environ["AMDGPU_GPU_ID"] == "none":
        return
    connection.send({"device": os.environ["AMDGPU_GPU_ID"], "lanes": lanes})
    while True:
        match connection.recv():
            case "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            case "late":
                time.sleep(60)
            case launches:
                connection.send({"registers": len(launches), "spilled": 0})


def test_compiler_that_crashes_or_is_late_is_reported_and_the_next_kernel_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forking = multiprocessing.get_context("fork")
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: forking)
    monkeypatch.setattr(other_gpus, "serve", _compiles)
    options = argparse.Namespace(limit=1.0, shims=tmp_path, validate=False)
    before = dict(os.environ)
    compiler = other_gpus.Compiler(other_gpus.GPUS["navi31-32"], tmp_path, options)
    assert compiler.known == {"device": "navi31", "lanes": 32} and dict(os.environ) == before
    launches: Any = {"a": "crash", "b": "late", "c": ["one"], "d": ["one", "two"]}
    found = other_gpus.compiled(compiler, launches, every=False)
    crashed, late = {"crashed": "its process ended with status -9"}, {"crashed": "it took more than 1 s"}
    assert found == {"a": crashed, "b": late, "c": {"registers": 1, "spilled": 0}}
    assert other_gpus.compiled(compiler, launches, every=True)["d"] == {"registers": 2, "spilled": 0}
    compiler.close()
    with pytest.raises(SystemExit, match="mesa-drm-shim"):
        other_gpus.Compiler(replace(other_gpus.GPUS["vega10"], name="none"), tmp_path, options)
