"""Note of each test which operation it is about, on which type, and within which bound: a cell of docs/operations.md.

    @pytest.mark.operation("tl.{op}")                    with the values of the test's parameters
    @pytest.mark.operation("tl.dot", type="i8")          where no parameter `dtype` has the type
    @pytest.mark.operation("{expression}", type="{a}")   "" is a test that no type matters to

Without a mark, the operation is the test's name in words.

`./foundry test` runs all cases in one image; conformance/listed.py says which it runs in the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import checking
import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "operation(name, type): what the test is about, see conftest.py")
    config.addinivalue_line(
        "markers", "each_image: `./foundry test` runs all its cases in each image, not the first only"
    )
    config.addinivalue_line("markers", "values: elementwise; the host checks it on every mapping")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    names = {kind: name for name, kind in checking.DTYPES.items()}
    for item in items:
        parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        if isinstance(parameters.get("dtype"), type):
            parameters["dtype"] = names.get(parameters["dtype"], parameters["dtype"].__name__)
        mark = item.get_closest_marker("operation")
        name = mark.args[0] if mark else item.name.partition("[")[0].removeprefix("test_").replace("_", " ")
        kind = mark.kwargs.get("type") if mark else None
        if kind is None:
            kind = "{dtype}" if "dtype" in parameters else ""
        item.user_properties += [("operation", name.format(**parameters)), ("type", kind.format(**parameters))]


@pytest.fixture(autouse=True)
def _bound(request: pytest.FixtureRequest) -> Iterator[None]:
    """Note the largest error that the test allows, in units in the last place."""
    checking.bounds.clear()
    yield
    if checking.bounds:
        request.node.user_properties.append(("ulp", max(checking.bounds)))
