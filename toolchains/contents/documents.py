"""Write the document about a component in CycloneDX 1.6 or in SPDX 2.3, as JSON."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from cyclonedx.model import HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model import component as model
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.dependency import Dependency
from cyclonedx.model.license import LicenseAcknowledgement, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from license_expression import get_spdx_licensing
from packageurl import PackageURL
from spdx_tools.spdx.model.actor import Actor, ActorType
from spdx_tools.spdx.model.checksum import Checksum, ChecksumAlgorithm
from spdx_tools.spdx.model.document import CreationInfo, Document
from spdx_tools.spdx.model.extracted_licensing_info import ExtractedLicensingInfo
from spdx_tools.spdx.model.package import ExternalPackageRef, ExternalPackageRefCategory, Package, PackagePurpose
from spdx_tools.spdx.model.relationship import Relationship, RelationshipType
from spdx_tools.spdx.model.spdx_no_assertion import SpdxNoAssertion
from spdx_tools.spdx.writer.json import json_writer

from toolchains.archives.tar_file import EPOCH
from toolchains.contents.component import PREFIX, AppliedPatch, Component
from toolchains.lockfile.lock import digest

_TYPES = {
    "image": model.ComponentType.CONTAINER,
    "program": model.ComponentType.APPLICATION,
    "source": model.ComponentType.FILE,
}
_DOCUMENT = "SPDXRef-DOCUMENT"
_PURPOSES = {"image": PackagePurpose.CONTAINER, "program": PackagePurpose.APPLICATION, "source": PackagePurpose.SOURCE}
_licensing = get_spdx_licensing()


def write_cyclonedx(subject: Component) -> bytes:
    """Return the document about a component in CycloneDX 1.6, as JSON."""
    contained = list(subject.contained())
    in_it = {component.reference for component in contained}
    tools = [tool for tool in subject.tools if tool.reference not in in_it]
    bom = Bom(
        components=[*map(_component, contained), *(_component(tool, model.ComponentScope.EXCLUDED) for tool in tools)],
        serial_number=subject.serial,
        metadata=BomMetaData(component=_component(subject), timestamp=datetime.fromtimestamp(EPOCH, UTC)),
        dependencies=[
            _dependency(subject, (*subject.parts, *tools)),
            *(_dependency(component, component.parts) for component in contained),
        ],
    )
    return (JsonV1Dot6(bom).output_as_string(indent=2) + "\n").encode()


def _dependency(owner: Component, parts: Iterable[Component]) -> Dependency:
    return Dependency(BomRef(owner.reference), [Dependency(BomRef(part.reference)) for part in parts])


def _component(each: Component, scope: model.ComponentScope | None = None, below: str = "") -> model.Component:
    """Return a component; that of an ancestor has its descendant's reference in its own, so that it is unique."""
    reference = f"{below}#{each.reference}" if below else each.reference
    licence = each.licence
    acknowledged = LicenseAcknowledgement.CONCLUDED if licence.reviewed else LicenseAcknowledgement.DECLARED
    licences = [LicenseExpression(licence.expression, acknowledgement=acknowledged)] if licence.expression else []
    origin = [("licence-origin", licence.origin)] if licence.origin else []
    return model.Component(
        type=_TYPES.get(each.kind, model.ComponentType.LIBRARY),
        name=each.name,
        version=each.version,
        bom_ref=reference,
        scope=scope,
        purl=PackageURL.from_string(each.purl) if each.purl else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each.sha256)] if each.sha256 else None,
        licenses=licences,
        pedigree=_pedigree(each, reference),
        properties=[Property(name=PREFIX + name, value=value) for name, value in (*each.properties, *origin)],
    )


def _pedigree(each: Component, reference: str) -> model.Pedigree | None:
    if not (each.ancestors or each.patches or each.commit):
        return None
    return model.Pedigree(
        ancestors=[_component(ancestor, below=reference) for ancestor in each.ancestors],
        commits=[model.Commit(uid=each.commit)] if each.commit else None,
        patches=[
            # A difference has no field for a digest; a fragment of this form is how pip reads one, too.
            model.Patch(
                type=model.PatchClassification.UNOFFICIAL,
                diff=model.Diff(url=XsUri(f"{patch.path}#sha256={patch.sha256}")),
            )
            for patch in each.patches
        ],
    )


def write_spdx(subject: Component) -> bytes:
    """Return the document about a component in SPDX 2.3, as JSON."""
    return _Writer(subject).written()


class _Writer:
    """Collects what a document has: packages by their identifiers, and what they are to each other."""

    def __init__(self, subject: Component) -> None:
        self._subject = subject
        self._packages: dict[str, Package] = {}
        self._relationships: list[Relationship] = []
        self._texts: dict[str, ExtractedLicensingInfo] = {}

    def written(self) -> bytes:
        subject = self._subject
        self._relate(_DOCUMENT, RelationshipType.DESCRIBES, self._add(subject))
        for tool in subject.tools:
            self._relate(self._add(tool), RelationshipType.BUILD_TOOL_OF, self._add(subject))
        about = CreationInfo(
            spdx_version="SPDX-2.3",
            spdx_id=_DOCUMENT,
            name=f"{subject.name} {subject.version}",
            document_namespace=f"https://spdx.org/spdxdocs/{_word(subject.name)}-{subject.serial}",
            creators=[Actor(ActorType.TOOL, "triton-foundry")],
            created=datetime.fromtimestamp(EPOCH, UTC).replace(tzinfo=None),
        )
        packages, texts = list(self._packages.values()), list(self._texts.values())
        document = Document(about, packages, relationships=self._relationships, extracted_licensing_info=texts)
        out = io.StringIO()
        json_writer.write_document_to_stream(document, out, validate=False)
        return (out.getvalue() + "\n").encode()

    def _add(self, each: Component) -> str:
        """Add a component with all that belongs to it, unless the document has it; return its identifier."""
        identifier = _identifier(each.kind, each.name, each.reference)
        if identifier in self._packages:
            return identifier
        self._packages[identifier] = self._package(identifier, each)
        for reference, name, text in each.licence.texts:
            self._texts.setdefault(reference, ExtractedLicensingInfo(reference, text or name, name))
        for ancestor in each.ancestors:
            self._relate(identifier, RelationshipType.GENERATED_FROM, self._add(ancestor))
        for patch in each.patches:
            self._relate(self._add_patch(patch), RelationshipType.PATCH_FOR, identifier)
        for part in each.parts:
            self._relate(identifier, RelationshipType.CONTAINS, self._add(part))
        return identifier

    def _package(self, identifier: str, each: Component) -> Package:
        licence = _licensing.parse(each.licence.expression) if each.licence.expression else SpdxNoAssertion()
        reviewed = each.licence.reviewed
        facts = [f"commit: {each.commit}"] if each.commit else []
        facts += [f"{name}: {value}" for name, value in each.properties]
        return Package(
            identifier,
            each.name,
            SpdxNoAssertion(),
            version=each.version,
            files_analyzed=False,
            checksums=[Checksum(ChecksumAlgorithm.SHA256, each.sha256)] if each.sha256 else [],
            license_declared=SpdxNoAssertion() if reviewed else licence,
            license_concluded=licence if reviewed else SpdxNoAssertion(),
            license_comment=each.licence.origin or None,
            copyright_text=SpdxNoAssertion(),
            comment="\n".join(facts) or None,
            external_references=[ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, "purl", each.purl)]
            if each.purl
            else [],
            primary_package_purpose=_PURPOSES.get(each.kind, PackagePurpose.LIBRARY),
        )

    def _add_patch(self, patch: AppliedPatch) -> str:
        identifier = _identifier("patch", patch.path, patch.sha256)
        self._packages[identifier] = Package(
            identifier,
            patch.path,
            SpdxNoAssertion(),
            files_analyzed=False,
            checksums=[Checksum(ChecksumAlgorithm.SHA256, patch.sha256)],
            primary_package_purpose=PackagePurpose.SOURCE,
        )
        return identifier

    def _relate(self, one: str, how: RelationshipType, other: str) -> None:
        self._relationships.append(Relationship(one, how, other))


def _identifier(kind: str, name: str, reference: str) -> str:
    """Return the identifier of a package: readable, and another one for another reference."""
    return f"SPDXRef-{kind}-{_word(name)}-{digest(reference)[:12]}"


def _word(text: str) -> str:
    """Return a text with the letters only that an identifier may have."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")


# The ends of the documents' names, by format.
ENDINGS = {"cyclonedx": ".cdx.json", "spdx": ".spdx.json"}
WRITERS = {"cyclonedx": write_cyclonedx, "spdx": write_spdx}
