"""The documented command line is taken, each option of it; all else is refused with what is wrong, and status 1."""

from __future__ import annotations

from pathlib import Path

import pytest
from sdk import (
    BRIDGE,
    CAPS,
    EXTS,
    NO_TC,
    NOTHING_ENABLED,
    ONE_ENGINE,
    ONE_THREAD,
    command,
    commands,
    left,
    run,
    target,
)
from zen_compiler import commandline
from zen_compiler.commandline import UsageError


def parsed(arguments: list[str]) -> commandline.Options:
    options = commandline.parse(arguments)
    assert options is not None
    return options


def check_refusal(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        commandline.parse(arguments)


def without(arguments: list[str], start: str, values: int = 0) -> list[str]:
    """Return a command line without an option and the arguments that are its values."""
    at = next(index for index, argument in enumerate(arguments) if argument.startswith(start))
    return arguments[:at] + arguments[at + 1 + values :]


def test_the_documented_line_is_taken(add: Path) -> None:
    options = parsed(command(add, threads=128))
    assert (options.input, options.output, options.library) == (add, add.with_suffix(".spv"), commands(add))
    assert (options.bridge, options.threads) == (BRIDGE, 128)
    assert options.capabilities == frozenset(CAPS.split(","))
    assert options.extensions == frozenset(EXTS.split(","))
    assert options.module.pattern == ".*"


def test_each_flag_is_taken_alone_and_with_the_others(add: Path) -> None:
    for flags in ((NO_TC,), (ONE_ENGINE,), (ONE_THREAD,), (), NOTHING_ENABLED):
        options = parsed(command(add, *flags))
        assert (options.bridge is None) == (NO_TC in flags)
        assert options.threads == 1


def test_one_dash_or_two_and_a_value_behind_a_sign_or_a_space_are_the_same(add: Path) -> None:
    usual = command(add)
    double = [f"-{argument}" if argument in ("-o", "-out-lib", "-tc-bridge") else argument for argument in usual]
    assert parsed(double) == parsed(usual)
    single = [argument[1:] if argument.startswith("--") else argument for argument in usual]
    assert parsed(single) == parsed(usual)
    apart = [part for each in usual for part in (each.split("=", 1) if each.startswith("--w") else [each])]
    assert len(apart) == len(usual) + 1
    assert parsed(apart) == parsed(usual)
    joined = [*without(usual, "-o", 1), f"-o={add.with_suffix('.spv')}"]
    assert parsed(joined) == parsed(usual)


def test_verification_and_the_bridge_may_be_left_out_where_they_are_not_needed(add: Path) -> None:
    assert parsed(without(command(add), "--enable-verify")) == parsed(command(add))
    assert parsed(without(command(add, NO_TC), "-tc-bridge", 1)).bridge is None


@pytest.mark.parametrize(
    ("start", "values", "message"),
    [
        ("--triton-kernel-compile", 0, "--triton-kernel-compile"),
        ("--workgroup-size-options", 0, "--workgroup-size-options is not given"),
        ("--threads-per-workgroup", 0, "--threads-per-workgroup is not given"),
        ("--spirv-target-options", 0, "--spirv-target-options is not given"),
        ("-o", 1, "-o is not given"),
        ("-out-lib", 1, "-out-lib is not given"),
        ("-tc-bridge", 1, "-tc-bridge is not given"),
        ("/", 0, "one TTIR file"),
    ],
)
def test_missing_required_argument_is_named(add: Path, start: str, values: int, message: str) -> None:
    check_refusal(without(command(add), start, values), message)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--no-such-option", "unknown command line argument '--no-such-option'"),
        ("--disable-linalg-to-tc-pipelin", "did you mean '--disable-linalg-to-tc-pipeline'"),
        ("-O3", "unknown command line argument '-O3'"),
        ("--", "unknown command line argument '--'"),
        ("--version", "unknown command line argument '--version'"),
        (f"{ONE_THREAD}=true", "takes no value"),
        ("second.ttir", "one TTIR file must be given, not 2"),
        ("-", "one TTIR file must be given, not 2"),
        ("--triton-kernel-compile", "zero or one times"),
        ("--threads-per-workgroup=1", "zero or one times"),
        ("-o=other.spv", "zero or one times"),
    ],
)
def test_unknown_or_repeated_argument_is_refused(add: Path, argument: str, message: str) -> None:
    check_refusal(command(add, argument), message)


@pytest.mark.parametrize("option", ["-o", "-out-lib", "-tc-bridge", "--threads-per-workgroup"])
def test_an_option_at_the_end_without_its_value_is_refused(add: Path, option: str) -> None:
    fewer = without(command(add), option, 0 if option.startswith("--") else 1)
    for end in ([option], [f"{option}="]):
        check_refusal([*fewer, *end], "requires a value")


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "0x20", " 1", "1 ", "+1", "99999999999", "0", "4097", "\u0663"])
def test_malformed_or_too_large_number_is_refused(add: Path, number: str) -> None:
    usual = command(add)
    for start, value in (("--threads", number), ("--workgroup", f"{number},1,1"), ("--workgroup", f"1,{number},1")):
        name = next(argument for argument in usual if argument.startswith(start)).split("=")[0]
        check_refusal([*without(usual, start), f"{name}={value}"], f"for the {name} option")


@pytest.mark.parametrize("sizes", ["1", "1,1", "1,1,1,1", "1,2,1", "1,1,2", "", ",,"])
def test_work_group_sizes_that_are_not_along_x_are_refused(add: Path, sizes: str) -> None:
    check_refusal(
        [*without(command(add), "--workgroup"), f"--workgroup-size-options={sizes}"], "--workgroup-size-options option"
    )


def test_two_numbers_of_work_items_that_differ_are_refused(add: Path) -> None:
    fewer = without(command(add, threads=64), "--threads")
    check_refusal([*fewer, "--threads-per-workgroup=32"], "64 work-items, --threads-per-workgroup for 32")


def test_many_work_items_and_none_to_schedule_is_refused(add: Path) -> None:
    check_refusal(command(add, ONE_THREAD, threads=128), "128 work-items")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (target(caps="Kernel,Flaot16"), "unknown capability 'Flaot16'"),
        (target(caps="kernel"), "unknown capability 'kernel'"),
        (target(exts="SPV_NO_such"), "unknown extension 'SPV_NO_such'"),
        (target(module="("), "not a regular expression"),
        (target() + " ver=v1.0", "no such pass option 'ver=v1.0'"),
        (target() + " stray", "no such pass option 'stray'"),
        (target() + " module=.*", "module= is given twice"),
        ("--spirv-target-options=caps=Kernel", "exts= and module= not given"),
        ("--spirv-target-options=exts= module=.*", "caps= not given"),
    ],
)
def test_malformed_spirv_target_is_refused(add: Path, options: str, message: str) -> None:
    check_refusal(command(add, options=options), message)


def test_files_that_are_not_there_are_refused(add: Path, tmp_path: Path) -> None:
    check_refusal(command(tmp_path / "nothing.ttir"), r"nothing\.ttir: no such file")
    for flags in ((), (NO_TC,)):
        check_refusal(
            command(add, *flags, bridge=tmp_path / "nothing.so"), r"-tc-bridge option: .*nothing\.so: no such file"
        )
    check_refusal(command(tmp_path), "no such file")


def test_one_file_for_two_purposes_is_refused(add: Path) -> None:
    for option in ("-o", "-out-lib"):
        check_refusal([*without(command(add), option, 1), option, str(add)], "three different files")
    check_refusal([*without(command(add), "-o", 1), "-o", str(commands(add))], "three different files")


def test_help_is_printed_and_names_each_option(add: Path) -> None:
    for arguments in (["--help"], ["-h"], command(add, "-help")):
        done = run(arguments)
        assert (done.returncode, done.stderr) == (0, "")
        for argument in command(add, *NOTHING_ENABLED):
            if argument.startswith("-"):
                assert f"  {argument.split('=')[0]}" in done.stdout
    assert left(add.parent) == ["add.ttir"]


def test_a_refused_command_line_is_status_1_with_one_line_and_no_files(add: Path) -> None:
    done = run(command(add, "--no-such-option"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("zen-compiler: unknown command line argument '--no-such-option'")
    assert done.stderr.count("\n") == 1
    assert left(add.parent) == ["add.ttir"]
