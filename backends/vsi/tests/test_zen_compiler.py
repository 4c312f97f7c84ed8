"""zen-compiler as a process: its command line, and the messages that users read when something is wrong with it."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest
from made_up import FakeSdk
from triton_vsi_backend import pieces
from triton_vsi_backend.errors import MissingError, ZenCompilerError
from triton_vsi_backend.zen_compiler import Switches, compile_ttir

# The arguments of the vendor's backend.
TARGET = (
    "--spirv-target-options=caps=GenericPointer,Kernel,Addresses,Vector16,Vector32,Int8,Int16,Int64,Float16,"
    "TensorCoreVSI exts=SPV_KHR_storage_buffer_storage_class,SPV_VSI_TC_inst module=.*"
)
DISABLE = (
    "--disable-linalg-to-tc-pipeline",
    "--disable-multi-engine-scheduling-pipeline",
    "--disable-threads-scheduling-pipeline",
)


def compile_one(ttir: str = "module {}", threads: int = 1, switches: Switches = Switches(), name: str = "k"):  # noqa: B008
    return compile_ttir(ttir, name=name, threads=threads, switches=switches)


@pytest.mark.parametrize("on", list(itertools.product([False, True], repeat=3)))
def test_the_command_line_is_the_documented_one(on: tuple[bool, bool, bool], fake_sdk: FakeSdk) -> None:
    threads = 128 if on[2] else 1
    compile_one("module { here }", threads, Switches(*on))
    arguments, source, listing = fake_sdk.call
    ttir, spirv, library = arguments[5], arguments[7], arguments[9]
    assert arguments == [
        "--triton-kernel-compile",
        "--enable-verify-after-passes",
        f"--workgroup-size-options={threads},1,1",
        f"--threads-per-workgroup={threads}",
        TARGET,
        ttir,
        "-o",
        spirv,
        "-out-lib",
        library,
        "-tc-bridge",
        str(fake_sdk.bridge),
        *(flag for flag, switch in zip(DISABLE, on, strict=True) if not switch),
    ]
    assert [Path(path).name for path in (ttir, spirv, library)] == ["k.ttir", "k.spv", "k_cmd_gen.so"]
    assert source == "module { here }"
    assert listing == ["k.ttir"]
    assert not Path(ttir).parent.exists()


def test_both_outputs_are_returned(fake_sdk: FakeSdk) -> None:
    compiled = compile_one()
    assert compiled.spirv == b"\x03\x02\x23\x07kernel"
    assert compiled.cmd_gen == b"library"


def test_a_kernel_may_have_a_name_that_no_file_could_have(fake_sdk: FakeSdk) -> None:
    compile_one(name="triton_poi_fused_" + "add_" * 100)
    assert len(Path(fake_sdk.call[0][5]).name) < 200


def test_a_refused_kernel_is_refused_in_the_compilers_own_words(fake_sdk: FakeSdk) -> None:
    fake_sdk.behave("spirv.write_bytes(b'half'); sys.exit('k.py:12: error: tt.scan is not for this device')")
    with pytest.raises(ZenCompilerError) as caught:
        compile_one()
    assert "zen-compiler refused the kernel k" in str(caught.value)
    assert "k.py:12: error: tt.scan is not for this device" in str(caught.value)


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("os.kill(os.getpid(), 11)", "died of signal 11"),
        ("library.write_bytes(b'x')", "wrote no k.spv"),
        ("spirv.write_bytes(b'x')", "wrote no k_cmd_gen.so"),
        ("print('so it goes'); library.write_bytes(b'x')", "so it goes"),
        ("library.write_bytes(b'x'); spirv.write_bytes(b'PK..')", "wrote no SPIR-V"),
        ("library.write_bytes(b'x'); spirv.write_bytes(b'')", "wrote no SPIR-V"),
        ("sys.exit(3)", "it did not say"),
    ],
)
def test_each_failure_of_zen_compiler_has_its_own_message(behaviour: str, message: str, fake_sdk: FakeSdk) -> None:
    fake_sdk.behave(behaviour)
    with pytest.raises(ZenCompilerError, match=message):
        compile_one()
    assert not Path(fake_sdk.call[0][5]).parent.exists()


@pytest.mark.parametrize(
    ("bits", "order", "processor", "named"),
    [
        (2, 1, b"\xb7\x00", "AArch64, 64 bits"),
        (2, 2, b"\x00\xb7", "AArch64, 64 bits"),
        (1, 1, b"\xf3\x00", "RISC-V, 32 bits"),
        (1, 1, b"\x3e\x00", "x86-64, 32 bits"),
        (2, 1, b"\xff\x7f", "processor 32767, 64 bits"),
    ],
)
def test_a_program_for_another_machine_is_not_started_and_both_machines_are_named(
    bits: int, order: int, processor: bytes, named: str, fake_sdk: FakeSdk, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where binfmt_misc knows the machine, an emulator would be started.
    monkeypatch.setattr(subprocess, "run", None)
    head = bytearray(64)
    head[:6], head[16:20] = b"\x7fELF" + bytes([bits, order]), b"\x02\x00" + processor
    fake_sdk.compiler.write_bytes(bytes(head))
    with pytest.raises(
        MissingError, match=f"zen-compiler cannot be run: {fake_sdk.compiler}\n.*program for {named}; this"
    ):
        compile_one()


def test_a_program_that_the_system_cannot_start_is_named(fake_sdk: FakeSdk) -> None:
    fake_sdk.compiler.write_bytes(b"\x7fELF")
    with pytest.raises(ZenCompilerError, match=r"cannot be started: .*zen-compiler\n.*Exec format error"):
        compile_one()


def test_a_compiler_that_may_not_be_run_is_refused(fake_sdk: FakeSdk) -> None:
    fake_sdk.compiler.chmod(0o644)
    with pytest.raises(MissingError, match=r"not executable\n.*chmod"):
        compile_one()


@pytest.mark.parametrize(
    ("variable", "name"),
    [("VSI_ZEN_COMPILER_PATH", "zen-compiler"), ("VSI_ZEN_TC_BRIDGE_PATH", "libZenTCBridge.so")],
)
class TestPaths:
    def find(self, variable: str) -> Path:
        return pieces.zen_compiler() if "COMPILER" in variable else pieces.bridge()

    def test_a_path_that_is_not_there(
        self, variable: str, name: str, fake_sdk: FakeSdk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(variable, "/nowhere/at/all")
        with pytest.raises(MissingError, match=f"there is no {name}\n.*{variable}=/nowhere/at/all does not exist"):
            self.find(variable)

    def test_a_path_of_a_folder(
        self, variable: str, name: str, fake_sdk: FakeSdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(variable, str(tmp_path))
        with pytest.raises(MissingError, match=f"{variable}={tmp_path} is not a file"):
            self.find(variable)

    def test_a_variable_that_is_not_set(
        self, variable: str, name: str, fake_sdk: FakeSdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(variable)
        monkeypatch.setattr(pieces, "_PACKAGE", tmp_path)
        with pytest.raises(MissingError, match=f"{variable} is not set.*\n.*export {variable}="):
            self.find(variable)

    def test_without_the_variable_the_one_in_the_package_is_taken(
        self, variable: str, name: str, fake_sdk: FakeSdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        packaged = tmp_path / ("bin" if name == "zen-compiler" else "lib") / name
        packaged.parent.mkdir()
        packaged.write_text("")
        packaged.chmod(0o755)
        monkeypatch.setattr(pieces, "_PACKAGE", tmp_path)
        assert self.find(variable) != packaged
        monkeypatch.delenv(variable)
        assert self.find(variable) == packaged
