"""The dpu image with a vendor SDK: a made-up archive with UPMEM's layout and our emulator, and kernels."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sdk_images

from toolchains.artifacts import native
from toolchains.assembly import ensure, target_image
from toolchains.assembly.request import Request
from toolchains.engine import host
from toolchains.engine.client import Engine
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.system import paths

TOP = "upmem-2023.1.0-Linux-x86_64"
HOST = r"""
#include <dpu.h>
#include <stdio.h>
int main(void) {
    struct dpu_set_t set, dpu;
    int answer = 0;
    DPU_ASSERT(dpu_alloc(1, NULL, &set));
    DPU_ASSERT(dpu_load(set, "device", NULL));
    DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    DPU_FOREACH(set, dpu) { DPU_ASSERT(dpu_copy_from(dpu, "answer", 0, &answer, sizeof answer)); }
    printf("%d\n", answer);
    DPU_ASSERT(dpu_free(set));
    return 0;
}
"""
DEVICE = "#include <defs.h>\n__host int answer;\nint main(void) { if (me() == 0) answer = 42; return 0; }\n"

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the archive; the same bytes each time, so that its image is built only once."""
    store = Store(paths.cache(), allow_drift=request.config.getoption("--allow-drift"))
    locked = lock.load().targets["dpu"].builder
    assert locked is not None
    used = native.fetch_if_needed(["upmem-emulator"], locked, store)
    part = native.part("upmem-emulator", used, store=store, engine=host.ensure_engine())
    path = tmp_path_factory.mktemp("sdk") / f"{TOP}.tar.gz"
    with (
        tarfile.open(part.path) as emulator,
        gzip.GzipFile(path, "wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for entry in emulator:
            content = emulator.extractfile(entry) if entry.isreg() else None
            if entry.issym() and entry.linkname.startswith("/"):
                # A vendor's SDK has its own LLVM. This script replaces what the emulator takes from the image's LLVM.
                script = f'#!/bin/sh\nexec {entry.linkname} "$@"\n'.encode()
                content = io.BytesIO(script)
                entry.type, entry.linkname, entry.size, entry.mode = tarfile.REGTYPE, "", len(script), 0o755
            entry.name = f"{TOP}/{entry.name}"
            tar.addfile(entry, content)
    return path


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, archive: Path) -> Iterator[tuple[Engine, target_image.Image]]:
    """Yield the image with the SDK."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "BUILD", archive.parent)
        drift = request.config.getoption("--allow-drift")
        engine, found = ensure.ensure_image(Request.read("dpu", sdk=str(archive), allow_drift=drift))
    yield engine, found
    sdk_images.remove(engine, found)


def test_it_is_labelled_as_not_for_pushing_and_never_called_dpu(made: tuple[Engine, target_image.Image]) -> None:
    sdk_images.check_labels(*made, name="dpu-sdk", sdk="upmem 2023.1.0")


def test_the_sdk_lies_where_upmem_says_and_the_emulator_is_not_there(made: tuple[Engine, target_image.Image]) -> None:
    engine, found = made
    with engine.container(found.name) as container:
        listing = container.call(["sh", "-c", "ls -d /upmem-sdk*; readlink -f /upmem-sdk-2023.1.0; echo $UPMEM_HOME"])
        tools = container.call(["sh", "-c", "command -v dpu-upmem-dpurte-clang; dpu-pkg-config --libs dpu"])
    assert set(listing.split()) == {"/upmem-sdk-2023.1.0"}
    assert "/upmem-sdk-2023.1.0/bin/dpu-upmem-dpurte-clang" in tools
    assert "/upmem-sdk-emulator" not in tools


def test_c_programs_are_built_and_run_with_it_as_upmem_documents(made: tuple[Engine, target_image.Image]) -> None:
    engine, found = made
    steps = (
        "cd /tmp && dpu-upmem-dpurte-clang -O2 -DNR_TASKLETS=16 device.c -o device && "
        "cc -O2 -std=c11 -Wall -Wextra -Werror -o host host.c `dpu-pkg-config --cflags --libs dpu` && ./host"
    )
    with engine.container(found.name) as container:
        for name, text in (("host.c", HOST), ("device.c", DEVICE)):
            container.call(["sh", "-c", 'printf %s "$1" > "/tmp/$0"', name, text])
        assert container.call(["sh", "-c", steps]) == "42\n"


def test_triton_kernels_run_with_it(made: tuple[Engine, target_image.Image]) -> None:
    sdk_images.check_kernel(*made)
