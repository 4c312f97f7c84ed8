"""Ensure that the image that a user asks for exists.

Input: a request. Output: the engine, and the image in this engine.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace

from toolchains.assembly import target_image
from toolchains.assembly.request import Request
from toolchains.assembly.target_image import Image, Inputs
from toolchains.engine import client, host
from toolchains.system.errors import FoundryError
from toolchains.system.steps import side_by_side


def ensure_image(request: Request) -> tuple[client.Engine, Image]:
    """Build the image of a target unless it exists; return the image, and the engine that has it.

    Raises:
        HashMismatchError, SdkError: see supplied.check_given_sdk.
        MissingToolError: no container engine answers.
    """
    host.ensure_emulation(request.target.platform)
    store, checked = request.store(), None
    if request.given:
        # The code that reads an SDK's files takes time to import, and few images have an SDK.
        from toolchains.sdk import supplied

        checked = supplied.check_given_sdk(request.target, request.given, store)

    inputs = Inputs(request.target, request.release, checked)

    def fetch() -> None:
        # What fails here is tried again, and reported, when the machine has all that it needs.
        with suppress(FoundryError):
            target_image.fetch(inputs, store)

    if host.installs_engine():
        docker, _ = side_by_side(host.ensure_engine, fetch)
    else:
        docker = host.ensure_engine()
    inputs = replace(inputs, sourced=request.sourced())
    image = target_image.build_image(inputs, store=store, engine=docker, cache=request.cache)
    if image.builder:
        print(
            f"made by {image.builder}: the layers and the ID of {image.name} are not compared with the published ones",
            file=sys.stderr,
        )
    return docker, image
