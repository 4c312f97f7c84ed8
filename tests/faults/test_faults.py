"""Faults of whole builds, on an engine that only these tests use. tests/faults.py runs these and all other faults.

The builds work in a copy of this checkout, with a store that has only the locked files, and go on where the one before
was ended. So all of them together cost little more than one build.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
from faults import FAULTS

from toolchains.artifacts import plugin_wheels
from toolchains.assembly import target_image
from toolchains.assembly.target_image import Inputs
from toolchains.engine import client
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.images import provenance
from toolchains.lockfile import lock
from toolchains.repro import expected
from toolchains.system import children, durable, paths
from toolchains.verbs import repro
from toolchains.verbs.repro import Surroundings

TARGET = "spirv"
# A build that is not ended takes two minutes; this is for a machine that does other work.
SECONDS = 900
pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="only root can start another engine"),
]


class Workshop:
    """A checkout with its own store and engine.

    Attributes:
        folder: with all of it.
        engine: the engine, while it runs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "docker.sock"
        self.around = Surroundings(
            "first",
            folder / "a checkout",
            folder / "store",
            folder / "tmp",
            "",
            "022",
            (0,),
            {},
            f"unix://{self.socket}",
        )
        target = lock.load().targets[TARGET]
        self.target, self.release = target, target_image.release(target, None)
        store = Store(paths.cache())
        wanted = [
            *target.debs,
            *target.wheels,
            self.release.wheel,
            *(deb for each in target.linked for deb in each.debs),
        ]
        inputs = store.fetch(wanted, suite=target.suite, python=target.python)
        repro.prepare(self.around, list(dict.fromkeys(inputs)), store)
        self.log = folder / "dockerd.log"
        self.daemon: subprocess.Popen[bytes] | None = None

    def start_engine(self) -> None:
        data = self.folder / "engine"
        argv = ["dockerd", f"--host=unix://{self.socket}", f"--data-root={data}", f"--exec-root={self.folder / 'exec'}"]
        argv += [f"--pidfile={self.folder / 'docker.pid'}", "--bridge=none", "--iptables=false", "--ip-forward=false"]
        with self.log.open("ab") as log:
            self.daemon = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        self.until(lambda: self.socket.exists() and self.is_up(), self.daemon)

    def is_up(self) -> bool:
        try:
            return bool(self.engine.version())
        except Exception:
            return False

    @property
    def engine(self) -> Engine:
        return client.connect(f"unix://{self.socket}")

    def end_engine(self, number: int) -> None:
        assert self.daemon is not None
        self.daemon.send_signal(number)
        self.daemon.wait()
        # Its containerd and its containers' processes, which outlive a killed dockerd: the next one waits for them.
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if str(self.folder / "exec").encode() in place.read_bytes():
                    os.kill(int(place.parent.name), signal.SIGKILL)
        shutil.rmtree(self.folder / "exec", ignore_errors=True)
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if (mounted := line.split()[1]).startswith(str(self.folder)):
                children.run(["umount", "--lazy", mounted], log="faults", check=False)

    def until(self, done: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + SECONDS
        while not done():
            assert process.poll() is None, f"it ended before: {self.log.read_text()[-2000:]}"
            assert time.monotonic() < end
            time.sleep(0.01)

    def build(
        self,
        stop: Callable[[str], bool] | None = None,
        act: Callable[[subprocess.Popen[bytes]], None] = subprocess.Popen.kill,
        *,
        prefix: tuple[str, ...] = (),
        variables: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Build; when `stop` returns true for what was printed so far, call `act`, which kills it by default."""
        process = self.begin(prefix, variables or {})
        printed: list[str] = []
        reader = Thread(target=self.read, args=(process, printed))
        reader.start()
        if stop is not None:
            self.until(lambda: stop("".join(printed)), process)
            act(process)
        status = process.wait(SECONDS)
        reader.join()
        return status, "".join(printed)

    def begin(self, prefix: tuple[str, ...], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "DOCKER_HOST": f"unix://{self.socket}"}
        environment |= {"FOUNDRY_CACHE": str(self.around.store), "TMPDIR": str(self.around.temporary)} | dict(variables)
        checkout = str(self.around.checkout)
        words = [sys.executable, "-P", "-m", "invoke", "--search-root", checkout, "build", TARGET, "--offline"]
        return subprocess.Popen(
            [*prefix, *words],
            cwd=checkout,
            env={name: value for name, value in environment.items() if value},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    @staticmethod
    def read(process: subprocess.Popen[bytes], printed: list[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line.decode(errors="replace"))

    def exists(self, pattern: str) -> bool:
        return any(self.around.temporary.glob(pattern))

    @cached_property
    def image(self) -> str:
        """The name of the image that the copy builds; it is that of this checkout."""
        return Inputs(self.target, self.release).name

    def id(self) -> str:
        found = self.engine.image(self.image)
        assert found is not None
        return found.id


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    with TemporaryDirectory(prefix="foundry-faults-", dir=paths.temporary()) as folder:
        made = Workshop(Path(folder))
        made.start_engine()
        try:
            yield made
        finally:
            made.end_engine(signal.SIGTERM)


STAGES: Mapping[str, Callable[[Workshop], Callable[[str], bool]]] = {
    "reading the locked files": lambda _: lambda said: "locked files" in said,
    "patching and repacking Triton": lambda _: lambda said: "- Triton " in said,
    "building the plugins": lambda _: lambda said: "- plugins" in said,
    "linking the native programs": lambda _: lambda said: "- linking llvm-tools" in said,
    "making the base image": lambda shop: lambda _: shop.exists("*/*/*/rootfs.tar"),
    "loading the base image": lambda _: lambda said: "- base image into the engine" in said,
    "building a layer in the engine": lambda _: lambda said: "- Python packages" in said,
    "building the last image": lambda shop: lambda said: f"- image {shop.image}" in said,
    # In the last image; the layers before it are finished.
    "saving what the engine built": lambda shop: lambda _: shop.exists("*/*/*/saved.tar"),
    "making the saved layer normal": lambda shop: lambda _: shop.exists("*/*/*/image.tar"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_build_is_killed_while(workshop: Workshop, stage: str) -> None:
    status, _ = workshop.build(STAGES[stage](workshop))
    assert status == -signal.SIGKILL


def test_the_engine_is_killed_during_a_build_and_named(workshop: Workshop) -> None:
    status, said = workshop.build(
        lambda said: f"- image {workshop.image}" in said, lambda _: workshop.end_engine(signal.SIGKILL)
    )
    assert status == 30, said
    assert "engine" in said
    assert "restart the engine" in said
    workshop.start_engine()


@pytest.mark.parametrize("place", ["TMPDIR", "FOUNDRY_CACHE"])
def test_a_disk_is_full_and_named(workshop: Workshop, place: str, tmp_path: Path) -> None:
    # One of the folders is on a small file system. Links give a small store the locked files.
    small = workshop.folder / "small"
    small.mkdir(exist_ok=True)
    files = workshop.around.store / "artifacts"
    mount = f"mount -t tmpfs -o size=8m small '{small}' && ln -s '{files}' '{small}' && exec \"$@\""
    status, said = workshop.build(prefix=("unshare", "--mount", "sh", "-ec", mount, "-"), variables={place: str(small)})
    assert status == 5, said
    assert "o space left on device" in said
    assert re.search(rf"GB free at .*{re.escape(str(small))}", said), said


@pytest.mark.parametrize("name", ["store", "a checkout"])
def test_a_store_or_checkout_that_is_read_only_is_named(workshop: Workshop, name: str) -> None:
    place = workshop.folder / name
    mount = f"mount --bind '{place}' '{place}' && mount -o remount,bind,ro '{place}' && exec \"$@\""
    status, said = workshop.build(prefix=("unshare", "--mount", "sh", "-ec", mount, "-"))
    assert status == 5, said
    assert "ead-only file system" in said
    assert str(place) in said
    assert "next:" in said


def test_a_user_who_may_not_use_the_engine_is_told_so(workshop: Workshop) -> None:
    if not Path("/usr/bin/setpriv").exists():
        pytest.fail("setpriv, of util-linux, is essential in Debian")
    workshop.folder.chmod(0o755)
    status, said = workshop.build(
        prefix=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
        variables={"FOUNDRY_CACHE": "/var/tmp/foundry-nobody", "TMPDIR": "/var/tmp"},
    )
    shutil.rmtree("/var/tmp/foundry-nobody", ignore_errors=True)
    shutil.rmtree("/var/tmp/foundry-65534", ignore_errors=True)
    assert status not in (0, 1), said
    assert "next:" in said
    assert "Traceback" not in said


def test_two_builds_at_once_and_after_all_that_give_the_image_that_others_have(workshop: Workshop) -> None:
    one, other = (workshop.begin((), {}) for _ in range(2))
    said = [each.communicate(timeout=SECONDS)[0].decode(errors="replace") for each in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), "\n".join(said)
    here = client.connect().image(workshop.image)
    if here is not None and here.id in provenance.recorded(Store(paths.cache())).values():
        # Another engine, and another store. Files are named where they differ, because an ID alone says nothing.
        engines = (workshop.engine, workshop.id()), (client.connect(), here.id)
        assert here.id == workshop.id(), [
            str(each) for each in repro.compare_engine_images(*engines, (workshop.image,))
        ]
    published = expected.load().image(TARGET, workshop.release.version)
    if published is not None and workshop.image.endswith(published.inputs[:16]):
        assert workshop.id() == published.image


def test_nothing_is_left_of_what_was_killed(workshop: Workshop) -> None:
    assert workshop.build()[0] == 0
    assert [path for path in workshop.around.temporary.rglob("*") if path.name not in ("lock", "foundry-0")] == []
    assert sorted(workshop.around.store.glob("parts/*/.*")) == []
    assert workshop.engine.abandoned() == {}
    assert workshop.engine._api.containers(all=True) == []
    assert workshop.engine._api.images(filters={"dangling": True}) == []


@pytest.mark.parametrize(
    "variables",
    [
        {"HOME": "", "LC_ALL": "tr_TR.UTF-8"},
        {"HOME": "/nowhere", "LANG": "C", "TZ": "XST-11:30"},
        {"PYTHONUTF8": "0", "LC_ALL": "POSIX"},
    ],
    ids=["no HOME", "a HOME that does not exist", "no UTF-8"],
)
def test_odd_surroundings_change_nothing(workshop: Workshop, variables: Mapping[str, str]) -> None:
    before = workshop.id()
    status, said = workshop.build(prefix=("sh", "-c", 'umask 077; exec "$@"', "-"), variables=variables)
    assert status == 0, said
    assert workshop.id() == before


def test_a_lock_that_is_being_replaced_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    place = tmp_path / "lock.json"
    place.write_text("old")
    code = "import os, signal, sys; from pathlib import Path; from toolchains.system import durable\n"
    code += "os.{} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\ndurable.write(Path(sys.argv[1]), 'new')"
    for call in ("fsync", "rename", "replace"):
        words = [sys.executable, "-c", code.format(call), str(place)]
        assert subprocess.run(words, cwd=paths.ROOT, check=False).returncode in (-signal.SIGKILL, 0)
        assert place.read_text() in ("old", "new")
    durable.write(place, "newer")
    assert place.read_text() == "newer"


def test_a_clock_in_1970_changes_no_byte(tmp_path: Path) -> None:
    code = """
import hashlib, sys, time
time.time = lambda: 3600.0
from pathlib import Path
from toolchains.artifacts import plugin_wheels
from toolchains.fetch.store import Store
print(hashlib.sha256(plugin_wheels.wheel("spirv", Store(Path(sys.argv[1]))).path.read_bytes()).hexdigest())
"""
    words = [sys.executable, "-c", code, str(tmp_path)]
    printed = subprocess.run(words, cwd=paths.ROOT, check=True, capture_output=True, text=True).stdout
    made = plugin_wheels.wheel("spirv", Store(paths.cache())).path
    assert printed.strip() == hashlib.sha256(made.read_bytes()).hexdigest()


def test_every_fault_of_the_table_has_tests() -> None:
    for fault, names in FAULTS.items():
        assert names, fault
        for name in names:
            file, _, function = name.partition("::")
            assert f"def {function.rpartition('::')[2]}(" in (paths.ROOT / "tests" / file).read_text(), name
