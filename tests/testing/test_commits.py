"""The rule for messages of commits, and this repository's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchains.testing import commits


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("Refuse a torn log\n\nIt was taken for a short one.\n", ""),
        (f"{'x' * 72}\n\nWhy.", ""),
        ("Refuse a torn log\n\nWhy.\n# Please enter the commit message", ""),
        ("Merge pull request #1 from a/b", ""),
        ("", "no subject"),
        ("# Please enter the commit message\n", "no subject"),
        (f"{'x' * 73}\n\nWhy.", "73 characters"),
        ("Refuse a torn log\nIt was taken for a short one.", "no empty line"),
        ("Refuse a torn log\n\n", "no body"),
        ("Refuse a torn log\n\n# Changes to be committed:\n", "no body"),
    ],
)
def test_message_without_a_short_subject_and_a_reason_is_refused(tmp_path: Path, message: str, wrong: str) -> None:
    (tmp_path / "message").write_text(message)
    assert wrong in commits.wrong_message(message)
    assert commits.main([str(tmp_path / "message")]) == bool(wrong)


def test_commits_of_this_branch_keep_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert commits.main([]) == 0, capsys.readouterr().out
