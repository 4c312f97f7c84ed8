"""Built parts to and from a Conan remote: the same bytes arrive, and only what this checkout would build."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fakes import NO_ENGINE

from toolchains.artifacts import native
from toolchains.config.projects import FolderPin, Profile, Upstream
from toolchains.engine import host
from toolchains.engine.client import Engine
from toolchains.engine.container import Container
from toolchains.fetch.store import Store
from toolchains.fromsource import build, remote, server, tree
from toolchains.fromsource.build import Wanted
from toolchains.fromsource.choice import SourceChoice
from toolchains.fromsource.remote import Moved
from toolchains.lockfile import lock
from toolchains.lockfile.lock import LockedTarget
from toolchains.resolve import conan_lock
from toolchains.system import errors, paths
from toolchains.verbs import cache

URL = "http://127.0.0.1:9300"
# Characters that have a meaning in conan-server's configuration, or in a shell.
USER, SECRET = "writer", "50%-$ecret:x"
# Compiles nothing: these tests are about packages.
RECIPE = """\
import random
from pathlib import Path

from conan import ConanFile


class Toy(ConanFile):
    name = "toy"
    license = "MIT"
    python_requires = "foundry-upstream/1.0"
    python_requires_extend = "foundry-upstream.Upstream"

    def build(self) -> None:
        pass

    def package(self) -> None:
        tool = Path(self.package_folder, "bin", "tell")
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\\n" + Path(self.source_folder, "word").read_text())
        tool.chmod(0o755)
        tool.with_name("say").symlink_to("tell")
        # So that no compression makes a small package of it.
        Path(self.package_folder, "noise").write_bytes(random.Random(1).randbytes(400000))
"""


# A second server in the container of the first one, with a second user.
SECOND = r"""
mkdir second
sed 's/^port: .*/port: 9302/; s/^.users.$/&\nreader: word/' server.conf >second/server.conf
conan_server --server_dir $PWD/second >second/log 2>&1 &
for i in $(seq 300); do
    python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9302))' 2>/dev/null && exit 0
    sleep 0.2
done
cat second/log
exit 1
"""


def wanted(folder: Path) -> Wanted:
    """Return the description of a build of a folder."""
    profile = Profile("folder", "1.0", FolderPin())
    described = tree.describe_tree("toy", profile, None, folder=folder)
    builder = lock.load().builders["bookworm"]
    return Wanted(Upstream("toy", "folder", {"folder": profile}, 0.01), profile, described, None, folder, builder)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a folder with the toy's recipe and three versions of its sources. The modules use it as this checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "recipes" / "toy").mkdir(parents=True)
    (folder / "recipes" / "toy" / "conanfile.py").write_text(RECIPE)
    shutil.copytree(paths.RECIPES / "upstream", folder / "recipes" / "upstream")
    for name in ("one", "other", "third"):
        (folder / name).mkdir()
        (folder / name / "word").write_text(f"echo {name}\n")
        (folder / name / "CMakeLists.txt").write_text("")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(paths, "RECIPES", folder / "recipes")
        patched.setattr(build, "CCACHE_VOLUME", f"foundry-test-ccache-{uuid.uuid4().hex[:8]}")
        yield folder


@contextmanager
def edited(checkout: Path) -> Iterator[Wanted]:
    """Edit the recipe for a while. Yield what is wanted then."""
    recipe = checkout / "recipes" / "toy" / "conanfile.py"
    recipe.write_text(RECIPE + "# edited\n")
    try:
        yield wanted(checkout / "one")
    finally:
        recipe.write_text(RECIPE)


@pytest.fixture
def want(checkout: Path) -> Wanted:
    return wanted(checkout / "one")


@pytest.fixture
def other(checkout: Path) -> Wanted:
    return wanted(checkout / "other")


@dataclass
class Room:
    """A server, access to its network, and a store that has both versions of the toy."""

    engine: Engine
    store: Store
    container: Container

    @property
    def reached(self) -> dict[str, Any]:
        return {"engine": self.engine, "network": f"container:{self.container.id}"}

    def shell(self, line: str) -> str:
        return self.container.call(["sh", "-c", line], cwd="/foundry/server")

    def sent(self) -> int:
        """Return how many files the server received."""
        return self.shell("cat /run/conan-server.log").count('"PUT ')


@pytest.fixture(scope="module")
def room(
    builder: tuple[Engine, LockedTarget],
    request: pytest.FixtureRequest,
    checkout: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Room]:
    engine, _ = builder
    files = Store(paths.cache(), allow_drift=request.config.getoption("--allow-drift"))
    image = native.ensure_builder(
        native.fetch_builder(lock.load().builders["bookworm"], files), store=files, engine=engine
    )
    store, volume = Store(tmp_path_factory.mktemp("store")), f"foundry-test-server-{uuid.uuid4().hex[:8]}"
    with pytest.MonkeyPatch.context() as patched:
        # The builder's files are in the user's store, and its image is in the engine.
        patched.setattr(native, "fetch_builder", lambda builder, store: builder)
        patched.setattr(native, "ensure_builder", lambda builder, store, engine: image)
        try:
            for name in ("one", "other"):
                build.ensure_built(wanted(checkout / name), store=store, engine=engine)
            with server.run_server(image, engine, network="none", volume=volume, users=(USER, SECRET)) as container:
                yield Room(engine, store, container)
        finally:
            engine.remove_volume(volume)
            engine.remove_volume(build.CCACHE_VOLUME)


def set_user(patched: pytest.MonkeyPatch) -> None:
    """Set the user who may write, and no others, whatever environment the tests run in."""
    for name in remote.passed_environment():
        if name.startswith("CONAN_"):
            patched.delenv(name)
    patched.setenv(remote.USER, USER)
    patched.setenv(remote.PASSWORD, SECRET)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    set_user(monkeypatch)


@pytest.fixture(scope="module")
def pushed(room: Room, checkout: Path) -> Moved:
    """Push the toy. A test that changes what the server has puts it back."""
    with pytest.MonkeyPatch.context() as patched:
        set_user(patched)
        return remote.push(wanted(checkout / "one"), URL, store=room.store, **room.reached)


@pytest.fixture
def nothing_pushed(room: Room) -> Iterator[None]:
    """Take everything from the server while a test runs."""
    room.shell("mv data aside && mkdir data")
    yield
    room.shell("rm -r data && mv aside data")


def tar(store: Store, want: Wanted) -> bytes:
    folder = store.part("upstream", want.identity, lambda _: pytest.fail("the store does not have it"))
    assert (folder / "toy.tgz").is_file()
    return (folder / "toy.tar").read_bytes()


@pytest.mark.docker
def test_pulled_package_equals_the_built_one_and_is_not_built_or_sent_again(
    room: Room, want: Wanted, pushed: Moved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pushed.moved
    store = Store(tmp_path)
    with monkeypatch.context() as reading:
        # Reading needs no credentials.
        reading.delenv(remote.USER)
        reading.delenv(remote.PASSWORD)
        done = remote.pull(want, URL, sha256=pushed.sha256, store=store, **room.reached)
    assert done.moved and done.package == pushed.package
    assert tar(store, want) == tar(room.store, want)
    assert not build.ensure_built(want, store=store, engine=NO_ENGINE).made
    # The second time, neither the engine nor the remote is used.
    assert remote.pull(want, "http://192.0.2.1", store=store, engine=NO_ENGINE) == replace(
        done, package=None, moved=False
    )
    before = room.sent()
    assert before > 0
    assert remote.push(want, URL, store=store, **room.reached) == replace(pushed, moved=False)
    assert room.sent() == before


@pytest.mark.docker
def test_a_package_of_other_sources_is_not_taken(room: Room, checkout: Path, pushed: Moved, tmp_path: Path) -> None:
    want, store = wanted(checkout / "third"), Store(tmp_path)
    with pytest.raises(errors.AbsentError, match=r"does not have toy/1\.0 as this checkout would build it") as caught:
        remote.pull(want, URL, store=store, **room.reached)
    assert caught.value.exit_code == 18
    assert "Binary package not found" in caught.value.why
    assert not store.has_part("upstream", want.identity)


@pytest.mark.docker
def test_package_of_another_recipe_stays(room: Room, checkout: Path, pushed: Moved, tmp_path: Path) -> None:
    with edited(checkout) as want, pytest.raises(errors.AbsentError, match=r"does not have toy/1\.0"):
        remote.pull(want, URL, store=Store(tmp_path), **room.reached)


@pytest.mark.docker
def test_a_part_of_another_recipe_is_not_pushed(room: Room, checkout: Path, want: Wanted, tmp_path: Path) -> None:
    """The test simulates that a part's name does not cover something that Conan's name covers."""
    built, store = room.store.root / "parts" / "upstream" / want.identity, Store(tmp_path)
    with edited(checkout) as other:
        assert other.identity != built.name
        store.part("upstream", other.identity, lambda made: _copy(built, made))
        with pytest.raises(errors.PinError, match="is not the package that this checkout makes"):
            remote.push(other, URL, store=store, **room.reached)


def _copy(part: Path, into: Path) -> None:
    shutil.copytree(part, into, dirs_exist_ok=True)


def _package(moved: Moved) -> str:
    assert moved.package
    return f"data/toy/1.0/_/_/{moved.package.recipe}/package/{moved.package.id}"


@pytest.mark.docker
def test_package_under_another_name_is_refused(room: Room, other: Wanted, pushed: Moved, tmp_path: Path) -> None:
    theirs = remote.push(other, URL, store=room.store, **room.reached)
    room.shell(f"mv {_package(theirs)} kept && cp -r {_package(pushed)} {_package(theirs)}")
    try:
        with pytest.raises(errors.HashMismatchError, match=r"has something else under the name of toy/1\.0") as caught:
            remote.pull(other, URL, store=Store(tmp_path), **room.reached)
    finally:
        room.shell(f"rm -r {_package(theirs)} && mv kept {_package(theirs)}")
    assert theirs.package and theirs.package.id in caught.value.why
    assert not Store(tmp_path).has_part("upstream", other.identity)


@pytest.mark.docker
@pytest.mark.parametrize(
    "damage, error",
    [
        ("gunzip <$F >t && sed -i s/one/two/g t && gzip <t >$F && rm t", errors.HashMismatchError),
        ("truncate --size=200000 $F", errors.FetchError),
    ],
)
def test_a_damaged_package_is_refused(
    room: Room, want: Wanted, pushed: Moved, tmp_path: Path, damage: str, error: type[errors.FoundryError]
) -> None:
    room.shell(f"cp -r {_package(pushed)} kept; F=$(echo {_package(pushed)}/*/conan_package.tgz); {damage}")
    try:
        with pytest.raises(error):
            remote.pull(want, URL, store=Store(tmp_path), **room.reached)
    finally:
        room.shell(f"rm -r {_package(pushed)} && mv kept {_package(pushed)}")
    assert not Store(tmp_path).has_part("upstream", want.identity)


@pytest.mark.docker
def test_sha256_replaces_trust_in_the_remote(room: Room, want: Wanted, pushed: Moved, tmp_path: Path) -> None:
    with pytest.raises(errors.HashMismatchError, match="does not have the sha256 that was asked for") as caught:
        remote.pull(want, URL, sha256="0" * 64, store=Store(tmp_path), **room.reached)
    assert pushed.sha256 in caught.value.why
    assert not Store(tmp_path).has_part("upstream", want.identity)
    with pytest.raises(errors.HashMismatchError):
        remote.pull(want, URL, sha256="0" * 64, store=room.store, engine=NO_ENGINE)


@pytest.mark.docker
def test_push_succeeds_after_a_failed_upload(room: Room, want: Wanted, pushed: Moved, tmp_path: Path) -> None:
    room.shell(f"rm -r {_package(pushed)}")
    # The server cannot write a file as large as the package. Conan still uploads the small files that belong to it.
    room.shell(f"prlimit --fsize=300000:unlimited --pid $(cat {server.PID})")
    try:
        with pytest.raises(errors.FetchError, match="conan upload failed"):
            remote.push(want, URL, store=room.store, **room.reached)
    finally:
        room.shell(f"prlimit --fsize=unlimited:unlimited --pid $(cat {server.PID})")
    assert 'conan_package.tgz HTTP/1.1" 500' in room.shell("cat /run/conan-server.log")
    with pytest.raises(errors.AbsentError):
        remote.pull(want, URL, store=Store(tmp_path), **room.reached)
    assert remote.push(want, URL, store=room.store, **room.reached).moved
    assert remote.pull(want, URL, store=Store(tmp_path), **room.reached).sha256 == pushed.sha256


@pytest.mark.docker
def test_a_server_that_is_down_is_said(room: Room, want: Wanted, tmp_path: Path) -> None:
    with pytest.raises(errors.FetchError, match=r"127\.0\.0\.1:1 does not answer") as caught:
        remote.pull(want, "http://127.0.0.1:1", store=Store(tmp_path), **room.reached)
    assert "Connection refused" in caught.value.why
    with pytest.raises(errors.FetchError, match="does not answer"):
        remote.push(want, "http://127.0.0.1:9301", store=room.store, **room.reached)


@pytest.mark.docker
@pytest.mark.usefixtures("nothing_pushed")
def test_wrong_password_is_said_and_not_written(room: Room, other: Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remote.PASSWORD, "Wr0ng-pa55word")
    with pytest.raises(errors.FetchError, match="does not accept this user with this password") as caught:
        remote.push(other, URL, store=room.store, **room.reached)
    log = (paths.LOGS / "cache-toy.log").read_text()
    assert "Wrong user or password" in log
    assert "Wr0ng-pa55word" not in log + str(caught.value) + room.shell("cat /run/conan-server.log")


@pytest.mark.docker
@pytest.mark.usefixtures("nothing_pushed")
def test_push_without_a_user_names_the_variables(room: Room, other: Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(remote.PASSWORD)
    monkeypatch.delenv(remote.USER)
    with pytest.raises(errors.FetchError, match="asks for a user and a password") as caught:
        remote.push(other, URL, store=room.store, **room.reached)
    assert remote.USER in caught.value.next and remote.PASSWORD in caught.value.next
    # These credentials are for this remote only.
    monkeypatch.setenv(f"{remote.USER}_FOUNDRY", USER)
    monkeypatch.setenv(f"{remote.PASSWORD}_FOUNDRY", SECRET)
    assert remote.push(other, URL, store=room.store, **room.reached).moved


@pytest.mark.docker
def test_read_only_user_cannot_push(room: Room, want: Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    room.shell(SECOND)
    monkeypatch.setenv(remote.USER, "reader")
    monkeypatch.setenv(remote.PASSWORD, "word")
    with pytest.raises(errors.FetchError, match="does not permit this user to do that"):
        remote.push(want, "http://127.0.0.1:9302", store=room.store, **room.reached)


@pytest.mark.docker
def test_a_port_that_is_taken_is_said(room: Room) -> None:
    image = native.ensure_builder(lock.load().builders["bookworm"], store=room.store, engine=room.engine)
    network, volume = f"container:{room.container.id}", f"foundry-test-server-{uuid.uuid4().hex[:8]}"
    try:
        with (
            pytest.raises(errors.UsageError, match="port 9300 is in use"),
            server.run_server(image, room.engine, network=network, volume=volume, users=(USER, SECRET)),
        ):
            pass
        with (
            pytest.raises(errors.EngineError, match="conan-server does not start") as caught,
            server.run_server(image, room.engine, network=network, volume=volume, port=99999, users=(USER, SECRET)),
        ):
            pass
    finally:
        room.engine.remove_volume(volume)
    assert "Traceback" in caught.value.why


@pytest.mark.docker
def test_conan_lock_is_what_conan_resolves(
    builder: tuple[Engine, LockedTarget], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as own:
        # Another test may have set another checkout.
        own.setattr(paths, "RECIPES", paths.ROOT / "toolchains" / "recipes")
        store = Store(paths.cache(), allow_drift=request.config.getoption("--allow-drift"))
        assert conan_lock.write(store, builder[0], tmp_path / "conan.lock")
        written = (tmp_path / "conan.lock").read_text()
        assert json.loads(written) == json.loads(conan_lock.PATH.read_text())
        # What Conan resolves is known now, and takes long.
        own.setattr(conan_lock, "_resolved", lambda conan: written)
        assert not conan_lock.write(store, builder[0], tmp_path / "conan.lock")


@pytest.mark.parametrize("url", ["", "example.org", "ftp://example.org", "file:///srv/conan", "http://"])
def test_invalid_remote_address_is_refused(url: str) -> None:
    with pytest.raises(errors.UsageError, match="not the address of a Conan remote"):
        remote.check_remote_url(url)
    with pytest.raises(errors.UsageError, match="has a user or a password in it") as caught:
        remote.check_remote_url("https://me:hunter2@example.org/conan")
    assert "hunter2" not in str(caught.value)


def test_package_that_was_not_built_cannot_be_pushed(want: Wanted, tmp_path: Path) -> None:
    with pytest.raises(errors.AbsentError, match=r"the store has no toy/1\.0"):
        remote.push(want, URL, store=Store(tmp_path), engine=NO_ENGINE)
    with pytest.raises(errors.AbsentError, match=r"not built here: toy/1\.0"):
        cache.push([want], URL, Store(tmp_path), named=False)


def test_conan_gets_the_users_proxies_and_passwords_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (f"{remote.PASSWORD}_FOUNDRY", "https_proxy", "CONAN_HOME", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "value")
    given = remote.passed_environment()
    assert {f"{remote.PASSWORD}_FOUNDRY", "https_proxy", remote.USER, remote.PASSWORD} <= given.keys()
    assert not {"CONAN_HOME", "AWS_SECRET_ACCESS_KEY", "HOME"} & given.keys()


@pytest.mark.parametrize("user, password", [("", SECRET), (USER, ""), ("a:b", SECRET), (USER, "a\nb"), (USER, " a")])
def test_server_needs_a_user_that_it_can_store(user: str, password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remote.USER, user)
    monkeypatch.setenv(remote.PASSWORD, password)
    with pytest.raises(errors.UsageError) as caught:
        server.writer()
    assert remote.PASSWORD in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "action, options, said",
    [
        ("pull", {"url": ""}, "needs a remote"),
        ("push", {"expect": "0" * 64}, "--expect is for `cache pull`"),
        ("pull", {"target": "nothing"}, "there is no target nothing"),
        ("pull", {"target": "spirv", "only": "upmem-llvm"}, "spirv cannot take upmem-llvm from source"),
    ],
)
def test_cache_refuses_wrong_arguments_before_it_does_anything(action: str, options: dict[str, str], said: str) -> None:
    given = {"url": URL, "target": "", "expect": ""} | options
    names = tuple(filter(None, [given.pop("only", "")]))
    with pytest.raises(errors.UsageError, match=said):
        cache.cache(action, SourceChoice(names), port=server.PORT, **given)


def test_pull_lists_missing_packages(
    want: Wanted, other: Wanted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def pull(each: Wanted, url: str, **_: Any) -> Moved:
        asked.append(each)
        if each.source == want.source:
            raise errors.AbsentError("not there", why="asked for it")
        return Moved("toy", None, "0" * 64, True)

    monkeypatch.setattr(remote, "pull", pull)
    monkeypatch.setattr(host, "ensure_engine", lambda: NO_ENGINE)
    store = Store(tmp_path)
    with pytest.raises(errors.AbsentError, match="does not have all that this checkout would build") as caught:
        cache.pull([want, other], URL, "", store)
    assert asked == [want, other] and "asked for it" in caught.value.why
    # If a part does not exist, at least the parts that it is made of are fetched.
    asked.clear()
    with pytest.raises(errors.AbsentError):
        cache.pull([replace(want, requires=(other,))], URL, "", store)
    assert asked[-1] == other
    with pytest.raises(errors.UsageError, match="--expect is of one part, and these are 2"):
        cache.pull([want, other], URL, "0" * 64, store)


@pytest.fixture
def locked_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a conan.lock that agrees with the code, to be edited."""
    monkeypatch.setattr(paths, "RECIPES", paths.ROOT / "toolchains" / "recipes")
    return Path(shutil.copy(conan_lock.PATH, tmp_path))


def test_conan_lock_agrees_with_the_lock_and_a_missing_one_is_said(locked_versions: Path) -> None:
    assert list(conan_lock.disagreements(lock.load(), locked_versions)) == []
    locked_versions.unlink()
    (found,) = conan_lock.disagreements(lock.load(), locked_versions)
    assert "there is no" in found


@pytest.mark.parametrize(
    "edit, said",
    [
        (lambda data: data["requires"].remove("upmem-llvm/13.0.1"), "does not have upmem-llvm/13.0.1 (debian-13)"),
        (lambda data: data["requires"].append("zlib/1.3.1"), "has zlib/1.3.1, which no profile makes"),
        (lambda data: data["python_requires"].clear(), "does not have foundry-upstream/1.0"),
        (lambda data: data.pop("requires"), "is not a lockfile of Conan"),
    ],
)
def test_a_conan_lock_of_other_versions_is_said(locked_versions: Path, edit: Any, said: str) -> None:
    data = json.loads(locked_versions.read_text())
    edit(data)
    locked_versions.write_text(json.dumps(data))
    (found,) = conan_lock.disagreements(lock.load(), locked_versions)
    assert said in found and "./foundry cache lock" in found


def test_a_source_package_of_another_version_than_its_profile_is_said(locked_versions: Path) -> None:
    locked = lock.load()
    source = replace(locked.sources["upmem-llvm/debian-13"], version="1:13.0.2-1")
    (found,) = conan_lock.disagreements(
        replace(locked, sources={**locked.sources, "upmem-llvm/debian-13": source}), locked_versions
    )
    assert "upmem-llvm/debian-13 is version 13.0.1, and its source package 1:13.0.2-1" in found
