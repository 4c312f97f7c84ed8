"""CI's matrix and files have a job for each release of each proven target, and are what CI systems accept."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import replace
from importlib import resources
from typing import Any

import jsonschema
import pytest
from bake_schema import SCHEMA
from ruamel.yaml import YAML

import tasks
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Lock
from toolchains.system.errors import UsageError
from toolchains.testing import pipelines

FILES = (*pipelines.SYSTEMS, pipelines.BAKE)
SCHEMAS = {"github": "github-workflows.json", "gitlab": "gitlab-ci.json"}


@pytest.fixture
def known() -> Lock:
    """Return a lock with two targets, one with two releases, and a variant without parts of its own."""
    spirv = lock.load().targets["spirv"]
    tritons = dict.fromkeys(["1.0", "2.0"], next(iter(spirv.tritons.values())))
    one = replace(spirv, name="one", backend="one", tritons=tritons)
    variant = replace(one, name="variant")
    other = replace(one, name="other", backend="other", tritons={"3.0": tritons["1.0"]})
    return Lock({target.name: target for target in (one, variant, other)}, "")


def read(system: str, known: Lock) -> Any:
    return YAML(typ="safe").load(pipelines.text(system, known))


def schema(system: str) -> Any:
    if system == pipelines.BAKE:
        return SCHEMA
    folder = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    return json.loads((folder / SCHEMAS[system]).read_text(encoding="utf-8"))


def test_each_release_of_each_target_is_a_job_and_a_variant_without_parts_of_its_own_is_none(known: Lock) -> None:
    pairs = [("one", "1.0"), ("one", "2.0"), ("other", "3.0")]
    jobs = [{"target": target, "triton": release} for target, release in pairs]
    assert json.loads(pipelines.matrix(known)) == {"include": jobs}
    assert read("github", known)["jobs"]["prove"]["strategy"]["matrix"]["include"] == jobs
    matrix = read("gitlab", known)["prove"]["parallel"]["matrix"]
    assert [(row["TARGET"], release) for row in matrix for release in row["TRITON"]] == pairs


def test_the_help_names_the_targets_that_are_left_out() -> None:
    said = re.search(r"are left out: ([\w, -]+)\.", inspect.getdoc(tasks.ci) or "")
    jobs = {job["target"] for job in json.loads(pipelines.matrix(lock.load()))["include"]}
    assert said and set(said[1].split(", ")) == lock.load().targets.keys() - jobs


@pytest.mark.parametrize("system", FILES)
def test_the_files_fit_the_schemas_of_their_systems(system: str) -> None:
    jsonschema.validate(read(system, lock.load()), schema(system))
    # The schema does refuse something.
    broken = read(system, lock.load())
    {"github": broken.get("jobs"), "bake": broken.get("target")}.get(system, broken)["test"] = {
        "script": 1,
        "runs-on": 1,
    }
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema(system))


@pytest.mark.parametrize("system", FILES)
def test_the_files_are_what_the_targets_are_now(system: str) -> None:
    written = pipelines.place(system).read_text(encoding="utf-8")
    assert written == pipelines.text(system, lock.load()), f"./foundry ci --write={system}"


def test_a_bake_file_has_the_image_of_each_job_from_the_folder_that_the_verb_bake_writes(known: Lock) -> None:
    file = read("bake", known)
    assert file["group"]["default"]["targets"] == ["one-1_0", "one-2_0", "other-3_0"]
    assert file["group"]["one"]["targets"] == ["one-1_0", "one-2_0"]
    image = file["target"]["one-1_0"]
    assert image["context"] == "build/bake/one-1.0/one" and image["contexts"] == {"python": "target:one-1_0-python"}
    assert image["output"] == ["type=docker,dest=build/bake/one-1.0/image.tar,rewrite-timestamp=true"]


def test_the_report_takes_the_results_of_all_jobs_also_if_one_failed(known: Lock) -> None:
    github, gitlab = (read(system, known) for system in pipelines.SYSTEMS)
    assert set(github["jobs"]["report"]["needs"]) == {*github["jobs"]} - {"report"}
    assert github["jobs"]["report"]["if"] == gitlab["report"]["when"] + "()" == "always()"
    for job in ("test", "prove"):
        upload = github["jobs"][job]["steps"][-1]
        assert upload["if"] == "always()" and upload["with"]["path"] == "build/results/"
        assert gitlab[job]["artifacts"]["when"] == "always"
        assert gitlab[job]["artifacts"]["paths"] == ["build/results/"]
        assert gitlab["stages"].index(gitlab[job]["stage"]) < gitlab["stages"].index(gitlab["report"]["stage"])


def test_another_system_is_refused_with_what_it_can_run(known: Lock) -> None:
    with pytest.raises(UsageError, match="gitlab"):
        pipelines.text("gitlub", known)
