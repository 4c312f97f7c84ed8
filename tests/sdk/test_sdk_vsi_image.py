"""The vsi image with a vendor's SDK: a made-up one with our reference, named by the variables, and kernels.

The reference has links to the image's libraries. The made-up SDK has its own libraries instead, as a vendor's SDK does:
a copy of the loader, and a driver that passes calls on to the image's PoCL. A copy of PoCL would fail: if PoCL itself
is loaded, too, both use the same LLVM, which ends the process.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import elves
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
from toolchains.system.errors import SdkError

pytestmark = pytest.mark.docker

# The packages that the reference SDK's links point into.
_PACKAGES = ("ocl-icd-libopencl1", "libpocl2t64")


@pytest.fixture(scope="module")
def environ(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the variables of VeriSilicon's README, with the compiler and the bridge outside the SDK's folder."""
    store = Store(paths.cache(), allow_drift=request.config.getoption("--allow-drift"))
    target = lock.load().targets["vsi"]
    assert target.builder is not None
    used = native.fetch_if_needed(["vsi-reference-sdk"], target.builder, store)
    part = native.part("vsi-reference-sdk", used, store=store, engine=host.ensure_engine())
    work = tmp_path_factory.mktemp("vsi")
    wanted = [deb for deb in target.debs if deb.name in _PACKAGES]
    for deb in store.fetch(wanted, suite=target.suite, python=target.python):
        if deb.name in _PACKAGES:
            subprocess.run(["dpkg-deb", "--extract", store.path(deb), work / "system"], check=True)
    with tarfile.open(part.path) as tar:
        tar.extractall(work / "sdk", filter="fully_trusted")
    system = work / "system/usr/lib/x86_64-linux-gnu"
    for link in (path for path in (work / "sdk").rglob("*") if path.is_symlink()):
        link.unlink()
        if link.name.startswith("libOpenCL"):
            shutil.copy(system / "libOpenCL.so.1", link)
    calls = {
        "clGetExtensionFunctionAddress": "POclGetExtensionFunctionAddress",
        "clIcdGetPlatformIDsKHR": "POclIcdGetPlatformIDsKHR",
    }
    elves.make(work / "sdk/drivers/libvsi.so", relays=calls, against=[system / "libpocl.so.2"], soname="libvsi.so")
    compiler = (work / "sdk/bin/zen-compiler").rename(work / "zen-compiler-2.0")
    bridge = (work / "sdk/lib/libZenTCBridge.so").rename(work / "libZenTCBridge.so")
    places = {"VSI_SDK_DIR": work / "sdk", "VSI_ZEN_COMPILER_PATH": compiler, "VSI_ZEN_TC_BRIDGE_PATH": bridge}
    return {name: str(path) for name, path in places.items()}


@pytest.fixture(scope="module")
def made(
    request: pytest.FixtureRequest, environ: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, target_image.Image]]:
    """Yield the image with the SDK."""
    drift = request.config.getoption("--allow-drift")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "BUILD", tmp_path_factory.mktemp("build"))
        for name, value in environ.items():
            patch.setenv(name, value)
        engine, found = ensure.ensure_image(Request.read("vsi", sdk="", allow_drift=drift))
    yield engine, found
    sdk_images.remove(engine, found)


def test_it_is_labelled_as_not_for_pushing_and_never_called_vsi(made: tuple[Engine, target_image.Image]) -> None:
    assert len(sdk_images.check_labels(*made, name="vsi-sdk", sdk="vsi")["sdk-sha256"]) == 64


def test_variables_name_the_same_inside(made: tuple[Engine, target_image.Image], environ: Mapping[str, str]) -> None:
    engine, found = made
    with engine.container(found.name) as container:
        for name, place in environ.items():
            inside = container.call(["sh", "-c", f'echo "${name}"']).strip()
            assert inside.startswith("/opt/vsi-sdk")
            if name != "VSI_SDK_DIR":
                sums = container.call(["sha256sum", inside]).split()[0]
                assert sums == subprocess.run(["sha256sum", place], capture_output=True, text=True).stdout.split()[0]


def test_triton_kernels_run_with_it(made: tuple[Engine, target_image.Image]) -> None:
    sdk_images.check_kernel(*made)


def test_its_driver_is_the_one_that_is_used(made: tuple[Engine, target_image.Image]) -> None:
    engine, found = made
    script = (
        "from triton_vsi_backend import devices; devices.choose_device();"
        "print(*{line.split()[-1] for line in open('/proc/self/maps') if 'libvsi.so' in line})"
    )
    with engine.container(found.name) as container:
        assert container.call(["python", "-c", script]).split() == ["/opt/vsi-sdk/drivers/libvsi.so"]


def test_a_folder_without_the_compiler_is_refused_before_anything_is_made(
    environ: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(host, "ensure_engine", lambda: pytest.fail("the engine was asked"))
    with pytest.raises(SdkError) as caught:
        ensure.ensure_image(Request.read("vsi", sdk=environ["VSI_SDK_DIR"]))
    assert caught.value.why.splitlines() == ["it has no bin/zen-compiler", "it has no lib/libZenTCBridge.so"]
