"""The verb docs: make the site of the Markdown pages with Sphinx, and serve it on this machine.

docs/site/conf.py says which pages the site has. Sphinx is in build/venv-docs, which is made at the first use: .venv
stays as small as the other verbs need it.
"""

from __future__ import annotations

import errno
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

from toolchains.cli.bootstrap import Environment
from toolchains.system import children, paths
from toolchains.system.errors import CheckError, UsageError
from toolchains.system.steps import step

OUTPUT = paths.BUILD / "docs"
PORT = 8000
_SITE = paths.ROOT / "docs" / "site"


def docs(*, serve: bool, port: int) -> None:
    """Run the verb `docs`; its help is in tasks.py."""
    environment = Environment(paths.BUILD / "venv-docs", _SITE / "requirements.lock")
    environment.ensure()
    with step("making the site"):
        make(environment.python, paths.ROOT, OUTPUT)
    print(f"written to {OUTPUT / 'index.html'}", flush=True)
    if serve:
        _serve(port)


def make(python: Path, root: Path, output: Path) -> None:
    """Write the site of a checkout; an existing one is replaced when the new one is complete.

    Args:
        python: a Python that has Sphinx.
        root: the checkout.
        output: a folder below which only the site is.

    Raises:
        CheckError: a link, an anchor or a picture leads nowhere, or a page is not in the navigation.
    """
    output.parent.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=".docs-") as work:
        site = Path(work, "site")
        words = ["-m", "sphinx", "--quiet", "--nitpicky", "--fail-on-warning", "--keep-going", "--builder=html"]
        words += [f"--conf-dir={root / 'docs' / 'site'}", f"--doctree-dir={work}/doctrees", str(root), str(site)]
        done = children.run([python, *words], log="docs", check=False)
        found = [line.removeprefix(f"{root}/") for line in done.stderr.splitlines() if "WARNING: " in line]
        if found or done.status:
            raise CheckError(
                f"the site has {len(found)} faults" if found else f"Sphinx failed with exit status {done.status}",
                why="\n".join(found) or done.stderr.strip(),
                next="correct the lines that are named, then ./foundry docs",
            )
        shutil.rmtree(output, ignore_errors=True)
        site.rename(output)


def _serve(port: int) -> None:
    """Serve the site to this machine only, until Ctrl-C.

    Raises:
        UsageError: the port is in use.
    """
    handler = partial(SimpleHTTPRequestHandler, directory=str(OUTPUT))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise UsageError(f"port {port} is in use", next=f"./foundry docs --serve --port={port % 65535 + 1}") from error
    with server:
        print(f"http://127.0.0.1:{port} until Ctrl-C", flush=True)
        server.serve_forever()
