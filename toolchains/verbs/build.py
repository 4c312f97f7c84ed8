"""The verb build: build a target's image if its inputs changed, and print its name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.table import Table
from rich.text import Text

from toolchains.assembly import ensure, package_sizes, target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image
from toolchains.config import components
from toolchains.engine.client import Engine
from toolchains.repro import expected
from toolchains.resolve import agreement
from toolchains.system import document, durable, json_text
from toolchains.system.console import Console
from toolchains.system.document import ShownDocument
from toolchains.system.errors import ImageError
from toolchains.system.terminal import make_console
from toolchains.testing import proof
from toolchains.trust import keys, statement
from toolchains.verbs import pull

_console = make_console()
# Number of packages in a table of sizes.
_ROWS = 20


class BuiltImage(ShownDocument, kw_only=True, tag="build"):
    """A target's image: `build`.

    Attributes:
        target: the target.
        triton: the release of Triton in it.
        name: the image's name, with the digest of its inputs.
        id: its ID.
        bytes: its size.
        made: whether it was built now; otherwise it existed.
    """

    target: str
    triton: str
    name: str
    id: str
    bytes: int
    made: bool

    def render(self, console: Console) -> None:
        state = "made" if self.made else "exists already"
        console.print(Text(self.name, "bold"), f"{state}, {_mb(self.bytes)} MB, {self.id[:19]}")


class Sizes(BuiltImage, kw_only=True, tag="build --sizes"):
    """The same, and what takes the space in it: `build --sizes`.

    Attributes:
        packages: bytes by package.
    """

    packages: dict[str, int]

    def render(self, console: Console) -> None:
        rows = sorted(self.packages.items(), key=lambda row: -row[1])
        rest = sum(size for _, size in rows[_ROWS:])
        table = Table("package", "MB", title=f"what takes the space in {self.name}", show_footer=True)
        table.columns[1].justify = "right"
        table.columns[0].footer, table.columns[1].footer = "together", _mb(sum(self.packages.values()))
        for owner, size in rows[:_ROWS]:
            table.add_row(owner, _mb(size))
        table.add_row(f"{len(rows[_ROWS:])} others", _mb(rest))
        console.print(table)


def build(request: Request, *, sizes: bool, sign: str, registry: str = "", public: Sequence[str] = ()) -> None:
    """Ensure that a target's image exists; print its name, ID, drifted packages, and sizes if asked for.

    Raises:
        ImageError: an image of the same inputs was published, and has another ID.
    """
    signer = keys.read_private(Path(sign)) if sign else None
    file = proof.results_folder(request) / "sizes.json" if sizes else None
    if registry or public:
        pull.take(request, registry, pull.read_trust(public))
    docker, image = ensure.ensure_image(request)
    built = BuiltImage(
        target=request.target.name,
        triton=request.release.version,
        name=image.name,
        id=image.info.id,
        bytes=image.info.size,
        made=image.made,
    )
    document.show(built)
    if older := list(agreement.target_disagreements(components.target(request.target.name), request.target)):
        _console.notice(f"the lock is older than the pins: {'; '.join(older)}; to use them: ./foundry pin --update")
    drift = image.info.labels.get(target_image.LABEL + "drift")
    if drift:
        _console.notice(f"not as locked: {drift}")
    supplied = image.info.labels.get(target_image.LABEL + "sdk")
    if supplied:
        _console.notice(f"not for pushing: it has {supplied} in it, which is not ours to give to others")
    sourced = image.info.labels.get(target_image.LABEL + "from-source")
    if sourced:
        _console.print(f"from source: {sourced}")
    if stated := statement.state_image(request, image, request.store(), signer):
        _console.print(f"{'signed ' if sign else ''}statement: {stated}")
    elif sign:
        _console.notice("not signed: this machine did not build the image")
    if file is not None:
        by_package = _measure(docker, image)
        document.show(Sizes(**msgspec.structs.asdict(built), packages=by_package))
        durable.write(file, json.dumps({"image": image.name, "packages": by_package}, indent=1) + "\n")
        _console.print(f"written to {file}")
    expected.check_image(expected.load(), docker, image, request.target, request.release.version)


def _measure(docker: Engine, image: Image) -> dict[str, int]:
    with docker.container(image.info.id) as container:
        container.copy_into(Path(package_sizes.__file__), "/tmp/package_sizes.py")
        output = container.call(["python3", "/tmp/package_sizes.py"])
    try:
        return json_text.parse(output, dict[str, int])
    except ValueError as error:
        raise ImageError(f"the packages in {image.name} cannot be measured", why=str(error)) from error


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f}"
