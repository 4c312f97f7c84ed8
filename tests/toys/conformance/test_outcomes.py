"""One test of each outcome; run by tests/test_conformance.py, and never by pytest itself."""

import ctypes
import os
import sys

import numpy as np
import pytest
from refusing import UnsupportedOperation, ask_for_ttgir, compile_wrongly


def test_passes(device, record_property):
    record_property("operation", "a + b")
    assert device == "cpu"


def test_refused():
    try:
        raise UnsupportedOperation("tt.histogram", "kernels.py:12", "of f64")
    except UnsupportedOperation as error:
        raise RuntimeError("the kernel cannot be compiled") from error


def test_inline_ptx():
    raise UnsupportedOperation("tt.elementwise_inline_asm", "kernels.py:12", "")


def test_asserts_ttgir():
    assert "ttg.local_alloc" in ask_for_ttgir()


@pytest.mark.parametrize("value", [1, 2, 3])
def test_wrong(value):
    assert value == 2


def test_numpy_says_wrong():
    np.testing.assert_array_equal(np.zeros(3), np.ones(3))


def test_not_refused_though_it_should_be():
    with pytest.raises(ValueError):
        pass


def test_assertion_of_the_compiler():
    compile_wrongly()


def test_raises():
    raise RuntimeError("no such device\nsecond line")


def test_ends_the_interpreter():
    sys.exit(0)


def test_exits():
    os._exit(0)


def test_segfault():
    ctypes.string_at(0)


def test_endless_loop():
    while True:
        pass


@pytest.mark.skip(reason="needs two GPUs")
def test_skipped():
    raise AssertionError


@pytest.mark.xfail(reason="a defect of upstream's", strict=True)
def test_expected_to_fail():
    raise AssertionError


def test_after_all_of_that():
    pass
