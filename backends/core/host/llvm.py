"""Translate the MLIR that the mappings to work-items and tasklets write to LLVM IR that runs on this processor.

In images, mlir-opt does this. Here every access to memory becomes one that is checked: an address in global memory is a
number that only the run's table of arrays makes a pointer of, so an access out of bounds ends no process.

An operation that is not known is an error: nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TYPES = {"f32": "float", "f64": "double", "void": "void"}
_BINARY = {
    **{f"{name}f": f"f{name}" for name in ("add", "sub", "mul", "div", "rem")},
    **{f"{name}i": name for name in ("add", "sub", "mul", "and", "or", "xor")},
    "shli": "shl",
    "shrsi": "ashr",
    "shrui": "lshr",
    **{f"{name}{sign}i": f"{sign}{name}" for name in ("div", "rem") for sign in "su"},
}
_CASTS = {
    **{name: name for name in ("sitofp", "uitofp", "fptosi", "fptoui", "bitcast", "ptrtoint", "inttoptr")},
    "extsi": "sext",
    "extui": "zext",
    "trunci": "trunc",
    "extf": "fpext",
    "truncf": "fptrunc",
}
_LOCATION = re.compile(r" loc\(#at\d+\)$")
_HEAD = re.compile(
    r'^llvm\.func (internal )?(?:spir_\w+ )?@"?(\w[\w.]*)"?\((.*?)\)(?: -> (\S+))?(?: attributes .*)? \{$'
)
_PARAMETER = re.compile(r"(%\w+): ([^,{}]+?)(?: \{[^}]*\})?(?:, |$)")
_COPY = re.compile(r'"llvm\.intr\.memcpy"\((.*?)\) <\{arg_attrs = \[\{llvm\.align = (\d+) .*> : \((.*)\) -> \(\)')
_VALUE = re.compile(r"%[\w#]+")


def type_text(type: str) -> str:
    """Return a type of MLIR as LLVM writes it. All pointers are in one address space."""
    if type in _TYPES:
        return _TYPES[type]
    if type.startswith(("!global", "!llvm.ptr")):
        return "ptr"
    if found := re.fullmatch(r"vector<(\d+)x(\w+)>", type):
        return f"<{found[1]} x {type_text(found[2])}>"
    if found := re.fullmatch(r"!llvm\.array<(\d+) x (\w+)>", type):
        return f"[{found[1]} x {type_text(found[2])}]"
    if found := re.fullmatch(r"!llvm\.struct<\((.*)\)>", type):
        return f"{{ {', '.join(map(type_text, split(found[1])))} }}"
    if re.fullmatch(r"i\d+", type):
        return type
    raise NotImplementedError(type)


def split(text: str) -> list[str]:
    """Return the parts of a list; commas in brackets do not separate."""
    return [part.strip() for part in re.split(r",(?![^<(]*[>)])", text) if part.strip()]


def bits(type: str) -> int:
    """Return how many bits an element, or a vector of elements, has in memory."""
    if found := re.fullmatch(r"vector<(\d+)x(\w+)>", type):
        return int(found[1]) * bits(found[2])
    return 64 if type.startswith("!") else -(-int(type[1:]) // 8) * 8


class Translation:
    """One module.

    Attributes:
        text: LLVM IR of all functions and globals that the module defines.
        declared: the types of functions that it only declares, by name: parameters, and the result.
        kernel: the kernel's name.
        parameters: names and types of its parameters, in MLIR.
        shared: memory that the work-items of a work-group share: bytes, by name.
    """

    def __init__(self, mlir: str) -> None:
        self.declared: dict[str, tuple[list[str], str]] = {}
        self.shared: dict[str, int] = {}
        self.kernel, self.parameters = "", list[tuple[str, str]]()
        self._lines = [_LOCATION.sub("", line).strip() for line in mlir.splitlines()]
        self._at = 0
        self._out: list[str] = []
        self._values: dict[str, str] = {}
        self._fresh = self._own = 0
        self._block = "entry"
        while self._at < len(self._lines):
            self._top(self._next())
        self.text = "\n".join(self._out) + "\n"

    def _top(self, line: str) -> None:
        if not line or line in ("module {", "}") or line.startswith(("#at", "!global")):
            return
        if found := re.match(r"llvm\.mlir\.global internal @(\w+)\(\) \{.*?\} : !llvm\.array<(\d+) x (\w+)>", line):
            self.shared[found[1]] = int(found[2]) * bits(found[3]) // 8
            self._out.append(
                f"@{found[1]} = internal global {type_text(f'!llvm.array<{found[2]} x {found[3]}>')} undef, align 64"
            )
        elif found := _HEAD.match(line):
            self._function(*found.groups())
        elif found := re.match(r'llvm\.func (?:spir_\w+ )?@"(.*?)"\((.*?)\)(?: -> (\S+))?', line):
            self.declared[found[1]] = split(found[2]), found[3] or "void"
        else:
            raise NotImplementedError(line)

    def _function(self, internal: str | None, name: str, parameters: str, result: str | None) -> None:
        known = _PARAMETER.findall(parameters)
        self._values, self._own, self._block = {}, 0, "entry"
        if not internal:
            self.kernel, self.parameters = name, known
        head = ", ".join(f"{type_text(type)} {value}" for value, type in known)
        self._out.append(f'define {type_text(result or "void")} @"{name}"({head}) {{\nentry:')
        if (last := self._region()) != ("}", []):
            raise NotImplementedError(last)
        self._out.append("}")

    # Regions. The lines of one end with its terminator, or with the brace behind it.

    def _region(self) -> tuple[str, list[str]]:
        """Translate lines up to the brace that closes them; return its line, and the values that are passed on."""
        passed: list[str] = []
        while True:
            line = self._next()
            if line.startswith("}"):
                return line, passed
            if found := re.match(r"scf\.yield(?: (.*) : .*)?$", line):
                passed = [self._value(name) for name in split(found[1] or "")]
            elif found := re.match(r"scf\.condition ?\((%[\w#]+)\)(?: (.*) : .*)?$", line):
                passed = [self._value(name) for name in (found[1], *split(found[2] or ""))]
            elif found := re.match(r"(?:(.*?) = )?scf\.(for|while|if|execute_region)(.*) \{$", line):
                getattr(self, f"_{found[2]}")(split(found[1] or ""), found[3].strip())
            elif line:
                self._operation(line)

    def _label(self) -> str:
        self._fresh += 1
        return f"b{self._fresh}"

    def _start(self, label: str) -> None:
        self._out.append(f"{label}:")
        self._block = label

    def _results(self, names: Sequence[str], values: Sequence[str]) -> None:
        """Give the results of an operation with regions these values."""
        if len(names) == 1 and ":" in names[0]:
            name, count = names[0].split(":")
            names = [f"{name}#{number}" for number in range(int(count))]
        self._values.update(zip(names, values, strict=True))

    def _phi(self, at: int, type: str, name: str, *edges: tuple[str, str]) -> None:
        self._out[at] += f"\n  {name} = phi {type_text(type)} " + ", ".join(f"[{x}, %{block}]" for x, block in edges)

    def _for(self, names: Sequence[str], head: str) -> None:
        found = re.fullmatch(r"(%\w+) = (\S+) to (\S+) step (\S+)(?: iter_args\((.*)\) -> \((.*)\))? : (\w+)", head)
        assert found is not None, head
        index, *ends, carried, types, kind = found.groups()
        low, high, step = map(self._value, ends)
        pairs = [pair.split(" = ") for pair in split(carried or "")]
        first = [self._value(value) for _, value in pairs]
        top, body, end, before = self._label(), self._label(), self._label(), self._block
        self._out.append(f"  br label %{top}")
        self._start(top)
        at = len(self._out) - 1
        self._out += [f"  %{top}c = icmp slt {kind} {index}, {high}", f"  br i1 %{top}c, label %{body}, label %{end}"]
        self._start(body)
        _, passed = self._region()
        self._out += [f"  %{top}n = add {kind} {index}, {step}", f"  br label %{top}"]
        self._phi(at, kind, index, (low, before), (f"%{top}n", self._block))
        for (name, _), type, x, y in zip(pairs, split(types or ""), first, passed, strict=True):
            self._phi(at, type, name, (x, before), (y, self._block))
        self._start(end)
        self._results(names, [name for name, _ in pairs])

    def _if(self, names: Sequence[str], head: str) -> None:
        found = re.fullmatch(r"(%[\w#]+)(?: -> \((.*)\))?", head)
        assert found is not None, head
        then, otherwise, end = self._label(), self._label(), self._label()
        self._out.append(f"  br i1 {self._value(found[1])}, label %{then}, label %{otherwise}")
        self._start(then)
        tail, passed = self._region()
        edges = [(passed, self._block)]
        self._out.append(f"  br label %{end}")
        self._start(otherwise)
        following = "else {" if tail == "} else {" else self._lines[self._at]
        if following == "else {":
            if tail != "} else {":
                self._next()
            edges.append((self._region()[1], self._block))
        self._out.append(f"  br label %{end}")
        self._start(end)
        at, results = len(self._out) - 1, []
        for number, type in enumerate(split(found[2] or "")):
            results.append(f"%{end}r{number}")
            self._phi(at, type, results[-1], *((values[number], block) for values, block in edges))
        self._results(names, results)

    def _while(self, names: Sequence[str], head: str) -> None:
        found = re.fullmatch(r"(?:\((.*?)\) )?: \((.*)\) -> \(.*\)", head)
        assert found is not None, head
        pairs = [pair.split(" = ") for pair in split(found[1] or "")]
        first = [self._value(value) for _, value in pairs]
        top, body, end, before = self._label(), self._label(), self._label(), self._block
        self._out.append(f"  br label %{top}")
        self._start(top)
        at = len(self._out) - 1
        tail, (condition, *passed) = self._region()
        if tail != "} do {" and self._next() != "do {":
            raise NotImplementedError(tail)
        self._out.append(f"  br i1 {condition}, label %{body}, label %{end}")
        self._start(body)
        if self._lines[self._at].startswith("^bb0("):
            inside = _PARAMETER.findall(self._next().removeprefix("^bb0(").removesuffix("):"))
            self._values.update(zip([name for name, _ in inside], passed, strict=True))
        _, again = self._region()
        self._out.append(f"  br label %{top}")
        for (name, _), type, x, y in zip(pairs, split(found[2]), first, again, strict=True):
            self._phi(at, type, name, (x, before), (y, self._block))
        self._start(end)
        self._results(names, passed)

    def _execute_region(self, names: Sequence[str], head: str) -> None:
        self._results(names, self._region()[1])

    def _next(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    # Operations.

    def _value(self, name: str) -> str:
        return self._values.get(name, name.replace("#", "."))

    def _operation(self, line: str) -> None:
        line = _VALUE.sub(lambda value: self._value(value[0]), line)
        name, equals, text = line.partition(" = ") if line.startswith("%") else ("", "", line)
        if found := re.fullmatch(r"llvm\.mlir\.addressof @(\w+) : .*", text):
            self._values[name] = f"@{found[1]}"
            return
        *before, last = self._written(text, name.removeprefix("%"))
        self._out += [f"  {each}" for each in before] + [f"  {name}{equals}{last}"]

    def _written(self, text: str, name: str) -> list[str]:
        """Return the lines of an operation, the last of which is its result."""
        if found := re.fullmatch(r"arith\.constant (.*?)(?: : (\S+))?", text):
            return [_constant(found[1], found[2] or "i1")]
        if found := re.fullmatch(r"llvm\.return(?: (.*) : (.*))?", text):
            return [f"ret {type_text(found[2])} {found[1]}" if found[1] else "ret void"]
        if found := re.fullmatch(r"llvm\.fence (\w+)", text):
            return [f"fence {found[1]}"]
        if found := re.fullmatch(r'"?llvm\.call"? ?(?:spir_funccc )?@"(.*?)"\((.*)\) : \((.*)\) -> (.*)', text):
            arguments = zip(split(found[2]), split(found[3]), strict=True)
            given = ", ".join(f"{type_text(type)} {value}" for value, type in arguments)
            return [f'call {"void" if found[4] == "()" else type_text(found[4])} @"{found[1]}"({given})']
        if found := re.fullmatch(r"arith\.cmp([if]) (\w+), (.*) : (.*)", text):
            return [f"{found[1]}cmp {found[2]} {type_text(found[4])} {found[3]}"]
        if found := re.fullmatch(r"arith\.select (.*) : (.*)", text):
            condition, yes, no = split(found[1])
            *kinds, kind = map(type_text, split(found[2]))
            return [f"select {(kinds or ['i1'])[0]} {condition}, {kind} {yes}, {kind} {no}"]
        if found := re.fullmatch(r"arith\.negf (.*) : (.*)", text):
            return [f"fneg {type_text(found[2])} {found[1]}"]
        if (found := re.fullmatch(r"arith\.(\w+) (.*) : (\S+)", text)) and found[1] in _BINARY:
            left, right = split(found[2])
            if found[1][:3] in ("div", "rem") and found[1][-1] == "i" and not found[3].startswith("vector"):
                return [
                    f"%{name}.z = icmp eq {found[3]} {right}, 0",
                    f"call void @divided(i1 %{name}.z)",
                    f"%{name}.d = select i1 %{name}.z, {found[3]} 1, {found[3]} {right}",
                    f"{_BINARY[found[1]]} {found[3]} {left}, %{name}.d",
                ]
            return [f"{_BINARY[found[1]]} {type_text(found[3])} {found[2]}"]
        if (found := re.fullmatch(r"(?:arith|llvm)\.(\w+) (.*) : (\S+) to (\S+)", text)) and found[1] in _CASTS:
            return [f"{_CASTS[found[1]]} {type_text(found[3])} {found[2]} to {type_text(found[4])}"]
        if found := re.fullmatch(r'"llvm\.intr\.ctlz"\((.*)\) <\{is_zero_poison = false\}> : \((\S+)\) -> .*', text):
            type = type_text(found[2])
            lanes = re.fullmatch(r"<(\d+) x (\w+)>", type)
            return [
                f"call {type} @llvm.ctlz.{f'v{lanes[1]}{lanes[2]}' if lanes else type}({type} {found[1]}, i1 false)"
            ]
        if text.startswith("vector."):
            return self._vector(text, name)
        return self._memory(text, name)

    def _vector(self, text: str, name: str) -> list[str]:
        if found := re.fullmatch(r"vector\.broadcast (.*) : (\S+) to vector<(\d+)x(\w+)>", text):
            kind = type_text(f"vector<{found[3]}x{found[4]}>")
            return [
                f"%{name}.1 = insertelement {kind} poison, {type_text(found[2])} {found[1]}, i32 0",
                f"shufflevector {kind} %{name}.1, {kind} poison, <{found[3]} x i32> zeroinitializer",
            ]
        if found := re.fullmatch(r"vector\.extract (.*)\[(\d+)\] : \S+ from (\S+)", text):
            return [f"extractelement {type_text(found[3])} {found[1]}, i32 {found[2]}"]
        if found := re.fullmatch(r"vector\.insert (.*)\[(\d+)\] : (\S+) into (\S+)", text):
            value, into = split(found[1])
            return [f"insertelement {type_text(found[4])} {into}, {type_text(found[3])} {value}, i32 {found[2]}"]
        if found := re.fullmatch(r"vector\.shuffle (.*) \[(.*)\] : (\S+), (\S+)", text):
            one, two = split(found[1])
            places = split(found[2])
            mask = ", ".join(f"i32 {place}" for place in places)
            kinds = type_text(found[3]), type_text(found[4])
            return [f"shufflevector {kinds[0]} {one}, {kinds[1]} {two}, <{len(places)} x i32> <{mask}>"]
        if found := re.fullmatch(r"vector\.from_elements (.*) : (vector<\d+x(\w+)>)", text):
            values, kind, elem = split(found[1]), type_text(found[2]), type_text(found[3])
            lines = ["poison", *(f"%{name}.{number}" for number in range(len(values)))]
            made = [f"insertelement {kind} {lines[k]}, {elem} {value}, i32 {k}" for k, value in enumerate(values)]
            return [*(f"%{name}.{k} = {line}" for k, line in enumerate(made[:-1])), made[-1]]
        raise NotImplementedError(text)

    def _memory(self, text: str, name: str) -> list[str]:
        if found := re.fullmatch(r"llvm\.getelementptr (\S+)\[(.*)\] : \((.*)\) -> \S+, (\w+)", text):
            kind = split(found[3])[1:] or ["i64"]
            return [f"getelementptr {type_text(found[4])}, ptr {found[1]}, {kind[0]} {found[2]}"]
        if found := re.fullmatch(r"llvm\.alloca \S+ x (\S.*?) \{alignment = (\d+) : i64\} : .*", text):
            self._own += 1
            array = re.fullmatch(r"!llvm\.array<(\d+) x (\w+)>", found[1])
            assert array is not None
            size = int(array[1]) * bits(array[2]) // 8
            return [
                f"%{name}.1 = alloca {type_text(found[1])}, align {found[2]}",
                f"call ptr @own(ptr %{name}.1, i64 {size}, i32 {self._own - 1})",
            ]
        if found := re.fullmatch(r"llvm\.load (?:volatile )?(\S+) \{alignment = (\d+) : i64\} : (\S+) -> (\S+)", text):
            return [
                self._reach(f"%{name}.p", found[1], found[3], bits(found[4]) // 8, found[2], 1),
                f"load {type_text(found[4])}, ptr %{name}.p, align 1",
            ]
        if found := re.fullmatch(
            r"llvm\.store (?:volatile )?(.*), (\S+) \{alignment = (\d+) : i64\} : (.*), (\S+)", text
        ):
            self._fresh += 1
            made = f"%store{self._fresh}"
            return [
                self._reach(made, found[2], found[5], bits(found[4]) // 8, found[3], 2),
                f"store {type_text(found[4])} {found[1]}, ptr {made}, align 1",
            ]
        if found := re.fullmatch(r"llvm\.atomicrmw _?(\w+) (\S+), (.*) acq_rel : (\S+), (\S+)", text):
            size = bits(found[5]) // 8
            return [
                self._reach(f"%{name}.p", found[2], found[4], size, str(size), 3),
                f"atomicrmw {found[1]} ptr %{name}.p, {type_text(found[5])} {found[3]} acq_rel",
            ]
        if found := re.fullmatch(r"llvm\.cmpxchg (\S+), (.*), (.*) acq_rel acquire : (\S+), (\S+)", text):
            size, type = bits(found[5]) // 8, type_text(found[5])
            return [
                self._reach(f"%{name}.p", found[1], found[4], size, str(size), 3),
                f"cmpxchg ptr %{name}.p, {type} {found[2]}, {type} {found[3]} acq_rel acquire",
            ]
        if found := re.fullmatch(r"llvm\.extractvalue (\S+)\[(\d+)\] : (.*)", text):
            return [f"extractvalue {type_text(found[3])} {found[1]}, {found[2]}"]
        if found := _COPY.fullmatch(text):
            to, source, length = split(found[1])
            is_write = split(found[3])[0].startswith("!global")
            return [
                f"call void @copy_{'out' if is_write else 'in'}(ptr {to}, ptr {source}, i32 {length}, i64 {found[2]})"
            ]
        raise NotImplementedError(text)

    @staticmethod
    def _reach(made: str, address: str, space: str, size: int, alignment: str, how: int) -> str:
        """Return the line that makes a pointer of an address: how & 1, the bytes are read; how & 2, written."""
        if space in ("!global", "!llvm.ptr<1>"):
            return f"{made} = call ptr @reach(ptr {address}, i64 {size}, i64 {alignment}, i32 {how})"
        return f"{made} = call ptr @private(ptr {address}, i64 {size}, i64 {alignment})"


def _constant(text: str, type: str) -> str:
    """Return what makes a constant; floats are written as their bits."""
    found = re.fullmatch(r"vector<(\d+)x(\w+)>", type)
    elem, count = (found[2], int(found[1])) if found else (type, 0)
    inner = re.fullmatch(r"dense<\[?(.*?)\]?>", text)
    words = split(inner[1] if inner else text)
    numbers = [str({"true": 1, "false": 0}[word] if word in ("true", "false") else int(word, 0)) for word in words]
    kind = f"i{elem[1:]}"
    made, whole = numbers[0], kind
    if count:
        numbers = numbers * count if len(numbers) == 1 else numbers
        made, whole = f"<{', '.join(f'{kind} {number}' for number in numbers)}>", f"<{count} x {kind}>"
    return f"bitcast {whole} {made} to {type_text(type)}"
