"""The verb notebook: which folder it copies, and that a browser reaches Jupyter in the container with its token."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchains.system import paths
from toolchains.system.errors import UsageError
from toolchains.verbs import notebook

NOTEBOOK = {
    "cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "Read as a heading"}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_folder_of_a_notebook_is_copied_and_the_notebook_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    options: dict[str, str | list[str]] = {"results": "", "wheels": "", "disk": "", "env": []}
    for given, name in (("", ""), (".", ""), ("a.ipynb", "a.ipynb"), ("new.ipynb", "new.ipynb")):
        place, opened = notebook.place(given, **options)
        assert place.folder and place.results
        assert (place.folder.resolve(), place.results.resolve(), opened) == (tmp_path, tmp_path, name)
    with pytest.raises(UsageError, match="is neither a folder nor a notebook"):
        notebook.place("a.py", **options)
    (tmp_path / "a.ipynb").write_text("{")
    with pytest.raises(UsageError, match="is not a notebook"):
        notebook.place("a.ipynb", **options)


@pytest.mark.docker
@pytest.mark.slow
def test_a_browser_opens_the_notebook_and_what_is_saved_comes_back(
    tmp_path: Path, installed: Callable[[str, str], str]
) -> None:
    browser = installed("chromium-headless-shell", "shows Jupyter's page")
    top = tmp_path / "kernels"
    top.mkdir()
    (top / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    words = [sys.executable, "-P", "-m", "invoke", "--search-root", str(paths.ROOT)]
    words += ["notebook", "spirv", str(top / "a.ipynb"), "--allow-drift"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stdout and serving.stderr
        try:
            page = serving.stdout.readline().strip()
            found = re.fullmatch(r"(http://127\.\d+\.\d+\.\d+:\d+)/lab/tree/a\.ipynb\?token=(\S+)", page)
            assert found, serving.stderr.read() if serving.poll() is not None else page
            address, token = found.groups()
            contents = f"{address}/api/contents/saved.txt"
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(contents.replace("saved.txt", "a.ipynb"), timeout=60)
            profile = tmp_path / "profile"
            show = [browser, "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=60000"]
            shown = subprocess.run(
                [*show, f"--user-data-dir={profile}", page], capture_output=True, text=True, timeout=120, check=True
            )
            assert "Read as a heading" in shown.stdout
            body = json.dumps({"type": "file", "format": "text", "content": "saved"}).encode()
            headers = {"Authorization": f"token {token}"}
            request = urllib.request.Request(contents, body, headers, method="PUT")
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 201
        finally:
            serving.send_signal(signal.SIGINT)
            try:
                said = serving.communicate(timeout=120)[1]
            finally:
                serving.kill()
    assert (serving.returncode, (top / "saved.txt").read_text()) == (0, "saved"), said
