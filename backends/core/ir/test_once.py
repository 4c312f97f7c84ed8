"""A function that opens a device is called once, whoever calls it at the same time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from foundry_core.once import once


def test_threads_that_call_at_the_same_time_get_one_result() -> None:
    @once
    def opened() -> object:
        time.sleep(0.02)
        return object()

    with ThreadPoolExecutor(8) as pool:
        assert len({id(result) for result in pool.map(lambda _: opened(), range(8))}) == 1


def test_an_error_is_not_kept_and_a_result_can_be_forgotten() -> None:
    answers: Iterator[ValueError | int] = iter([ValueError("not yet"), 1, 2])

    @once
    def opened() -> int:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    with pytest.raises(ValueError, match="not yet"):
        opened()
    assert [opened(), opened()] == [1, 1]
    opened.cache_clear()
    assert opened() == 2


def test_a_child_of_a_fork_does_not_wait_for_a_thread_that_it_does_not_have() -> None:
    begun, end = threading.Event(), threading.Event()

    @once
    def opened() -> int:
        begun.set()
        end.wait(10)
        return 1

    thread = threading.Thread(target=opened)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        # A child that waits for the lock ends by a signal.
        signal.alarm(5)
        end.set()
        os._exit(opened())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    end.set()
    thread.join()
