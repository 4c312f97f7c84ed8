"""Files that others made do not make a verb wait, fill memory or disk, or write to the terminal as they like."""

from __future__ import annotations

import gzip
import io
import os
import socket
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import archive_files
import pytest
from rich.table import Table

from toolchains.archives import docker_archive, prefix
from toolchains.assembly.request import Request
from toolchains.health import extension
from toolchains.report import page
from toolchains.sdk.contents import Supply
from toolchains.system import foreign, json_text, paths
from toolchains.system.console import Console, PrintableStream
from toolchains.system.errors import FileError, FoundryError
from toolchains.trust import image_archive, keys, statement
from toolchains.verbs import pack
from toolchains.verbs import report as report_verb
from toolchains.verbs.verify import Trusted, check_artifact

HUGE = 3 << 30


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def bound(path: Path) -> None:
    # The path of a socket may have 108 characters.
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(path.parent)
        listening.bind(path.name)
        os.chdir(here)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


KINDS: dict[Callable[[Path], None], str] = {
    fifo: "a pipe",
    folder: "a folder",
    endless: "a device",
    bound: "a socket",
    huge: "has more than",
}
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "json": ("a.json", lambda path: json_text.read(path, dict[str, int])),
    "results": ("spirv/3.9.0/results.json", lambda path: collected(path.parents[2])),
    "bench": ("spirv-bench/3.9.0/bench.json", lambda path: collected(path.parents[2])),
    "profile": ("dpu/3.9.0/profiles/mine.json", lambda path: collected(path.parents[3])),
    "sizes": ("spirv/3.9.0/sizes.json", lambda path: collected(path.parents[2])),
    "junit": ("test/backends-spirv-3.9.0.xml", lambda path: collected(path.parents[1])),
    "compared report": ("report.html", lambda path: page.read(path)),
    "statement": ("a.intoto.jsonl", statement.read),
    "key": ("a.pub", keys.read_public),
    "rebuilders": ("them/a.pub", lambda path: Trusted.folder(path.parent)),
}


def collected(folder: Path) -> None:
    report_verb.report(output=str(folder / "page.html"), results=str(folder), compare="")


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_a_device_or_a_huge_file_is_refused(name: str, make: Callable[[Path], None], tmp_path: Path) -> None:
    place, read = READERS[name]
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    with pytest.raises(FileError) as raised:
        read(path)
    assert str(path) in raised.value.what
    assert KINDS[make] in str(raised.value)


@pytest.mark.parametrize("make", [fifo, endless, bound], ids=lambda make: make.__name__)
def test_a_pipe_or_a_device_in_place_of_a_larger_file_is_refused(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "given.so"
    make(path)
    for read in (lambda path: Supply(path).sha256(), lambda path: list(extension.check(path, extension.Loading()))):
        with pytest.raises(FileError, match="is not a plain file"):
            read(path)


@pytest.mark.parametrize("make", [fifo, endless, bound, lambda path: path.symlink_to("a")])
def test_verify_names_what_is_no_file_in_a_folder(make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    make(tmp_path / "b")
    with pytest.raises(FoundryError, match=r"b is not a plain file: it is a") as raised:
        check_artifact(str(tmp_path), Trusted([], {}))
    assert raised.value.exit_code == 42


@pytest.mark.parametrize("make", [fifo, endless, huge, lambda path: path.symlink_to("meta.json")])
def test_an_artifact_of_other_things_than_small_files_is_not_run(make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text("{}")
    make(tmp_path / "code.c")
    with pytest.raises(FileError, match=r"is not a plain file|has more than"):
        pack.run_packed(Request.read("dpu"), str(tmp_path))


@pytest.mark.parametrize("name", ["manifest.json", "c.json"])
def test_an_archive_with_a_text_of_gigabytes_is_refused_unread(name: str, tmp_path: Path) -> None:
    path, manifest = tmp_path / "image.tar", b'[{"Config":"c.json","Layers":[]}]'
    with path.open("wb") as file:
        for each in sorted({"manifest.json", "c.json"} - {name}):
            file.write(archive_files.tar(tmp_path / "part", {each: manifest}).read_bytes()[: 2 * tarfile.BLOCKSIZE])
        entry = tarfile.TarInfo(name)
        entry.size = HUGE
        file.write(entry.tobuf(tarfile.USTAR_FORMAT))
        file.truncate(file.tell() + HUGE + 2 * tarfile.BLOCKSIZE)
    with pytest.raises(FoundryError, match=r"json") as raised:
        image_archive.read(path)
    assert f"{HUGE} bytes" in raised.value.why
    with (
        pytest.raises(FileError, match="has more than"),
        path.open("rb") as saved,
        docker_archive.opened(saved, "it") as tar,
    ):
        docker_archive.described(tar)


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign.copy, "__defaults__", (1 << 20,))
    packed = tmp_path / "sdk.tar.gz"
    packed.write_bytes(gzip.compress(bytes(2 << 20)))
    with pytest.raises(FileError, match=r"sdk\.tar\.gz, unpacked, has more than 1 MiB"):
        prefix.normalise(packed, tmp_path / "target")
    with pytest.raises(FileError, match="a layer, unpacked, has more than 1 MiB"):
        docker_archive.uncompressed(io.BytesIO(packed.read_bytes()), "a layer")


# What a terminal would obey: a title, the clipboard, a colour, a return, C1's CSI, a text that runs backwards.
HOSTILE = "a\x1b]0;title\x07\x1b]52;c;YQ==\x07\x1b[31m\r\x9b2J\u202eb\n\tend \U0001f600 [red]x[/]"
SHOWN = r"a\x1b]0;title\x07\x1b]52;c;YQ==\x07\x1b[31m\r\x9b2J\u202eb" + "\n\tend \U0001f600 [red]x[/]"


def test_no_control_character_reaches_a_terminal_through_print_or_rich() -> None:
    screen = io.StringIO()
    stream = PrintableStream(screen)
    print(HOSTILE, file=stream)
    stream.writelines([HOSTILE, "\n", "a line of a container\r\n"])
    assert screen.getvalue() == f"{SHOWN}\n{SHOWN}\na line of a container\n"
    screen = io.StringIO()
    terminal = Console(file=PrintableStream(screen), force_terminal=True, width=200, color_system="standard")
    terminal.notice(f"notice: {HOSTILE}")
    table = Table(title=HOSTILE)
    table.add_row(HOSTILE)
    terminal.print(table)
    terminal.print(HOSTILE, style="bold", highlight=False)
    written = screen.getvalue()
    # Rich's own colours are there, and nothing else.
    assert "\x1b[33mnotice:" in written
    assert "\x1b]" not in written and "\x1b[31m" not in written and "\x9b" not in written and "\x07" not in written
    assert written.count(r"\x1b]0;title") == 4


def test_text_of_a_registry_and_of_a_child_is_shown_without_control_characters() -> None:
    """Each verb runs behind these streams; the error's text comes from a registry."""
    script = (
        "import sys\n"
        "from toolchains.cli import commandline\n"
        "from toolchains.system.errors import FetchError\n"
        "commandline.prepare_streams()\n"
        "commandline.prepare_streams()\n"
        f"print({HOSTILE!r})\n"
        "sys.stdout.buffer.write(b'')\n"
        f"commandline.refuse(FetchError('refused', why={HOSTILE!r}))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(paths.ROOT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=env, check=False)
    assert done.returncode == 16
    assert done.stdout.decode() == f"{SHOWN}\n"
    for text in (done.stdout, done.stderr):
        assert not set(text) & {0x1B, 0x07, 0x0D} and b"title" in text
