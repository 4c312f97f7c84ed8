"""The site of the documentation: it is whole, is found by its search, and can be read on a phone and in the dark."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import urllib.request
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from toolchains.cli.bootstrap import Environment
from toolchains.system import paths
from toolchains.system.errors import CheckError, UsageError
from toolchains.verbs import docs

pytestmark = [pytest.mark.network, pytest.mark.slow]
# Runs in a page, and writes what it finds into the page's title.
PROBE = """
const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
document.title = JSON.stringify({ width: document.documentElement.scrollWidth, inner: innerWidth,
  paper: light(getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number)),
  found: document.querySelectorAll("#search-results li").length });
"""


@pytest.fixture(scope="module")
def python() -> Path:
    environment = Environment(paths.BUILD / "venv-docs", paths.ROOT / "docs/site/requirements.lock")
    environment.ensure()
    return environment.python


@pytest.fixture(scope="module")
def site(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("site") / "docs"
    docs.make(python, paths.ROOT, output)
    return output


def probed(browser: str, address: str, width: int, profile: Path, *, dark: bool = False) -> dict[str, float]:
    """Return what the probe finds in a page of the site."""
    words = [browser, "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    words += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--user-data-dir={profile}"]
    done = subprocess.run(
        [*words, "--virtual-time-budget=20000", address], capture_output=True, text=True, timeout=120, check=True
    )
    title = re.search("<title>({.*?})</title>", done.stdout)
    assert title, done.stdout[:2000]
    found: dict[str, float] = json.loads(title[1].replace("&quot;", '"'))
    return found


def test_pages_fit_a_phone_follow_the_systems_colours_and_are_found(
    site: Path, installed: Callable[[str, str], str], tmp_path: Path
) -> None:
    browser = installed("chromium-headless-shell", "shows the site as a browser does")
    probe = f"<script>addEventListener('load', () => setTimeout(() => {{ {PROBE} }}, 5000))</script></body>"
    pages = ["docs/kernel", "docs/reference", "docs/operations", "docs/design", "search"]
    for name in pages:
        file = site / f"{name}.html"
        file.write_text(file.read_text().replace("</body>", probe))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        for name in pages[:-1]:
            for width, dark in ((390, True), (1440, False)):
                seen = probed(browser, f"{address}/{name}.html", width, tmp_path, dark=dark)
                assert seen["width"] <= seen["inner"], f"{name} at {width} pixels: {seen}"
                assert (seen["paper"] < 60) == dark
        assert probed(browser, f"{address}/search.html?q=bfloat16", 1440, tmp_path)["found"] > 0
        assert probed(browser, f"{address}/search.html?q=xyzzyxyzzy", 1440, tmp_path)["found"] == 0
        with urllib.request.urlopen(f"{address}/index.html", timeout=60) as answer:
            assert b"docs/" in answer.read()
        server.shutdown()


@pytest.mark.parametrize(
    ("page", "text", "said"),
    [
        ("a.md", "# A\n\n[to nothing](b.md)\n", "docs/a.md:3"),
        ("a.md", "# A\n\n[to no heading](#nosuch)\n", "nosuch"),
        ("a.md", "# A\n\n![a picture](none.svg)\n", "docs/none.svg"),
        ("lost.md", "# Lost\n", "docs/lost.md"),
    ],
)
def test_a_link_that_leads_nowhere_and_a_page_without_a_way_to_it_are_faults(
    python: Path, tmp_path: Path, page: str, text: str, said: str
) -> None:
    root = tmp_path / "checkout"
    (root / "docs/site").mkdir(parents=True)
    for file in (paths.ROOT / "docs/site").iterdir():
        (root / "docs/site" / file.name).write_bytes(file.read_bytes())
    (root / "VERSION").write_text("1\n")
    (root / "docs/README.md").write_text("# Top\n\n## Start\n\n- [A](a.md): first\n")
    (root / "docs/a.md").write_text("# A\n")
    (root / "docs" / page).write_text(text)
    output = tmp_path / "site"
    output.mkdir()
    (output / "before").touch()
    with pytest.raises(CheckError, match="the site has 1 faults") as raised:
        docs.make(python, root, output)
    assert said in raised.value.why
    # The site before stays.
    assert [path.name for path in tmp_path.rglob("before")] == ["before"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkout", "site"]


def test_a_port_in_use_is_named_with_another() -> None:
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server,
        pytest.raises(UsageError, match="is in use"),
    ):
        docs._serve(server.server_address[1])
