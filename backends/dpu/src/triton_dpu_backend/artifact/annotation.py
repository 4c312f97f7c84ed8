"""Store facts about a kernel in its kernel.ll, as named metadata, which LLVM's tools keep.

!triton.dpu = !{!0, !1}
!0 = !{!"num_tasklets", !"16"}
!1 = !{!"block", !"1024"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = "triton.dpu"
_NUMBERED = re.compile(r"^!(\d+) = ", re.MULTILINE)
_NAMED = re.compile(rf"^!{re.escape(_NAME)} = !\{{(.*)\}}$", re.MULTILINE)
_NODE = re.compile(r'^!(\d+) = !\{!"([^"]*)", !"([^"]*)"\}$', re.MULTILINE)
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2})")


def annotate(ir: str, facts: Mapping[str, str]) -> str:
    """Return the IR with these facts, by name. They replace all facts that it had."""
    ir = _NAMED.sub("", ir).rstrip()
    first = 1 + max((int(number) for number in _NUMBERED.findall(ir)), default=-1)
    nodes = [
        f'!{number} = !{{!"{_escaped(name)}", !"{_escaped(fact)}"}}'
        for number, (name, fact) in enumerate(facts.items(), first)
    ]
    named = ", ".join(f"!{first + i}" for i in range(len(nodes)))
    return "\n".join([ir, "", f"!{_NAME} = !{{{named}}}", "", *nodes, ""])


def facts(ir: str) -> dict[str, str]:
    """Return the facts that annotate() stored, by name; none if this project's compiler did not generate the IR."""
    named = _NAMED.search(ir)
    if named is None:
        return {}
    ours = set(re.findall(r"!(\d+)", named[1]))
    return {_plain(name): _plain(fact) for number, name, fact in _NODE.findall(ir) if number in ours}


def _escaped(text: str) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode())


def _plain(text: str) -> str:
    parts = _ESCAPE.split(text)
    return b"".join(part.encode() if i % 2 == 0 else bytes.fromhex(part) for i, part in enumerate(parts)).decode(
        errors="replace"
    )
