"""Files that are written for linux/amd64 are rewritten for another platform, whose images have names of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolchains.artifacts import linked
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Inputs
from toolchains.config import components, inventory, platforms
from toolchains.engine import client, host
from toolchains.fetch.pip import _marker_values
from toolchains.fetch.store import Store
from toolchains.lockfile import lock
from toolchains.lockfile.lock import AMD64
from toolchains.resolve import resolution
from toolchains.system import paths
from toolchains.system.errors import FetchError, MissingToolError, PinError, UsageError
from toolchains.system.terminal import make_console
from toolchains.verbs import pin, target, verify

ARM64 = "linux/arm64"
# What is rewritten: patterns of pins, Dockerfiles, and sources of linked programs and native parts.
SOURCES = [
    *paths.PINS.glob("*.toml"),
    *paths.DOCKER.glob("*.Dockerfile"),
    *(path for path in paths.RECIPES.rglob("*") if path.is_file()),
    *paths.CMAKE.glob("*"),
]
NOTED = """\
enabled
interpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P
flags: POF
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this machine be an x86-64 one."""
    monkeypatch.setattr(platforms, "here", lambda: AMD64)


def test_each_rewritten_text_is_in_a_source_and_gone_after() -> None:
    texts = [path.read_text(encoding="utf-8") for path in SOURCES]
    arm64 = platforms.load(ARM64)
    for old in arm64.rewritten:
        assert any(old in text for text in texts), old
    assert not any("x86_64" in arm64.rewrite(path.read_text()) for path in paths.DOCKER.glob("*.Dockerfile"))


def test_patterns_of_a_pin_are_those_of_the_platform() -> None:
    plain, other = (components.target("spirv", platform=name) for name in (AMD64, ARM64))
    for pins, machine in ((plain, "x86_64"), (other, "aarch64")):
        patterns = [pattern for pin in pins.debs for pattern in (*pin.left_out, *pin.kept)]
        assert {"x86_64", "aarch64"} & {part for text in patterns for part in text.replace("-", "/").split("/")} == {
            machine
        }
    assert "/usr/share/pocl/kernel-*-GENERIC.bc" in [pattern for pin in other.debs for pattern in pin.kept]
    left_out = [pattern for program in other.linked for pattern in program.left_out]
    assert "/usr/lib/llvm-22/lib/libLLVMX86*" in left_out
    assert not any("LLVMAArch64" in pattern for pattern in left_out)


def test_each_target_is_made_for_a_platform_or_refused_with_a_reason() -> None:
    for name in platforms.names():
        platform = platforms.load(name)
        missing = {target for target in components.names() if not platform.has(target)}
        assert missing == platform.unavailable.keys()


def test_linux_amd64_has_no_trace_of_platforms() -> None:
    locked = lock.load().targets["spirv"]
    assert (locked.label, platforms.load(AMD64).identity) == ("spirv", {})
    assert not any("platform" in label for label in Inputs(locked, locked.tritons["3.9.0"]).labels)
    assert f'"platform": "{AMD64}"' not in paths.LOCK.read_text()


def test_the_digest_the_label_and_the_image_of_another_platform_name_it() -> None:
    locked = lock.load(platform=ARM64).targets["spirv"]
    inputs = Inputs(locked, locked.tritons["3.9.0"])
    assert locked.label == "spirv-arm64"
    assert inputs.repository == "triton-foundry/spirv-arm64"
    assert inputs.labels["org.triton-foundry.platform"] == ARM64
    same = lock.seal({"spirv": replace(locked, platform=AMD64, builder=None)}).targets["spirv"]
    assert same.digest != locked.digest


def test_every_locked_file_is_for_its_platform() -> None:
    for name, locked in lock.load_all().items():
        others = [platforms.load(other) for other in platforms.names() if other != name]
        for artifact in locked.artifacts():
            stem = artifact.filename.rpartition(".")[0]
            assert not any(stem.endswith((f"_{other.machine}", f"_{other.debian}")) for other in others), artifact


def test_saving_one_platform_keeps_the_others(tmp_path: Path) -> None:
    file = tmp_path / "lock.json"
    plain, other = lock.load(), lock.load(platform=ARM64)
    with pytest.raises(PinError, match="there is no lock of linux/amd64"):
        lock.save(other, file)
    lock.save(plain, file)
    with pytest.raises(PinError, match=r"(?s)nothing for linux/arm64.*pin --update --platform=linux/arm64"):
        lock.load(file, ARM64)
    lock.save(other, file)
    lock.save(plain, file)
    assert lock.load_all(file) == {AMD64: plain, ARM64: other}
    assert lock.everything(file).targets["spirv-arm64"] == other.targets["spirv"]
    file.write_text(file.read_text().replace('"platform": "linux/arm64"', '"platform": "linux/riscv64"', 1))
    with pytest.raises(PinError, match="of another platform"):
        lock.load(file)


def test_a_request_names_its_platform_and_another_target_keeps_it() -> None:
    request = Request.read("spirv", platform=ARM64)
    assert request.command("e2e") == "./foundry e2e spirv --platform=linux/arm64"
    assert (request.subject, request.named) == ("spirv-arm64", {"platform": ARM64})
    assert request.for_target("spirv-vulkan").target.label == "spirv-vulkan-arm64"
    assert Request.read("spirv").options == []


def test_a_target_that_is_not_made_for_a_platform_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"(?s)dpu is not made for linux/arm64.*x32.*--platform=linux/amd64"):
        Request.read("dpu", platform=ARM64)
    with pytest.raises(UsageError, match="there is no platform linux/arm; did you mean linux/arm64"):
        Request.read("spirv", platform="linux/arm")
    with pytest.raises(UsageError, match="nothing is built from source for linux/arm64"):
        Request.read("spirv", platform=ARM64, from_source="triton")


def test_an_arm64_machine_builds_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "here", lambda: ARM64)
    request = Request.read("spirv")
    assert (request.target.platform, request.options) == (ARM64, [])
    assert linked._tools(request.target.linked[0]) == ()
    assert platforms.strip(ARM64) == ("strip", "binutils")


def test_an_arm64_machine_shows_the_images_that_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "here", lambda: ARM64)
    monkeypatch.setattr(target, "_engine", lambda: None)
    images = {row.name: row.image for row in target.list_targets().targets}
    assert images["spirv"] and images["spirv"].name.startswith("triton-foundry/spirv-arm64:")
    assert images["dpu"] and images["dpu"].name.startswith("triton-foundry/dpu:")
    described = target.describe_target("spirv")
    assert all(image.name.startswith("triton-foundry/spirv-arm64:") for image in described.images)
    assert target.describe_target("dpu").images


def test_commands_name_a_platform_that_is_not_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [platforms.option(name) for name in (AMD64, ARM64)] == ["", f" --platform={ARM64}"]
    monkeypatch.setattr(platforms, "here", lambda: ARM64)
    assert [platforms.option(name) for name in (AMD64, ARM64)] == [f" --platform={AMD64}", ""]


class _NoImages:
    def image(self, name: str) -> None:
        return None


def test_an_image_that_is_not_there_is_built_by_the_named_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "connect", _NoImages)
    with pytest.raises(
        UsageError, match=r"(?s)no target, image or file.*\./foundry build spirv --platform=linux/arm64$"
    ):
        verify._image("spirv-arm64", Store(tmp_path), signed=False)


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let resolving give what is locked, and return the platforms whose locks are saved."""
    found: list[str] = []
    monkeypatch.setattr(lock, "save", lambda locked: found.append(locked.platform))
    monkeypatch.setattr(resolution, "resolve", lambda wanted, old, *_, **__: lock.load(platform=wanted.platform))
    return found


def test_an_archive_of_one_platform_that_does_not_answer_leaves_the_lock_as_it_was(
    saved: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(wanted: inventory.Pinned, *_: object, **__: object) -> lock.Lock:
        if wanted.platform == ARM64:
            raise FetchError("no answer")
        return lock.load()

    monkeypatch.setattr(resolution, "resolve", resolve)
    with pytest.raises(FetchError):
        pin.resolve(Store(tmp_path), make_console(), chosen=[AMD64, ARM64])
    assert saved == []


def test_a_lock_that_cannot_be_read_is_resolved_for_every_platform(
    saved: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unusable(*_: object, **__: object) -> lock.Lock:
        raise PinError("the digests in the lock do not match its content")

    monkeypatch.setattr(resolution, "resolve", lambda wanted, old, *_, **__: lock.seal({}, platform=wanted.platform))
    monkeypatch.setattr(lock, "load_all", unusable)
    monkeypatch.setattr(lock, "load", unusable)
    pin.pin(update=True, check=False, fetch=False, security=False, offline=True)
    assert saved == platforms.names()


def test_compiler_and_linker_are_this_machines_and_archives_the_platforms() -> None:
    program = lock.load(platform=ARM64).targets["spirv"].linked[0]
    tools = linked._tools(program)
    assert {"clang-18", "lld-18", "busybox-static"} <= {deb.name for deb in tools}
    assert not any(deb.name.endswith("-dev") for deb in tools)
    assert not any(deb.filename.endswith("_arm64.deb") for deb in tools)
    assert linked._tools(lock.load().targets["spirv"].linked[0]) == ()


def test_apt_and_pip_are_asked_for_the_platform(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.debs("trixie", ["trixie-backports"], ARM64)._root == tmp_path / "apt/trixie+trixie-backports.arm64"
    assert store.debs("trixie")._root == tmp_path / "apt/trixie"
    assert _marker_values("3.13", ARM64)["platform_machine"] == "aarch64"


def test_a_file_is_of_the_platform_in_its_name() -> None:
    assert platforms.of_file("triton-3.9.0-cp313-cp313-manylinux_2_28_aarch64.whl") == ARM64
    assert platforms.of_file("libc6_2.41-12_arm64.deb") == ARM64
    assert platforms.of_file("xdsl-0.74.0-py3-none-any.whl") == AMD64


@pytest.mark.parametrize(
    ("noted", "found"),
    [
        (NOTED, True),
        (NOTED.replace("POF", "PO"), False),
        (NOTED.replace("enabled", "disabled"), False),
        ("", False),
    ],
)
def test_an_emulator_counts_if_it_is_enabled_and_found_in_any_root(
    noted: str, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_BINFMT", tmp_path)
    assert host._emulator("aarch64") is None
    (tmp_path / "qemu-aarch64").write_text(noted)
    assert (host._emulator("aarch64") is not None) == found


def test_a_missing_emulator_is_told_with_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_BINFMT", tmp_path)
    monkeypatch.setattr(host, "_may_provide", lambda: False)
    with pytest.raises(MissingToolError, match=r"(?s)an emulator of aarch64.*apt-get install qemu-user-static"):
        host.ensure_emulation(ARM64)
    host.ensure_emulation(AMD64)
