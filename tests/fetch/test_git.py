"""Commits are fetched with a real git, from repositories in folders."""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path

import pytest
from repositories import ADDRESS, Repository, mirror

from toolchains.config.projects import GitPin
from toolchains.fetch import git
from toolchains.system.errors import FetchError, GoneError, HashMismatchError, PinError


@pytest.fixture(autouse=True)
def mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return mirror(tmp_path, monkeypatch)


@pytest.fixture
def origin(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "origin")
    made.commit({"CMakeLists.txt": "old\n"})
    return made


@pytest.fixture
def said() -> list[str]:
    return []


def listing(repository: Path, commit: str) -> dict[str, bytes]:
    return dict(git.contents(repository, git.commit_entries(commit, repository=repository), "it"))


def test_a_commit_arrives_without_its_history(origin: Repository, tmp_path: Path) -> None:
    before = origin.git("rev-parse", "HEAD")
    commit = origin.commit({"src/main.c": "int main;\n"})
    origin.commit({"src/main.c": "later\n"})
    git.fetch([origin.url], commit, tmp_path / "copy")
    assert listing(tmp_path / "copy", commit) == {
        "CMakeLists.txt": b"old\n",
        "src/main.c": b"int main;\n",
    }
    missing = subprocess.run(["git", "--git-dir", tmp_path / "copy", "cat-file", "-e", before], capture_output=True)
    assert missing.returncode != 0


def test_mirrors_are_tried_in_order(origin: Repository, tmp_path: Path, said: list[str]) -> None:
    other = Repository(tmp_path / "other")
    other.commit({"CMakeLists.txt": "another project's\n"})
    commit = origin.commit({"a": "1\n"})
    git.fetch([f"{ADDRESS}/nowhere", other.url, origin.url], commit, tmp_path / "copy", say=said.append)
    assert "a" in git.commit_entries(commit, repository=tmp_path / "copy")
    failures = [line for line in said if line.startswith(ADDRESS)]
    assert len(failures) == 2
    assert failures[0].startswith(f"{ADDRESS}/nowhere: ")
    assert failures[1].startswith(f"{other.url}: it does not have the commit")


def test_a_commit_that_nobody_gives_is_an_error_with_every_answer(origin: Repository, tmp_path: Path) -> None:
    answers = rf"(?s){'1' * 40} cannot be fetched.*{ADDRESS}/nowhere: .*{origin.url}: it does not have"
    with pytest.raises(GoneError, match=answers):
        git.fetch([f"{ADDRESS}/nowhere", origin.url], "1" * 40, tmp_path / "copy", say=str)
    with pytest.raises(FetchError, match=rf"(?s)could not be fetched.*{ADDRESS}/nowhere: .*--source NAME=PATH"):
        git.fetch([f"{ADDRESS}/nowhere"], "1" * 40, tmp_path / "copy", say=str)


class TestServerWithoutHashes:
    """Servers that know only protocol 0 do so: they give only commits that a ref points to."""

    @pytest.fixture(autouse=True)
    def old(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        mirror(tmp_path, monkeypatch, more="[protocol]\n\tversion = 0\n")

    def test_the_ref_is_fetched_and_compared(self, origin: Repository, tmp_path: Path) -> None:
        commit = origin.commit({"a": "1\n"})
        origin.git("tag", "--annotate", "--message=release", "v1")
        # Such a server also gives, by hash, a commit that a branch or a tag points to. No ref may point to this one.
        origin.git("update-ref", "-d", "refs/heads/main")
        git.fetch([origin.url], commit, tmp_path / "copy", ref="v1")
        assert git.commit_entries(commit, repository=tmp_path / "copy").keys() == {"CMakeLists.txt", "a"}

    def test_a_commit_that_no_ref_has_is_gone_with_the_reason(self, origin: Repository, tmp_path: Path) -> None:
        commit = origin.git("rev-parse", "HEAD")
        origin.commit({"a": "1\n"})
        with pytest.raises(GoneError, match=r"(?s)gives none by hash.*unadvertised object.*would be asked for a ref"):
            git.fetch([origin.url], commit, tmp_path / "copy", say=str)
        now = origin.commit({"a": "1\n"})
        with pytest.raises(GoneError, match=f"its main is at {now}"):
            git.fetch([origin.url], commit, tmp_path / "copy", ref="main", say=str)


def test_damaged_objects_are_refused(origin: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git checks what it receives: a tree with an entry named '..' must not be checked out."""
    mirror(tmp_path, monkeypatch, more='[fetch "fsck"]\n\thasDotdot = ignore\n[fetch]\n\tfsckObjects = false\n')
    blob = origin.git("hash-object", "-w", "CMakeLists.txt")
    data = b"100644 ..\0" + bytes.fromhex(blob)
    (tmp_path / "data").write_bytes(data)
    tree = origin.git("hash-object", "-w", "--literally", "-t", "tree", str(tmp_path / "data"))
    commit = origin.git("commit-tree", tree, "-m", "hostile")
    origin.git("update-ref", "refs/heads/hostile", commit)
    with pytest.raises(FetchError, match=r"hasDotdot"):
        git.fetch([origin.url], commit, tmp_path / "copy", say=str)


def test_tree_is_compared_with_the_pinned_one_and_a_tag_is_no_commit(origin: Repository, tmp_path: Path) -> None:
    commit = origin.git("rev-parse", "HEAD")
    git.fetch([origin.url], commit, tmp_path / "copy")
    git.check_tree(tmp_path / "copy", commit, origin.git("rev-parse", "HEAD^{tree}"))
    with pytest.raises(HashMismatchError, match=f"pinned {'2' * 40}"):
        git.check_tree(tmp_path / "copy", commit, "2" * 40)
    origin.git("tag", "--annotate", "--message=release", "v1")
    tag = origin.git("rev-parse", "v1")
    with pytest.raises(PinError, match=f"{tag} is not a commit but a tag"):
        git.fetch([origin.url], tag, tmp_path / "copy")


@pytest.mark.parametrize(
    "url",
    [
        "--upload-pack=touch /tmp/x",
        "-oProxyCommand=x",
        "ext::sh -c 'touch x'",
        "file:///etc",
        "/etc",
        "../here",
        "ssh://-oProxyCommand=x/y",
        "git@-oProxyCommand=x:y",
        "user@host:-x",
        "https://",
        "https://a b/c",
        "https://a/b\nc",
        "fd::3",
        "",
        "https:/a/b",
        "HTTPS://a/b",
        "ssh://me@-x/y",
    ],
)
def test_an_address_that_is_none_is_refused_before_git_sees_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(PinError, match="not an address to fetch from"):
        git.fetch([url], "1" * 40, tmp_path / "copy")
    with pytest.raises(PinError, match="not an address to fetch from"):
        git.resolve(GitPin((url,), ref="main"))
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    "url", ["https://host/a.git", "http://host:80/a", "git://host/a", "ssh://me@host:22/a", "git@host:group/a.git"]
)
def test_addresses_of_a_network_are_right(url: str) -> None:
    git.check_git_url(url)


def test_configuration_names_proxies_and_allows_no_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ext:: runs a program. A line in the user's configuration does not enable it."""
    mirror(tmp_path, monkeypatch, more=f'[url "ext::touch {tmp_path}/touched"]\n\tinsteadOf = https://ext.invalid/\n')
    with pytest.raises(FetchError, match="transport 'ext' not allowed"):
        git.fetch(["https://ext.invalid/a"], "1" * 40, tmp_path / "copy", say=str)
    assert not (tmp_path / "touched").exists()
    included = tmp_path / "included"
    included.write_text("[http]\n\tproxy = http://127.0.0.1:9\n")
    mirror(tmp_path, monkeypatch, more=f"[include]\n\tpath = {included}\n")
    with pytest.raises(FetchError, match=r"127\.0\.0\.1 port 9"):
        git.fetch(["https://elsewhere.invalid/a"], "1" * 40, tmp_path / "copy", say=str)


def test_without_a_mirror_in_a_folder_folders_are_not_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may redirect, and .gitmodules may contain anything. Only the user's configuration may name folders."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setattr(git, "check_git_url", lambda *words: None)
    with pytest.raises(FetchError, match="transport 'file' not allowed"):
        git.fetch([f"file://{tmp_path}"], "1" * 40, tmp_path / "copy", say=str)


@pytest.mark.parametrize("ref", ["-x", "--upload-pack=x", "a b", "a:b", "+a", "a..b", "a\nb", "*"])
def test_a_ref_that_is_none_is_refused(ref: str, origin: Repository) -> None:
    with pytest.raises(PinError, match="not the name of a tag or a branch"):
        git.resolve(GitPin((origin.url,), ref=ref))


def test_a_tag_or_a_branch_resolves_to_its_commit(origin: Repository, tmp_path: Path) -> None:
    tagged = origin.git("rev-parse", "HEAD")
    origin.git("tag", "--annotate", "--message=release", "v1")
    later = origin.commit({"a": "1\n"})
    assert git.resolve(GitPin((origin.url,), ref="v1")) == tagged
    assert git.resolve(GitPin((f"{ADDRESS}/nowhere", origin.url), ref="main")) == later
    assert git.resolve(GitPin((origin.url,), ref="refs/heads/main")) == later
    with pytest.raises(PinError, match="neither a tag nor a branch v2"):
        git.resolve(GitPin((origin.url,), ref="v2"))
    with pytest.raises(FetchError, match="no repository answered"):
        git.resolve(GitPin((f"{ADDRESS}/nowhere",), ref="v1"))


def test_attributes_of_the_tree_change_nothing(origin: Repository, tmp_path: Path) -> None:
    commit = origin.commit(
        {
            ".gitattributes": "secret export-ignore\nfolder export-ignore\nversion export-subst\ndos text eol=crlf\n"
            "id ident\nwide working-tree-encoding=UTF-16\n",
            "secret": "kept\n",
            "folder/inside": "kept, too\n",
            "version": "$Format:%H$\n",
            "dos": "one\ntwo\n",
            "id": "$Id$\n",
        }
    )
    git.fetch([origin.url], commit, tmp_path / "copy")
    found = listing(tmp_path / "copy", commit)
    assert found["secret"] == b"kept\n"
    assert found["folder/inside"] == b"kept, too\n"
    assert found["version"] == b"$Format:%H$\n"
    assert found["dos"] == b"one\ntwo\n"
    assert found["id"] == b"$Id$\n"


def test_objects_that_are_missing_or_not_what_their_name_says_are_refused(origin: Repository) -> None:
    repository, commit = origin.folder / ".git", origin.git("rev-parse", "HEAD")
    blob = origin.git("rev-parse", "HEAD:CMakeLists.txt")
    file = repository / "objects" / blob[:2] / blob[2:]
    file.chmod(0o644)
    file.write_bytes(zlib.compress(b"blob 4\0new\n"))
    with pytest.raises(HashMismatchError, match=r"CMakeLists\.txt of it is not what its commit has"):
        listing(repository, commit)
    file.unlink()
    with pytest.raises(HashMismatchError, match=rf"does not have the object {blob}"):
        listing(repository, commit)


def test_configuration_changes_no_content(origin: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's hooks, templates and monitors would run programs; filters and attributes would change bytes."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    for name in ("hooks/reference-transaction", "hooks/post-checkout", "template/hooks/reference-transaction"):
        hook = tmp_path / name
        hook.parent.mkdir(parents=True, exist_ok=True)
        hook.write_bytes(program.read_bytes())
        hook.chmod(0o755)
    (tmp_path / "attributes").write_text("* filter=mine export-ignore\n")
    mirror(
        tmp_path,
        monkeypatch,
        more=f"[core]\n\thooksPath = {tmp_path}/hooks\n\tfsmonitor = {program}\n\tautocrlf = true\n"
        f"\tattributesFile = {tmp_path}/attributes\n[init]\n\ttemplateDir = {tmp_path}/template\n"
        f'[filter "mine"]\n\tclean = {program}\n\tsmudge = {program}\n'
        "[fetch]\n\tfsckObjects = false\n[transfer]\n\tfsckObjects = false\n",
    )
    commit = origin.commit({"a": "1\n"})
    git.fetch([origin.url], commit, tmp_path / "copy")
    assert listing(tmp_path / "copy", commit) == {"CMakeLists.txt": b"old\n", "a": b"1\n"}
    checkout = git.checkout(origin.folder)
    assert checkout
    assert (checkout.commit, checkout.changes) == (commit, ())
    assert not (tmp_path / "ran").exists()


def test_ssh_is_the_users_own_and_else_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ssh", "mine"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "error: {name} $*" >&2\nexit 1\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    with pytest.raises(FetchError, match=r"ssh -o BatchMode=yes .*git@host\.invalid"):
        git.resolve(GitPin(("git@host.invalid:group/a.git",), ref="main"))
    mirror(tmp_path, monkeypatch, more=f"[core]\n\tsshCommand = {tmp_path}/bin/mine\n")
    with pytest.raises(FetchError, match=r"mine .*git@host\.invalid"):
        git.resolve(GitPin(("git@host.invalid:group/a.git",), ref="main"))


class TestSubmodules:
    BASES = ("https://host.invalid/group/project.git", "git@host.invalid:group/project.git", "git@host.invalid:alone")

    @pytest.mark.parametrize(
        ("url", "places"),
        [
            ("https://else.invalid/a", ["https://else.invalid/a"]),
            (
                "../a.git",
                [
                    "https://host.invalid/group/a.git",
                    "git@host.invalid:group/a.git",
                    "git@host.invalid:a.git",
                ],
            ),
            (
                "./a",
                [
                    "https://host.invalid/group/project.git/a",
                    "git@host.invalid:group/project.git/a",
                    "git@host.invalid:alone/a",
                ],
            ),
            ("../../b/a", ["https://host.invalid/b/a", "git@host.invalid:b/a", "git@host.invalid:b/a"]),
        ],
        ids=["elsewhere", "beside", "below", "another group"],
    )
    def test_relative_addresses_are_joined(
        self, origin: Repository, tmp_path: Path, url: str, places: list[str]
    ) -> None:
        origin.submodule("sub/one", url, "3" * 40)
        origin.git("commit", "--quiet", "--message", "with a submodule")
        commit = origin.git("rev-parse", "HEAD")
        git.fetch([origin.url], commit, tmp_path / "copy")
        bases = self.BASES[:2] if url == "../../b/a" else self.BASES
        assert git.submodule_urls(tmp_path / "copy", commit, bases) == {"sub/one": places[: len(bases)]}
        assert git.commit_entries(commit, repository=tmp_path / "copy")["sub/one"].submodule

    def test_a_tree_without_any_has_no_addresses(self, origin: Repository, tmp_path: Path) -> None:
        commit = origin.git("rev-parse", "HEAD")
        git.fetch([origin.url], commit, tmp_path / "copy")
        assert git.submodule_urls(tmp_path / "copy", commit, self.BASES) == {}


class TestCheckout:
    def test_of_a_clean_one_the_commit_is_known(self, origin: Repository) -> None:
        (origin.folder / ".gitignore").write_text("build/\n")
        commit = origin.commit()
        origin.write({"build/out": "ignored"})
        found = git.checkout(origin.folder)
        assert found
        assert (found.commit, found.changes, found.format) == (commit, (), "sha1")

    def test_changes_are_named(self, origin: Repository) -> None:
        origin.commit({"gone": "x", "a folder/changed": "x"})
        origin.write({"a folder/changed": "y", "new/file": "z"})
        (origin.folder / "gone").unlink()
        found = git.checkout(origin.folder)
        assert found
        assert sorted(found.changes) == ["a folder/changed", "gone", "new/file"]
        assert list(git.working_files(origin.folder)) == ["CMakeLists.txt", "a folder/changed", "new/file"]

    def test_inner_folder_or_empty_repository_has_no_commit(self, origin: Repository, tmp_path: Path) -> None:
        origin.commit({"inner/file": "x"})
        assert git.checkout(origin.folder / "inner") is None
        (origin.folder / "inner" / ".git").mkdir()
        assert git.checkout(origin.folder / "inner") is None
        found = git.checkout(Repository(tmp_path / "new").folder)
        assert found
        assert found.commit == ""

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    def test_one_that_another_user_owns_is_one_since_it_was_named(self, origin: Repository) -> None:
        os.chown(origin.folder / ".git", 65534, 65534)
        os.chown(origin.folder, 65534, 65534)
        assert git.checkout(origin.folder)
