"""Bills of materials: they validate, are the same each time, and say of packages what the packages' own files say."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import archive_files
import made_up_triton
import pytest
from archive_files import artifact
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from toolchains.artifacts import plugin_wheels, triton_wheel
from toolchains.assembly import ensure
from toolchains.assembly.request import Request
from toolchains.contents import documents, licences, packages
from toolchains.contents.component import Component, Licence
from toolchains.contents.packages import DebianPackages
from toolchains.engine.container import Container
from toolchains.fetch.store import Store
from toolchains.fromsource import build
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Artifact
from toolchains.patching.series import Series
from toolchains.system import paths
from toolchains.system.errors import CheckError, PinError, UnsafeArchiveError, UsageError
from toolchains.verbs import sbom

HEADER = "Format: copyright-format/1.0\n"
SEVERAL = f"""{HEADER}Upstream-Name: one

Files: *
Copyright: somebody
License: GPL-2+ or Artistic, and Expat

Files: b*
Copyright: somebody else
License: BSD-3-clause and GPL-2 with Linux-syscall-note exception

Files: debian/*
Copyright: the maintainer
License: own-terms

License: own-terms
 Do as you like.
 .
 And say so.
"""


def deb(
    store: Store, tmp_path: Path, name: str, copyright: bytes | None = None, *, shares: str = "", source: str = ""
) -> Artifact:
    """Put a package into the store, with a copyright file, or a link to that of another package."""
    doc = f"usr/share/doc/{name}"
    files: dict[str, bytes | str] = {doc: f"-> {shares}"} if shares else {}
    if copyright is not None:
        files = {f"{doc}/changelog": b"nothing", f"{doc}/copyright": copyright}
    file, made = archive_files.deb(tmp_path, name, "1:2.0-1", files, **({"Source": source} if source else {}))
    store.adopt(file, made)
    return made


def reviewed(monkeypatch: pytest.MonkeyPatch, file: Path, text: str) -> None:
    """Replace the file of reviewed licences."""
    file.write_text(text)
    read = licences.reviews.__wrapped__
    monkeypatch.setattr(licences, "reviews", lambda: read(file))


def entry(table: str, licence: str, content: bytes, file: str = "copyright") -> str:
    return f'[{table}]\nlicence = "{licence}"\nfile = "{file}"\nsha256 = ["{hashlib.sha256(content).hexdigest()}"]\n'


@pytest.fixture
def image(store: Store, tmp_path: Path, wheel: Path) -> Component:
    """Return a made-up image with all that a component can have."""
    one = deb(store, tmp_path, "one", SEVERAL.encode(), source="first (1.5-2)")
    debs = DebianPackages("trixie", (one,), store).components([one, deb(store, tmp_path, "odd", b"no header")])
    triton = triton_wheel.component(made_up_triton.locked(wheel), wheel, ())
    native = Component("native", "part", "1.0", Licence("MIT"), tools=debs)
    return Component("image", "an image", "0" * 16, parts=(*debs, triton, native), tools=(debs[0],))


def read(document: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document)
    return found


def component(document: bytes, name: str) -> dict[str, Any]:
    (found,) = [each for each in read(document)["components"] if each["name"] == name]
    return dict(found)


def assert_valid(subject: Component, folder: Path) -> None:
    """Check both documents about a component with the validators of CycloneDX and SPDX."""
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str(documents.write_cyclonedx(subject).decode())
    assert found is None
    file = folder / "document.spdx.json"
    file.write_bytes(documents.write_spdx(subject))
    messages = [each.validation_message for each in validate_full_spdx_document(parse_file(str(file)))]
    assert messages == []


def test_both_documents_are_valid_and_the_same_each_time(image: Component, tmp_path: Path) -> None:
    assert_valid(image, tmp_path)
    for write in (documents.write_cyclonedx, documents.write_spdx):
        assert write(image) == write(replace(image))
        assert write(image) != write(replace(image, version="1" * 16))
    one, other = (read(documents.write_cyclonedx(each)) for each in (image, replace(image, version="1" * 16)))
    assert one["serialNumber"] != other["serialNumber"]
    assert one["metadata"]["timestamp"].startswith("2026-01-01T00:00:00")


def test_a_document_leads_from_the_image_to_all_that_is_in_it(image: Component) -> None:
    document = read(documents.write_cyclonedx(image))
    edges = {each["ref"]: set(each.get("dependsOn", ())) for each in document["dependencies"]}
    reached, pending = set(), {document["metadata"]["component"]["bom-ref"]}
    while pending:
        reached |= pending
        pending = set().union(*(edges[each] for each in pending)) - reached
    assert {each["bom-ref"] for each in document["components"]} < reached
    assert {"one", "odd", "triton", "llvm-project", "part"} == {each["name"] for each in document["components"]}
    found = read(documents.write_spdx(image))
    names = {each["SPDXID"]: each["name"] for each in found["packages"]}
    kinds = ("DESCRIBES", "CONTAINS")
    pairs = {
        (each["relationshipType"], names.get(each["spdxElementId"]), names[each["relatedSpdxElement"]])
        for each in found["relationships"]
        if each["relationshipType"] in kinds
    }
    contained = {("CONTAINS", "an image", name) for name in ("one", "odd", "triton", "part")}
    assert pairs == {("DESCRIBES", None, "an image"), ("CONTAINS", "triton", "llvm-project"), *contained}


def test_a_package_has_its_url_hash_and_source_package(image: Component) -> None:
    found = component(documents.write_cyclonedx(image), "one")
    assert found["purl"] == "pkg:deb/debian/one@1:2.0-1?arch=amd64&distro=trixie"
    assert found["hashes"] == [{"alg": "SHA-256", "content": image.parts[0].sha256}]
    (source,) = found["pedigree"]["ancestors"]
    assert source["purl"] == "pkg:deb/debian/first@1.5-2?arch=source&distro=trixie"


def test_triton_has_its_patches_with_their_digests_and_what_it_was_made_from(image: Component, wheel: Path) -> None:
    found = component(documents.write_cyclonedx(image), "triton")
    assert found["version"] == "1.0+foundry.1"
    (official,) = found["pedigree"]["ancestors"]
    assert official["purl"] == "pkg:pypi/triton@1.0"
    assert official["hashes"][0]["content"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    (patch,) = found["pedigree"]["patches"]
    (file,) = (paths.PATCHES / "triton/1.0").glob("*.patch")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert patch["diff"]["url"] == f"patches/triton/1.0/{file.name}#sha256={digest}"
    commits = component(documents.write_cyclonedx(image), "llvm-project")["pedigree"]["commits"]
    assert commits == [{"uid": made_up_triton.LLVM}]
    document = read(documents.write_spdx(image))
    (patched,) = [each for each in document["packages"] if each["name"].endswith(file.name)]
    assert patched["checksums"] == [{"algorithm": "SHA256", "checksumValue": digest}]
    assert "PATCH_FOR" in {each["relationshipType"] for each in document["relationships"]}


def assert_documents(made: Path, name: str) -> dict[str, Any]:
    """Check that a wheel's documents are valid and in RECORD; return the one of CycloneDX."""
    with zipfile.ZipFile(made) as archive:
        (record,) = [each for each in archive.namelist() if each.endswith(".dist-info/RECORD")]
        rows = {row[0]: row[1] for row in csv.reader(io.StringIO(archive.read(record).decode()))}
        assert set(rows) == set(archive.namelist())
        info = record.partition("/")[0]
        for ending in (".cdx.json", ".spdx.json"):
            content = archive.read(f"{info}/sboms/{name}{ending}")
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert rows[f"{info}/sboms/{name}{ending}"] == f"sha256={digest}"
        document = archive.read(f"{info}/sboms/{name}.cdx.json").decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(document) is None
    return read(document.encode())


def test_the_repacked_triton_has_documents_that_record_lists(wheel: Path, store: Store) -> None:
    made = triton_wheel.repack(made_up_triton.locked(wheel), wheel, backends=(), store=store)
    document = assert_documents(made, "triton")
    assert document["metadata"]["component"]["pedigree"]["patches"]


@pytest.mark.slow
def test_a_plugins_wheel_has_documents_and_is_the_same_each_time(tmp_path: Path) -> None:
    one, two = (plugin_wheels.wheel("spirv", Store(tmp_path / name)) for name in ("one", "two"))
    assert one.path.read_bytes() == two.path.read_bytes()
    document = assert_documents(one.path, "triton-spirv-backend")
    assert document["metadata"]["component"]["version"] == plugin_wheels.version()
    assert [each["name"] for each in document["components"]] == ["hatchling"]
    assert document["components"][0]["scope"] == "excluded"


@pytest.mark.parametrize(
    ("copyright", "expression"),
    [
        (
            SEVERAL.encode(),
            "(GPL-2.0-or-later OR LicenseRef-src-Artistic) AND BSD-3-Clause AND "
            "GPL-2.0-only WITH Linux-syscall-note AND LicenseRef-src-own-terms AND MIT",
        ),
        # In Latin-1, with lines that are in no field, and carriage returns.
        (f"{HEADER}odd line\r\n\r\nFiles: *\r\nLicense: ISC\r\nAuthor: Ren\xe9\r\n".encode("latin-1"), "ISC"),
        (f"{HEADER}\nFiles: *\nLicense: LGPL-2.1\n\nFiles: x\nLicense: LGPL-3.0+\n".encode(), ""),
        (f"{HEADER}\nFiles: *\nLicense: GPL-2+ and/or Expat\n".encode(), "LicenseRef-src-GPL-2-or-later-and-or-Expat"),
        (f"{HEADER}\nFiles: *\nLicense: GPL\n".encode(), "LicenseRef-src-GPL"),
    ],
)
def test_a_machine_readable_copyright_file_gives_all_licences_that_it_names(copyright: bytes, expression: str) -> None:
    found = licences.of_debian_package("src", copyright)
    assert found.expression == (expression or "LGPL-2.1-only AND LGPL-3.0-or-later")
    assert not found.reviewed
    texts = {reference: text for reference, _, text in found.texts}
    assert texts.get("LicenseRef-src-own-terms", "Do as you like.\n.\nAnd say so.") == "Do as you like.\n.\nAnd say so."


@pytest.mark.parametrize(
    "copyright",
    [
        b"",
        b"\xff\xfe\0",
        b"This is free software.\nLicense: MIT\n",
        HEADER.encode(),
        f"{HEADER}\nFiles: *\n".encode(),
        # One licence has a text and no name.
        f"{HEADER}\nFiles: *\nLicense:\n Do as you like.\n\nFiles: x\nLicense: ISC\n".encode(),
    ],
)
def test_a_licence_is_unknown_where_no_name_is_stated(copyright: bytes) -> None:
    found = licences.of_debian_package("src", copyright)
    assert found.expression == ""
    assert "[debian.src]" in found.origin


def test_packages_have_the_licence_of_their_own_or_shared_copyright_file(store: Store, tmp_path: Path) -> None:
    base = deb(store, tmp_path, "base", SEVERAL.encode(), source="src")
    lib = deb(store, tmp_path, "lib", shares="base", source="src")
    lost = deb(store, tmp_path, "lost", shares="nowhere", source="src")
    debs = DebianPackages("trixie", (base, lib), store)
    assert debs.component(lib).licence == debs.component(base).licence
    assert debs.component(lost).licence.expression == ""
    assert "nowhere" in debs.component(lost).licence.origin
    bare = deb(store, tmp_path, "bare")
    assert DebianPackages("trixie", (), store).component(bare).licence.expression == ""
    file = tmp_path / "none.deb"
    file.write_bytes(b"!<arch>\n" + b"debian-binary   0           0     0     100644  4         `\n2.0\n")
    broken = artifact(file, kind="deb", name="broken", version="1")
    store.adopt(file, broken)
    with pytest.raises(UnsafeArchiveError, match="control"):
        DebianPackages("trixie", (), store).component(broken)


def test_review_counts_only_for_the_file_that_was_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = b"Terms of our own.\n"
    reviewed(monkeypatch, tmp_path / "r.toml", entry("debian.src", "MIT AND LicenseRef-src-copyright", text))
    found = licences.of_debian_package("src", text)
    assert (found.expression, found.reviewed) == ("MIT AND LicenseRef-src-copyright", True)
    assert found.texts == (("LicenseRef-src-copyright", "src-copyright", text.decode()),)
    other = licences.of_debian_package("src", b"Terms of others.\n")
    assert other.expression == "" and hashlib.sha256(b"Terms of others.\n").hexdigest() in other.origin


@pytest.mark.parametrize("expression", ["BSD", "MIT AND", "MIT WITH Apache-2.0"])
def test_review_must_be_an_spdx_expression(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, expression: str) -> None:
    reviewed(monkeypatch, tmp_path / "r.toml", entry("debian.src", expression, b""))
    with pytest.raises(PinError, match=r"debian\.src"):
        licences.of_debian_package("src", b"x")


@pytest.mark.parametrize(
    ("fields", "expression"),
    [
        ("License-Expression: MIT OR Apache-2.0\nLicense: BSD\n", "MIT OR Apache-2.0"),
        ("License: MPL-2.0\n", "MPL-2.0"),
        ("Classifier: License :: OSI Approved :: MIT License\n", "MIT"),
        ("License: BSD\nClassifier: License :: OSI Approved :: BSD License\n", ""),
        ("Classifier: License :: OSI Approved :: MIT License\nClassifier: License :: Other\n", ""),
        ("", ""),
    ],
)
def test_a_wheels_licence_is_what_its_metadata_names(tmp_path: Path, fields: str, expression: str) -> None:
    file = tmp_path / "a_b-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a_b-1.0.dist-info/METADATA", f"Metadata-Version: 2.4\nName: A_b\nVersion: 1.0\n{fields}\n")
    with file.open("rb") as content:
        found = packages.read_wheel(content)
    assert (found.name, found.purl, found.licence.expression) == ("a-b", "pkg:pypi/a-b@1.0", expression)


@pytest.mark.parametrize(
    ("name", "suite", "source"),
    [
        ("pocl", "trixie", "pkg:deb/debian/pocl@"),
        ("upmem-llvm", "bookworm", "pkg:deb/debian/llvm-toolchain-13@"),
        ("llvm", "trixie", "pkg:github/llvm/llvm-project@"),
    ],
)
def test_component_from_source_lists_source_and_patches(tmp_path: Path, name: str, suite: str, source: str) -> None:
    want = build.describe_build(name, suite)
    found = want.component
    assert_valid(found, tmp_path)
    pedigree = read(documents.write_cyclonedx(found))["metadata"]["component"]["pedigree"]
    assert pedigree["ancestors"][0]["purl"].startswith(source)
    listed = len(Series.load(paths.PATCHES / want.profile.patches).patches) if want.profile.patches else 0
    assert len(pedigree.get("patches", ())) == listed


def test_a_folder_that_is_built_has_no_address(tmp_path: Path) -> None:
    (tmp_path / "pocl").mkdir()
    (tmp_path / "pocl/CMakeLists.txt").write_text("")
    found = build.describe_build("pocl", "trixie", folders={"pocl": tmp_path / "pocl"}).component
    (source,) = found.ancestors
    assert source.purl == "" and source.commit.startswith("folder-")
    assert_valid(found, tmp_path)


def test_an_unknown_licence_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, image: Component, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sbom, "describe", lambda request: image)
    with pytest.raises(CheckError) as raised:
        sbom.licences("spirv", Request.read)
    assert "odd 1:2.0-1" in raised.value.why and "[debian.odd]" in raised.value.why
    assert "one 1:2.0-1" not in raised.value.why
    assert "licences.toml" in raised.value.next
    assert "MIT\n    part" in capsys.readouterr().out


def test_verb_writes_the_document_of_a_wheel(wheel: Path, store: Store, tmp_path: Path) -> None:
    made = triton_wheel.repack(made_up_triton.locked(wheel), wheel, backends=(), store=store)
    for form, ending in (("cyclonedx", "cdx"), ("spdx", "spdx")):
        out = tmp_path / f"out.{form}"
        sbom.sbom(str(made), Request.read, part="", form=form, output=str(out))
        with zipfile.ZipFile(made) as archive:
            assert out.read_bytes() == archive.read(f"triton-1.0+foundry.1.dist-info/sboms/triton.{ending}.json")
    for what in (str(wheel), str(tmp_path / "no.whl"), "", "no-target"):
        with pytest.raises(UsageError):
            sbom.sbom(what, Request.read, part="", form="cyclonedx", output="")


@pytest.mark.network
@pytest.mark.slow
def test_proven_targets_have_known_licences_and_valid_documents(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    drift = request.config.getoption("--allow-drift")
    for target in lock.load().proven():
        found = sbom.describe(Request.read(target.name, allow_drift=drift))
        unknown = [f"{each.name}: {each.licence.origin}" for each in found.contained() if not each.licence.expression]
        assert unknown == []
        assert_valid(found, tmp_path)


@pytest.mark.network
@pytest.mark.slow
def test_a_native_part_names_all_that_it_was_built_with(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    wanted = Request.read("spirv-vulkan", allow_drift=request.config.getoption("--allow-drift"))
    found = sbom.describe(wanted, "vulkan-runtime")
    assert_valid(found, tmp_path)
    document = read(documents.write_cyclonedx(found))
    assert wanted.target.builder is not None
    names = {each.name for each in wanted.target.builder.own()}
    assert {each["name"] for each in document["components"] if each["scope"] == "excluded"} == names
    with pytest.raises(UsageError, match="llvm-tools"):
        sbom.describe(wanted, "llvm-tool")
    program = read(documents.write_cyclonedx(sbom.describe(wanted, "llvm-tools")))["metadata"]["component"]
    assert {each["name"] for each in program["pedigree"]["ancestors"]} >= {"libmlir-22-dev", "llvm-22-dev"}


@pytest.mark.docker
@pytest.mark.network
def test_the_document_of_an_image_names_what_is_installed_nothing_more_and_nothing_less(
    container: Callable[[str], Container], request: pytest.FixtureRequest
) -> None:
    wanted = Request.read("spirv", allow_drift=request.config.getoption("--allow-drift"))
    found = sbom.describe(wanted)
    document = read(documents.write_cyclonedx(found))
    code = "import importlib.metadata as m; print(*(f'{d.name} {d.version}' for d in m.distributions()), sep='\\n')"
    with container(wanted.release.version) as place:
        assert ensure.ensure_image(wanted)[1].name == f"{found.name}:{found.version}"
        installed = place.call(["dpkg-query", "--show", "--showformat", "${Package} ${Version}\\n"])
        python = place.call(["/opt/foundry/bin/python", "-I", "-c", code])
    said: Mapping[str, set[str]] = {
        kind: {
            f"{each['name']} {each['version']}"
            for each in document["components"]
            if f"pkg:{kind}/" in each.get("purl", "")
        }
        for kind in ("deb", "pypi")
    }
    assert said["deb"] == set(installed.splitlines())
    names = (line.partition(" ") for line in python.splitlines())
    assert said["pypi"] == {f"{canonicalize_name(name)} {version}" for name, _, version in names}


@pytest.mark.parametrize("size", ["-60", "1_0", "x", "99999"])
def test_a_member_of_a_package_with_an_impossible_size_is_refused(tmp_path: Path, size: str) -> None:
    # With -60 the next header would be this one again, for ever.
    header = f"{'debian-binary':16}{0:<12}{0:<6}{0:<6}{100644:<8}{size:10}`\n"
    file = tmp_path / "a.deb"
    file.write_bytes(b"!<arch>\n" + header.encode())
    with pytest.raises(UnsafeArchiveError, match=r"a\.deb"):
        packages._read(Artifact("deb", "a", "1", "a.deb", 1, "0" * 64), file, tmp_path)


def test_a_text_of_a_package_that_is_larger_than_texts_are_is_not_read(tmp_path: Path) -> None:
    data = io.BytesIO()
    with gzip.open(data, "wb") as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        entry = tarfile.TarInfo("control")
        entry.size = 65 << 20
        tar.addfile(entry, io.BytesIO(bytes(entry.size)))
    header = f"{'control.tar.gz':16}{0:<12}{0:<6}{0:<6}{100644:<8}{data.tell():<10}`\n"
    file = tmp_path / "a.deb"
    file.write_bytes(b"!<arch>\n" + header.encode() + data.getvalue())
    with pytest.raises(UnsafeArchiveError, match=r"a\.deb is damaged") as caught:
        packages._read(Artifact("deb", "a", "1", "a.deb", 1, "0" * 64), file, tmp_path)
    assert "where a text is expected" in caught.value.why
