"""The image and the manifests for Kubernetes: linted, held to schemas, their commands run on a twin."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

from kreassign.autopilot.events import Ended, Looked
from kreassign.cli.main import kreassign
from kreassign.executor.journal import find_journals
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import RunHistory
from kreassign.operations.autopilot_journal import clusters_looked_after, decided
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import write_plan
from kreassign.operations.run_journals import status
from kreassign.operations.verify import placement_of_cluster, write_placement
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.server import serving
from testbed.waiting import PATIENCE_S, wait_until
from tests.checks.source import ROOT
from tests.twin.asking import cluster
from tests.twin.paced_time import PacedTime

MANIFESTS = sorted((ROOT / "examples" / "kubernetes").glob("*.yaml"))
RELEASES = ("1.29", "1.34")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PROGRAMS = Path(sys.executable).parent
EACH = pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)


# --- the image --------------------------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile in order: word and rest, comments and line ends taken out."""
    text = re.sub(r"\\\n", " ", "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#")))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines()) if word]


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    done = subprocess.run([PROGRAMS / "hadolint", "-"], input=DOCKERFILE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_nobody_in_particular_who_is_not_root() -> None:
    last = [word for word, _ in instructions()][::-1].index("FROM")
    stage = instructions()[-last:]
    (user,) = (rest for word, rest in stage if word == "USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user), "a number, so that Kubernetes can tell that it is not root"
    assert [rest for word, rest in stage if word == "ENTRYPOINT"] == ['["kreassign"]']
    after = [word for word, _ in stage[stage.index(("USER", user)) :]]
    assert not {"RUN", "COPY", "ADD"}.intersection(after)


def test_both_stages_begin_with_a_slim_image_of_a_supported_python() -> None:
    bases = {rest.partition(" ")[0] for word, rest in instructions() if word == "FROM"}
    (base,) = bases
    assert re.fullmatch(r"python:3\.1[1-9]-slim-[a-z]+", base)


def test_nothing_is_installed_into_the_image_but_by_hashes() -> None:
    commands = [part.strip() for word, rest in instructions() if word == "RUN" for part in rest.split("&&")]
    pip, uv = (part for part in commands if " install " in part)
    assert "--require-hashes -r locks/build.lock" in pip
    assert "-b locks/build.lock -c locks/product.lock" in uv


def test_what_the_image_copies_is_there_and_is_let_in() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*", "secrets and build output stay out unless they are named"
    let_in = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")]
    sources = {source.removeprefix("./") for sources in copied for source in sources}
    assert sources == let_in
    assert all((ROOT / source).exists() for source in sources)
    assert not any(fnmatch.fnmatch(source, rule) for source in sources for rule in rules[1:] if rule[0] != "!")


# --- the manifests ----------------------------------------------------------------------------------------------------


def documents(manifest: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(manifest.read_text(encoding="utf-8")))


def pods(manifest: Path) -> Iterator[dict[str, Any]]:
    """The specification of each pod that a manifest makes."""
    for document in documents(manifest):
        if document["kind"] in {"Job", "Deployment"}:
            yield document["spec"]["template"]["spec"]
        elif document["kind"] == "CronJob":
            yield document["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def container(manifest: Path) -> dict[str, Any]:
    ((found,),) = (pod["containers"] for pod in pods(manifest))
    only: dict[str, Any] = found
    return only


def test_there_is_a_job_a_cron_job_and_a_deployment() -> None:
    kinds = {document["kind"] for manifest in MANIFESTS for document in documents(manifest)}
    assert kinds == {"ServiceAccount", "PersistentVolumeClaim", "NetworkPolicy", "Job", "CronJob", "Deployment"}


@EACH
@pytest.mark.parametrize("release", RELEASES)
def test_manifests_are_what_kubernetes_takes(manifest: Path, release: str) -> None:
    for document in documents(manifest):
        kubernetes_validate.validate(document, release, strict=True)


def test_what_kubernetes_does_not_take_is_found() -> None:
    (*_, job) = documents(ROOT / "examples" / "kubernetes" / "run.yaml")
    job["spec"]["template"]["spec"]["runAsNonRoot"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, RELEASES[0], strict=True)


@EACH
def test_pods_have_the_least_rights_that_they_can_do_with(manifest: Path) -> None:
    """Rules of Kubernetes' own `restricted` standard, and a root that nothing is written to."""
    for pod in pods(manifest):
        assert pod["automountServiceAccountToken"] is False
        own = pod["securityContext"]
        assert own["runAsNonRoot"] is True
        assert f"USER {own['runAsUser']}:{own['runAsGroup']}" in DOCKERFILE
        assert own["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"}.intersection(pod)
        for one in pod["containers"]:
            rights = one["securityContext"]
            assert rights["allowPrivilegeEscalation"] is False
            assert rights["readOnlyRootFilesystem"] is True
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert one["resources"]["limits"]["memory"]
            assert one["resources"]["requests"].keys() == {"cpu", "memory"}
            assert not one["image"].endswith(":latest")
            mounted = {mount["name"] for mount in one["volumeMounts"]}
            assert mounted == {volume["name"] for volume in pod["volumes"]}
        assert not [volume for volume in pod["volumes"] if "hostPath" in volume]


def test_the_accounts_and_volumes_that_pods_name_are_in_the_manifests() -> None:
    made = {(document["kind"], document["metadata"]["name"]) for one in MANIFESTS for document in documents(one)}
    for manifest in MANIFESTS:
        for pod in pods(manifest):
            assert ("ServiceAccount", pod["serviceAccountName"]) in made
            claims = [volume["persistentVolumeClaim"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
            assert all(("PersistentVolumeClaim", claim["claimName"]) in made for claim in claims)
    # Journals are where the volume is, or the next pod would not know of the run.
    job = container(ROOT / "examples" / "kubernetes" / "run.yaml")
    (state,) = (one["value"] for one in job["env"] if one["name"] == "KREASSIGN_STATE_DIR")
    (mount,) = (one["mountPath"] for one in job["volumeMounts"] if one["name"] == "state")
    assert state.startswith(f"{mount}/")


# --- what the pods do, on a twin --------------------------------------------------------------------------------------


class Pod:
    """The process of a container, with its volumes in a folder of this machine."""

    def __init__(self, manifest: Path, folder: Path, servers: str, instead: Mapping[str, str] | None = None) -> None:
        self._container, self._folder, self._servers = container(manifest), folder, servers
        self._container["args"] = [(instead or {}).get(word, word) for word in self._container["args"]]

    @property
    def words(self) -> list[str]:
        """The command line; the image's entry point is the command itself."""
        return [self._here(word) for word in (*self._container.get("command", ["kreassign"]), *self._container["args"])]

    @property
    def environment(self) -> dict[str, str]:
        given = {one["name"]: self._here(one["value"]) for one in self._container["env"]}
        given["KREASSIGN_BOOTSTRAP_SERVER"] = self._servers
        # The twin is nearer than a cluster, and its copies smaller.
        kept = {name: os.environ[name] for name in ("KREASSIGN_TESTS", "LANG") if name in os.environ}
        return {**kept, **given, "PATH": f"{PROGRAMS}:/usr/bin:/bin", "HOME": str(self._folder)}

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words, env=self.environment, capture_output=True, text=True, check=False, timeout=120
        )

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(self.words, env=self.environment, text=True, stderr=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.kill()

    def _here(self, text: str) -> str:
        places = {mount["mountPath"]: str(self._folder / mount["name"]) for mount in self._container["volumeMounts"]}
        return re.sub(rf"(?<![\w/])({'|'.join(places)})(?=/|$)", lambda found: places[found[1]], text)


def volumes(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir()
    (folder / "kafka" / "client.properties").write_text("request.timeout.ms=30000\n")


def history(folder: Path) -> RunHistory | None:
    journals = find_journals(folder / "state" / "plan-1")
    return status(journals[0]) if journals else None


@pytest.mark.thorough
def test_a_job_whose_pod_is_replaced_resumes_its_run_and_begins_no_other(tmp_path: Path) -> None:
    volumes(tmp_path, "state", "tmp", "plan", "kafka")
    targets = {TopicPartition("t", 0): (3, 2), TopicPartition("t", 1): (2, 3)}
    write_plan(tmp_path / "plan" / "plan.json", Plan(tuple(PartitionAssignment(*one) for one in targets.items())), None)
    twin, time = Twin(cluster({"t": [[0, 1], [1, 0]]}, size_bytes=200_000_000), TwinSettings()), PacedTime(0.05)
    with serving(twin, clock=time) as thread:
        pod = Pod(ROOT / "examples" / "kubernetes" / "run.yaml", tmp_path, thread.bootstrap_servers)
        with pod.running() as process:

            def is_moving() -> bool:
                assert process.poll() is None, process.stderr and process.stderr.read()
                found = history(tmp_path)
                return found is not None and found.state == "moving"

            wait_until(is_moving, what="the run of the first pod to move")
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) != 0, "a pod that ends well is not replaced"
        thread.do(lambda _: time.go_on(10.0))
        again = pod.run()
        assert again.returncode == 0, again.stderr
        with connect(thread.bootstrap_servers) as client:
            found = client.describe_topics(["t"])["t"].partitions
    assert {one.topic_partition: one.replicas for one in found} == targets
    assert len(find_journals(tmp_path / "state" / "plan-1")) == 1
    done = history(tmp_path)
    assert done is not None
    assert done.state == "done"


@pytest.mark.thorough
def test_the_nightly_check_passes_until_the_cluster_drifts(tmp_path: Path) -> None:
    volumes(tmp_path, "tmp", "placement", "kafka")
    with serving(Twin(cluster({"t": [[0, 1]]}), TwinSettings()), speed=10.0) as thread:
        pod = Pod(ROOT / "examples" / "kubernetes" / "check.yaml", tmp_path, thread.bootstrap_servers)
        with connect(thread.bootstrap_servers) as client:
            write_placement(tmp_path / "placement" / "placement.json", placement_of_cluster(client))
            assert pod.run().returncode == 0
            client.alter_partition_reassignments({TopicPartition("t", 0): (0, 2)}).raise_if_any()
            wait_until(lambda: not client.list_partition_reassignments(), what="the move to complete")
        drifted = pod.run()
    assert drifted.returncode == 1
    assert "t-0: is on 0,2, declared on 0,1" in drifted.stdout


@pytest.mark.thorough
def test_the_next_pod_of_an_autopilot_goes_on_at_once(tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    journals.mkdir()
    with serving(Twin(cluster({"t": [[0, 1]]}), TwinSettings()), speed=10.0) as thread:
        first, second = (
            autopilot_pod(tmp_path / node, thread.bootstrap_servers, f"file://{journals}") for node in ("one", "two")
        )
        with first.running() as process:
            wait_until(lambda: Looked in kinds_of(tmp_path / "one", process), what="a look of the first pod")
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        with second.running() as process:
            wait_until(lambda: Ended in kinds_of(tmp_path / "two", process), what="the second pod to go on")


def autopilot_pod(folder: Path, servers: str, journals: str) -> Pod:
    """The pod of an autopilot on a node of its own. A twin keeps no records, so it has no topic for journals."""
    folder.mkdir()
    volumes(folder, "state", "tmp", "policy", "kafka")
    (folder / "policy" / "policy.toml").write_text("[care]\n")
    manifest = ROOT / "examples" / "kubernetes" / "autopilot.yaml"
    return Pod(manifest, folder, servers, {"topic:kreassign-journals": journals})


def kinds_of(folder: Path, process: subprocess.Popen[str]) -> set[type[object]]:
    """Kinds of the decisions that a pod has; fails if it ended."""
    assert process.poll() is None, process.stderr and process.stderr.read()
    known = clusters_looked_after(folder / "state", is_dry=True)
    return {type(one) for one in decided(folder / "state", known[0], is_dry=True)} if known else set()


def test_the_unit_of_systemd_has_a_command_that_is_taken() -> None:
    unit = (ROOT / "examples" / "kreassign-autopilot.service").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=/usr/local/bin/kreassign (.*)$", unit, re.MULTILINE)
    assert CliRunner().invoke(kreassign, [*shlex.split(line), "--help"]).exit_code == 0
    assert {"Restart=always", "KillSignal=SIGTERM", "StateDirectory=kreassign"} <= set(unit.splitlines())


def test_command_lines_of_the_manifests_begin_with_ours() -> None:
    """`sh` there runs only `kreassign` and commands of a slim image."""
    script = container(ROOT / "examples" / "kubernetes" / "run.yaml")["args"][0]
    assert shutil.which("sh")
    first = {shlex.split(line)[0] for line in script.splitlines() if line.strip()}
    assert first <= {"if", "fi", "exec"}
