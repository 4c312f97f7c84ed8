"""What became of a test that did not pass: refused, not applicable, wrong or an error; the rules are in rules.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

RULES = Path(__file__).with_name("rules.toml")

# The kind of error by which our lowering refuses an operation; looked for by name, so that this needs no Triton.
_REFUSAL = ("foundry_core.errors", "UnsupportedOperation")
# The first line of such a refusal, where it comes from another process: zen-compiler's.
_REFUSED = re.compile(r"(?P<operation>[\w.]+)(?: at [^\n]*)? is not supported\b")
# Characters of a reason; pytest's assertions quote what they compare.
_SHOWN = 200
# How an error of Triton's front end begins.
_PLACE = re.compile(r"at \d+:\d+:$")
# An assertion that fails in one of these is a defect of theirs, and says nothing of values.
_COMPILERS = ("triton", "foundry_core", "triton_spirv_backend", "triton_dpu_backend", "triton_vsi_backend", "xdsl")


@dataclass(frozen=True)
class Outcome:
    """What became of a test.

    Attributes:
        outcome: "pass", "refused", "not applicable", "wrong" or "error".
        reason: the refused operation, why it is not applicable, or the first line of the error.
    """

    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class Rule:
    """One row of rules.toml: an outcome for the errors that a pattern matches.

    Attributes:
        outcome: "refused" or "not applicable".
        reason: for people; may name groups of `error`: `{type}`.
        operation: the name of the refused operation; None if the rule is not about refusals.
        error: matches the type and the text of the error, as "KeyError: 'ttgir'"; None if any will do.
    """

    outcome: str
    reason: str
    operation: str | None = None
    error: str | None = None

    def match(self, operation: str | None, text: str) -> Outcome | None:
        """Return the outcome if the rule fits a refused operation, or the text of an error."""
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
    """Say what an exception that ended a test means. An assertion of the test's own is `wrong`, whatever it says."""
    chain = list(_chain(error))
    # Of a file that cannot be imported pytest has an error of its own, without the reason.
    shown = chain[-1] if type(error).__name__ == "CollectError" else error
    lines = [line.strip() for line in str(shown).splitlines() if line.strip()]
    # Triton's front end says where in the kernel, quotes that, and then says what is wrong.
    text = lines[-1 if _PLACE.match(lines[0]) else 0] if lines else ""
    first = f"{type(shown).__name__}: {text}"[:_SHOWN]
    if _is_of_the_test(error):
        return Outcome("wrong", first)
    operation = next(filter(None, map(_refused, chain)), None)
    for each in chain:
        for rule in rules:
            if found := rule.match(operation, f"{type(each).__name__}: {each}"):
                return found
    return Outcome("refused", operation) if operation is not None else Outcome("error", first)


def _is_of_the_test(error: BaseException) -> bool:
    """Whether a test says that it failed: by an assertion, by pytest.fail, or by pytest.raises without an error."""
    # torch raises an AssertionError where it has no CUDA. Its comparisons are in torch.testing.
    module = _module(error.__traceback__)
    elsewhere = module.partition(".")[0] in _COMPILERS or module.startswith("torch.cuda")
    return type(error).__name__ == "Failed" or (isinstance(error, AssertionError) and not elsewhere)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _refused(error: BaseException) -> str | None:
    """The operation that an exception refuses."""
    if any((kind.__module__, kind.__name__) == _REFUSAL for kind in type(error).__mro__):
        operation: Any = getattr(error, "operation", "")
        return str(operation)
    if type(error).__name__ == "ZenCompilerError" and (found := _REFUSED.search(str(error))):
        return found["operation"]
    return None


def _module(trace: TracebackType | None) -> str:
    """The name of the module of the function that raised."""
    name = ""
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        trace = trace.tb_next
    return name
