"""What a DPU's process keeps for itself: with 2560 of them, fresh memory is what the first launch waits for."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conformance_programs import FOLDER

DPUS = 8
# KiB of a process after a vector addition of 16 tasklets with the check of races. It takes 940, and took 1,240 when the
# check had a tree for each page of MRAM from the start.
MOST = 1100
HOST = """
#include <dpu.h>
#include <stdio.h>
int main(void) {
    struct dpu_set_t set;
    uint32_t elements = 16384;
    DPU_ASSERT(dpu_alloc(%d, NULL, &set));
    DPU_ASSERT(dpu_load(set, "program", NULL));
    DPU_ASSERT(dpu_broadcast_to(set, "elements", 0, &elements, 4, DPU_XFER_DEFAULT));
    static char data[2 * 16384 * 4];
    DPU_ASSERT(dpu_broadcast_to(set, DPU_MRAM_HEAP_POINTER_NAME, 0, data, sizeof data, DPU_XFER_DEFAULT));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    puts("launched");
    fflush(stdout);
    getchar();
    return dpu_free(set);
}
"""


def children(parent: int) -> list[int]:
    processes = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[1]) == parent:
            processes.append(int(status.parent.name))
    return processes


def own_kib(process: int) -> int:
    """Return the memory of a process that it shares with no file."""
    resident, shared = map(int, Path(f"/proc/{process}/statm").read_text().split()[1:3])
    return (resident - shared) * 4


def test_a_dpus_process_keeps_little_memory_for_itself(tmp_path: Path) -> None:
    (tmp_path / "host.c").write_text(HOST % DPUS)
    device = ["dpu-upmem-dpurte-clang", "-O2", "-DNR_TASKLETS=16", "-DFORM=VA", str(FOLDER / "forms/device.c")]
    subprocess.run([*device, "-o", "program"], cwd=tmp_path, check=True)
    flags = subprocess.run(["dpu-pkg-config", "--cflags", "--libs", "dpu"], capture_output=True, text=True, check=True)
    subprocess.run(["cc", "host.c", "-o", "host", *flags.stdout.split()], cwd=tmp_path, check=True)
    with subprocess.Popen(["./host"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "launched\n"
        (server,) = children(host.pid)
        own = [own_kib(process) for process in children(server)]
        host.communicate("\n")
    assert host.returncode == 0
    assert len(own) == DPUS
    assert max(own) < MOST, own
