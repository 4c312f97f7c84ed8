"""What tests in containers share: images of a target, made once a session."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from toolchains import building
from toolchains.engine import Container


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--allow-drift", action="store_true", help="take current versions of packages that are gone")


@pytest.fixture(scope="session")
def container(request: pytest.FixtureRequest) -> Callable[[str], Container]:
    """Gives a container, to be used in a with statement, of the spirv image with a release of Triton."""

    @functools.cache
    def image(release: str) -> tuple[building.engine.Engine, str]:
        engine, made = building.have("spirv", triton=release, allow_drift=request.config.getoption("--allow-drift"))
        return engine, made.name

    def make(release: str) -> Container:
        engine, name = image(release)
        return engine.container(name)

    return make
