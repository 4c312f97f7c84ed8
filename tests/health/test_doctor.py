"""What `doctor` finds: each fault is made here, and found; nothing is found where nothing is wrong."""

from __future__ import annotations

import hashlib
import os
import sys
import time
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import elves
import pytest

from toolchains.engine import host
from toolchains.engine.client import ImageInfo
from toolchains.fetch.store import Store
from toolchains.health import environment, extension, machine
from toolchains.health.extension import Loading
from toolchains.health.machine import Problem
from toolchains.images import provenance
from toolchains.system import paths, space
from toolchains.system.errors import HealthError, UsageError
from toolchains.verbs import doctor

COMMIT, OTHER = "a" * 40, "b" * 40
Files = dict[str, bytes | str]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


class Clock:
    """An engine on a machine whose clock differs from ours."""

    def __init__(self, ahead: timedelta = timedelta()) -> None:
        self.ahead = ahead

    def clock(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def root(self) -> None:
        return None


@pytest.fixture
def sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine on which nothing is wrong; the result changes it."""
    monkeypatch.setenv("FOUNDRY_CACHE", str(tmp_path / "store"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(space, "free", lambda _: 10**12)
    monkeypatch.setattr(machine, "_LOCK_DAYS", 10**6)
    limit = tmp_path / "limit"
    limit.write_text("max")
    monkeypatch.setattr(machine, "_LIMITS", [(str(limit), str(limit))])
    assert said(machine.check(Clock())) == ""  # type: ignore[arg-type]
    return monkeypatch


def said(found: object) -> str:
    """Return all findings as text, what will fail before what is only suspicious."""
    assert hasattr(found, "__iter__")
    each: list[Problem] = sorted(found, key=lambda finding: not finding.fatal)
    return "\n".join(f"{'fails' if one.fatal else 'notice'}: {one.what}\n{one.why}\n{one.next}" for one in each)


@pytest.mark.parametrize(("free", "first"), [(2_000_000_000, "notice: 2.0 GB"), (100_000_000, "fails: 0.1 GB")])
def test_a_disk_that_is_nearly_full_is_named(sound: pytest.MonkeyPatch, tmp_path: Path, free: int, first: str) -> None:
    sound.setattr(space, "free", lambda place: free if place == tmp_path / "store" else 10**12)
    assert said(machine.check(None)).startswith(f"{first} are free at {tmp_path / 'store'}")


def test_lack_of_memory_or_of_rights_is_named(sound: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, number in (("most", 1_500_000_000), ("used", 1_000_000_000)):
        (tmp_path / name).write_text(f"{number}\n")
    sound.setattr(machine, "_LIMITS", [(str(tmp_path / "most"), str(tmp_path / "used"))])
    assert said(machine.check(None)).startswith("notice: 0.5 GB of memory are available")
    (tmp_path / "file").write_text("")
    sound.setenv("FOUNDRY_CACHE", str(tmp_path / "file" / "store"))
    assert f"fails: {tmp_path / 'file' / 'store'} cannot be written to" in said(machine.check(None))


def test_wrong_clocks_are_named(sound: pytest.MonkeyPatch) -> None:
    assert said(machine.check(Clock(timedelta(seconds=100)))) == ""  # type: ignore[arg-type]
    assert "differ by 2:00:00\n" in said(machine.check(Clock(timedelta(hours=2))))  # type: ignore[arg-type]
    sound.setattr(time, "time", lambda: 3600.0)
    assert said(machine.check(None)).startswith("fails: this machine's clock says 1970-01-01")


def test_a_lock_that_is_old_or_damaged_is_named(sound: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = time.time()
    with sound.context() as later:
        later.setattr(machine, "_LOCK_DAYS", 60)
        later.setattr(time, "time", lambda: now + 100 * 86400)
        assert "notice: the lock is " in said(machine.check(None))
    damaged = tmp_path / "lock.json"
    damaged.write_text("{")
    sound.setattr(paths, "LOCK", damaged)
    assert "fails: the lock is malformed" in said(machine.check(None))


def test_every_damaged_file_of_a_store_is_found_and_removed(tmp_path: Path) -> None:
    here = Store(tmp_path, offline=True)

    def put(name: str, content: bytes) -> Path:
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return place

    digest = hashlib.sha256(b"a package").hexdigest()
    whole = [put(f"artifacts/{digest[:2]}/{digest}/a.deb", b"a package")]
    whole += [here.part("native", name, lambda folder: (folder / "a").write_bytes(b"code")) for name in ("1" * 64,)]
    config = hashlib.sha256(b"{}").hexdigest()
    whole += [put(f"images/configs/{config}", b"{}"), put(f"images/layers/{'5' * 64}", b"")]
    provenance.note("a/b:1", ImageInfo("sha256:1", (), {"a": "b", "c": "d"}, 1, ()), here, "sha256:2")
    whole.append(tmp_path / "images/a%2Fb%3A1.json")
    # A store of an earlier version has no sums.
    whole.append(put("images/old.json", b'[{"id": "sha256:1", "labels": {}}]'))
    assert said(machine.check_store(here)) == ""
    damaged = [put(f"artifacts/{digest[:2]}/{digest}/b.deb", b"A package")]
    damaged += [here.part("native", name, lambda folder: (folder / "a").write_bytes(b"code")) for name in ("2" * 64,)]
    (damaged[-1] / "a").write_bytes(b"cOde")
    damaged += [
        put("images/x.json", b"[{"),
        put("images/y.json", b'{"id": 1}'),
        put("images/z.json", whole[-2].read_bytes().replace(b"sha256:1", b"sha256:3")),
    ]
    damaged += [put(f"images/configs/{'3' * 64}", b"{}"), put(f"images/layers/{'4' * 64}", b"{x\n")]
    found = list(machine.check_store(here))
    assert [each.what for each in found] == [f"{place} is damaged" for place in damaged]
    for each in found:
        assert each.fix is not None
        each.fix()
    assert said(machine.check_store(here)) == ""
    assert all(place.exists() for place in whole)


_BACKENDS = """
print("a line of a plugin")

class Backend:
    def __init__(self, said):
        self.said, self.driver = said, self

    def is_active(self):
        if isinstance(self.said, str):
            raise RuntimeError(self.said)
        return self.said

def make(said):
    return {name: Backend(each) for name, each in said.items()}
"""


class Site:
    """A folder of packages for a Python, with a Triton that has backends and no compiler."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # A file that is written twice in a second would be read from the first one's bytecode.
        self.variables = {"PYTHONPATH": str(folder), "HOME": str(folder / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
        (folder / "triton" / "backends").mkdir(parents=True)
        (folder / "triton" / "_C").mkdir()
        self.install("triton", "3.9.0", files=["triton/__init__.py"])
        self.backends(mine=True, other=False)

    def backends(self, **said: bool | str) -> None:
        """Let each backend say whether it is active, or raise an error with this text."""
        (self.folder / "triton/backends/__init__.py").write_text(_BACKENDS + f"backends = make({said!r})\n")

    def install(self, name: str, version: str, *, files: list[str] | None = None, requires: str = "") -> None:
        info = self.folder / f"{name}-{version}.dist-info"
        info.mkdir()
        needs = f"Requires-Dist: {requires}\n" if requires else ""
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files or ()))
        if name == "triton":
            (self.folder / "triton/__init__.py").write_text(f"__version__ = {version!r}\n")

    def check(self, **variables: str) -> str:
        return said(environment.check(sys.executable, self.variables | variables))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path / "site")
    assert made.check() == ""
    return made


@pytest.mark.slow
def test_distributions_that_do_not_go_together_are_named(site: Site) -> None:
    site.install("triton_xpu", "3.2.0", files=["triton/__init__.py"])
    site.install("torch", "2.9.1", requires="triton==3.5.1; platform_system == 'Linux'")
    site.install("idle", "1", requires="triton==1.0; platform_system == 'Windows'")
    found = site.check()
    assert "several distributions have the folder triton/: triton 3.9.0, triton_xpu 3.2.0" in found
    assert "torch 2.9.1 requires triton==3.5.1, and 3.9.0 is installed" in found
    assert found.count("fails: ") == 2
    assert "notice: " not in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "backends", "variables", "expected"),
    [
        ("3.9.0", {"a": True, "b": True}, {}, "several backends are active: a, b"),
        ("3.9.0", {"a": True, "b": True}, {"TRITON_DEFAULT_BACKEND": "b"}, ""),
        ("3.6.0", {"a": True, "b": True}, {"TRITON_DEFAULT_BACKEND": "b"}, "is heeded since 3.9"),
        ("3.9.0", {"a": False}, {}, "no backend is active"),
        (
            "3.9.0",
            {"a": True, "b": "no SDK"},
            {},
            "the backend b cannot say whether it is active\nRuntimeError: no SDK",
        ),
        ("3.9.0", {"a": True}, {"TRITON_DEFAULT_BACKEND": "c"}, "names c, which is no backend of this Triton"),
    ],
)
def test_the_drivers_that_triton_would_refuse_are_named(
    site: Site, version: str, backends: Mapping[str, bool | str], variables: Mapping[str, str], expected: str
) -> None:
    site.backends(**backends)
    (site.folder / "triton/__init__.py").write_text(f"__version__ = {version!r}\n")
    found = site.check(**variables)
    assert expected in found if expected else found == ""


@pytest.mark.slow
def test_vllm_is_named_where_it_would_turn_triton_off(site: Site) -> None:
    site.install("vllm", "0.12.0")
    assert site.check() == ""
    site.backends(a=True, b=True)
    found = site.check(TRITON_DEFAULT_BACKEND="a")
    assert found.startswith("notice: vLLM turns Triton off: it counts 2 active drivers, and wants one")


@pytest.mark.slow
def test_a_triton_that_cannot_be_imported_is_named_with_the_reason(site: Site) -> None:
    (site.folder / "triton/backends/__init__.py").write_text("import nowhere_to_be_found\n")
    assert "No module named 'nowhere_to_be_found'" in site.check()
    with pytest.raises(UsageError, match="does not run as a Python"):
        list(environment.check("/bin/true", site.variables))


@pytest.mark.slow
def test_variables_of_triton_that_lead_nowhere_are_named(site: Site, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    (plugin / "backend").mkdir(parents=True)
    library = elves.make(tmp_path / "pass.so", {"legacy": ""})
    found = site.check(
        TRITON_BACKENDS_IN_TREE="1",
        TRITON_PLUGIN_DIRS=str(plugin),
        TRITON_PLUGIN_PATHS=f"{library}:{tmp_path / 'gone.so'}",
    )
    assert "notice: TRITON_BACKENDS_IN_TREE hides backends" in found
    assert f"TRITON_PLUGIN_DIRS names {plugin}, which has no backend/name.conf" in found
    assert "pass.so has no function tritonGetPluginInfo" in found
    assert f"TRITON_PLUGIN_PATHS names {tmp_path / 'gone.so'}, which is no file" in found
    (plugin / "backend" / "name.conf").write_text("mine")
    elves.make(library, {"tritonGetPluginInfo": ""})
    assert site.check(TRITON_PLUGIN_DIRS=str(plugin), TRITON_PLUGIN_PATHS=str(library)) == ""


@pytest.mark.slow
def test_entries_of_tritons_cache_that_cannot_be_loaded_are_removed_and_no_others(site: Site, tmp_path: Path) -> None:
    cache = site.folder / "home" / ".triton" / "cache"
    libc = elves.make(tmp_path / "libc.so.6", {"new": "GLIBC_2.999", "old": "GLIBC_2.2.5"}, soname="libc.so.6")
    names = {"other_python": "launcher.cpython-35m-x86_64-linux-gnu.so", "newer": "stub.so", "good": "stub.so"}
    for entry, name in names.items():
        (cache / entry).mkdir(parents=True)
        elves.make(cache / entry / name, uses=["new" if entry == "newer" else "old"], against=[libc])
    (cache / "text").mkdir()
    (cache / "text" / "kernel.so").write_text("no library")
    found = list(environment.check(sys.executable, site.variables))
    assert [each.what for each in found] == [f"2 entries of Triton's cache {cache} cannot be loaded here"]
    assert found[0].fix is not None
    found[0].fix()
    assert sorted(each.name for each in cache.iterdir()) == ["good", "text"]
    (tmp_path / "file").write_text("")
    assert "cannot be written to" in site.check(TRITON_CACHE_DIR=str(tmp_path / "file" / "cache"))


def triton(folder: Path, *symbols: str, commit: str = COMMIT, compiler: bytes = b" [DesiredTypeName = X]") -> Path:
    """Make a libtriton.so that has these symbols."""
    made = elves.make(folder / "libtriton.so", dict.fromkeys(symbols, ""), soname="libtriton.so")
    made.write_bytes(made.read_bytes() + f"LLVM version 24.0.0git ({commit})\0".encode() + compiler)
    return made


def test_an_extension_is_compared_with_libtriton(tmp_path: Path) -> None:
    there, gone = "_ZN4mlir9Operation3fooEv", "_ZN4llvm3barEv"
    libtriton = triton(tmp_path, there)

    def check(name: str, more: bytes = b"", **options: Mapping[str, str] | list[str]) -> str:
        made = elves.make(tmp_path / name, against=[libtriton], **options)  # type: ignore[arg-type]
        made.write_bytes(made.read_bytes() + more)
        return said(extension.check(made, Loading(libtriton)))

    assert check("good.so", b" [DesiredTypeName = Y]", uses=[there]) == ""
    assert check("weak.so", uses=[there], may_use=[gone]) == ""
    assert check("nothing.so", f"LLVM version 17.0.6 ({OTHER})\0".encode()) == ""
    found = check("symbols.so", uses=[there, gone])
    assert f"symbols.so needs 1 symbols of LLVM or MLIR that libtriton.so does not have\n{gone}" in found
    found = check("commit.so", f"LLVM version 22.0.0git ({OTHER})\0".encode(), uses=[there])
    assert f"fails: commit.so has another LLVM in it than libtriton.so\ncommit.so: {OTHER}" in found
    assert check("gcc.so", b"[with DesiredTypeName = Y]", uses=[there]).startswith("fails: gcc.so was compiled by GCC")
    found = check("second.so", defines={gone: ""}, uses=[there])
    assert found.startswith("notice: second.so takes LLVM or MLIR from libtriton.so, and has some of it, too")


def test_an_extension_is_compared_with_this_machine(tmp_path: Path) -> None:
    libc = elves.make(tmp_path / "libc.so.6", {"new": "GLIBC_2.999"}, soname="libc.so.6")
    cxx = elves.make(tmp_path / "libstdc++.so.6", {"cxx": "GLIBCXX_3.4.999"}, soname="libstdc++.so.6")
    made = elves.make(tmp_path / "new.so", uses=["new", "cxx"], against=[libc, cxx])
    found = said(extension.check(made, Loading()))
    assert "new.so needs GLIBC_2.999 of libc.so.6\nthis machine has GLIBC_2." in found
    assert "new.so needs GLIBCXX_3.4.999 of libstdc++.so.6" in found
    made.write_bytes(elves.for_aarch64(made.read_bytes()))
    assert said(extension.check(made, Loading())).startswith("fails: new.so is for AArch64; this machine is x64")
    made.write_bytes(b"no library")
    with pytest.raises(UsageError, match="is neither a wheel nor a shared library"):
        list(extension.check(made, Loading()))


def test_a_library_that_the_loader_refuses_is_named_with_the_remedy(tmp_path: Path) -> None:
    for folder in ("gone", "old"):
        (tmp_path / folder).mkdir()
    gone = elves.make(tmp_path / "gone" / "libgone.so", {"f": ""}, soname="libgone.so")
    musl = elves.make(tmp_path / "gone" / "libmusl.so", {"g": ""}, soname="libc.musl-x86_64.so.1")
    new = elves.make(tmp_path / "gone" / "libstdc++.so.6", {"h": "GLIBCXX_3.4.21"}, soname="libstdc++.so.6")
    elves.make(tmp_path / "old" / "libstdc++.so.6", {"h": "GLIBCXX_3.4"}, soname="libstdc++.so.6")
    old = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "old")}
    cases: dict[str, tuple[list[str], list[Path], dict[str, str], str, str]] = {
        "needs.so": (["f"], [gone], {}, "libgone.so: cannot open shared object file", "install what has libgone.so"),
        "musl.so": (["g"], [musl], {}, "libc.musl-x86_64.so.1: cannot open", "take the wheel for glibc (manylinux)"),
        "version.so": (["h"], [new], old, "version `GLIBCXX_3.4.21' not found", f"an older {tmp_path}/old/libstdc++"),
        "symbol.so": (["nobody_has_it"], [], {}, "undefined symbol: nobody_has_it", "link it with the library"),
    }
    for name, (uses, against, variables, why, next) in cases.items():
        library = elves.make(tmp_path / name, uses=uses, against=against)
        (found,) = extension.check(library, Loading(python=VERSION, variables=variables))
        assert f"{name} cannot be loaded by {sys.executable}" in found.what and found.fatal
        assert why in found.why and next in found.next, found
    (found,) = extension.check(tmp_path / "symbol.so", Loading())
    assert not found.fatal and "--python=" in found.next
    # A library beside another one in a wheel is found by its place.
    beside = elves.make(tmp_path / "beside.so", uses=["f"], against=[gone], search="$ORIGIN/m.libs").read_bytes()
    files: Files = {"m/a.so": beside, "m/m.libs/libgone.so": gone.read_bytes()}
    assert said(extension.check(wheel(tmp_path / "m-3.whl", files), Loading())) == ""


def wheel(path: Path, files: Files) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_plugins_wheel_is_looked_into(tmp_path: Path) -> None:
    library = elves.make(tmp_path / "a.so", {"f": ""}).read_bytes()
    points: Files = {"m-1.dist-info/entry_points.txt": "[triton.backends]\nmine = m.backend\n"}
    modules: Files = {"m/backend/compiler.py": "", "m/backend/driver.py": ""}
    good = wheel(tmp_path / "m-1.whl", {**points, **modules, "m/a.so": library})
    assert said(extension.check(good, Loading())) == ""
    library_of = "m/b.cpython-3{}-x86_64-linux-gnu.so".format
    extensions: Files = {library_of(minor): library for minor in (5, sys.version_info.minor)}
    wrong: Files = {
        "m/backend/compiler.py": "",
        "triton/__init__.py": "",
        "m/libm.so.1": library[:200],
    }
    bad = wheel(tmp_path / "m-2.whl", {**points, **wrong, **extensions})
    found = said(extension.check(bad, Loading(python=VERSION)))
    assert "the backend mine has no driver.py in m/backend/" in found
    assert "m-2.whl has the folder triton/" in found
    assert "m/libm.so.1 is damaged" in found
    assert f"m/b.cpython-35-x86_64-linux-gnu.so is for Python 3.5, and Python {VERSION} does not load it" in found
    assert found.count("fails: ") == 4
    bad.write_bytes(good.read_bytes()[:-30])
    with pytest.raises(UsageError, match="is a damaged wheel"):
        list(extension.check(bad, Loading()))


def test_the_verb_fails_on_what_will_fail_and_mends_what_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mended: list[str] = []
    findings = [
        Problem("a stale entry", fatal=False, fix=lambda: mended.append("entry") or "removed it"),  # type: ignore[func-returns-value]
        Problem("a wrong clock", "it says 1970", "set it"),
    ]
    monkeypatch.setattr(host, "provide", list)
    monkeypatch.setattr(doctor, "_machine", lambda: iter(findings))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    for fix in (False, True):
        with pytest.raises(HealthError, match="1 findings that will fail") as raised:
            doctor.doctor("", python="", target="", check_store=False, fix=fix)
        assert raised.value.why == "a wrong clock"
        assert mended == ["entry"] * fix
        printed = capsys.readouterr().out
        assert ("notice: a stale entry" in printed) != fix
    findings.pop()
    doctor.doctor("", python="", target="", check_store=False, fix=False)
    with pytest.raises(UsageError, match="--target goes with an SDK"):
        doctor.doctor("", python="", target="dpu", check_store=False, fix=False)
    with pytest.raises(UsageError, match="there is no file"):
        doctor.doctor(str(tmp_path / "gone.whl"), python="", target="", check_store=False, fix=False)
