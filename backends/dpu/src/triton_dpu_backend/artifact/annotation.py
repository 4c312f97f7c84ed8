"""Store facts about a kernel in its kernel.ll, as named metadata, which LLVM's tools keep.

!triton.dpu = !{!0, !1}
!0 = !{!"num_tasklets", !"16"}
!1 = !{!"block", !"1024"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from foundry_core.strings import llvm_string, llvm_text

_NAME = "triton.dpu"
_NUMBERED = re.compile(r"^!(\d+) = ", re.MULTILINE)
_NAMED = re.compile(rf"^!{re.escape(_NAME)} = !\{{(.*)\}}$", re.MULTILINE)
_NODE = re.compile(r'^!(\d+) = !\{!"([^"]*)", !"([^"]*)"\}$', re.MULTILINE)


def annotate(ir: str, facts: Mapping[str, str]) -> str:
    """Return the IR with these facts, by name. They replace all facts that it had."""
    ir = _NAMED.sub("", ir).rstrip()
    first = 1 + max((int(number) for number in _NUMBERED.findall(ir)), default=-1)
    nodes = [
        f"!{number} = !{{!{llvm_string(name)}, !{llvm_string(fact)}}}"
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
    return {
        llvm_text(name, "replace"): llvm_text(fact, "replace")
        for number, name, fact in _NODE.findall(ir)
        if number in ours
    }
