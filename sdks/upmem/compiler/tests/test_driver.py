"""The command line of dpu-upmem-dpurte-clang."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from programs import HERE, build_program, built, compile_with, launched, refused, run

# The SDK's folder.
HOME = Path(shutil.which("dpu-upmem-dpurte-clang") or "").parent.parent
MAIN = "int main(void) { return 0; }\n"


def symbols(folder: Path, program: str = "program") -> dict[str, int]:
    table = run(["llvm-readelf", "-s", program], folder).stdout
    rows = re.findall(r"^\s*\d+: ([0-9a-f]{8}) .* (\S+)$", table, re.MULTILINE)
    return {name: int(value, 16) for value, name in rows}


def test_objects_are_linked_with_what_tritonpims_build_says(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int f(int);\nint main(void) { return f(1); }\n")
    (tmp_path / "f.ll").write_text("define i32 @f(i32 %a) {\n  ret i32 %a\n}\n")
    built(tmp_path, "-O2", "-g0", "-x", "ir", "-c", "f.ll", "-o", "f.o")
    built(tmp_path, "-O2", "-g0", "-c", "main.c", "-o", "main.o")
    for name in ("f.o", "main.o"):
        stripped = run(["llvm-objcopy", "--remove-section=.eh_frame", name], tmp_path)
        assert stripped.returncode == 0, stripped.stderr
    built(tmp_path, "f.o", "main.o", "-o", "program")
    assert ".eh_frame" not in run(["llvm-readelf", "-S", "-l", "program"], tmp_path).stdout
    assert symbols(tmp_path)["NR_TASKLETS"] == 1


def test_tasklets_and_stacks_are_symbols(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text(MAIN)
    flags = ["-DNR_TASKLETS=3", "-D", "STACK_SIZE_DEFAULT=512", "-DSTACK_SIZE_TASKLET_1=2048"]
    built(tmp_path, "-O2", *flags, "m.c", "-o", "program")
    values = symbols(tmp_path)
    assert (values["NR_TASKLETS"], values["STACK_SIZE_DEFAULT"]) == (3, 512)
    assert [values[f"STACK_SIZE_TASKLET_{i}"] for i in range(4)] == [512, 2048, 512, 0]
    assert values["__foundry_heap_end"] == 0x10010000 - 512 - 2048 - 512


@pytest.mark.parametrize("words", [["-Wl,--defsym=NR_TASKLETS=5"], ["-Xlinker", "--defsym=NR_TASKLETS=5"]])
def test_the_linkers_way_of_saying_it_counts_too(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "m.c").write_text(MAIN)
    built(tmp_path, "-O2", *words, "m.c", "-o", "program")
    assert symbols(tmp_path)["NR_TASKLETS"] == 5


@pytest.mark.parametrize(("flags", "checks"), [(["-DNR_TASKLETS=1"], False), (["-DNR_TASKLETS=2"], True), ([], True)])
def test_objects_for_one_tasklet_have_no_check_of_races_and_are_for_no_more(
    tmp_path: Path, flags: list[str], checks: bool
) -> None:
    (tmp_path / "m.c").write_text("int shared;\nint main(void) { return ++shared; }\n")
    built(tmp_path, "-O2", *flags, "-c", "m.c", "-o", "m.o")
    assert ("__foundry_access" in run(["llvm-nm", "m.o"], tmp_path).stdout) == checks
    built(tmp_path, "-DNR_TASKLETS=1", "m.o", "-o", "program")
    if checks:
        built(tmp_path, "-DNR_TASKLETS=2", "m.o", "-o", "program")
    else:
        message = refused(tmp_path, "-DNR_TASKLETS=2", "m.o")
        assert "-DNR_TASKLETS=1" in message and "compile all files with -DNR_TASKLETS=2" in message


def test_the_check_of_races_is_left_out_on_demand(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("int shared;\nint main(void) { return ++shared; }\n")
    built(tmp_path, "-O2", "-DNR_TASKLETS=2", "-foundry-no-race-check", "-c", "m.c", "-o", "m.o")
    assert "__foundry_access" not in run(["llvm-nm", "m.o"], tmp_path).stdout
    built(tmp_path, "-DNR_TASKLETS=2", "m.o", "-o", "program")


def test_a_program_knows_its_tasklets(tmp_path: Path) -> None:
    build_program(
        tmp_path,
        '#include <defs.h>\n#include "checks.h"\n'
        "int main(void) { if (me() == NR_TASKLETS - 1) results[0] = NR_TASKLETS; return 0; }\n",
        "-DNR_TASKLETS=7",
    )
    assert launched(tmp_path).results[0] == 7
    built(tmp_path, "-O2", f"-I{HERE}", "program.c", "-o", "program")
    assert launched(tmp_path).results[0] == 1


def test_outputs_have_clangs_names(tmp_path: Path) -> None:
    (tmp_path / "one.c").write_text(MAIN)
    (tmp_path / "two.c").write_text("int two;\n")
    built(tmp_path, "-c", "one.c", "two.c")
    built(tmp_path, "one.o", "two.o")
    built(tmp_path, "-S", "-emit-llvm", "two.c")
    assert {path.name for path in tmp_path.iterdir()} == {"one.c", "two.c", "one.o", "two.o", "a.out", "two.ll"}


def test_archives_are_searched(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("int f(int);\nint main(void) { return f(1); }\n")
    (tmp_path / "f.c").write_text("int f(int a) { return a; }\n")
    built(tmp_path, "-O2", "-c", "f.c")
    assert run(["llvm-ar", "rcs", "libf.a", "f.o"], tmp_path).returncode == 0
    built(tmp_path, "-O2", "m.c", "-L", ".", "-lf", "-o", "program")
    assert "f" in symbols(tmp_path)


def test_headers_are_found_and_dependencies_written(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "own.h").write_text("#define OWN 1\n")
    (tmp_path / "m.c").write_text('#include <mram.h>\n#include "own.h"\nint own = OWN;\n' + MAIN)
    built(tmp_path, "-Iinclude", "-MMD", "-c", "m.c", "-o", "m.o")
    dependencies = (tmp_path / "m.d").read_text()
    assert dependencies.startswith("m.o:")
    assert "include/own.h" in dependencies
    assert "OWN" not in built_output(tmp_path, "-E", "-Iinclude", "m.c")


def built_output(folder: Path, *arguments: str) -> str:
    done = compile_with(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_standards_are_clangs(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("#ifdef DPU\nint gnu;\n#endif\n#ifndef __DPU__\n#error\n#endif\n" + MAIN)
    assert "int gnu" in built_output(tmp_path, "-E", "m.c")
    assert "int gnu" not in built_output(tmp_path, "-E", "-std=c99", "m.c")


def test_it_says_what_it_is(tmp_path: Path) -> None:
    message = built_output(tmp_path, "--version")
    assert "Target: dpu-upmem-dpurte" in message
    assert "emulator" in message
    assert built_output(tmp_path, "-dumpmachine") == "dpu-upmem-dpurte\n"


def test_a_dry_run_shows_commands_and_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text(MAIN)
    done = compile_with(tmp_path, "-###", "-O2", "m.c", "-o", "program")
    assert done.returncode == 0
    assert "dpu-backend" in done.stderr
    assert "ld.lld" in done.stderr
    assert not (tmp_path / "program").exists()


def test_warnings_are_clangs(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("int main(void) { int unused; return 0; }\n")
    assert "unused variable" in built(tmp_path, "-Wall", "m.c", "-o", "program")
    assert "unused variable" in refused(tmp_path, "-Wall", "-Werror", "m.c")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["-fly"], "unknown argument"),
        (["--fly"], "unknown argument: '--fly'"),
        (["-mthumb"], "unknown argument: '-mthumb'"),
        (["-mcpu=v2"], "unknown target CPU 'v2'; valid target CPU values are: v1A, v1B"),
        (["-x", "fortran"], "language not recognized: 'fortran'"),
        (["-O7"], "'-O7'"),
        (["-target", "x86_64-linux"], "dpu-upmem-dpurte"),
        (["-S"], "no DPU assembly"),
        (["nosuch.c"], "No such file or directory: 'nosuch.c'"),
        (["-DNR_TASKLETS=many"], "a number is expected"),
        (["-DSTACK_SIZE_DEFAULT=100"], "not a multiple of 8"),
        (["m.s"], "does not assemble DPU instructions"),
    ],
)
def test_unsupported_option_or_input_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "m.c").write_text(MAIN)
    (tmp_path / "m.s").write_text("")
    assert message in refused(tmp_path, *arguments, "m.c")


def test_without_input_it_says_so(tmp_path: Path) -> None:
    assert "no input files" in refused(tmp_path)


def test_undefined_symbols_are_the_linkers_error(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("int elsewhere(void);\nint main(void) { return elsewhere(); }\n")
    assert "undefined symbol: elsewhere" in refused(tmp_path, "-O2", "m.c")


@pytest.mark.parametrize("count, ok", [(55, True), (57, False)])
def test_mutexes_are_as_many_as_the_hardware_has_bits(tmp_path: Path, count: int, ok: bool) -> None:
    names = "\n".join(f"MUTEX_INIT(m{i});" for i in range(count))
    locks = " ".join(f"mutex_lock(m{i});" for i in range(count))
    (tmp_path / "m.c").write_text(f"#include <mutex.h>\n{names}\nint main(void) {{ {locks} return 0; }}\n")
    if ok:
        built(tmp_path, "-O2", "m.c", "-o", "program")
    else:
        assert f"{count} atomic bits (mutexes); a v1A DPU has 56" in refused(tmp_path, "-O2", "m.c")
        built(tmp_path, "-O2", "-mcpu=v1B", "m.c", "-o", "program")


def test_noinit_variables_take_no_room_in_files(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("#include <mram.h>\n__mram_noinit char huge[60 << 20];\n" + MAIN)
    built(tmp_path, "-O2", "-c", "m.c", "-o", "m.o")
    built(tmp_path, "-O2", "m.o", "-o", "program")
    assert (tmp_path / "m.o").stat().st_size < 1 << 16
    assert (tmp_path / "program").stat().st_size < 1 << 17
    assert symbols(tmp_path)["__sys_used_mram_end"] == 0x08000000 + (60 << 20)


def test_more_than_mram_holds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("#include <mram.h>\n__mram_noinit char a[60 << 20], b[5 << 20];\n" + MAIN)
    message = refused(tmp_path, "-O2", "m.c")
    assert f"{65 << 20} bytes of variables; a DPU has {64 << 20}" in message


@pytest.mark.parametrize("flag", ["-flto", "-flto=thin", "-flto=full", "-pg"])
def test_flags_of_link_time_and_profiling_leave_the_program_as_it_is(tmp_path: Path, flag: str) -> None:
    (tmp_path / "m.c").write_text(MAIN)
    for program, flags in (("plain", []), ("program", [flag])):
        built(tmp_path, "-O2", *flags, "-c", "m.c", "-o", "m.o")
        built(tmp_path, "-O2", *flags, "m.o", "-o", program)
    assert (tmp_path / "program").read_bytes() == (tmp_path / "plain").read_bytes()


def test_the_sdks_clang_is_the_device_compiler_for_its_target_and_else_the_hosts(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("#include <mram.h>\n" + MAIN)
    (tmp_path / "host.c").write_text("int main(void) { return sizeof(void *) == 8 ? 0 : 1; }\n")
    for command in (
        ["clang", "--target=dpu-upmem-dpurte", "-O2", "m.c", "-o", "program"],
        ["clang", "-target", "dpu-upmem-dpurte", "-O2", "m.c", "-o", "program"],
        ["dpu-clang", "-O2", "m.c", "-o", "program"],
        ["clang", "-fsyntax-only", "-Werror", "host.c"],
        ["clang++", "-fsyntax-only", "-Werror", "-x", "c++", "host.c"],
    ):
        done = run([f"{HOME}/bin/{command[0]}", *command[1:]], tmp_path)
        assert done.returncode == 0, done.stderr
    assert symbols(tmp_path)["NR_TASKLETS"] == 1


def test_cxx_without_a_runtime_is_compiled_and_constructors_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.cpp").write_text("template <int N> struct T { static constexpr int n = N; };\n" + MAIN)
    built(tmp_path, "-O2", "m.cpp", "-o", "program")
    text = "int f(); struct S { S() : n(f()) {} int n; } s;\nint f() { static volatile int x; return x; }\n"
    (tmp_path / "bad.cpp").write_text(text + MAIN)
    assert "functions that run before main" in refused(tmp_path, "bad.cpp")


def test_a_cmake_project_without_languages_is_configured(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("there is no CMake in this image")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p)\nadd_executable(m m.c)\n"
    )
    (tmp_path / "m.c").write_text(MAIN)
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={HOME}/share/upmem/cmake/dpu.cmake"
    for command in (["cmake", "-S", ".", "-B", "b", toolchain], ["cmake", "--build", "b"]):
        done = run(command, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
