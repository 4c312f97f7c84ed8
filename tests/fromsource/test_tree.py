"""From a locked source to a tree: commits, source packages and folders are selected, checked and patched."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import patch_series
import pytest
from archive_files import DebianArchive
from msgspec.structs import replace
from repositories import ADDRESS, Repository, mirror

from toolchains.config.projects import FolderPin, GitPin, Profile, SourcePackagePin
from toolchains.fetch.apt import SourcePackages
from toolchains.fetch.store import Store
from toolchains.fromsource import origins, source_tar, tree
from toolchains.fromsource.source_tar import Selection
from toolchains.lockfile.lock import LockedSource
from toolchains.system import errors, paths

PLAIN: dict[str, str] = {
    "CMakeLists.txt": "project(tool)\n",
    "src/main.c": "int main;\n",
    "README": "read\n",
}


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    mirror(tmp_path, monkeypatch)
    made = Repository(tmp_path / "origin")
    made.commit(PLAIN)
    return made


def profile(pin: GitPin | SourcePackagePin | FolderPin, **more: Any) -> Profile:
    return replace(Profile("one", "1.0", pin), **more)


def locked(pin: GitPin) -> LockedSource:
    return LockedSource("git", pin.ref, pin.commit, pin.tree, pin=pin.wanted)


def of_git(pin: GitPin, store: Store, **more: Any) -> tree.SourceTree:
    return tree.prepare("tool", profile(pin, **more), locked(pin), folder=None, store=store)


def of_folder(folder: Path, store: Store, **more: Any) -> tree.SourceTree:
    return tree.prepare("tool", profile(FolderPin(), **more), None, folder=folder, store=store)


def content(source: tree.SourceTree) -> dict[str, str]:
    """Return the unpacked tree: names and texts; for links, their targets."""
    found = {}
    with tarfile.open(source.path, "r:") as tar:
        for member in tar:
            file = None if member.issym() else tar.extractfile(member)
            found[member.name] = file.read().decode() if file else f"-> {member.linkname}"
    return found


def series(folder: Path, body: str, name: str = "tool/1.0") -> None:
    patch_series.write(folder / name, {"0001.patch": f"{patch_series.HEADER.format('it')}\n{body}"})


PATCH = """\
--- a/src/main.c
+++ b/src/main.c
@@ -1,1 +1,1 @@
-int main;
+int patched;
"""


class TestCommit:
    def test_files_and_links_keep_modes_and_nothing_of_the_machine(self, origin: Repository, store: Store) -> None:
        origin.write({"run.sh": "#!/bin/sh\n", "link": "-> src/main.c"})
        (origin.folder / "run.sh").chmod(0o755)
        made = of_git(GitPin((origin.url,), origin.commit()), store)
        assert content(made) == {**PLAIN, "run.sh": "#!/bin/sh\n", "link": "-> src/main.c"}
        with tarfile.open(made.path) as tar:
            members = {member.name: member for member in tar}
        assert {name: member.mode for name, member in members.items()} == {
            "CMakeLists.txt": 0o644,
            "src/main.c": 0o644,
            "README": 0o644,
            "run.sh": 0o755,
            "link": 0o777,
        }
        assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members.values()} == {(0, 0, "", "", 1767225600)}
        assert made.commit == origin.git("rev-parse", "HEAD")

    def test_two_fetches_give_the_same_bytes_whatever_the_umask(self, origin: Repository, tmp_path: Path) -> None:
        origin.write({"run.sh": "#!/bin/sh\n"})
        (origin.folder / "run.sh").chmod(0o755)
        pin = GitPin((origin.url,), origin.commit())
        first = of_git(pin, Store(tmp_path / "first"))
        before = os.umask(0o077)
        try:
            second = of_git(pin, Store(tmp_path / "second"))
        finally:
            os.umask(before)
        assert first.path != second.path
        assert first.path.read_bytes() == second.path.read_bytes()
        assert first.identity == second.identity

    def test_tree_in_the_store_needs_no_network(self, origin: Repository, store: Store) -> None:
        pin = GitPin((origin.url,), origin.commit())
        made = of_git(pin, store)
        offline = Store(store.root, offline=True)
        assert of_git(pin, offline) == made
        # Other patches or another selection need no other objects.
        assert content(of_git(pin, offline, left_out=("README",))).keys() == {"CMakeLists.txt", "src/main.c"}

    def test_missing_commit_is_named_offline(self, origin: Repository, tmp_path: Path) -> None:
        pin = GitPin((origin.url,), origin.commit())
        with pytest.raises(errors.OfflineError, match=rf"(?s)commit {pin.commit} .*{origin.url}.*--source NAME=PATH"):
            of_git(pin, Store(tmp_path / "store", offline=True))

    def test_failed_fetch_leaves_nothing_like_a_commit(self, origin: Repository, store: Store) -> None:
        pin = GitPin((origin.url,), "1" * 40)
        with pytest.raises(errors.GoneError):
            of_git(pin, store)
        assert not store.has_part("git", "1" * 40)
        with pytest.raises(errors.OfflineError):
            of_git(pin, Store(store.root, offline=True))

    def test_pinned_tree_is_compared_and_attributes_change_nothing(self, origin: Repository, store: Store) -> None:
        pin = GitPin((origin.url,), origin.git("rev-parse", "HEAD"), tree=origin.git("rev-parse", "HEAD^{tree}"))
        assert content(of_git(pin, store)) == PLAIN
        with pytest.raises(errors.HashMismatchError, match="is not the pinned one"):
            of_git(replace(pin, tree="2" * 40), Store(store.root.with_name("other")))
        files = {".gitattributes": "README export-ignore\nv export-subst\n", "v": "$Format:%H$\n"}
        assert content(of_git(GitPin((origin.url,), origin.commit(files)), store)) == {**PLAIN, **files}

    def test_a_name_that_is_not_utf_8_is_refused_unless_it_is_left_out(self, origin: Repository, store: Store) -> None:
        (origin.folder / "docs").mkdir()
        Path(os.fsdecode(os.fsencode(origin.folder / "docs") + b"/\xff")).touch()
        pin = GitPin((origin.url,), origin.commit())
        with pytest.raises(errors.UnsafeArchiveError, match="a name that is not UTF-8: 'docs/"):
            of_git(pin, store)
        assert content(of_git(pin, store, left_out=("docs/*",))) == PLAIN

    def test_source_that_is_unlocked_or_repinned_or_only_the_users_is_refused(self, origin: Repository) -> None:
        pin = GitPin((origin.url,), origin.commit())
        with pytest.raises(
            errors.PinError, match=r"(?s)tool/one is not locked\n.*--source=tool=PATH.*pin --update=tool"
        ):
            tree.describe_tree("tool", profile(pin), None, folder=None)
        with pytest.raises(errors.PinError, match="not locked as it is pinned"):
            tree.describe_tree("tool", profile(replace(pin, commit="3" * 40)), locked(pin), folder=None)
        with pytest.raises(errors.PinError, match=r"--source=tool=PATH"):
            tree.describe_tree("tool", profile(FolderPin()), None, folder=None)


class TestSubmodules:
    @pytest.fixture
    def inner(self, origin: Repository, tmp_path: Path) -> Repository:
        made = Repository(tmp_path / "inner")
        made.commit({"lib.c": "int lib;\n", "docs/a": "long\n"})
        return made

    def pin(self, origin: Repository, submodules: Mapping[str, str]) -> GitPin:
        return GitPin((f"{ADDRESS}/nowhere", origin.url), origin.git("rev-parse", "HEAD"), submodules=submodules)

    def commit(self, origin: Repository, path: str, url: str, commit: str) -> None:
        origin.submodule(path, url, commit)
        origin.git("commit", "--quiet", "--message", "with a submodule")

    def test_a_submodule_is_pinned_or_left_out(self, origin: Repository, inner: Repository, store: Store) -> None:
        commit = inner.git("rev-parse", "HEAD")
        self.commit(origin, "third/lib", "../inner", commit)
        with pytest.raises(
            errors.PinError, match=rf'third/lib(?s:.*)submodules\."third/lib" = "{commit}".*"third/lib/\*"'
        ):
            of_git(self.pin(origin, {}), store)
        self.commit(origin, "third/lib", "../inner", inner.git("rev-parse", "HEAD"))
        made = of_git(self.pin(origin, {}), store, left_out=("third/lib/*",))
        assert "third/lib/lib.c" not in content(made)
        self.commit(origin, "third/lib", "../inner", inner.git("rev-parse", "HEAD"))
        with pytest.raises(errors.PinError, match=f"third/lib at another commit than the pinned one(?s:.*){'4' * 40}"):
            of_git(self.pin(origin, {"third/lib": "4" * 40}), store)
        # Its address is relative to the origin, which does not exist, and to the mirror, which does.
        made = of_git(self.pin(origin, {"third/lib": commit}), store, left_out=("third/lib/docs/*", ".gitmodules"))
        assert content(made) == {**PLAIN, "third/lib/lib.c": "int lib;\n"}

    def test_a_pin_for_none_is_refused(self, origin: Repository, store: Store) -> None:
        with pytest.raises(errors.PinError, match="no submodule third/lib"):
            of_git(self.pin(origin, {"third/lib": "4" * 40}), store)

    def test_nested_one_is_pinned_by_path(
        self, origin: Repository, inner: Repository, tmp_path: Path, store: Store
    ) -> None:
        last = Repository(tmp_path / "last")
        deep = last.commit({"deep.c": "int deep;\n"})
        self.commit(inner, "deep", "../last", deep)
        commit = inner.git("rev-parse", "HEAD")
        self.commit(origin, "lib", "../inner", commit)
        with pytest.raises(errors.PinError, match="not pinned: lib/deep"):
            of_git(self.pin(origin, {"lib": commit}), store)
        made = of_git(self.pin(origin, {"lib": commit, "lib/deep": deep}), store)
        assert content(made)["lib/deep/deep.c"] == "int deep;\n"

    @pytest.mark.parametrize("url", ["ext::touch x", "/etc", "file:///etc"])
    def test_hostile_address_is_refused(self, origin: Repository, inner: Repository, store: Store, url: str) -> None:
        self.commit(origin, "lib", url, inner.git("rev-parse", "HEAD"))
        with pytest.raises(errors.PinError, match=r"not an address to fetch from(?s:.*)correct it in \.gitmodules of"):
            of_git(self.pin(origin, {"lib": inner.git("rev-parse", "HEAD")}), store)

    def test_an_option_in_the_place_of_its_address_is_refused_when_the_commit_arrives(
        self, origin: Repository, inner: Repository, store: Store
    ) -> None:
        self.commit(origin, "lib", "--upload-pack=x", inner.git("rev-parse", "HEAD"))
        with pytest.raises(errors.FetchError, match="gitmodulesUrl"):
            of_git(self.pin(origin, {"lib": inner.git("rev-parse", "HEAD")}), store)

    def test_one_without_an_address_is_an_error(self, origin: Repository, store: Store) -> None:
        origin.git("update-index", "--add", "--cacheinfo", f"160000,{'5' * 40},lib")
        origin.git("commit", "--quiet", "--message", "a gitlink alone")
        with pytest.raises(errors.PinError, match=r"\.gitmodules .* does not say where its submodule lib is"):
            of_git(self.pin(origin, {"lib": "5" * 40}), store)


def archived(files: Mapping[str, str], *, top: str = "tool-1.0/", mode: Literal["w:xz", "w:gz"] = "w:xz") -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode=mode) as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(top + name)
            if text.startswith(("-> ", "=> ")):
                entry.type, entry.linkname = (tarfile.SYMTYPE if text[0] == "-" else tarfile.LNKTYPE), text[3:]
            elif text == "fifo":
                entry.type = tarfile.FIFOTYPE
            else:
                entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return whole.getvalue()


class TestSourcePackage:
    @pytest.fixture
    def publish(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LockedSource]:
        archive = DebianArchive(tmp_path / "archive", "bookworm")
        packages = SourcePackages("bookworm", tmp_path / "apt" / "bookworm", [archive.archive])
        monkeypatch.setattr(Store, "source_packages", lambda self, suite: packages)

        def make(**files: bytes) -> LockedSource:
            names = {name.replace("__", "-").replace("_", "."): data for name, data in files.items()}
            made = archive.add_source("tool", "1:1.0-2", {f"tool_1.0{name}": data for name, data in names.items()})
            return LockedSource("debian", "1:1.0-2", files=tuple(made), pin=self.PIN.wanted)

        return make

    PIN = SourcePackagePin("bookworm", "tool")

    def prepare(self, locked: LockedSource, store: Store, **more: Any) -> tree.SourceTree:
        return tree.prepare("tool", profile(self.PIN, **more), locked, folder=None, store=store)

    def test_only_archives_of_upstream_are_unpacked(self, publish: Callable[..., LockedSource], store: Store) -> None:
        main = archived({**PLAIN, "a": "1\n", "same": "=> tool-1.0/a", "link": "-> src/main.c"})
        lock = publish(
            _orig_tar_xz=main,
            _orig__extra_tar_gz=archived({"more.c": "2\n"}, top="extra-1.0/", mode="w:gz"),
            __2_debian_tar_xz=archived({"patches/series": "one\n"}, top="debian/"),
        )
        made = self.prepare(lock, store)
        assert content(made) == {
            **PLAIN,
            "a": "1\n",
            "same": "1\n",
            "link": "-> src/main.c",
            "extra/more.c": "2\n",
        }
        extra = next(file.sha256 for file in lock.files if "extra" in file.filename)
        assert made.commit == f"1:1.0-2 {hashlib.sha256(main).hexdigest()} {extra}"

    def test_identity_is_known_before_the_tree_exists(self, publish: Callable[..., LockedSource], store: Store) -> None:
        lock = publish(_orig_tar_xz=archived(PLAIN))
        before = tree.describe_tree("tool", profile(self.PIN), lock, folder=None)
        assert not store.root.exists()
        made = self.prepare(lock, store)
        assert (made.identity, made.commit, made.patches) == (before.identity, before.commit, "")
        assert tree.describe_tree("tool", profile(self.PIN), lock, folder=None).identity == before.identity

    @pytest.mark.parametrize(
        ("files", "top", "complaint"),
        [
            ({"../../x": "1"}, "tool-1.0/", r"leaves its folder"),
            ({"../x": "1"}, "tool-1.0/", r"leaves its folder"),
            ({"/x": "1"}, "", r"leaves its folder"),
            ({"x": "-> /etc/passwd"}, "t/", r"link that leaves the tree: x -> /etc/passwd"),
            ({"d/x": "-> ../../y"}, "t/", r"link that leaves the tree: d/x"),
            ({"a/b": "-> ../c", "d/x": "-> ../a/b/../../y", "c/f": "1"}, "t/", r"link that leaves the tree: d/x"),
            ({"a/b": "-> .", "a/b/x": "1"}, "t/", r"written through a link: a/b/x"),
            ({"a": "1", "a/b": "1"}, "t/", r"written through another: a"),
            ({"x": "1", "./x": "2"}, "t/", r"two entries of one name: x"),
            ({"x": "fifo"}, "t/", r"neither a file nor a link: t/x"),
            ({"x": "=> t/gone"}, "t/", r"link to a file that it does not have.*x -> gone"),
            ({"x": "=> u/gone"}, "t/", r"more than one topmost folder"),
            ({"t/x": "1", "u/x": "1"}, "", r"more than one topmost folder: t and u"),
        ],
    )
    def test_path_outside_the_tree_is_refused(
        self, publish: Callable[..., LockedSource], store: Store, files: dict[str, str], top: str, complaint: str
    ) -> None:
        lock = publish(_orig_tar_xz=archived({"CMakeLists.txt": "", **files} if top else files, top=top))
        with pytest.raises(errors.UnsafeArchiveError, match=complaint):
            self.prepare(lock, store)
        assert not store.has_part("source", tree.describe_tree("tool", profile(self.PIN), lock, folder=None).identity)

    def test_inner_links_and_circles_are_kept(self, publish: Callable[..., LockedSource], store: Store) -> None:
        links = {"d/up": "-> ../src", "d/x": "-> up/../README", "a": "-> b", "b": "-> a", "gone": "-> nothing"}
        made = self.prepare(publish(_orig_tar_xz=archived({**PLAIN, **links})), store)
        assert content(made) == {**PLAIN, **links}

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("_orig_tar_xz", b"nothing of a tar"),
            ("_orig_tar_gz", archived({"CMakeLists.txt": "x" * 100_000}, mode="w:gz")[:50]),
        ],
        ids=["no tar", "cut short"],
    )
    def test_damaged_source_archive_is_refused(
        self, publish: Callable[..., LockedSource], store: Store, name: str, data: bytes
    ) -> None:
        with pytest.raises(errors.UnsafeArchiveError, match=r"cannot be read|shorter than it says"):
            self.prepare(publish(**{name: data}), store)

    def test_native_package_has_no_archive_of_upstream(self, publish: Callable[..., LockedSource]) -> None:
        lock = publish(_tar_xz=archived(PLAIN))
        with pytest.raises(errors.PinError, match="no archive of upstream's"):
            tree.describe_tree("tool", profile(self.PIN), lock, folder=None)

    def test_new_debian_version_is_the_same_tree(self, publish: Callable[..., LockedSource], store: Store) -> None:
        first = self.prepare(publish(_orig_tar_xz=archived(PLAIN)), store)
        again = self.prepare(publish(_orig_tar_xz=archived(PLAIN)), Store(store.root.with_name("other")))
        assert first.path.read_bytes() == again.path.read_bytes()


class TestFolder:
    def test_a_clean_checkout_is_its_commit(self, origin: Repository, store: Store, tmp_path: Path) -> None:
        origin.commit({".gitignore": "build\n"})
        origin.write({"build/out": "ignored"})
        made = of_folder(origin.folder, store)
        pin = GitPin((origin.url,), origin.git("rev-parse", "HEAD"))
        assert made.commit == pin.commit
        fetched = of_git(pin, Store(tmp_path / "other"))
        assert made.path.read_bytes() == fetched.path.read_bytes()
        assert made.identity == fetched.identity

    def test_objects_may_be_named_by_sha256(self, origin: Repository, store: Store, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        origin.git("init", "--quiet", "--object-format=sha256", str(tmp_path / "other" / "checkout"))
        other = Repository(tmp_path / "other" / "checkout")
        commit = other.commit({**PLAIN, "link": "-> README"})
        made = of_folder(other.folder, store)
        assert (len(commit), made.commit) == (64, commit)
        assert content(made) == {**PLAIN, "link": "-> README"}

    def test_changes_make_it_a_folder(
        self, origin: Repository, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        origin.commit({".gitignore": "build\n"})
        origin.write({"src/main.c": "int edited;\n", "new.c": "int new;\n", "build/out": "ignored"})
        (origin.folder / "README").unlink()
        made = of_folder(origin.folder, store)
        assert content(made) == {
            ".gitignore": "build\n",
            "CMakeLists.txt": "project(tool)\n",
            "new.c": "int new;\n",
            "src/main.c": "int edited;\n",
        }
        assert made.commit.startswith("folder-")
        said = capsys.readouterr().err
        assert "not a commit:" in said
        assert "new.c" in said

    def test_changes_outside_of_what_is_taken_do_not_count(self, origin: Repository, store: Store) -> None:
        origin.write({"README": "edited\n", "notes": "mine\n"})
        made = of_folder(origin.folder, store, left_out=("README", "notes"))
        assert made.commit == origin.git("rev-parse", "HEAD")

    def test_a_folder_without_git_is_named_by_its_content(self, tmp_path: Path, store: Store) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        for folder in (one, two):
            for name, text in PLAIN.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(str(text))
        os.utime(two / "README", (1, 1))
        made = of_folder(one, store)
        assert content(made) == PLAIN
        assert of_folder(two, store) == made
        (two / "README").chmod(0o755)
        other = of_folder(two, store)
        assert other.commit != made.commit
        assert other.identity != made.identity

    def test_git_metadata_is_left_out_of_the_tree(self, tmp_path: Path, store: Store) -> None:
        given = tmp_path / "given"
        for name in (".git/config", "lib/.git", "lib/.gitignore"):
            (given / name).parent.mkdir(parents=True, exist_ok=True)
            (given / name).write_text("x")
        (given / "CMakeLists.txt").touch()
        assert content(of_folder(given, store)) == {"CMakeLists.txt": "", "lib/.gitignore": "x"}

    def test_its_submodules_are_taken_as_they_are_checked_out(self, origin: Repository, store: Store) -> None:
        inner = Repository(origin.folder / "lib")
        commit = inner.commit({"lib.c": "int lib;\n"})
        origin.submodule("lib", "../lib", commit)
        origin.git("commit", "--quiet", "--message", "with a submodule")
        made = of_folder(origin.folder, store, left_out=(".gitmodules",))
        assert made.commit == origin.git("rev-parse", "HEAD")
        assert content(made) == {**PLAIN, "lib/lib.c": "int lib;\n"}
        inner.write({"lib.c": "int edited;\n"})
        edited = of_folder(origin.folder, store, left_out=(".gitmodules",))
        assert edited.commit.startswith("folder-")
        assert content(edited) == {**PLAIN, "lib/lib.c": "int edited;\n"}
        inner.commit()
        assert of_folder(origin.folder, store, left_out=(".gitmodules",)) == edited

    def test_a_submodule_that_is_not_checked_out_is_named(self, origin: Repository, store: Store) -> None:
        origin.submodule("lib", "../lib", "6" * 40)
        origin.git("commit", "--quiet", "--message", "with a submodule")
        (origin.folder / "lib").mkdir()
        with pytest.raises(errors.UsageError, match=r"lib .* is not checked out\n.*submodule update --init lib"):
            of_folder(origin.folder, store)

    @pytest.mark.parametrize(
        ("make", "complaint"),
        [
            (lambda path: None, "does not exist"),
            (lambda path: path.write_text("x"), "is not a folder"),
            (lambda path: path.mkdir(), r"no CMakeLists\.txt in its topmost folder"),
        ],
        ids=["nothing", "a file", "an empty folder"],
    )
    def test_path_without_sources_is_refused(
        self, tmp_path: Path, make: Callable[[Path], object], complaint: str
    ) -> None:
        path = tmp_path / "given"
        make(path)
        with pytest.raises(errors.UsageError, match=rf"(?s){complaint}.*--source NAME=PATH"):
            tree.describe_tree("tool", profile(FolderPin()), None, folder=path)

    def test_one_without_what_is_taken_is_refused(self, origin: Repository, tmp_path: Path) -> None:
        with pytest.raises(errors.UsageError, match="has no llvm and no mlir"):
            tree.describe_tree("tool", profile(FolderPin(), take=("src", "llvm", "mlir")), None, folder=origin.folder)
        with pytest.raises(errors.UsageError, match=r"no CMakeLists\.txt in src"):
            tree.describe_tree("tool", profile(FolderPin(), take=("src",)), None, folder=origin.folder)

    def test_link_out_of_the_folder_and_special_file_are_refused(self, tmp_path: Path, store: Store) -> None:
        (tmp_path / "given").mkdir()
        (tmp_path / "given" / "CMakeLists.txt").touch()
        (tmp_path / "given" / "link").symlink_to("../secret")
        with pytest.raises(errors.UnsafeArchiveError, match="link that leaves the tree"):
            of_folder(tmp_path / "given", store)
        (tmp_path / "given" / "link").unlink()
        os.mkfifo(tmp_path / "given" / "fifo")
        with pytest.raises(errors.UnsafeArchiveError, match="neither a file nor a link"):
            of_folder(tmp_path / "given", store)

    def test_change_while_reading_is_an_error(
        self, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "given").mkdir()
        (tmp_path / "given" / "CMakeLists.txt").touch()
        monkeypatch.setattr(origins.Files, "digest", "7" * 64)
        with pytest.raises(errors.FileError, match="changed while it was read"):
            of_folder(tmp_path / "given", store)


class TestSelection:
    @pytest.mark.parametrize(
        ("take", "left_out", "name", "taken"),
        [
            ((), (), "any/file", True),
            (("llvm",), (), "llvm/a/b", True),
            (("llvm",), (), "llvm2/a", False),
            (("llvm", "LICENSE"), (), "LICENSE", True),
            (("llvm/",), (), "llvm/a", True),
            (("llvm",), ("llvm/test/*",), "llvm/test/deep/a", False),
            (("llvm",), ("llvm/test/*",), "llvm/test", True),
            ((), ("*.md",), "docs/a.md", False),
            ((), ("*.md",), "docs/a.mdx", True),
            ((), ("[ab].c",), "a.c", False),
        ],
    )
    def test_folders_are_taken_and_patterns_left_out(
        self, take: tuple[str, ...], left_out: tuple[str, ...], name: str, taken: bool
    ) -> None:
        assert (name in Selection(take, left_out)) == taken

    def test_tree_of_a_commit_has_only_the_selected_paths(self, origin: Repository, store: Store) -> None:
        pin = GitPin((origin.url,), origin.commit({"llvm/CMakeLists.txt": "1\n", "llvm/test/a": "2\n"}))
        assert content(of_git(pin, store, take=("llvm",), left_out=("llvm/test/*",))) == {"llvm/CMakeLists.txt": "1\n"}
        with pytest.raises(errors.PinError, match="has no mlir"):
            of_git(pin, store, take=("llvm", "mlir"))
        with pytest.raises(errors.PinError, match=r"no CMakeLists\.txt in src"):
            of_git(pin, store, take=("src",))

    def test_selected_paths_are_part_of_the_identity(self, origin: Repository) -> None:
        pin = GitPin((origin.url,), "1" * 40)
        shapes: list[dict[str, Any]] = [
            {},
            {"take": ("llvm",)},
            {"left_out": ("llvm",)},
            {"llvm_hash": "1" * 40},
            {"llvm_hash": "2" * 40},
        ]
        names = {
            tree.describe_tree("tool", profile(pin, **shape), locked(pin), folder=None).identity for shape in shapes
        }
        assert len(names) == len(shapes)

    def test_a_pointer_of_git_lfs_in_the_place_of_a_file_is_refused(self, origin: Repository, store: Store) -> None:
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12345\n"
        pin = GitPin((origin.url,), origin.commit({"data/big": pointer, "doc": pointer + "x" * 1024}))
        with pytest.raises(errors.UnsafeArchiveError, match="Git LFS pointer in the place of a file: data/big"):
            of_git(pin, store)
        assert "data/big" not in content(of_git(pin, store, left_out=("data/*",)))


class TestPatches:
    @pytest.fixture(autouse=True)
    def patches(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(paths, "PATCHES", tmp_path / "patches")
        return tmp_path / "patches"

    def test_series_changes_text_files_only(self, origin: Repository, store: Store, patches: Path) -> None:
        series(patches, PATCH)
        (origin.folder / "src/main.c").chmod(0o755)
        made = of_git(GitPin((origin.url,), origin.commit()), store, patches="tool/1.0")
        assert content(made) == {**PLAIN, "src/main.c": "int patched;\n"}
        with tarfile.open(made.path) as tar:
            assert tar.getmember("src/main.c").mode == 0o755
        assert len(made.patches) == 64
        pin = GitPin((origin.url,), origin.git("rev-parse", "HEAD"))
        with pytest.raises(errors.PatchTargetError, match=r"src/main\.c, which this tree does not have"):
            of_git(pin, store, patches="tool/1.0", left_out=("src/*",))
        binary = GitPin((origin.url,), origin.commit({"src/main.c": b"\xff\xfe"}))
        with pytest.raises(errors.PatchTargetError, match="not UTF-8 text"):
            of_git(binary, store, patches="tool/1.0")

    def test_other_series_or_misfit_is_no_tree(self, origin: Repository, patches: Path, store: Store) -> None:
        series(patches, PATCH)
        series(patches, PATCH.replace("patched", "otherwise"), "tool/2.0")
        pin = GitPin((origin.url,), "1" * 40)
        names = {
            tree.describe_tree("tool", profile(pin, patches=name), locked(pin), folder=None).identity
            for name in ("", "tool/1.0", "tool/2.0")
        }
        assert len(names) == 3
        pin = GitPin((origin.url,), origin.commit({"src/main.c": "moved\nint main;\n"}))
        with pytest.raises(errors.HunkError, match=r"0001\.patch, hunk 1 of src/main\.c does not fit"):
            of_git(pin, store, patches="tool/1.0")
        name = tree.describe_tree("tool", profile(pin, patches="tool/1.0"), locked(pin), folder=None).identity
        assert not store.has_part("source", name)

    ADD = "--- /dev/null\n+++ b/src/new.c\n@@ -0,0 +1,1 @@\n+int new;\n"

    def test_file_may_be_added_but_not_through_a_link(self, origin: Repository, store: Store, patches: Path) -> None:
        series(patches, self.ADD)
        made = of_git(GitPin((origin.url,), origin.commit()), store, patches="tool/1.0")
        assert content(made) == {**PLAIN, "src/new.c": "int new;\n"}
        series(patches, self.ADD.replace("src/new.c", "link/new.c"))
        pin = GitPin((origin.url,), origin.commit({"link": "-> src"}))
        with pytest.raises(errors.UnsafeArchiveError, match=r"written through a link: link/new\.c"):
            of_git(pin, store, patches="tool/1.0")

    @pytest.mark.parametrize(
        ("there", "left_out", "error", "complaint"),
        [
            ({"src/new.c": "int old;\n"}, (), errors.PatchTargetError, r"adds src/new\.c, which this tree has"),
            (
                {"src/new.c": "int old;\n"},
                ("src/new.c",),
                errors.PatchTargetError,
                r"(?s)adds src/new\.c.*leaves it out",
            ),
            ({"src/new.c": "-> main.c"}, (), errors.PatchTargetError, r"(?s)adds src/new\.c.*it is a link"),
            ({"src/new.c/file": "x"}, (), errors.UnsafeArchiveError, r"written through another: src/new\.c"),
        ],
    )
    def test_patch_does_not_add_a_file_that_exists(
        self,
        origin: Repository,
        store: Store,
        patches: Path,
        there: dict[str, str],
        left_out: tuple[str, ...],
        error: type[Exception],
        complaint: str,
    ) -> None:
        series(patches, self.ADD)
        with pytest.raises(error, match=complaint):
            of_git(GitPin((origin.url,), origin.commit(there)), store, patches="tool/1.0", left_out=left_out)

    def test_folder_with_the_series_is_taken_as_is(self, origin: Repository, store: Store, patches: Path) -> None:
        series(patches, PATCH)
        origin.commit({"src/main.c": "int patched;\n"})
        assert content(of_folder(origin.folder, store, patches="tool/1.0"))["src/main.c"] == "int patched;\n"


class TestLlvmOfTriton:
    def test_the_pinned_llvm_is_taken_and_another_is_refused(self, origin: Repository, store: Store) -> None:
        pin = GitPin((origin.url,), origin.commit({"cmake/llvm-hash.txt": "1" * 40 + "\n"}))
        assert content(of_git(pin, store, llvm_hash="1" * 40))["cmake/llvm-hash.txt"] == "1" * 40 + "\n"
        of_git(pin, store)
        for _ in range(2):
            with pytest.raises(errors.LlvmHashError, match=f"(?s){'1' * 40}.*profile one .*{'2' * 40}"):
                of_git(pin, store, llvm_hash="2" * 40)

    def test_a_folder_is_looked_at_too(self, origin: Repository, store: Store) -> None:
        with pytest.raises(errors.LlvmHashError, match="does not name its LLVM"):
            of_folder(origin.folder, store, llvm_hash="2" * 40)


@pytest.mark.slow
def test_a_tree_is_packed_without_remembering_each_of_its_entries_headers(tmp_path: Path) -> None:
    count = 5000
    source = tmp_path / "source.tar"
    with tarfile.open(source, "w") as tar:
        for name in ("CMakeLists.txt", *(f"f{number}" for number in range(count))):
            tar.addfile(tarfile.TarInfo(f"top/{name}"))
    with (tmp_path / "out").open("w+b") as out:
        tracemalloc.start()
        try:
            source_tar.write_tree(source_tar.read_tree(source, "it"), out, called="it", selection=Selection())
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 450 * count
    with tarfile.open(tmp_path / "out") as tar:
        assert len(tar.getnames()) == count + 1
