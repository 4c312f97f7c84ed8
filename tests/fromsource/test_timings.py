"""What .ninja_log tells about a build: the slowest steps, each once, and how many ran in parallel."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from toolchains.fromsource import timings
from toolchains.fromsource.timings import Step
from toolchains.system.errors import FoundryError

# Ninja 1.13 wrote this for three runs: the first was killed after b.o, the second built the rest (e.o and e.h in one
# step), the third ran that step again.
LOG = """\
# ninja log v7
0	305	1795273082646208586	a.o	22d20795257025bc
305	612	1795273082953655821	b.o	f6727adc538b3478
1	507	1795273083347890493	libc.a	1e7e19f8094f67d9
508	1010	1795273083854208638	bin/d	15e756d0d01a23c5
1010	1512	1795273084357571391	e.o	b9c443483c3d85af
1010	1512	1795273084357571391	e.h	b9c443483c3d85af
1	505	1795273084862208681	e.o	b9c443483c3d85af
1	505	1795273084862208681	e.h	b9c443483c3d85af
"""


def test_each_step_counts_once_with_its_last_time_slowest_first() -> None:
    steps = timings.read(LOG)
    assert [(step.output, step.seconds) for step in steps] == [
        ("libc.a", 0.506),
        ("e.o", 0.504),
        ("bin/d", 0.502),
        ("b.o", 0.307),
        ("a.o", 0.305),
    ]
    # Runs that went on follow each other.
    assert {step.output: step.start for step in steps}["libc.a"] == 0.613
    assert timings.elapsed(steps) == pytest.approx(0.612 + 1.512 + 0.505)
    # A line that Ninja did not finish is left out.
    assert [step.output for step in timings.read(LOG + "1\t90")] == [step.output for step in timings.read(LOG)]


def test_work_is_summed_by_kind() -> None:
    assert list(timings.seconds_by_kind(timings.read(LOG))) == ["compile", "archive", "link or other"]
    assert timings.seconds_by_kind([Step("lib/A.td.inc", 2.0, 0.0), Step("b.h", 1.0, 0.0)]) == {"generate": 3.0}


def test_table_has_the_slowest_steps_their_share_and_how_many_ran_at_once() -> None:
    text = shown(timings.read(LOG), 2)
    assert "23.8%  libc.a" in text
    assert "e.o" in text
    assert "bin/d" not in text
    assert "all of: link or other" in text
    steps = timings.read("# ninja log v7\n0\t1000\t1\ta.o\t1\n0\t2000\t1\tb.o\t2\n1000\t2000\t1\tc.o\t3\n")
    assert timings.elapsed(steps) == 2.0
    assert "all 3 steps, in 2.0 s: 2.00 at once" in shown(steps)
    assert "all 0 steps, in 0.0 s" in shown(timings.read("# ninja log v7\n"))


def test_malformed_ninja_log_is_rejected() -> None:
    with pytest.raises(FoundryError, match="cannot be read"):
        timings.read("cat: .ninja_log: No such file or directory")


def shown(steps: list[Step], n: int = 10) -> str:
    file = io.StringIO()
    Console(file=file, width=100).print(timings.table(steps, n))
    return file.getvalue()
