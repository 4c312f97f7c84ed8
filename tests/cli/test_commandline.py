"""The command line: the errors for wrong words, and a check that every command in our texts can be parsed."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from invoke.collection import Collection
from invoke.exceptions import Exit

import tasks
from toolchains.artifacts import plugin_wheels
from toolchains.cli.commandline import GROUPS, MARK, Foundry
from toolchains.config import components
from toolchains.system import paths

VERBS = Collection.from_module(tasks)
TARGETS = components.names()
Said = Callable[..., str]


def parse(*words: str) -> Foundry:
    """Parse a command line without running anything."""
    program = Foundry(namespace=VERBS)
    program.create_config()
    program.parse_core(["invoke", MARK, *words])
    program.parse_collection()
    program.parse_tasks()
    return program


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Said:
    def call(*words: str) -> str:
        with pytest.raises(SystemExit) as caught:
            parse(*words)
        assert caught.value.code == 2
        stdout, stderr = capsys.readouterr()
        assert not stdout
        # Phrases of invoke's own messages.
        assert "No idea" not in stderr and "positional" not in stderr and "Flag" not in stderr
        return stderr

    return call


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    # As wide as no text; what runs the tests may have said something else.
    monkeypatch.setenv("COLUMNS", "300")

    def call(*words: str) -> str:
        with pytest.raises(Exit) as caught:
            parse(*words)
        assert caught.value.code == 0
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"], ["--list"]])
def test_the_overview_has_every_verb_in_a_group_with_a_line_and_every_target(words: list[str], printed: Said) -> None:
    overview = printed(*words)
    for name, task in VERBS.tasks.items():
        assert re.search(rf"^  {name} +\S.*$", overview, re.MULTILINE), name
        assert task.body.group in GROUPS, f"@verb(group=...) of {name}: one of {', '.join(GROUPS)}"
    assert all(title in overview for title in GROUPS.values())
    assert max(map(len, overview.splitlines())) <= 100
    assert ", ".join(TARGETS) in overview
    assert "--search-root" not in overview


def test_work_of_a_verb_is_in_the_module_of_its_name() -> None:
    beside = {"shell": "run", "run-packed": "pack", "keys": "verify"}
    modules = {path.stem for path in (paths.ROOT / "toolchains" / "verbs").glob("*.py")} - {"__init__"}
    assert {beside.get(name, name) for name in VERBS.tasks} == modules


@pytest.mark.parametrize("name", sorted(VERBS.tasks))
@pytest.mark.parametrize("form", ["help {}", "{} --help", "{} spirv -h", "--help {}"])
def test_a_verbs_help_names_its_options_and_has_an_example(name: str, form: str, printed: Said) -> None:
    text = printed(*form.format(name).split())
    assert text.startswith(f"Usage: ./foundry {name}")
    options = [argument for argument in VERBS[name].get_arguments() if not argument.positional]
    for argument in options:
        assert f"--{str(argument.name).replace('_', '-').strip('-')}" in text
    if options:
        assert re.search(rf"^ +\./foundry {name}\b", text, re.MULTILINE), "no example"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("buidl spirv", "there is no verb buidl; did you mean build?|./foundry build spirv\n"),
        ("zzz", "there is no verb zzz\n|known: bake, bench, build|./foundry --help"),
        ("help zzz", "there is no verb zzz\n"),
        ("--offline build spirv", "first word must be a verb|./foundry build --offline spirv"),
        ("--versions", "first word must be a verb"),
        ("build", f"build needs a target|known: {', '.join(TARGETS)}|./foundry build {TARGETS[0]}\n"),
        ("build spriv --offline", "no target spriv; did you mean spirv?|./foundry build spirv --offline\n"),
        ("test --target=dqu", "no target dqu; did you mean dpu?|./foundry test --target=dpu\n"),
        ("build spirv --trition=3.6.0", "no option --trition; did you mean --triton?|build spirv --triton=3.6.0\n"),
        # An option of invoke's that claims to do nothing, and runs the task anyway.
        ("build spirv --dry", "build has no option --dry\n|known: --allow-drift,"),
        ("target list --yaml", "target has no option --yaml\n"),
        ("target --yaml list", "target has no option --yaml\n"),
        ("cache --foo push", "cache has no option --foo\n"),
        ("e2e spirv --onyl=x", "e2e has no option --onyl; did you mean --only?"),
        ("build spirv --triton", "--triton needs a value"),
        ("build spirv --triton --offline", "--triton needs a value"),
        ("build --offline=yes spirv", "--offline takes no value|./foundry build --offline spirv\n"),
        ("build spirv dpu", "does not take the word 'dpu'|./foundry build TARGET"),
        ("build spirv offline", "did you mean --offline?"),
        ("build --from-source spirv", "'spirv' may be|./foundry build spirv --from-source\n"),
        ("patch", "patch needs an action|known: status, apply, refresh|./foundry patch status\n"),
        ("patch stats", "no action stats; did you mean status?|./foundry patch status\n"),
        ("target lst", "no action lst; did you mean list?|./foundry target list\n"),
        ("target show", "target needs a name"),
        ("cache shove --remote=x", "no action shove|known: push, pull, serve, lock"),
    ],
)
def test_words_that_do_not_fit_are_named_with_what_would(line: str, said: str, refused: Said) -> None:
    message = refused(*shlex.split(line))
    for text in said.split("|"):
        assert text in message
    assert len(message.splitlines()) <= 3


def test_the_version_is_that_of_the_packages(printed: Said) -> None:
    assert printed("--version") == f"Triton Foundry {plugin_wheels.version()}\n"


def test_invoke_itself_corrects_and_names_the_environment_to_use() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "invoke", "--search-root", paths.ROOT, "buidl"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "did you mean build?" in done.stderr
    program = "import runpy, sys; sys.modules['msgspec'] = None; runpy.run_path('tasks.py', run_name='tasks')"
    ran = subprocess.run([sys.executable, "-c", program], cwd=paths.ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    error, why, next_line = ran.stderr.splitlines()
    assert "no package msgspec" in error
    assert sys.prefix in why
    assert "./foundry VERB" in next_line and ". .venv/bin/activate" in next_line


# Where commands occur: documents, and everything that Foundry prints.
DOCUMENTS = sorted(
    path
    for name in (".", ".github", "docs", "backends", "sdks", "toolchains", "patches")
    for path in (paths.ROOT / name).glob("*.md" if name == "." else "**/*.md")
)
SOURCES = sorted([*paths.ROOT.glob("*.py"), *(paths.ROOT / "toolchains").rglob("*.py"), *paths.ROOT.glob("bench/*.py")])
# What ends a command in running text or before an explanation.
END = re.compile(r"  |\s#|[,;.:)](?=\s|$)|[`|&\n\"]|;|$")
STANDS_FOR = {"TARGET": "spirv", "X": "spirv", "ACTION": "status", "VERB": "doctor", "my_npu": "spirv"}


def commands(text: str) -> Iterator[str]:
    """Yield the commands in a text, each as typed after ./foundry or invoke."""
    for found in re.finditer(r"(?:\./foundry|(?<![\w./-])invoke) (?=[\w-])", text):
        rest = text[found.end() :]
        if rest.startswith("X") or (found.group() == "invoke " and rest.split()[0] not in VERBS.tasks):
            # A command that is composed at run time, or invoke as a word.
            continue
        quoted = re.sub(r"'[^'\n]*'", lambda quote: "'" + "_" * (len(quote.group()) - 2) + "'", rest)
        end = END.search(quoted)
        assert end is not None
        yield rest[: end.start()]


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a Python file, including docstrings; each inserted value is an X.

    A file without the words that commands() looks for has none.
    """
    content = path.read_text()
    if "foundry" not in content and "invoke" not in content:
        return
    tree = ast.parse(content)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def words(command: str) -> list[str]:
    plain = re.sub(r"\[[^]]*\]|\.\.\.", "", command).replace("--yes", "")
    split = (word.rpartition("=") for word in shlex.split(plain))
    return [option + sign + STANDS_FOR.get(value, value) for option, sign, value in split]


def shown() -> dict[str, Path]:
    """Return all commands, each with a file that shows it."""
    found = {command: path for path in DOCUMENTS for command in commands(path.read_text())}
    return found | {command: path for path in SOURCES for text in texts(path) for command in commands(text)}


def test_no_suggestion_for_an_unlike_option_and_values_may_begin_with_dashes(refused: Said) -> None:
    said = refused("e2e", "spirv", "--bogus")
    assert "e2e has no option --bogus\n" in said and "--gpus" in said, "all are listed"
    assert "did you mean" not in said and "next: ./foundry e2e --help" in said
    assert "did you mean --gpus?" in refused("e2e", "spirv", "--pgus=all")
    assert parse("e2e", "spirv", "--only", "--worker").tasks[0].args.only.value == "--worker"


def test_tables_keep_their_width_in_a_pipe() -> None:
    code = "from rich.table import Table; from toolchains.system.terminal import make_console\n"
    code += "table = Table('a', 'b'); table.add_row('x' * 300, 'y z ' * 100); make_console().print(table)"
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "dumb"}
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, env=environment, capture_output=True, text=True)
    assert any("x" * 300 in line and ("y z " * 100).strip() in line for line in done.stdout.splitlines()), done


def test_every_table_is_printed_by_such_a_console() -> None:
    texts = {path: path.read_text() for path in (paths.ROOT / "toolchains").rglob("*.py")}
    tables = {path: text for path, text in texts.items() if re.search(r"\bTable\(", text)}
    assert len(tables) > 5
    assert [path.name for path, text in tables.items() if re.search(r"\bConsole\(", text)] == []


def test_every_command_that_is_shown_parses(capsys: pytest.CaptureFixture[str]) -> None:
    everything = shown()
    assert len(everything) > 80
    wrong = []
    for command, path in everything.items():
        try:
            parse(*words(command))
        except Exit:
            # Discard the help that it printed.
            capsys.readouterr()
        except (SystemExit, ValueError) as error:
            wrong.append(f"{path.relative_to(paths.ROOT)}: {command}\n{capsys.readouterr().err or error}")
    assert wrong == []


def test_the_first_example_leaves_nothing_in_the_checkout() -> None:
    """It writes a plot and a table, which `run` copies to the folder of the script unless another one is named."""
    told = [command for command in shown() if command.startswith("run ") and "examples/get_started.py" in command]
    assert told and [command for command in told if "--results=" not in command] == []


def test_users_are_told_to_type_foundry() -> None:
    """invoke must not be shown: it is on no user's PATH."""
    invoked = re.compile(rf"\binvoke (?:{'|'.join(VERBS.tasks)})\b")
    assert [text for path in SOURCES for text in texts(path) if invoked.search(text)] == []
    assert inspect.getdoc(tasks.build) and any("./foundry build spirv" in text for text in texts(Path(tasks.__file__)))


def test_commands_are_found_in_prose_and_blocks() -> None:
    text = """`./foundry e2e X` runs. Then `invoke pin --update`, or
    ./foundry build spirv --only='a, b'  # why
    A=1 ./foundry test      everything; or ./foundry cache push, there. They invoke it."""
    assert list(commands(text)) == [
        "e2e X",
        "pin --update",
        "build spirv --only='a, b'",
        "test",
        "cache push",
    ]


def test_an_option_that_may_be_given_several_times_keeps_each_value_whole() -> None:
    for name, task in VERBS.tasks.items():
        for argument in task.get_arguments():
            if argument.attr_name in task.iterable or argument.name in task.iterable:
                argument.value = "ab"
                argument.value = "cd"
                assert argument.value == ["ab", "cd"], f"{name} --{argument.name}"


@pytest.mark.parametrize("option", ["--wheels=a", "--wheels a"])
@pytest.mark.parametrize("place", ["", "folder"])
def test_a_last_word_may_be_missing_however_options_are_written(option: str, place: str) -> None:
    (task,) = parse("notebook", "spirv", *place.split(), *option.split()).tasks
    assert (task.args["place"].value, task.args["wheels"].value) == (place, "a")


def test_help_fits_the_terminal_and_loses_nothing(monkeypatch: pytest.MonkeyPatch, printed: Said) -> None:
    whole = printed("e2e", "--help")
    monkeypatch.setenv("COLUMNS", "60")
    narrow = printed("e2e", "--help")
    assert max(map(len, narrow.splitlines())) <= 60
    assert narrow.split() == whole.split()
    # Commands stay in one line, and descriptions in their column.
    assert "\n    ./foundry e2e spirv --only='matmul 512'\n" in narrow
    assert "\n--offline        do not use the network; list what is\n                 missing\n" in narrow
    assert max(map(len, printed("--help").splitlines())) <= 60
    monkeypatch.setenv("COLUMNS", "300")
    assert printed("e2e", "--help") == whole
