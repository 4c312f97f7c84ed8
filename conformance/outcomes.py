"""Classify a test that did not pass: refused, not applicable, wrong or an error; rules.toml has the rules."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

# The name of the one test of a file that cannot be imported.
COLLECTION = "collection"
RULES = Path(__file__).with_name("rules.toml")

# The exception by which our lowering refuses an operation. It is compared by name, so that Triton is not needed here.
_REFUSAL = ("foundry_core.errors", "UnsupportedOperation")
# The first line of a refusal that comes from another process, zen-compiler.
_REFUSED = re.compile(r"(?P<operation>[\w.]+)(?: at [^\n]*)? is not supported\b(?:: (?P<why>[^\n]+))?")
# Maximum number of characters of a reason; pytest's assertions quote the values that they compare.
_SHOWN = 200
# How an error of Triton's front end begins, and the lines that we add behind it.
_PLACE = re.compile(r"at \d+:\d+:$|at: ")
_ADVICE = ("why: ", "next: ")
# An assertion that fails in one of these packages is a defect of that package; it says nothing about values.
_COMPILERS = ("triton", "foundry_core", "triton_spirv_backend", "triton_dpu_backend", "triton_vsi_backend", "xdsl")


@dataclass(frozen=True)
class Outcome:
    """The result of a test.

    Attributes:
        outcome: "pass", "refused", "not applicable", "wrong" or "error".
        reason: the refused operation, why the test is not applicable, or the first line of the error.
        why: what the refusal says besides the operation's name: what of it is not supported.
    """

    outcome: str
    reason: str = ""
    why: str = field(default="", compare=False)


@dataclass(frozen=True)
class Rule:
    """One row of rules.toml: an outcome for the errors that a pattern matches.

    Attributes:
        outcome: "refused" or "not applicable".
        reason: text for people; may use the names of groups in `error`: `{type}`.
        operation: the name of the refused operation; None if the rule is not about refusals.
        error: pattern for the type and the text of the error, like "KeyError: 'ttgir'"; None matches any error.
    """

    outcome: str
    reason: str
    operation: str | None = None
    error: str | None = None

    def match(self, operation: str | None, text: str) -> Outcome | None:
        """Return the outcome if the rule matches a refused operation, or the text of an error."""
        if self.operation is not None and self.operation != operation:
            return None
        found = re.search(self.error, text) if self.error is not None else None
        if self.error is not None and found is None:
            return None
        return Outcome(self.outcome, self.reason.format(**(found.groupdict() if found else {})))


def read_rules(path: Path = RULES) -> tuple[Rule, ...]:
    """Return the rules of a file.

    Raises:
        ValueError: a row has neither `operation` nor `error`, or an outcome that no rule may give.
    """
    rules = tuple(Rule(**row) for row in tomllib.loads(path.read_text())["rule"])
    for rule in rules:
        if rule.outcome not in ("refused", "not applicable") or (rule.operation is None and rule.error is None):
            raise ValueError(f"{path}: this is no rule: {rule}")
    return rules


def judge(error: BaseException, rules: Sequence[Rule]) -> Outcome:
    """Return the outcome of a test that an exception ended. A failed assertion of the test itself is always `wrong`."""
    chain = list(_chain(error))
    # If a file cannot be imported, pytest raises a CollectError without the reason; the end of the chain has the
    # reason.
    shown = chain[-1] if type(error).__name__ == "CollectError" else error
    lines = [line.strip() for line in str(shown).splitlines() if line.strip()]
    # Triton's front end prints the place in the kernel first, then quotes it, then gives the message.
    if lines and _PLACE.match(lines[0]):
        lines = [line for line in lines if not line.startswith(_ADVICE)][-1:]
    text = lines[0] if lines else ""
    first = f"{type(shown).__name__}: {text}"[:_SHOWN]
    if _is_of_the_test(error):
        return Outcome("wrong", first)
    operation = next(filter(None, map(_refused, chain)), None)
    for each in chain:
        for rule in rules:
            if found := rule.match(operation, f"{type(each).__name__}: {each}"):
                return found
    if operation is None:
        return Outcome("error", first)
    said = next(filter(None, (_REFUSED.search(str(each)) for each in chain)), None)
    return Outcome("refused", operation, (said["why"] or "") if said else "")


def _is_of_the_test(error: BaseException) -> bool:
    """Return whether the test itself failed: by an assertion, by pytest.fail, or by pytest.raises without an error."""
    # torch raises an AssertionError if it has no CUDA. torch's comparisons are in torch.testing.
    module = _module(error.__traceback__)
    elsewhere = module.partition(".")[0] in _COMPILERS or module.startswith("torch.cuda")
    return type(error).__name__ == "Failed" or (isinstance(error, AssertionError) and not elsewhere)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, and the exceptions that caused it."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _refused(error: BaseException) -> str | None:
    """Return the operation that an exception refuses."""
    if any((kind.__module__, kind.__name__) == _REFUSAL for kind in type(error).__mro__):
        operation: Any = getattr(error, "operation", "")
        return str(operation)
    if type(error).__name__ == "ZenCompilerError" and (found := _REFUSED.search(str(error))):
        return found["operation"]
    return None


def _module(trace: TracebackType | None) -> str:
    """Return the name of the module whose function raised the error."""
    name = ""
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        trace = trace.tb_next
    return name
