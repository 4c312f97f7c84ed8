"""CI's matrix and files have a job for each release of each proven target, and are what CI systems accept."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bake_schema import SCHEMA
from ruamel.yaml import YAML

import tasks
from toolchains.config import components, scaffold
from toolchains.lockfile import lock
from toolchains.lockfile.lock import Lock
from toolchains.repro import expected
from toolchains.system import paths
from toolchains.system.errors import UsageError
from toolchains.verbs import ci

FILES = (*ci.SYSTEMS, ci.BAKE)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
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
    return YAML(typ="safe").load(ci.text(system, known))


def schema(system: str) -> Any:
    if system == ci.BAKE:
        return SCHEMA
    folder = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    return json.loads((folder / SCHEMAS[system]).read_text(encoding="utf-8"))


def test_each_release_of_each_target_is_a_job(known: Lock) -> None:
    pairs = [("one", "1.0"), ("one", "2.0"), ("other", "3.0")]
    jobs = [{"target": target, "triton": release} for target, release in pairs]
    assert json.loads(ci.matrix(known)) == {"include": jobs}
    assert read("github", known)["jobs"]["prove"]["strategy"]["matrix"]["include"] == jobs
    matrix = read("gitlab", known)["prove"]["parallel"]["matrix"]
    assert [(row["TARGET"], release) for row in matrix for release in row["TRITON"]] == pairs
    file = read("bake", known)
    assert file["group"]["default"]["targets"] == ["one-1_0", "one-2_0", "other-3_0"]
    assert file["group"]["one"]["targets"] == ["one-1_0", "one-2_0"]
    image = file["target"]["one-1_0"]
    assert image["context"] == "build/bake/one-1.0/one" and image["contexts"] == {"python": "target:one-1_0-python"}
    assert image["output"] == ["type=docker,dest=build/bake/one-1.0/image.tar,rewrite-timestamp=true"]
    with pytest.raises(UsageError, match="gitlab"):
        ci.text("gitlub", known)


def test_another_platform_is_proven_from_its_first_published_image_on(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = lock.everything()
    monkeypatch.setattr(expected, "load", lambda: expected.Expected({}, {}))
    assert expected.due(everything) == lock.load()
    monkeypatch.setattr(expected, "load", lambda: expected.Expected({"spirv-arm64": {}}, {}))
    due = expected.due(everything)
    assert due.targets.keys() == {*lock.load().targets, "spirv-arm64"}
    assert due.tools == everything.tools
    row = {"target": "spirv", "triton": "3.9.0", "platform": "linux/arm64"}
    assert row in json.loads(ci.matrix(due))["include"]


def test_the_help_names_the_targets_that_are_left_out() -> None:
    said = re.search(r"are left out: ([\w, -]+)\.", inspect.getdoc(tasks.ci) or "")
    jobs = {job["target"] for job in json.loads(ci.matrix(expected.due(lock.everything())))["include"]}
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
    written = ci.place(system).read_text(encoding="utf-8")
    assert written == ci.text(system, expected.due(lock.everything())), f"./foundry ci --write={system}"


def test_the_report_takes_the_results_of_all_jobs_also_if_one_failed(known: Lock) -> None:
    github, gitlab = (read(system, known) for system in ci.SYSTEMS)
    assert set(github["jobs"]["report"]["needs"]) == {*github["jobs"]} - {"report"}
    assert github["jobs"]["report"]["if"] == gitlab["report"]["when"] + "()" == "always()"
    for job in ("test", "prove"):
        assert github["jobs"][job]["needs"] == "quick"
        upload = github["jobs"][job]["steps"][-1]
        assert upload["if"] == "always()" and upload["with"]["path"] == "build/results/"
        assert gitlab[job]["artifacts"]["when"] == "always"
        assert gitlab[job]["artifacts"]["paths"] == ["build/results/"]
        assert gitlab["stages"].index(gitlab[job]["stage"]) < gitlab["stages"].index(gitlab["report"]["stage"])


def test_the_files_are_where_their_systems_read_them() -> None:
    assert ci.place("github").parent == paths.ROOT / ".github" / "workflows"
    assert ci.place("gitlab") == paths.ROOT / ".gitlab-ci.yml"
    assert not list((paths.ROOT / "ci").glob("*.yml"))


def test_jobs_run_as_root_on_debian_on_hosted_runners_and_on_ones_own(known: Lock) -> None:
    github, gitlab = (read(system, known) for system in ci.SYSTEMS)
    for job in github["jobs"].values():
        assert job["runs-on"] == "${{ fromJSON(vars.FOUNDRY_RUNNER || '[\"ubuntu-24.04\"]') }}"
        # GitHub starts no container where the image is empty.
        assert job["container"]["image"] == "${{ !vars.FOUNDRY_RUNNER && 'debian:trixie' || '' }}"
        assert job["container"]["options"] == "--privileged"
    for name in ("test", "prove"):
        runs = [step.get("run", "") for step in github["jobs"][name]["steps"]]
        assert runs.index("ci/engine") < max(index for index, run in enumerate(runs) if run)
    assert gitlab["default"]["image"] == "debian:trixie" and gitlab["default"]["tags"] == ["$FOUNDRY_RUNNER"]
    assert gitlab["default"]["before_script"] == ["ci/engine"]


SOCKET = "/var/run/docker.sock"
FAKES = {"stat": "echo {root}", "mountpoint": "exit {missing}", "umount": 'echo "umount $*"', "rm": 'echo "rm $*"'}


@pytest.mark.parametrize(
    ("root", "mounted", "variable", "printed", "prepared"),
    [
        ("ext2/ext3", True, "", [], False),
        ("overlayfs", True, "tcp://192.0.2.1:2376", [], False),
        ("overlayfs", False, "", [], True),
        ("overlayfs", True, "", [f"umount {SOCKET}", f"rm -f {SOCKET}"], True),
    ],
    ids=["on a machine", "with an engine elsewhere", "in a container", "in a container with the runner's socket"],
)
def test_ci_engine_prepares_a_container_for_an_engine_of_its_own(
    root: str, mounted: bool, variable: str, printed: list[str], prepared: bool, tmp_path: Path
) -> None:
    """Programs that would change this machine only print what they are called with; files are below tmp_path."""
    programs, groups, script = tmp_path / "bin", tmp_path / "sys/fs/cgroup", tmp_path / "checkout/ci/engine"
    for folder in (programs, groups, script.parent):
        folder.mkdir(parents=True)
    for name, body in FAKES.items():
        (programs / name).write_text(f"#!/bin/sh\n{body.format(root=root, missing=int(not mounted))}\n")
        (programs / name).chmod(0o755)
    text = (paths.ROOT / "ci/engine").read_text()
    script.write_text(re.sub("(?=/etc/docker|/sys/fs/cgroup)", str(tmp_path), text))
    (groups / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (groups / "cgroup.procs").write_text("12\n34\n")
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "DOCKER_HOST": variable}
    done = subprocess.run(["sh", script], env=env, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == printed
    settings, limits = tmp_path / "etc/docker/daemon.json", groups / "cgroup.subtree_control"
    assert settings.exists() == limits.exists() == prepared
    if prepared:
        assert json.loads(settings.read_text()) == {"data-root": f"{tmp_path}/checkout/build/engine"}
        assert limits.read_text() == "+cpuset +cpu +memory\n"


def test_ci_of_a_repository_of_a_plugin_fits_the_schemas_and_takes_this_commit_and_each_release(tmp_path: Path) -> None:
    releases = {*components.target("spirv").triton.release}
    scaffold.write_repository("sample_npu", tmp_path / "sample", commit=COMMIT, like="spirv")
    for system, place in {"github": ".github/workflows/plugin.yml", "gitlab": ".gitlab-ci.yml"}.items():
        text = (tmp_path / "sample" / place).read_text()
        job = YAML(typ="safe").load(text)
        jsonschema.validate(job, schema(system))
        assert COMMIT in text
        # Each command is a verb with options that it has.
        for words in re.findall(r"foundry/foundry (.+)", text):
            verb, *options = words.split()
            known = {name.rstrip("_") for name in inspect.signature(getattr(tasks, verb).body).parameters}
            assert {word[2:].split("=")[0].replace("-", "_") for word in options if word.startswith("--")} <= known
    jobs = YAML(typ="safe").load((tmp_path / "sample/.github/workflows/plugin.yml").read_text())["jobs"]
    assert set(jobs["prove"]["strategy"]["matrix"]["triton"]) == releases
    (row,) = job["prove"]["parallel"]["matrix"]
    assert set(row["TRITON"]) == releases
