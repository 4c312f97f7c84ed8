"""What is recorded of a script that is packed, and the forms of its launches: with stand-ins for Triton's classes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from foundry_core.packed import __main__ as script
from foundry_core.packed import forms
from foundry_core.packed.forms import Kernel, Parameter, Variant
from foundry_core.packed.recording import ArrayUse, Choice, Launch, Recorder
from foundry_core.packed.roads import Form, OpenCLRoad, PackError


@dataclass
class Source:
    """Triton's source object of `def add(x, n, m: tl.int64, MODE: tl.constexpr)`."""

    fn: Any
    signature: dict[str, str]
    constants: dict[tuple[int, ...], Any]
    attrs: dict[tuple[int, ...], Any]
    name: str = "add"


_PARAMS = {"x": "", "n": "", "m": "i64", "MODE": ""}
_FUNCTION = SimpleNamespace(
    cache_key="key",
    params=[
        SimpleNamespace(name=name, annotation_type=type, is_constexpr=name == "MODE") for name, type in _PARAMS.items()
    ],
)
_DIVIDES = [["tt.divisibility", 16]]


def _launch(n: int, mode: Any, binary: bytes = b"", **options: Any) -> Launch:
    one: dict[tuple[int, ...], Any] = {(1,): 1} if n == 1 else {}
    signature = {"x": "*fp32", "n": "constexpr" if one else "i32", "m": "i64", "MODE": "constexpr"}
    attrs: dict[tuple[int, ...], Any] = {(at,): _DIVIDES for at in (0, *[1] * (n % 16 == 0))}
    source = Source(_FUNCTION, signature, {**one, (3,): mode}, attrs)
    return Launch(source, SimpleNamespace(binary=binary, **options), (1, 1, 1), {"n": n, "m": 1, "MODE": mode}, None)


def _kernel(monkeypatch: pytest.MonkeyPatch, *launches: Launch) -> Kernel:
    """Return what is packed of launches, with a compiler that writes what it was given."""

    def compiled(source: Source, launch: Launch, *_: Any) -> Variant:
        parameters = {}
        for position, (name, type) in enumerate(source.signature.items()):
            if type == "constexpr":
                value = source.constants[(position,)]
                parameters[name] = Parameter(constant=forms.constant_text(value), one=name == "n" and value == 1)
            else:
                parameters[name] = Parameter(type, divisor=16 if (position,) in source.attrs else 1)
        binary = repr((parameters, launch.metadata.binary)).encode()
        for option in forms.OPTIONS:
            parameters[option] = Parameter(constant=repr(getattr(launch.metadata, option, None)))
        return Variant(parameters, Form("add", {"spv": binary}), None)

    monkeypatch.setattr(forms, "_compiled", compiled)
    (kernel,) = forms.compile_kernels(launches, [], OpenCLRoad())
    return kernel


def _taken(kernel: Kernel, name: str) -> list[tuple[str, bool, int]]:
    return [(p.type, p.one, p.divisor) for p in (variant.parameters[name] for variant in kernel.variants)]


def test_a_launch_is_compiled_as_it_was_and_in_more_general_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = _kernel(monkeypatch, _launch(16, "a"))
    assert _taken(kernel, "n") == [("i32", False, 16), ("i32", False, 1), ("i32", False, 1)]
    assert _taken(kernel, "x") == [("*fp32", False, 16), ("*fp32", False, 16), ("*fp32", False, 1)]
    assert [*kernel.names] == [*_PARAMS] and kernel.names["m"].declared and kernel.names["MODE"].constant == 1
    kernel = _kernel(monkeypatch, _launch(1, "a"))
    assert _taken(kernel, "n") == [("", True, 1), ("i32", False, 1), ("i32", False, 1)]
    # A constant that is 1 stays one.
    assert {*_taken(_kernel(monkeypatch, _launch(2, 1)), "MODE")} == {("", False, 1)}


def test_forms_that_several_launches_share_are_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = _kernel(monkeypatch, _launch(16, "a"), _launch(1, "a"), _launch(3, "a"))
    assert _taken(kernel, "n") == [("", True, 1), ("i32", False, 16), ("i32", False, 1), ("i32", False, 1)]


def test_an_option_is_a_parameter_if_binaries_differ_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = [_launch(3, "a", bytes([warps]), num_warps=warps, num_stages=3) for warps in (4, 8)]
    assert [*_kernel(monkeypatch, *launches).names] == [*_PARAMS, "num_warps"]
    launches = [_launch(3, "a", b"same", num_warps=warps, num_stages=3) for warps in (4, 8)]
    assert [*_kernel(monkeypatch, *launches).names] == [*_PARAMS]


def test_launches_that_a_call_cannot_tell_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PackError, match="the kernel add was compiled to different binaries for the same arguments"):
        _kernel(monkeypatch, _launch(3, "a", b"fused"), _launch(3, "a", b"not fused"))


class Autotuner:
    """Triton's, as far as a recorder needs it."""

    def __init__(self, recorder: Recorder, pre_hook: Any) -> None:
        self.keys = ["n"]
        self.best_config = SimpleNamespace(pre_hook=pre_hook, all_kwargs=lambda: {"BLOCK": 64})
        self._recorder = recorder

    def _bench(self) -> None: ...

    def run(self) -> None:
        self._recorder._last = _launch(3, "a")


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a module `triton.runtime` with a driver that can pack."""
    runtime: Any = ModuleType("triton.runtime")
    runtime.driver = SimpleNamespace(active=SimpleNamespace(road=OpenCLRoad))
    autotuner: Any = ModuleType("triton.runtime.autotuner")
    autotuner.Autotuner = Autotuner
    for module in (ModuleType("triton"), runtime, autotuner):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return autotuner


def test_a_configuration_with_a_hook_is_refused(triton: ModuleType) -> None:
    recorder = Recorder(OpenCLRoad())
    with recorder.active():
        Autotuner(recorder, None).run()
    assert [(choice.key, choice.constants) for choice in recorder.choices] == [(["n"], {"BLOCK": 64})]
    with recorder.active(), pytest.raises(PackError, match="a configuration whose pre_hook"):
        Autotuner(recorder, print).run()


def test_a_script_runs_with_a_cache_of_its_own(
    triton: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    run = tmp_path / "a.py"
    run.write_text(
        "import os, sys, pathlib\ncache = pathlib.Path(os.environ['TRITON_CACHE_DIR'])\n"
        "assert cache.is_dir() and not [*cache.iterdir()] and sys.argv[1:] == ['--size', '3']\n"
        f"pathlib.Path({str(tmp_path / 'found')!r}).write_text(str(cache))\n"
    )
    assert script.main([f"{run}:add", str(tmp_path / "out"), "--size", "3"]) == 1
    assert "launched no kernel add" in capsys.readouterr().err
    cache = Path((tmp_path / "found").read_text())
    assert cache != tmp_path and not cache.exists() and os.environ["TRITON_CACHE_DIR"] == str(cache)


@pytest.mark.parametrize(
    ("word", "path", "kernels"),
    [("a.py:add,sub", "a.py", ["add", "sub"]), ("a.py:", "a.py", []), ("a.py", "a.py", []), ("d:b.py", "d:b.py", [])],
)
def test_kernels_are_named_after_a_colon(word: str, path: str, kernels: list[str]) -> None:
    assert script.split(word) == (path, kernels)


@pytest.mark.parametrize(
    ("type", "name"), [("*u1", "*i1"), ("u1", "i1"), ("*kfp32", "*fp32"), ("*i64", "*i64"), ("bf16", "bf16")]
)
def test_types_have_one_name_in_tables_and_keys(monkeypatch: pytest.MonkeyPatch, type: str, name: str) -> None:
    assert forms.packed_type(type) == name
    if type.startswith("*"):
        launch = _launch(3, "a")
        launch.values["x"] = ArrayUse(0, 0, 4, (1,), type)
        ((key, _),) = forms._choices([Choice(launch, ["n"], {"BLOCK": 64})], ["x", "n", "BLOCK"])
        assert key == {"x": name, "n": "3"}
