"""Tutorials run to their end on every target, and their pages are what their files say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts_in_image import Printed

from toolchains.cli import tutorials

# Sizes that take an emulator seconds.
SMALL = {
    "02_fused_softmax": ["--rows", "20", "--columns", "300"],
    "03_matmul": ["--size", "33", "34", "17"],
    "05_layer_norm": ["--rows", "20", "--columns", "50"],
    "06_fused_attention": ["--heads", "1", "--length", "24", "--depth", "16"],
    "07_libdevice": ["--size", "300"],
    "10_block_scaled_matmul": ["--size", "16", "32", "64"],
}


@pytest.fixture(scope="module", params=["spirv", "dpu", "vsi"])
def printed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """Return what all tutorials print on a target."""
    return Printed(tmp_path_factory.mktemp("tutorials"), request.param, tutorials.sources(), SMALL)


@pytest.mark.docker
@pytest.mark.parametrize("path", tutorials.sources(), ids=lambda path: path.stem)
def test_it_checks_its_results_on_the_target(path: Path, printed: Printed) -> None:
    # It says what it compared.
    assert re.search(r"largest error|error .* allowed|are kept", printed.of(path.stem))


def test_the_pages_are_what_the_files_say() -> None:
    written = {path: path.read_text(encoding="utf-8") for path in tutorials.PAGES.glob("*.md")}
    assert written == dict(tutorials.pages()), "python -m toolchains.cli.tutorials"


def test_a_page_has_all_text_and_code_in_their_order() -> None:
    for path in tutorials.sources():
        page = tutorials.page(path)
        assert page.count("\n# ") == 1 and f"\n# {tutorials.title(path)}\n" in page
        code = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        blocks = "\n".join(re.findall(r"```python\n(.*?)\n```", page, re.DOTALL)).splitlines()
        shown = [line for line in blocks if line and not line.startswith("#")]
        assert shown == code[-len(shown) :] and "import argparse" in shown
        assert "# %%" not in page and not re.search(r"^(=+|-+)$", page, re.MULTILINE)
