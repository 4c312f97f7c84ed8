"""The LLVM commit that a tree of Triton names, compared with the pinned one."""

from __future__ import annotations

import json

import pytest

from toolchains.fromsource import llvmhash
from toolchains.fromsource.llvmhash import INFO, TEXT
from toolchains.system.errors import LlvmHashError

ONE, OTHER = "1" * 40, "2" * 40


def info(commit: object) -> bytes:
    return json.dumps({"llvm_hash": commit, "build_number": 1, "sha256sum": {"ubuntu-x64": "a" * 64}}).encode()


@pytest.mark.parametrize("files", [{TEXT: f"{ONE}\n".encode()}, {INFO: info(ONE)}], ids=["text", "info"])
def test_the_pinned_commit_is_accepted_from_either_file(files: dict[str, bytes]) -> None:
    llvmhash.check_commit(files, ONE, called="the tree", profile="3.9.0")
    assert llvmhash.find_commit(files, "the tree") == (ONE, next(iter(files)))


def test_both_files_may_be_there_if_they_agree() -> None:
    llvmhash.check_commit({TEXT: ONE.encode(), INFO: info(ONE)}, ONE, called="the tree", profile="3.9.0")


@pytest.mark.parametrize("files", [{TEXT: OTHER.encode()}, {INFO: info(OTHER)}], ids=["text", "info"])
def test_another_commit_is_an_error_with_both_values_both_places_and_what_to_change(files: dict[str, bytes]) -> None:
    with pytest.raises(LlvmHashError) as caught:
        llvmhash.check_commit(files, ONE, called="/home/me/triton", profile="3.9.0")
    assert caught.value.what == "/home/me/triton asks for another LLVM than the pinned one"
    assert f"{next(iter(files))} of the tree: {OTHER}" in caught.value.why
    assert f"llvm-hash of profile 3.9.0 in toolchains/upstreams/triton.toml: {ONE}" in caught.value.why
    assert "if this is the tree that you mean, change llvm-hash" in caught.value.next
    assert "if the pin is right" in caught.value.next


def test_a_tree_with_neither_file_or_with_two_that_differ_is_an_error() -> None:
    with pytest.raises(LlvmHashError, match=f"neither {TEXT} nor {INFO}"):
        llvmhash.check_commit({"README.md": ONE.encode()}, ONE, called="the tree", profile="3.9.0")
    with pytest.raises(LlvmHashError, match=f"(?s)two commits of LLVM.*{TEXT}: {ONE}.*{INFO}: {OTHER}"):
        llvmhash.check_commit({TEXT: ONE.encode(), INFO: info(OTHER)}, ONE, called="the tree", profile="3.9.0")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        (TEXT, b"", "has no commit"),
        (TEXT, b"main\n", "has no commit"),
        (TEXT, ONE[:12].encode(), "has no commit"),
        (TEXT, b"\xff\xfe", "has no commit"),
        (INFO, b"{", "is not JSON"),
        (INFO, b"[]", "has no commit"),
        (INFO, b'{"hash": "1"}', "has no commit"),
        (INFO, info(7), "has no commit"),
    ],
)
def test_a_file_without_a_commit_is_an_error(name: str, content: bytes, complaint: str) -> None:
    with pytest.raises(LlvmHashError, match=f"{name} of the tree {complaint}"):
        llvmhash.check_commit({name: content}, ONE, called="the tree", profile="3.9.0")
