"""The workflow of GitHub Actions: held to GitHub's schema, safe against whoever opens a pull request, run on a twin."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema

from kreassign.operations.connect import connect
from kreassign.operations.verify import placement_of_cluster, write_placement
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.server import serving
from tests.checks.source import ROOT
from tests.twin.asking import cluster

FILE = ROOT / "examples" / "github_placement.yml"
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
Step = Mapping[str, Any]


class Strings(yaml.SafeLoader):
    """YAML as GitHub reads it: `on` is a word, not true."""


Strings.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    found: dict[str, Any] = Strings(FILE.read_text(encoding="utf-8")).get_single_data()
    return found


def steps(workflow: Mapping[str, Any]) -> Iterator[tuple[str, Step]]:
    for name, job in workflow["jobs"].items():
        for step in job["steps"]:
            yield name, step


def test_it_is_a_workflow_as_github_has_it(workflow: dict[str, Any]) -> None:
    schema = get_builtin_schema("vendor.github-workflows")
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(workflow)] == []
    workflow["jobs"]["drift"].pop("runs-on")
    assert list(validator.iter_errors(workflow))
    workflow["jobs"]["drift"]["runs-on"] = ["self-hosted"]


RELEASE = Strings((ROOT / "examples" / "github_release.yml").read_text(encoding="utf-8")).get_single_data()


def test_a_release_workflow_tests_audits_and_signs_the_tag() -> None:
    schema = get_builtin_schema("vendor.github-workflows")
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(RELEASE)] == []
    assert RELEASE["on"] == {"push": {"tags": ["v*"]}}
    assert (RELEASE["permissions"], RELEASE["jobs"]["release"]["permissions"]) == (
        {"contents": "read"}, {"contents": "write"},
    )  # fmt: skip
    assert RELEASE["jobs"]["release"]["environment"] == "release", "which waits for approval"
    assert RELEASE["jobs"]["release"]["needs"] == "test"
    scripts = [step["run"] for _, step in steps(RELEASE) if "run" in step]
    assert not [one for one in scripts if EXPRESSION.search(one)]
    assert {"make test", "make audit"} <= set(scripts)
    assert any('make release KEY="$RUNNER_TEMP/key"' in one for one in scripts)


def test_nothing_that_others_write_becomes_part_of_a_script(workflow: dict[str, Any]) -> None:
    """Expressions are filled in before the shell reads a script, so a branch's name could be a command."""
    assert not [step for _, step in steps(workflow) if EXPRESSION.search(step.get("run", ""))]


def test_it_may_read_and_comment_and_nothing_else(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert rights == {"comment": {"contents": "read", "pull-requests": "write"}}
    assert "pull_request_target" not in workflow["on"]
    assert "head.repo.full_name == github.repository" in workflow["jobs"]["comment"]["if"]
    assert workflow["jobs"]["run"]["environment"] == "kafka", "which waits for approval"


def script(workflow: Mapping[str, Any], job: str, name: str) -> str:
    (found,) = (step["run"] for where, step in steps(workflow) if (where, step.get("name")) == (job, name))
    return str(found)


class Runner:
    """A folder with a checkout, in which scripts run as a runner runs them."""

    def __init__(self, folder: Path, servers: str, workflow: Mapping[str, Any]) -> None:
        self.folder, self._workflow = folder, workflow
        kept = {name: os.environ[name] for name in ("KREASSIGN_TESTS", "LANG") if name in os.environ}
        given = {name: EXPRESSION.sub("", str(value)) for name, value in workflow["env"].items()}
        self._environment = {
            **kept, **given, "KREASSIGN_BOOTSTRAP_SERVER": servers, "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "KAFKA_PROPERTIES": "request.timeout.ms=30000",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        }  # fmt: skip

    def run(self, job: str, *names: str, code: int = 0) -> None:
        for name in ("client properties", *names):
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", script(self._workflow, job, name)],
                cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False, timeout=180,
            )  # fmt: skip
            assert done.returncode == (code if name == names[-1] else 0), (name, done.stdout, done.stderr)


@pytest.mark.thorough
def test_a_change_of_the_placement_is_told_planned_run_and_watched(tmp_path: Path, workflow: dict[str, Any]) -> None:
    placement = tmp_path / "placement.json"
    with serving(Twin(cluster({"t": [[0, 1], [1, 0]]}), TwinSettings()), speed=10.0) as thread:
        runner = Runner(tmp_path, thread.bootstrap_servers, workflow)
        with connect(thread.bootstrap_servers) as client:
            write_placement(placement, placement_of_cluster(client))
        runner.run("drift", "check")
        assert "All 2 declared partitions are as declared." in (tmp_path / "summary.md").read_text()

        document = json.loads(placement.read_text())
        document["partitions"][0]["replicas"] = [0, 3]
        placement.write_text(json.dumps(document))
        runner.run("comment", "plan")
        comment = (tmp_path / "comment.md").read_text()
        assert "**1 partition to change**: 1 replica to copy, 10 MB" in comment
        assert "| t-0 | 0,1 | 0,3 | 10 MB |" in comment
        runner.run("drift", "check", code=1)
        assert "| t-0 | 0,3 | 0,1 |" in (tmp_path / "summary.md").read_text()

        runner.run("plan", "plan")
        assert (tmp_path / "plan.html").exists()
        runner.run("run", "run", "check")
        assert {"plan.json", "plan.facts.json", "plan.html"} == uploaded(workflow)
        assert (tmp_path / "client.properties").stat().st_mode & 0o077 == 0


def uploaded(workflow: Mapping[str, Any]) -> set[str]:
    """The files that the job of the plan hands to the one that runs it."""
    (step,) = (one for _, one in steps(workflow) if str(one.get("uses")).startswith("actions/upload-artifact"))
    return set(step["with"]["path"].split())
