"""What scripts read: with --json, stdout has one document that fits docs/scripts.json, whatever happens."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import jsonschema
import pytest
from invoke.collection import Collection

import tasks
from toolchains.cli import scripts
from toolchains.system import paths
from toolchains.system.document import ShownDocument, as_json
from toolchains.testing.verdict import Verdict
from toolchains.verbs import bench, e2e

VERBS = Collection.from_module(tasks)
SCHEMA = json.loads(scripts.SCHEMA.read_text(encoding="utf-8"))
# Modules whose tables are printed in a container, and those that only show what they do.
IN_CONTAINERS = {"e2e", "bench", "run"}


def foundry(*words: str) -> tuple[int, Any, str]:
    """Return the exit status, the document on stdout and the text on stderr."""
    done = subprocess.run([paths.ROOT / "foundry", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    return done.returncode, found, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "document", "key"),
    [
        ("target list --json", "target list", "targets"),
        ("target show spirv --json", "target show", "parts"),
        ("pin --json", "pin", "components"),
        ("patch status --json", "patch status", "series"),
        ("upstream --json", "upstream", "sources"),
        ("expected --json", "expected", "images"),
    ],
)
def test_a_verb_prints_one_document_that_fits_the_schema(line: str, document: str, key: str) -> None:
    status, found, _ = foundry(*line.split())
    assert (status, found["document"], found["error"]) == (0, document, None)
    assert found[key]


def test_an_error_is_in_the_document_and_keeps_its_exit_status() -> None:
    status, found, said = foundry("target", "show", "nowhere", "--json")
    assert (status, found["document"], found["error"]["status"]) == (2, "result", 2)
    assert found["error"]["what"] in said


@pytest.mark.slow
def test_doctor_prints_its_findings_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOUNDRY_CACHE", "/proc/nowhere")
    status, found, _ = foundry("doctor", "--json")
    assert status != 0 and found["error"]["status"] == status
    assert found["document"] == "doctor" and [each for each in found["findings"] if each["fatal"]]


def test_wrong_words_print_no_document() -> None:
    done = subprocess.run([paths.ROOT / "foundry", "pin", "--json", "--nonsense"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")


def test_every_verb_with_a_table_has_json_and_a_document() -> None:
    documents = scripts.documents(VERBS)
    assert all(documents.values())
    files = {path.stem for path in (paths.ROOT / "toolchains" / "verbs").glob("*.py") if "Table(" in path.read_text()}
    assert len(files) > 8
    assert (files | IN_CONTAINERS) - {*documents} == set()


def test_every_key_of_a_document_is_described() -> None:
    text = scripts.PAGE.read_text(encoding="utf-8")
    for kinds in scripts.documents(VERBS).values():
        for kind in kinds:
            assert f"\n### {scripts.title(kind)}\n" in text
            assert {*kind.__struct_fields__} <= {*scripts.fields(kind)}
    titles = [scripts.title(kind) for kinds in scripts.documents(VERBS).values() for kind in kinds]
    assert len(set(titles)) == len(titles)


def test_results_of_a_container_fit_the_schema() -> None:
    verdict = Verdict()
    result = {"suite": "k", "name": "n=1", "seconds": 0.5, "failure": None, "modelled": {"cycles": 3}, "error": 0.25}
    for record in (
        {"plan": [["k", "n=1"], ["k", "n=2"]], "of": 2, "title": "t", "ran": {"device": "\x1b[31m\ud800"}},
        {"began": ["k", "n=1"]},
        {"result": result},
    ):
        verdict.take(json.dumps(record))
    verdict.conclude("it was ended")
    common = verdict.described("spirv", "3.9.0", paths.RESULTS)
    times = bench.Times(float("nan"), 1.0, 3)
    rows = [bench.Candidate("ours", times, None, None, "", 0.5)]
    measured = bench.TimedMeasurement("add", rows, "GB/s")
    for shown in (e2e.Proof(**common, proven=False), bench.Measurements(**common, measurements=[measured])):
        text = as_json(shown)
        assert re.fullmatch(r"[\x20-\x7e\n]*", text)
        found = json.loads(text)
        assert [case["outcome"] for case in found["cases"]] == ["pass", "not run"] and found["faults"]
    jsonschema.validate(json.loads(as_json(e2e.Proof(**common, proven=False))), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(as_json(ShownDocument())) | {"error": "text"}, SCHEMA)
