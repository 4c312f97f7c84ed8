"""Stands for our lowering and for Triton, which are in images only."""

import sys
import types


def _module(name, text):
    module = types.ModuleType(name)
    exec(text, module.__dict__)
    sys.modules[name] = module
    return module


UnsupportedOperation = _module(
    "foundry_core.errors",
    """
class UnsupportedOperation(Exception):
    def __init__(self, operation, place, why):
        super().__init__(f"{operation} at {place} is not supported{': ' + why if why else ''}")
        self.operation = operation
""",
).UnsupportedOperation
compile_wrongly = _module("triton.compiler", "def compile_wrongly(): assert 0, 'no layout'").compile_wrongly


def ask_for_ttgir():
    """As CompiledKernel.asm."""
    raise KeyError("Unknown key: 'ttgir'")
