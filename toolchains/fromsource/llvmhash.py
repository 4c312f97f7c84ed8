"""Find the LLVM commit that a tree of Triton names, and compare it with the pinned one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from toolchains.system.errors import LlvmHashError

# The first file has the commit up to Triton 3.7, the second one since then.
TEXT, INFO = "cmake/llvm-hash.txt", "cmake/llvm-info.json"
FILES = (TEXT, INFO)


def find_commit(files: Mapping[str, bytes], called: str) -> tuple[str, str]:
    """Return the commit that a tree names, and the name of the file with it.

    Args:
        files: contents by path; must include those of FILES that the tree has.
        called: the tree's name in errors.

    Raises:
        LlvmHashError: neither file exists, one has no commit, or the two differ.
    """
    commits = {}
    for name in FILES:
        if name not in files:
            continue
        commit: object = files[name].decode(errors="replace").strip()
        if name == INFO:
            try:
                data = json.loads(str(commit))
            except ValueError as error:
                raise LlvmHashError(f"{name} of {called} is not JSON", why=str(error)) from error
            commit = data.get("llvm_hash", "") if isinstance(data, dict) else ""
        if not isinstance(commit, str) or not re.fullmatch("[0-9a-f]{40}", commit):
            raise LlvmHashError(
                f"{name} of {called} has no commit", why=f"40 hexadecimal digits are expected, it has {commit!r}"
            )
        commits[name] = commit
    if not commits:
        raise LlvmHashError(
            f"{called} does not name its LLVM",
            why=f"it has neither {TEXT} nor {INFO}",
            next="give a tree of Triton, or take llvm-hash out of the profile in toolchains/upstreams/triton.toml",
        )
    if len(set(commits.values())) > 1:
        raise LlvmHashError(
            f"{called} names two commits of LLVM",
            why="\n".join(f"{name}: {commit}" for name, commit in commits.items()),
            next="remove from the tree, by a patch or in the folder, what is left over of the other release",
        )
    (name, pinned), *_ = commits.items()
    return pinned, name


def check_commit(files: Mapping[str, bytes], pinned: str, *, called: str, profile: str) -> None:
    """Compare the commit that a tree names with the pinned one.

    Args:
        pinned: 40 hexadecimal digits.
        profile: the name of the tree's profile, for errors: "3.9.0".

    Raises:
        LlvmHashError: they differ; see also find_commit.
    """
    commit, name = find_commit(files, called)
    if commit != pinned:
        raise LlvmHashError(
            f"{called} asks for another LLVM than the pinned one",
            why=f"{name} of the tree: {commit}\n"
            f"llvm-hash of profile {profile} in toolchains/upstreams/triton.toml: {pinned}",
            next="if this is the tree that you mean, change llvm-hash, and with it the commit of the LLVM profile that "
            "it is built with; if the pin is right, the tree is another release: change its commit, or the folder that "
            "--source names",
        )
