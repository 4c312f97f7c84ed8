"""PoCL's recipe, with a made-up PoCL that installs as the real one does: what is packaged, and for which prefix.

The real one takes ten minutes on one processor; `./foundry upstream pocl` compiles it.
"""

from __future__ import annotations

import shutil
import tarfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from repositories import Repository
from tiny import empty_store

from toolchains.artifacts import native
from toolchains.config.projects import FolderPin, Profile, Upstream
from toolchains.engine.client import Engine
from toolchains.fromsource import build, tree
from toolchains.fromsource.build import Built, Wanted
from toolchains.images import layer
from toolchains.lockfile.lock import LockedTarget
from toolchains.system import paths
from toolchains.system.errors import CommandError

TOY = Path(__file__).parents[1] / "toys" / "pocl-source"
PREFIX = build.preset("pocl")["pocl"]["cacheVariables"]["CMAKE_INSTALL_PREFIX"]  # type: ignore[index]


@pytest.fixture
def made(
    compilers: tuple[Engine, LockedTarget], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Built]]:
    """Return a function that builds the made-up PoCL."""
    engine, builder = compilers
    repository = Repository(tmp_path / "pocl")
    shutil.copytree(TOY, repository.folder, dirs_exist_ok=True)
    repository.commit()
    monkeypatch.setattr(build, "CCACHE_VOLUME", f"foundry-test-ccache-{uuid.uuid4().hex[:8]}")
    volumes = {build.CCACHE_VOLUME}

    def make() -> Built:
        profile = Profile("toy", "6.0", FolderPin())
        described = tree.describe_tree("pocl", profile, None, folder=repository.folder)
        upstream = Upstream("pocl", "toy", {"toy": profile}, 0.01)
        want = Wanted(upstream, profile, described, None, repository.folder, builder)
        volumes.add(want.volume)
        return build.ensure_built(want, jobs=1, store=empty_store(tmp_path / "store"), engine=engine)

    yield make
    for volume in volumes:
        engine.remove_volume(volume)


@pytest.mark.docker
def test_the_part_has_what_runs_and_an_icd_file_which_leads_to_its_library_as_an_sdks_driver_does(
    made: Callable[[], Built], compilers: tuple[Engine, LockedTarget]
) -> None:
    built = made()
    with tarfile.open(built.path) as part:
        files = {member.name: member for member in part if not member.isdir()}
        icd = part.extractfile(files["etc/OpenCL/vendors/pocl.icd"])
        assert icd is not None
        library = icd.read().decode().removeprefix(f"{PREFIX}/")
    assert set(files) == {
        "etc/OpenCL/vendors/pocl.icd",
        "lib/libpocl.so.2",
        "lib/libpocl.so.2.13.0",
        "share/pocl/kernel.bc",
    }
    assert files[library].isfile()
    engine, builder = compilers
    # As in the images of vsi: Debian's PoCL is installed, and it is the driver of an SDK.
    lines = [
        f"FROM {native.recipe_builder_name(builder)}",
        "ENV VSI_SDK_DIR=/sdk",
        "RUN mkdir -p /etc/OpenCL/vendors /sdk/drivers && echo /debian >/etc/OpenCL/vendors/pocl.icd",
        "RUN ln -s /debian /sdk/drivers/libpocl.so.2",
        (paths.DOCKER / "from-source" / "pocl.Dockerfile").read_text(),
    ]
    find = 'readlink -e "$(cat /etc/OpenCL/vendors/pocl.icd)" /sdk/drivers/libpocl.so.2'
    with (
        layer.context("\n".join(lines).encode(), [], {"parts/pocl.tar": built.path}) as packed,
        engine.build(packed, arguments={}) as image,
        engine.container(image) as container,
    ):
        assert container.call(["sh", "-c", find]).split() == [f"{PREFIX}/lib/libpocl.so.2.13.0"] * 2


@pytest.mark.docker
def test_pocl_for_another_folder_fails(
    made: Callable[[], Built], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(paths.CMAKE, tmp_path / "cmake")
    monkeypatch.setattr(paths, "CMAKE", tmp_path / "cmake")
    file = tmp_path / "cmake" / "CMakePresets.json"
    file.write_text(file.read_text().replace(PREFIX, "/opt/other"))
    with pytest.raises(CommandError, match="nothing was installed below"):
        made()
