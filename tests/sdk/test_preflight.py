"""The messages about a vendor's SDK before anything is built with it: what is missing, and what would not run."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import elves
import pytest
from elves import Runtime

from toolchains.archives.prefix import PrefixEntry
from toolchains.config.vendors import VendorSdk
from toolchains.fetch.store import Store
from toolchains.sdk import preflight
from toolchains.sdk.elf import DamagedElfError
from toolchains.sdk.elf import read as read_elf
from toolchains.sdk.libraries import Provided, highest
from toolchains.system.errors import OfflineError

HOME = "/opt/vsi-sdk"
# A text means a link.
Files = dict[str, bytes | str]
# Makes the content of an ELF file; see elves.make.
Elf = Callable[..., bytes]


def entries(files: Mapping[str, bytes | str], *, plain: Sequence[str] = ()) -> dict[str, PrefixEntry]:
    """Return an SDK of these files. All of them are executable, except the plain ones."""

    def entry(name: str, content: bytes | str) -> PrefixEntry:
        if isinstance(content, str):
            return PrefixEntry(io.BytesIO, link=content)
        return PrefixEntry(partial(io.BytesIO, content), len(content), name not in plain)

    return {name: entry(name, content) for name, content in files.items()}


@pytest.fixture(scope="module")
def elf(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Elf:
    """Return a maker of ELF files. They need the made-up suite's libraries, by soname, or others given as bytes."""

    def make(
        defines: Mapping[str, str] | None = None,
        *,
        needs: Sequence[str] = (),
        others: Mapping[str, bytes] | None = None,
        **options: object,
    ) -> bytes:
        folder = tmp_path_factory.mktemp("elf")
        against = [runtime.libraries[name] for name in needs]
        for name, content in (others or {}).items():
            (folder / name).write_bytes(content)
            against.append(folder / name)
        return elves.make(folder / "made", defines, against=against, **options).read_bytes()  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="module")
def whole(elf: Elf) -> Files:
    """Return an SDK without a fault."""
    return {
        "include/CL/cl.h": b"/* */",
        "drivers/libOpenCL.so.1": elf({"clGetPlatformIDs": ""}, uses=["puts"], needs=["libc.so.6"]),
        "lib/libOpenCL.so": "../drivers/libOpenCL.so.1",
        "lib/libZenTCBridge.so": elf(uses=["cxx", "abi"], needs=["libstdc++.so.6"]),
        "bin/zen-compiler": elf(uses=["newer"], needs=["libc.so.6", "libz.so.1"], loader=elves.LOADER),
    }


@pytest.fixture(scope="module")
def provided(runtime: Runtime) -> Provided:
    return Provided(runtime.target("vsi"), runtime.store)


@pytest.fixture
def check(provided: Provided) -> Callable[..., list[str]]:
    """Return a function that gives the texts of findings about an SDK: fatal ones, or the others with fatal=False."""

    def run(files: Mapping[str, bytes | str], *, fatal: bool = True, plain: Sequence[str] = ()) -> list[str]:
        found = preflight.check_sdk(VendorSdk.read("vsi"), entries(files, plain=plain), HOME, provided, "3.13")
        return [str(finding) for finding in found if finding.fatal == fatal]

    return run


Check = Callable[..., list[str]]


def test_complete_sdk_has_no_findings(check: Check, whole: Files) -> None:
    assert check(whole) == check(whole, fatal=False) == []


@pytest.mark.parametrize("name", ["include/CL/cl.h", "lib/libOpenCL.so", "bin/zen-compiler", "lib/libZenTCBridge.so"])
def test_a_file_that_is_missing_is_named(check: Check, whole: Files, name: str) -> None:
    assert check({other: content for other, content in whole.items() if other != name}) == [f"it has no {name}"]


@pytest.mark.parametrize("place", ["/opt/vsi/libOpenCL.so.1", "/usr/lib/x86_64-linux-gnu/libOpenCL.so.9", "../../x"])
def test_a_link_that_leads_out_of_it_is_a_missing_file(check: Check, whole: Files, place: str) -> None:
    (said,) = check({**whole, "lib/libOpenCL.so": place})
    assert said.startswith(f"it has no lib/libOpenCL.so, only a link to {place}")


def test_everything_is_said_at_once(check: Check, whole: Files, elf: Elf) -> None:
    files = {**whole, "bin/zen-compiler": elves.for_aarch64(whole["bin/zen-compiler"])}  # type: ignore[arg-type]
    files["lib/libZenTCBridge.so"] = elf(uses=["last"], others={"libc.so.6": newer(elf)})
    del files["include/CL/cl.h"]
    assert [text.partition(",")[0].partition(";")[0] for text in check(files)] == [
        "it has no include/CL/cl.h",
        "bin/zen-compiler is for AArch64 with 64 bits",
        "lib/libZenTCBridge.so needs GLIBC_2.99 of libc.so.6",
    ]


@pytest.mark.parametrize("name", ["bin/zen-compiler", "lib/libZenTCBridge.so", "drivers/libOpenCL.so.1"])
def test_another_machine_and_another_system_are_named(check: Check, whole: Files, name: str) -> None:
    content = whole[name]
    assert isinstance(content, bytes)
    assert check({**whole, name: elves.for_aarch64(content)}) == [
        f"{name} is for AArch64 with 64 bits; this image is x86-64"
    ]
    assert check({**whole, name: elves.for_freebsd(content)}) == [
        f"{name} is for another system than Linux: its OS ABI is FREEBSD"
    ]


def test_only_libraries_and_programs_must_be_for_this_machine(check: Check, whole: Files, elf: Elf) -> None:
    assert check({**whole, "drivers/libGAL.so": elves.for_aarch64(elf())}) == [
        "drivers/libGAL.so is for AArch64 with 64 bits; this image is x86-64"
    ]
    foreign = elves.for_aarch64(elf())
    # Byte 16 is the type: 1 is a relocatable object, such as a kernel module.
    relocatable = foreign[:16] + b"\1" + foreign[17:]
    assert check({**whole, "firmware/npu.elf": foreign, "drivers/galcore.ko": relocatable}) == []


def newer(elf: Elf) -> bytes:
    """Return a glibc that is newer than the suite's."""
    return elf({"puts": "GLIBC_2.2.5", "next": "GLIBC_2.98", "last": "GLIBC_2.99"}, soname="libc.so.6")


def test_a_glibc_that_is_too_new_is_named_with_the_one_that_there_is(check: Check, whole: Files, elf: Elf) -> None:
    program = elf(uses=["puts", "next", "last"], others={"libc.so.6": newer(elf)}, loader=elves.LOADER)
    assert check({**whole, "bin/zen-compiler": program}) == [
        "bin/zen-compiler needs GLIBC_2.99 of libc.so.6; "
        "this image has up to GLIBC_2.41 (trixie: libc6 2.41-1, libstdc++6 14.2.0-1)"
    ]
    # A version that a program can do without is not missed.
    program = elf(uses=["last"], others={"libc.so.6": newer(elf)}, loader=elves.LOADER)
    assert len(check({**whole, "bin/zen-compiler": program})) == 1
    assert check({**whole, "bin/zen-compiler": elves.with_weak_need(program, "GLIBC_2.99")}) == []


def newer_cxx(elf: Elf) -> bytes:
    """Return a libstdc++ that is newer than the suite's."""
    return elf({"cxx": "GLIBCXX_3.4.33", "future": "GLIBCXX_3.4.99", "throw": "CXXABI_1.9"}, soname="libstdc++.so.6")


def test_a_libstdcxx_that_is_too_new_is_named_by_each_of_its_names(check: Check, whole: Files, elf: Elf) -> None:
    bridge = elf(uses=["cxx", "future", "throw"], others={"libstdc++.so.6": newer_cxx(elf)})
    abi, cxx = check({**whole, "lib/libZenTCBridge.so": bridge})
    assert "needs CXXABI_1.9 of libstdc++.so.6; this image has up to CXXABI_1.3 " in abi
    assert "needs GLIBCXX_3.4.99 of libstdc++.so.6; this image has up to GLIBCXX_3.4.33 " in cxx


def test_libraries_of_an_sdk_must_be_found_and_define_the_versions(check: Check, whole: Files, elf: Elf) -> None:
    own = {"libstdc++.so.6": newer_cxx(elf)}
    files = {**whole, "lib/libstdc++.so.6": own["libstdc++.so.6"]}
    finds = elf(uses=["future"], others=own, loader=elves.LOADER, search="/nowhere:$ORIGIN/../lib")
    assert check({**files, "bin/zen-compiler": finds}) == []
    absolute = elf(uses=["future"], others=own, loader=elves.LOADER, search=f"{HOME}/lib")
    assert check({**files, "bin/zen-compiler": absolute}) == []
    misses = elf(uses=["future"], others=own, loader=elves.LOADER)
    (said,) = check({**files, "bin/zen-compiler": misses})
    assert "bin/zen-compiler needs GLIBCXX_3.4.99" in said
    program = elf(
        uses=["run"], others={"libzen.so": elf({"run": "ZEN_2"}, soname="libzen.so")}, search="$ORIGIN/../lib"
    )
    assert check({**whole, "bin/zen-compiler": program, "lib/libzen.so": elf({"run": "ZEN_1"})}) == [
        "bin/zen-compiler needs ZEN_2 of libzen.so, which the SDK's lib/libzen.so does not define"
    ]


def test_a_library_that_nobody_has_is_named(check: Check, whole: Files, elf: Elf) -> None:
    program = elf(others={"libtinfo.so.5": elf(soname="libtinfo.so.5")}, loader=elves.LOADER)
    assert check({**whole, "bin/zen-compiler": program}) == [
        "bin/zen-compiler needs libtinfo.so.5, which neither the SDK nor this image has"
    ]
    # A library of the SDK needs it.
    gal = elf(others={"libdrm.so.2": elf(soname="libdrm.so.2")}, soname="libGAL.so")
    driver = elf({"clGetPlatformIDs": ""}, others={"libGAL.so": gal})
    assert check({**whole, "drivers/libOpenCL.so.1": driver, "drivers/libGAL.so": gal}) == [
        "drivers/libGAL.so needs libdrm.so.2, which neither the SDK nor this image has"
    ]
    # The soname of a library that is there has its version before the suffix.
    program = elf(others={"libbar-1.5.so": elf(soname="libbar-1.5.so")}, loader=elves.LOADER)
    assert check({**whole, "bin/zen-compiler": program}) == []


def test_remarks_are_no_faults(check: Check, whole: Files, elf: Elf) -> None:
    files = {**whole, "bin/viewer": elf(others={"libgtk.so.3": elf(soname="libgtk.so.3")}, loader=elves.LOADER)}
    assert check(files) == []
    assert check(files, fatal=False) == ["bin/viewer needs libgtk.so.3, which neither the SDK nor this image has"]
    zen = elf(soname="libzen.so")
    files = {**whole, "lib/libzen.so": zen, "bin/zen-compiler": elf(others={"libzen.so": zen}, loader=elves.LOADER)}
    assert check(files) == []
    assert check(files, fatal=False) == [
        "bin/zen-compiler needs libzen.so, which is at lib/libzen.so, "
        "where the loader does not look (/opt/vsi-sdk/drivers)"
    ]
    files = {**whole, "lib/libOpenCL.so": "libz", "lib/libz": "/usr/lib/x86_64-linux-gnu/libz.so.1"}
    files["drivers/libOpenCL.so.1"] = "/lib/x86_64-linux-gnu/libz.so.1"
    assert check(files) == []
    assert check(files, fatal=False) == [
        "drivers/libOpenCL.so.1 is a link to the image's own libz.so.1",
        "lib/libOpenCL.so is a link to the image's own libz.so.1",
    ]


def test_compiler_without_a_loader_or_the_right_to_execute_is_named(check: Check, whole: Files, elf: Elf) -> None:
    program = elf(needs=["libc.so.6"], loader="/lib/ld-musl-x86_64.so.1")
    assert check({**whole, "bin/zen-compiler": program}) == [
        "bin/zen-compiler asks for the loader /lib/ld-musl-x86_64.so.1, which this image does not have"
    ]
    assert check(whole, plain=["bin/zen-compiler"]) == [
        "bin/zen-compiler may not be executed: its mode lacks that right"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "#!/usr/bin/env python3",
        "#!/bin/sh -e",
        "#! /usr/bin/env -S python3 -I",
        "#!/usr/bin/python3.13",
        "#!/usr/bin/env A=1 bash",
        f"#!{HOME}/bin/python",
    ],
)
def test_a_compiler_may_be_a_script(check: Check, whole: Files, elf: Elf, line: str) -> None:
    files = {**whole, "bin/zen-compiler": f"{line}\nPK".encode(), "bin/python": elf(loader=elves.LOADER)}
    assert check(files) == []


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("#!/usr/bin/env ruby", "ruby"),
        ("#!/usr/bin/python3.10", "/usr/bin/python3.10"),
        ("#!/usr/bin/env python3.10", "python3.10"),
        (f"#!{HOME}/bin/python", f"{HOME}/bin/python"),
        ("#!/home/vendor/bin/python3", "/home/vendor/bin/python3"),
        ("#!", "nothing"),
    ],
)
def test_a_script_for_what_is_not_there_is_named(check: Check, whole: Files, line: str, program: str) -> None:
    (said,) = check({**whole, "bin/zen-compiler": f"{line}\n".encode()})
    assert said.startswith(f"bin/zen-compiler is a script for {program}")


@pytest.mark.parametrize("content", [b"", b"MZ", b"\xcf\xfa\xed\xfe"])
def test_file_that_is_no_program_or_library_is_named(check: Check, whole: Files, content: bytes) -> None:
    assert check({**whole, "bin/zen-compiler": content, "lib/libZenTCBridge.so": content}) == [
        "bin/zen-compiler is neither an ELF file nor a script",
        "lib/libZenTCBridge.so is not an ELF file",
    ]


@pytest.mark.parametrize("length", [4, 20, 64, 200])
def test_a_damaged_file_is_named(check: Check, whole: Files, length: int) -> None:
    content = whole["lib/libZenTCBridge.so"]
    assert isinstance(content, bytes)
    found = check({**whole, "lib/libZenTCBridge.so": content[:length]})
    assert [text.partition(":")[0] for text in found] == ["lib/libZenTCBridge.so is a damaged ELF file"]


def test_without_a_library_that_is_a_driver_there_is_none(check: Check, whole: Files, elf: Elf) -> None:
    (said,) = check({**whole, "drivers/libOpenCL.so.1": elf({"clOther": ""})})
    assert said.startswith("it has no library in drivers/ that defines clGetPlatformIDs or ")
    # A library that only calls the function does not define it.
    (said,) = check({**whole, "drivers/libOpenCL.so.1": elf(uses=["clGetPlatformIDs"])})
    assert said.startswith("it has no library in drivers/ that defines")


@pytest.mark.parametrize("function", ["clIcdGetPlatformIDsKHR", "clGetExtensionFunctionAddress"])
def test_opencl_icd_driver_counts_as_a_driver(check: Check, whole: Files, elf: Elf, function: str) -> None:
    files = {**whole, "lib/libOpenCL.so": elf({"clGetPlatformIDs": ""}), "drivers/libvsi.so": elf({function: ""})}
    del files["drivers/libOpenCL.so.1"]
    assert check(files) == []


def test_links_are_followed_as_the_system_does() -> None:
    found = entries({"a/b": b"", "c": "a", "d/e": "../c/b", "loop": "loop", "one": "two", "two": "one", "out": "../a"})
    assert preflight.resolve_links(found, "c/b") == preflight.resolve_links(found, "d/e") == "a/b"
    for name in ("loop", "loop/x", "one", "out", "out/b", "nothing", "c", "/a/b"):
        assert preflight.resolve_links(found, name) is None


def test_other_packages_are_fetched_only_for_a_library_that_is_asked_for(runtime: Runtime, tmp_path: Path) -> None:
    store = Store(tmp_path, offline=True)
    for deb in runtime.debs[:2]:
        copy = tmp_path / deb.filename
        copy.write_bytes(runtime.store.path(deb).read_bytes())
        store.adopt(copy, deb)
    provided = Provided(runtime.target("vsi"), store)
    assert provided.has("libc.so.6")
    assert provided.versions("libstdc++.so.6") == frozenset(("GLIBCXX_3.4.33", "CXXABI_1.3"))
    with pytest.raises(OfflineError, match="1 of 3 files"):
        provided.has("libz.so.1")


def test_an_image_without_libstdcxx_has_none(runtime: Runtime) -> None:
    target = runtime.target("vsi")
    provided = Provided(replace(target, debs=(target.debs[0], target.debs[2])), runtime.store)
    assert not provided.has("libstdc++.so.6")


def test_versions_are_compared_as_numbers() -> None:
    versions = frozenset({"GLIBC_2.9", "GLIBC_2.10", "GLIBC_2.2.5", "GLIBC_PRIVATE", "GLIBCXX_3.4"})
    assert highest(versions, "GLIBC_2.99") == "GLIBC_2.10"
    assert highest(versions, "CXXABI_1.3") == ""


def test_a_table_without_an_end_is_damage(tmp_path: Path) -> None:
    data = bytearray(elves.make(tmp_path / "lib", {"f": "V_1"}).read_bytes())
    (sections,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    headers = range(sections, sections + 64 * count, 64)
    (versions,) = (at for at in headers if struct.unpack_from("<I", data, at + 4) == (0x6FFFFFFD,))
    # 2^32 - 1 versions, each of which is followed by itself.
    struct.pack_into("<I", data, versions + 44, 0xFFFFFFFF)
    (first,) = struct.unpack_from("<Q", data, versions + 24)
    struct.pack_into("<I", data, first + 16, 0)
    with pytest.raises(DamagedElfError, match="its tables have no end"):
        read_elf(io.BytesIO(data))
