"""Check the messages of commits: a subject of at most 72 characters, an empty line, and a body that says why.

python -m toolchains.testing.commits [FILE]

FILE has one message, as git gives it to a hook; without it, the commits of this branch since the rule began are
checked. Merges need no body.
"""

from __future__ import annotations

import sys
from pathlib import Path

from toolchains.system import paths
from toolchains.system.children import run

_LONGEST = 72
# When the rule began. Many commits before it have no body.
_SINCE = "2026-11-26T00:00:00Z"


def wrong_message(message: str) -> str:
    """Return what is wrong with a message, or nothing. Lines that begin with `#` are git's own."""
    subject, *body = [line for line in message.strip().splitlines() if not line.startswith("#")] or [""]
    if not subject:
        return "there is no subject"
    # The message is git's own. A clone of one commit does not show that it is a merge.
    if subject.startswith("Merge "):
        return ""
    if len(subject) > _LONGEST:
        return f"the subject has {len(subject)} characters, more than {_LONGEST}: {subject}"
    if body and body[0].strip():
        return f"no empty line behind the subject: {subject}"
    return "" if any(map(str.strip, body)) else f"no body that says why: {subject}"


def main(words: list[str]) -> int:
    """Print what is wrong, and return 1 if something is, else 0."""
    if words:
        messages = [Path(words[0]).read_text(encoding="utf-8")]
    else:
        log = ["git", "log", "-z", "--no-merges", f"--since={_SINCE}", "--format=%B"]
        messages = [message for message in run(log, log="git", cwd=paths.ROOT).stdout.split("\0") if message]
    wrong = [error for message in messages if (error := wrong_message(message))]
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
