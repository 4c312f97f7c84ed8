"""Write the document about a component in CycloneDX 1.6, as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from cyclonedx.model import HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model import component as model
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.bom_ref import BomRef
from cyclonedx.model.dependency import Dependency
from cyclonedx.model.license import LicenseAcknowledgement, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from toolchains.archives.tar_file import EPOCH
from toolchains.contents.component import PREFIX, AppliedPatch, Component

_TYPES = {
    "image": model.ComponentType.CONTAINER,
    "program": model.ComponentType.APPLICATION,
    "source": model.ComponentType.FILE,
}


def write(subject: Component) -> bytes:
    """Return the document about a component."""
    contained = list(subject.contained())
    in_it = {each.reference for each in contained}
    tools = [each for each in subject.tools if each.reference not in in_it]
    bom = Bom(
        components=[
            *map(_component, contained),
            *(_component(each, model.ComponentScope.EXCLUDED) for each in tools),
        ],
        serial_number=subject.serial,
        metadata=BomMetaData(component=_component(subject), timestamp=datetime.fromtimestamp(EPOCH, UTC)),
        dependencies=[
            _dependency(subject, (*subject.parts, *tools)),
            *(_dependency(each, each.parts) for each in contained),
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
        properties=[Property(name=PREFIX + name, value=value) for name, value in _properties(each)],
    )


def _properties(each: Component) -> Iterable[tuple[str, str]]:
    yield from each.properties
    if each.licence.origin:
        yield "licence-origin", each.licence.origin


def _pedigree(each: Component, reference: str) -> model.Pedigree | None:
    if not (each.ancestors or each.patches or each.commit):
        return None
    return model.Pedigree(
        ancestors=[_component(ancestor, below=reference) for ancestor in each.ancestors],
        commits=[model.Commit(uid=each.commit)] if each.commit else None,
        patches=[_patch(patch) for patch in each.patches],
    )


def _patch(patch: AppliedPatch) -> model.Patch:
    # A difference has no field for a digest; a fragment of this form is how pip reads one, too.
    where = XsUri(f"{patch.path}#sha256={patch.sha256}")
    return model.Patch(type=model.PatchClassification.UNOFFICIAL, diff=model.Diff(url=where))
