"""Write the documents about a wheel that are in the wheel itself, where PEP 770 has them: NAME.dist-info/sboms."""

from __future__ import annotations

from toolchains.contents import cyclonedx, spdx
from toolchains.contents.component import Component

# The ends of the documents' names, by format.
ENDINGS = {"cyclonedx": ".cdx.json", "spdx": ".spdx.json"}
WRITERS = {"cyclonedx": cyclonedx.write, "spdx": spdx.write}


def documents(subject: Component, info: str) -> dict[str, bytes]:
    """Return the documents about a wheel by their names in it.

    Args:
        info: the name of its .dist-info folder.
    """
    return {f"{info}/sboms/{subject.name}{ENDINGS[form]}": write(subject) for form, write in WRITERS.items()}
