"""Recursion in a kernel: replaces the errors of Triton's front end by one that says what is wrong.

Triton generates a function once for each set of argument types and constants. If that function calls itself, the front
end looks up its type too early and reports a bare KeyError. If each call has other constants and none ends, it reports
a RecursionError, after following twice as many errors for each call. `install` wraps the method that generates a call.
"""

from __future__ import annotations

from typing import Any

from triton.compiler.code_generator import CodeGenerator
from triton.compiler.errors import UnsupportedLanguageConstruct

from .front_errors import note_callee

_NEXT = "  next: write a loop, or let a tl.constexpr parameter end the recursion: if n == 0: ... else: ..."


class RecursionRefused(UnsupportedLanguageConstruct):  # type: ignore[misc]
    """A function of a kernel calls itself."""


def install(_: type) -> None:
    """Make Triton's front end name a recursion; a second call does nothing."""
    native = CodeGenerator.call_JitFunction
    if hasattr(native, "names_recursion"):
        return

    def call_JitFunction(self: Any, fn: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return native(self, fn, *arguments, **named)
        except Exception as error:
            note_callee(error, fn)
            found = _recursion(self, fn, error)
            if found is None:
                raise
        # Raised here, where no error is being handled, so that the callers' errors do not become its context.
        raise found.with_traceback(None)

    call_JitFunction.names_recursion = True  # type: ignore[attr-defined]
    CodeGenerator.call_JitFunction = call_JitFunction


def _recursion(generator: Any, fn: Any, error: Exception) -> RecursionRefused | None:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, RecursionRefused):
            return cause
        if isinstance(cause, RecursionError) or "RecursionError(" in str(cause):
            said = (
                f"{fn.__name__} calls itself without end\n  why:  each call has other constants, and none is the last"
            )
            return RecursionRefused(generator.jit_fn.src, generator.cur_node, f"{said}\n{_NEXT}")
        cause = cause.__cause__
    if isinstance(error, KeyError) and isinstance(name := error.args[0], str) and generator.module.has_function(name):
        said = f"{fn.__name__} calls itself\n  why:  the compiled code has no stack for calls"
        return RecursionRefused(generator.jit_fn.src, generator.cur_node, f"{said}\n{_NEXT}")
    return None
