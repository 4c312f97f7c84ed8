"""Lines of a kernel's source on their way through LLVM IR and SPIR-V (lines.py), without LLVM."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from foundry_core.codegen.lines import add_scopes, mark, unmark
from foundry_core.codegen.spirv import EMPTY, widest_call
from foundry_core.codegen.typed import write_typed_llvm

LLVM = """define spir_func void @called() !dbg !5 {
  ret void, !dbg !10
}

define spir_kernel void @k(ptr addrspace(1) %0) !dbg !4 {
  %2 = load float, ptr addrspace(1) %0, align 4, !dbg !6
  %3 = fmul float %2, 3.0, !dbg !6
  %4 = fadd float %3, 1.0, !dbg !9
  store float %4, ptr addrspace(1) %0, align 4, !dbg !7
  br label %5

5:
  %6 = phi i64 [ 0, %1 ], !dbg !6
  ret void, !dbg !7
}
!1 = !DIFile(filename: "<stdin>", directory: "")
!2 = !DIFile(filename: "a \\22b\\22.py", directory: "/x")
!3 = !DISubprogram(name: "called", scope: !1, file: !1, line: 3, spFlags: DISPFlagOptimized)
!4 = distinct !DISubprogram(name: "k", scope: !2, file: !2, line: 2, spFlags: DISPFlagDefinition | DISPFlagOptimized)
!5 = distinct !DISubprogram(name: "called", scope: !1, file: !1, line: 1, spFlags: DISPFlagDefinition)
!6 = !DILocation(line: 5, column: 7, scope: !4)
!7 = !DILocation(line: 6, scope: !4)
!8 = distinct !DILexicalBlockFile(scope: !4, file: !1, discriminator: 0)
!9 = !DILocation(line: 44, column: 5, scope: !8)
!10 = !DILocation(line: 2, column: 5, scope: !5)
"""


def instructions(module: bytes) -> list[tuple[int, ...]]:
    """Return (opcode, operand, ...) of each instruction; check that the lengths add up and that the bound is one."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    found, at = [], 5
    while at < len(words):
        found.append((words[at] & 0xFFFF, *words[at + 1 : at + (words[at] >> 16)]))
        at += words[at] >> 16
    assert at == len(words)
    defined = [each[2 if each[0] in (12, 54) else 1] for each in found if each[0] in (7, 11, 12, 19, 33, 54, 248)]
    assert len(defined) == len(set(defined)) and max(defined) < words[3]
    return found


def test_a_mark_stands_where_the_line_changes_and_at_the_start_of_a_block() -> None:
    marked, file = mark(LLVM)
    assert file == '/x/a "b".py'
    body = [line.split("(")[0].strip() for line in marked.split("}")[1].strip().splitlines()]
    five, six = "call void @__foundry_line.5.7", "call void @__foundry_line.6.0"
    kinds = [line if "call" in line else line.split("= ")[-1].split(" ")[0] for line in body]
    assert kinds[1:] == [five, "load", "fmul", "fadd", six, "store", "br", "", "5:", "phi", six, "ret"]
    assert [line for line in marked.splitlines() if line.startswith("declare")] == [
        "declare void @__foundry_line.5.7()",
        "declare void @__foundry_line.6.0()",
    ]


def test_text_without_places_stays_as_it_is() -> None:
    text = "define void @k() {\n  ret void\n}\n"
    assert mark(text) == (text, "")
    assert add_scopes(EMPTY) == EMPTY


def test_calls_of_marks_become_lines_with_a_scope() -> None:
    def instruction(opcode: int, *operands: int) -> list[int]:
        return [opcode | 1 + len(operands) << 16, *operands]

    def text(written: str) -> tuple[int, ...]:
        data = written.encode() + b"\0"
        data += b"\0" * (-len(data) % 4)
        return struct.unpack(f"<{len(data) // 4}I", data)

    # EMPTY with a function 5, the mark, which its kernel calls before it returns.
    words = list(struct.unpack("<32I", EMPTY))
    words[3] = 7
    head, types, kernel = words[: 5 + 9 + 4], words[18:23], words[23:]
    name = instruction(5, 5, *text("__foundry_line.12.3"))
    declared = [*instruction(54, 1, 5, 0, 2), *instruction(56)]
    call = instruction(57, 1, 6, 5)
    module = [*head, *name, *types, *declared, *kernel[:7], *call, *kernel[7:]]
    lined = unmark(struct.pack(f"<{len(module)}I", *module), "f.py")
    found = instructions(lined)
    (string,) = (each[1] for each in found if each[0] == 7)
    assert (7, string, *text("f.py")) in found
    assert (8, string, 12, 3) in found
    assert {each[0] for each in found}.isdisjoint({5, 57}) and [each[0] for each in found].count(54) == 1

    scoped = instructions(add_scopes(lined))
    opcodes = [each[0] for each in scoped]
    line = opcodes.index(8)
    debug = {each[4]: each for each in scoped if each[0] == 12}
    assert scoped[line - 1] == debug[23] and debug[23][-1] == debug[20][2]
    assert opcodes[opcodes.index(248) + 1] == 12
    assert debug[20][-1] == 3 and debug[20][8] == 12 and debug[35][-1] == string


def test_instructions_for_dpus_have_their_lines() -> None:
    function = """"builtin.module"() ({
  "llvm.func"() <{CConv = #llvm.cconv<ccc>, function_type = !llvm.func<i32 (i32)>, linkage = #llvm.linkage<external>, sym_name = "k"}> ({
  ^bb0(%0: i32 loc("<stdin>":2:3)):
    %1 = "llvm.add"(%0, %0) : (i32, i32) -> i32 loc("/x/k.py":5:7)
    %2 = "llvm.mul"(%1, %0) : (i32, i32) -> i32 loc("<stdin>":5:5)
    "llvm.return"(%2) : (i32) -> () loc(unknown)
  }) : () -> () loc(%PLACE)
}) : () -> () loc("<stdin>":1:1)
"""  # noqa: E501
    text = write_typed_llvm(function.replace("%PLACE", '"/x/k.py":3:1'), triple="t", datalayout="e")
    nodes = dict(line.split(" = ", 1) for line in text.splitlines() if line.startswith("!"))
    where = {}
    for name in ("define", "add", "mul", "ret"):
        (line,) = (line for line in text.splitlines() if f" {name} " in f" {line}")
        where[name] = nodes[line.removesuffix(" {").split("!dbg ")[1]]
    assert where["define"].startswith('distinct !DISubprogram(name: "k",') and " line: 3," in where["define"]
    assert " line: 5, column: 7," in f" {where['add'].removeprefix('!DILocation(')}"
    assert where["mul"] == where["ret"] and "line: 3, column: 1" in where["ret"]
    assert '!DIFile(filename: "k.py", directory: "/x")' in nodes.values()
    assert "!" not in write_typed_llvm(function.replace("%PLACE", '"<stdin>":2:3'), triple="t", datalayout="e")


@pytest.mark.parametrize("read", [add_scopes, widest_call])
def test_a_damaged_module_is_refused(read: Callable[[bytes], object]) -> None:
    damaged = (
        EMPTY[:20] + bytes(4) + EMPTY[24:],  # an instruction without words, which would be read for ever
        EMPTY[:-1] + b"\x7f",  # one that goes on behind the end
        EMPTY[:-2],  # half a word
        EMPTY[:20] + struct.pack("<2I", 1 << 16 | 15, 1 << 16 | 21),  # OpEntryPoint and OpTypeInt without operands
    )
    for module in damaged:
        with pytest.raises(ValueError, match="the SPIR-V module is damaged"):
            read(module)
