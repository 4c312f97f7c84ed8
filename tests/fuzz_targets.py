"""The parsers of what others wrote, in one table: the errors that each may raise, and small valid inputs to start from.

tests/faults/test_fuzz.py damages these inputs a fixed number of times; tests/fuzz.py does so for hours. The readers
in C and C++ are in fuzz_native.py.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import archive_files
import elves
from archive_files import sums
from foundry_core.codegen import lines, spirv
from foundry_core.errors import LoweringError
from foundry_core.ir import parse
from triton_dpu_backend.artifact import signature

from toolchains.archives import docker_archive, prefix, received, wheel_file
from toolchains.config import reading, vendors
from toolchains.config.components import Pin, TargetFile
from toolchains.contents import licences, packages
from toolchains.engine.container import Container
from toolchains.fromsource import source_tar
from toolchains.lockfile import lock
from toolchains.patching import series
from toolchains.report import page, results
from toolchains.repro import members
from toolchains.sdk import elf
from toolchains.sdk.contents import Supply
from toolchains.system import json_text, paths
from toolchains.system.errors import FoundryError, ImageError, PatchError, PinError
from toolchains.testing.junit import Count
from toolchains.trust import image_archive, keys, statement

# What would end a text, an attribute, a comment or a script of HTML, of a style sheet or of a template, or begin one.
HTML = (
    "</script>",
    "<script>alert(1)",
    "<b>",
    '"',
    "'",
    ">",
    " onload=",
    "<!--",
    "-->",
    "]]>",
    "&lt;b&gt;",
    "{{ 7 }}",
    "}",
    "\\",
)


@dataclass(frozen=True)
class Target:
    """A parser.

    Attributes:
        read: parses bytes; it may write into an empty folder, and nowhere else.
        seeds: makes valid inputs, with the help of a folder.
        raises: the errors that the parser documents. Any other one is a defect, and so is a hang.
        repair: makes the checksums of a damaged input right, because the parser would not read beyond them.
    """

    read: Callable[[bytes, Path], object]
    seeds: Callable[[Path], Sequence[bytes]]
    raises: tuple[type[Exception], ...] = (FoundryError,)
    repair: Callable[[bytes], bytes] = bytes


def in_file(read: Callable[[Path], object], name: str = "input") -> Callable[[bytes, Path], object]:
    """Return a function that writes its input to a file of this name, and lets `read` read that."""

    def parse(data: bytes, folder: Path) -> object:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return read(path)

    return parse


def text(read: Callable[[str], object]) -> Callable[[bytes, Path], object]:
    """Return a function that decodes its input; what is not UTF-8 is refused where the text is read from a file."""
    return lambda data, _: read(data.decode(errors="replace"))


def files(*names: str | Path) -> Callable[[Path], Sequence[bytes]]:
    """Return a function that reads files of this repository."""
    return lambda _: [paths.ROOT.joinpath(name).read_bytes() for name in names]


def made(*contents: bytes | str | dict[str, object]) -> Callable[[Path], Sequence[bytes]]:
    """Return a function that gives these contents; a dict is JSON."""
    plain = [json.dumps(each) if isinstance(each, dict) else each for each in contents]
    return lambda _: [each.encode() if isinstance(each, str) else each for each in plain]


def _entries() -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for name, content in (("top/file", b"content"), ("top/" + "long" * 40, b""), ("top/sparse", b"1\n0\n1\n")):
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        if name.endswith("sparse"):
            entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "SCHILY.xattr.user.a": "b"}
        yield entry, content
    for name, kind in (("top/link", tarfile.SYMTYPE), ("top/same", tarfile.LNKTYPE), ("top", tarfile.DIRTYPE)):
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, "top/file"
        yield entry, b""


def tars(_: Path) -> Sequence[bytes]:
    """Return a tar in each of the formats."""
    packed = []
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w", format=form) as tar:
            for entry, content in _entries():
                tar.addfile(entry, io.BytesIO(content))
        packed.append(data.getvalue()[: -tarfile.RECORDSIZE // 2])
    return packed


def debs(folder: Path) -> Sequence[bytes]:
    """Return a Debian package whose members are not compressed."""
    content = {"usr/share/doc/a/copyright": b"License: MIT\n"}
    control = {"./control": b"Package: a\nVersion: 1\nArchitecture: amd64\nSource: b (2)\n"}
    parts: dict[str, bytes] = {"debian-binary": b"2.0\n"}
    for name, inner in (("control.tar", control), ("data.tar", content)):
        parts[name] = archive_files.tar(folder / name, inner).read_bytes()
    rows = [b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (n.encode(), 0, 0, 0, b"100644", len(c)) + c for n, c in parts.items()]
    return [b"!<arch>\n" + b"".join(rows)]


def wheels(folder: Path) -> Sequence[bytes]:
    """Return a wheel, stored and compressed."""
    plain = archive_files.wheel(
        folder, "a", "1.0", ["b"], files={"a/__init__.py": "x = 1\n", "a-1.0.dist-info/LICENSE": "MIT"}
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(zipfile.ZipInfo(name), source.read(name), zipfile.ZIP_DEFLATED)
    return [plain.read_bytes(), packed.getvalue()]


def libraries(folder: Path) -> Sequence[bytes]:
    """Return a library with versions, and a program that needs it."""
    library = elves.make(folder / "libone.so", {"one": "ONE_1"}, soname="libone.so.1")
    return [
        library.read_bytes(),
        elves.make(folder / "two", uses=["one"], against=[library], search="/lib", loader=elves.LOADER).read_bytes(),
    ]


def images(_: Path) -> Sequence[bytes]:
    """Return an archive of an image as engines write it."""
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["A=1"]},
        "history": [{"created_by": "COPY"}],
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + "0" * 64]},
    }
    manifest = [{"Config": "c.json", "RepoTags": ["a:b"], "Layers": ["l.tar"]}]
    parts = {"c.json": _compact(config), "l.tar": tars(Path())[0], "manifest.json": _compact(manifest)}
    return [sums(archive_files.packed(parts))]


def _compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _prefix(path: Path) -> None:
    prefix.normalise(path, path.with_name("normalised"), below="top")


def _supply(path: Path) -> None:
    supply = Supply(path)
    supply.write(vendors.VendorSdk.read("vsi"), supply.sha256(), path.with_name("written"))


def _source(path: Path) -> None:
    with path.with_name("packed").open("wb") as out:
        for entry in source_tar.read_tree(path, "a source"):
            if entry.content:
                shutil.copyfileobj(entry.content, out)


def _deb(path: Path) -> None:
    (path.parent / "kept").mkdir()
    packages._read(lock.Artifact("deb", "a", "1", "a.deb", 1, "0" * 64), path, path.parent / "kept")


def _wheel(path: Path) -> None:
    wheel_file.read_files(path)
    with path.open("rb") as file:
        packages.read_wheel(file)


def _image(path: Path) -> None:
    docker_archive.normalise(path, path.with_name("normalised"), name="a:b")


def _checked_image(path: Path) -> None:
    image_archive.read(path)
    list(image_archive.check(path, image_config, lambda _: (), ["a:b"]))


image_config = json.dumps({"rootfs": {"diff_ids": ["sha256:" + "1" * 64]}}).encode()


def _members(path: Path) -> None:
    with path.open("rb") as file, ExitStack() as closing:
        for member in (members.read(file, closing) or ("", []))[1]:
            if member.kind == "file":
                member.open().read(1 << 20)


@contextmanager
def _only(folder: Path, *names: str) -> Iterator[Path]:
    """Yield a new folder, in which the parser may write what has these names, and nothing beside them."""
    box = folder / "box"
    box.mkdir()
    try:
        yield box
    finally:
        beside = {each.name for each in box.iterdir()} - {*names}
        assert not beside, f"written beside the folder: {beside}"


def _copied_out(data: bytes, folder: Path) -> None:
    class Api:
        def get_archive(self, id: str, path: str) -> tuple[list[bytes], None]:
            return [data], None

    container = Container(Api(), "image", {})
    with _only(folder, "out", "fetched") as box:
        container.copy_out("/top", box / "out")
        container.copy_out("/top", box / "fetched", only="file")


def _unpacked(path: Path) -> None:
    with _only(path.parent, "out") as box, path.open("rb") as file:
        received.take(file, box / "out", received.Bounds(1 << 20), what="/top")


def _artifact(path: Path) -> None:
    """Let the script that runs an artifact read its meta.json: it must pass on numbers, or refuse."""
    scripts, packed = path.parent / "scripts", path.parent
    scripts.mkdir()
    shutil.copy(paths.BACKENDS / "dpu/tritonpim/scripts/container_artifact_run.sh", scripts / "run.sh")
    # In the place of what would compile it.
    (scripts / "build_dpu.sh").write_text('#!/bin/sh\nprintf "%s,%s" "$4" "$5" >"$(dirname "$0")/built"\nexit 1\n')
    (scripts / "build_dpu.sh").chmod(0o755)
    for name in ("kernel.ll", "wrapper.ll", "triton_args.h", "triton_args.c", "host_args.h", "host_runner.c"):
        (packed / name).touch()
    done = subprocess.run(
        ["sh", str(scripts / "run.sh")], env={"PATH": "/usr/bin:/bin", "ARTIFACT_DIR": str(packed)}, capture_output=True
    )
    assert done.returncode == 1
    built = scripts / "built"
    assert not built.exists() or re.fullmatch(r"[0-9]+,[0-9]+", built.read_text()), built.read_text()


def _series(path: Path) -> None:
    path.with_name("0001.patch").write_bytes(path.read_bytes())
    path.with_name("series").write_text("0001.patch\n")
    series.Series.load(path.parent)


def _listing(path: Path) -> None:
    series.Series.load(path.parent)


def _pin(path: Path) -> None:
    table = reading.read_table(path)
    for kind in (Pin, TargetFile, vendors.VendorSdk):
        try:
            reading.convert(table, kind, path)
        except PinError:
            continue


def report_of(folder: Path) -> str:
    """Return the page of a folder of results."""
    with mock.patch.object(results, "_commit", return_value=""):
        return page.render(results.collect(folder, _locked()), _locked())


@cache
def _locked() -> lock.Lock:
    return lock.load()


class _Markup(HTMLParser):
    """The elements of a page, the names of attributes, and how many scripts there are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.update([f"<{tag}>", *(name for name, _ in attrs)])


@cache
def _plain_markup() -> frozenset[str]:
    """Return the elements and attributes of a page whose results have no markup in them."""
    with TemporaryDirectory(dir=paths.temporary()) as work:
        folder = Path(work)
        for place, seeds in RESULTS.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(seeds(folder)[0])
        return frozenset(_Markup(report_of(folder)).found)


def _result(place: str) -> Callable[[bytes, Path], object]:
    def read(folder: Path) -> None:
        markup = _Markup(report_of(folder)).found
        added = markup.keys() - _plain_markup()
        assert not added and markup["<script>"] == 1, f"the page has markup of the results: {added}"

    return lambda data, folder: in_file(lambda _: read(folder), place)(data, folder)


def _page(folder: Path) -> Sequence[bytes]:
    _result("spirv/3.9.0/results.json")(VERDICT(folder)[0], folder)
    return [b"<html>" + report_of(folder).rpartition("</main>")[2].encode()]


VERDICT = made(
    {
        "ran": {"device": "a CPU"},
        "faults": ["it broke"],
        "partial": "1 of 2",
        "cases": [
            {"suite": "s", "name": "n", "failure": None, "modelled": {"cycles": 7}},
            {"suite": "s", "name": "m", "failure": "wrong\nat length", "outcome": "failed"},
        ],
    }
)
_KERNEL = {
    "kernel": "k",
    "grid": [2, 1, 1],
    "launches": 3,
    "seconds": 0.002,
    "bytes": 4096,
    "operations": 10,
    "functions": 1,
    "bound": "memory",
    "share": 0.5,
    "memory_roof": 8e9,
    "launch": 1e-5,
    "arithmetic_roofs": {"f16": 5e12},
    "unknown": "not known",
}
_DPU_KERNEL = _KERNEL | {"modelled": {"cycles": 54321, "dma": 0.9, "pipeline": 0.25}}
_ROWS = [
    {"label": "ours", "times": {"median": 0.0015}, "rate": 90.0, "cycles": None},
    {"label": "theirs", "times": None, "rate": 80.0, "cycles": 123456, "detail": "block 64"},
]
BENCH = made(
    {
        "ran": {"device": "a CPU"},
        "measurements": [
            {
                "title": "t",
                "unit": "GB/s",
                "rows": _ROWS,
                "ratios": {"r": 0.9},
                "beyond": {"b": 0.25},
                "aim": "a",
                "on": {"torch": "AVX2"},
            }
        ],
        "profiles": [{"name": "p", "kernels": [_KERNEL]}],
    }
)
PROFILE = made(
    {"ran": {"device": "an emulator"}, "script": "mine.py", "kernels": [_DPU_KERNEL, _KERNEL, _KERNEL | {"bound": ""}]}
)
SIZES = made({"image": "a:b", "packages": {"libc6": 2_000_000, "python: triton": 5}})
JUNIT = made(
    '<testsuites><testsuite tests="2" failures="1" errors="0" skipped="0"><testcase classname="t" name="one"/>'
    '<testcase classname="t" name="two"><failure message="wrong"/></testcase></testsuite></testsuites>'
)
# As the verb pack writes it.
_META = json.dumps({"kernel": "k", "args": [], "num_tasklets": 16, "stack_size": 2048}, indent=2)
# The files that a container writes, by their places in build/results.
RESULTS = {
    "spirv/3.9.0/results.json": VERDICT,
    "vsi/conformance/3.9.0/own/results.json": VERDICT,
    "spirv-bench/3.9.0/bench.json": BENCH,
    "dpu/3.9.0/profiles/mine.json": PROFILE,
    "spirv/3.9.0/sizes.json": SIZES,
    "test/backends-spirv-3.6.0.xml": JUNIT,
}
_TTIR = "backends/core/ir"
_SIGNED = """\
define void @k(float addrspace(255)* %0, i32 %1, i8 addrspace(1)* %2) !dbg !1 {
  ret void
}
@__triton_scratch_a = internal global [16 x i8] undef
!triton.dpu = !{!0}
!0 = !{!"parts", !"2"}
"""


# A module with a line, so that it gets scopes: the name of a file before the types, and OpLine in the kernel.
_NAME, _LINE = struct.pack("<3I", 3 << 16 | 7, 7, 0x632E61), struct.pack("<4I", 4 << 16 | 8, 7, 1, 1)
WITH_LINES = spirv.EMPTY[:72] + _NAME + spirv.EMPTY[72:-8] + _LINE + spirv.EMPTY[-8:]


def _ttir(data: str) -> None:
    parse.parse(data)


def _spirv(data: bytes, _: Path) -> None:
    spirv.widest_call(data)
    lines.add_scopes(data)


def _signature(data: str) -> None:
    signature.tasklets(data)
    signature.parse(data)


def _statement(folder: Path) -> Sequence[bytes]:
    made = statement.make(
        [statement.Resource("a", {"sha256": "0" * 64})], kind="image", asked={}, derived={}, inputs=[]
    )
    return [statement.seal(made, None).encode()]


_WRITES = (FoundryError, OSError)
TARGETS = {
    "tar": Target(in_file(_prefix), tars, _WRITES, sums),
    "sdk": Target(in_file(_supply), tars, (FoundryError,), sums),
    "source": Target(in_file(_source), tars, (FoundryError, tarfile.TarError, EOFError), sums),
    "deb": Target(in_file(_deb), debs, (FoundryError,), sums),
    "wheel": Target(in_file(_wheel), wheels),
    "image": Target(in_file(_image), images, (FoundryError,), sums),
    "verified-image": Target(in_file(_checked_image), images, (ImageError,), sums),
    "archive-members": Target(
        in_file(_members), lambda folder: [*tars(folder), *debs(folder), *wheels(folder)], (Exception,), sums
    ),
    "copied-out": Target(_copied_out, tars, _WRITES, sums),
    "unpacked": Target(in_file(_unpacked), tars, _WRITES, sums),
    "elf": Target(lambda data, _: elf.read(io.BytesIO(data), ["one"]), libraries, (elf.DamagedElfError,)),
    "lock": Target(
        in_file(lock.load), made({"digest": "0", "targets": {}, "sources": {}, "builders": {}}), (PinError,)
    ),
    "toml": Target(
        in_file(_pin), files("toolchains/pins/torch-vsi.toml", "toolchains/targets/spirv.toml"), (PinError,)
    ),
    "patch": Target(in_file(_series), files("patches/triton/3.9.0/0001-select-spirv-by-variable.patch"), (PatchError,)),
    "series": Target(in_file(_listing, "series"), made("# first\n0001.patch\n"), (PatchError,)),
    "revision": Target(
        in_file(lambda path: series.read_revision(path.parent), "revision.toml"),
        files("patches/triton/3.9.0/revision.toml"),
        (PatchError,),
    ),
    "copyright": Target(
        lambda data, _: licences.of_debian_package("a", data),
        made("Format: copyright-format/1.0\n\nFiles: *\nLicense: MIT\n"),
    ),
    "statement": Target(in_file(statement.read), _statement),
    "key": Target(in_file(keys.read_public), made("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")),
    "json": Target(lambda data, _: json_text.parse(data, dict[str, float]), made({"a": 1.5, "b": 2}), (ValueError,)),
    "report": Target(in_file(page.read), _page),
    "counts": Target(in_file(lambda path: Count().add(path)), JUNIT, ()),
    "artifact": Target(in_file(_artifact, "meta.json"), made(_META)),
    **{
        f"results-{Path(place).parts[0]}-{Path(place).stem}": Target(_result(place), seeds)
        for place, seeds in RESULTS.items()
    },
    "ttir": Target(
        text(_ttir),
        files(
            f"{_TTIR}/return_under_a_condition.mlir",
            f"{_TTIR}/store_shifted_in_place.mlir",
            f"{_TTIR}/invocations_of_opencl.mlir",
        ),
        (LoweringError,),
    ),
    "spirv": Target(_spirv, made(spirv.EMPTY, WITH_LINES), (ValueError,)),
    "llvm-ir": Target(text(_signature), made(_SIGNED), (signature.SignatureError,)),
}


# Where the function that runs may write, or None.
_home: Path | None = None
# What opens or makes a file: the event of Python's audit, and which arguments are paths.
_WRITING = {
    "os.mkdir": (0,),
    "os.rename": (0, 1),
    "os.symlink": (1,),
    "os.link": (1,),
    "os.chmod": (0,),
    "os.remove": (0,),
}


class EscapedError(BaseException):
    """A parser would write outside of its folder; it was prevented."""


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _home is None:
        return
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    for number in (0,) if writes else _WRITING.get(event, ()):
        if isinstance(arguments[number], str | bytes | os.PathLike):
            path = Path(os.fsdecode(arguments[number]))
            # A name in an open folder. The event of os.open, which has no mode, does not say whether there is one; what
            # is written through it is compared with the folder afterwards, see _only.
            in_folder = arguments[1] is None if event == "open" else arguments[-1] != -1
            if in_folder and not path.is_absolute():
                continue
            path = path.resolve()
            if not any(path.is_relative_to(each) for each in (_home, paths.temporary(), Path("/dev/null"))):
                raise EscapedError(f"{event} of {path}")


sys.addaudithook(_watch)


class EndlessError(BaseException):
    """A parser took more processor time than it may."""


def _give_up(*_: object) -> None:
    raise EndlessError("it does not end")


def run(target: Target, data: bytes, folder: Path, seconds: float = 0) -> None:
    """Let a target parse, in an empty folder, which is emptied again.

    Args:
        seconds: processor time that it may take; 0 for any.

    Raises:
        AssertionError, EscapedError: it wrote outside the folder, or did not end.
        Exception: an error that the target does not document.
    """
    global _home
    inside = folder / "inside"
    inside.mkdir()
    _home = Path(os.path.realpath(folder))
    before = signal.signal(signal.SIGVTALRM, _give_up) if seconds else None
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        target.read(target.repair(data), inside)
    except target.raises:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if seconds:
            signal.signal(signal.SIGVTALRM, before)
        _home = None
        shutil.rmtree(inside, ignore_errors=True)
    assert not [*folder.iterdir()]
