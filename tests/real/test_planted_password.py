"""Passwords, looked for in all that a whole story left and said, errors included: files, streams, list of processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kreassign.executor.journal import find_journals
from kreassign.model import NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations import steering
from kreassign.operations.plan_files import write_plan
from testbed import KafkaCluster, Listener
from testbed.properties import render
from testbed.records import load_topic
from testbed.security import USERS
from testbed.waiting import PATIENCE_S, wait_until
from tests.planted import contents, forms
from tests.real.test_run import HELD, HELD_RATE, MEGABYTE, client_of
from tests.web.site import TOKEN, serving_page, with_control

# Some fifteen processes, one after the other.
pytestmark = [pytest.mark.uses_cluster("kafka_secure"), pytest.mark.timeout(600)]

WRONG = "planted-0nly-here"
PLANTED = (USERS["admin"], WRONG, TOKEN)
ENV_PASSWORD = {"PLANTED_PASSWORD": USERS["admin"]}


class Story:
    """A folder in which commands are given as processes, and all that they said."""

    def __init__(self, folder: Path, cluster: KafkaCluster) -> None:
        self.folder, self.said = folder, b""
        self._servers = cluster.bootstrap(Listener.SASL_SSL)
        self._secrets = folder.parent / "secrets"
        self._secrets.mkdir()
        for name, password in (("good", "${env:PLANTED_PASSWORD}"), ("bad", WRONG)):
            known = cluster.client_properties(Listener.SASL_SSL, mechanism="SCRAM-SHA-512", password=password)
            provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
            known |= {"config.providers": "env", "config.providers.env.class": provider}
            (self._secrets / name).write_text(render(known))

    def start(self, *words: object, who: str = "good", debug: bool = False) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "kreassign", *(["--debug"] if debug else []), *map(str, words)]
        where = ["--bootstrap-server", self._servers, "--command-config", str(self._secrets / who)]
        return subprocess.Popen(
            [*command, *where], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, **ENV_PASSWORD, "KREASSIGN_STATE_DIR": str(self.folder / "state")},
        )  # fmt: skip

    def end(self, process: subprocess.Popen[bytes]) -> int:
        self.said += process.communicate(timeout=PATIENCE_S)[0]
        return process.returncode

    def give(self, *words: object, who: str = "good", debug: bool = False) -> int:
        return self.end(self.start(*words, who=who, debug=debug))


def test_a_planted_password_is_found_nowhere(kafka_secure: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    with client_of(kafka_secure) as client:
        client.create_topics([NewTopic(topic_name, assignments=((0,), (0,)))]).raise_if_any()
        load_topic(kafka_secure.bootstrap_servers, topic_name, {0: HELD, 1: MEGABYTE})
        folder = tmp_path / "here"
        (folder / "plans").mkdir(parents=True)
        story = Story(folder, kafka_secure)
        plan = folder / "plans" / "plan.json"
        write_plan(
            plan, Plan(tuple(PartitionAssignment(TopicPartition(topic_name, one), (1,)) for one in (0, 1))), None
        )
        quick = ("--measure-for", 0)
        assert story.give("snapshot", *quick, "--out", "snapshot.json.gz") == 0
        assert story.give("collect", "--data", "data", "--rounds", 1) == 0
        assert story.give("plan", "import", plan, *quick, "--out", "plans/found.json") == 0
        assert story.give("doctor", *quick, debug=True) in {0, 1}
        running = story.start("run", "--yes", plan, *quick, "--throttle", HELD_RATE, "--max-moves", 1)
        wait_until(lambda: client.list_partition_reassignments() or running.poll(), what="the first move")
        assert running.poll() is None, story.end(running) or story.said
        listed = Path(f"/proc/{running.pid}/cmdline").read_bytes()
        assert b"--command-config" in listed
        (journal,) = find_journals(folder / "state")
        steering.set_throttle(journal, 50 * MEGABYTE)
        assert story.end(running) == 0
    assert story.give("verify", plan) == 0
    assert story.give("rollback", "--dry-run") == 0
    # What is refused: a wrong password, with and without its traceback, and a run that is begun with it.
    assert story.give("run", "--yes", plan, *quick, who="bad") != 0
    assert story.give("doctor", *quick, who="bad", debug=True) != 0
    assert story.give("collect", "--data", "data", who="bad", debug=True) != 0
    assert b"Traceback" in story.said
    assert b"was refused" in story.said
    for words in (
        ("status", "--format", "json"),
        ("report", "--out", "run.html"),
        ("report", "--plan", "plans/found.json", "--out", "p.html"),
    ):
        command = [sys.executable, "-m", "kreassign", *map(str, words)]
        own = {**os.environ, **ENV_PASSWORD, "KREASSIGN_STATE_DIR": str(folder / "state")}
        done = subprocess.run(command, cwd=folder, env=own, capture_output=True, check=True, timeout=120)
        story.said += done.stdout + done.stderr
    with serving_page(with_control(folder / "state", folder / "plans")) as site:
        (run,) = site.ask("/api/v1/runs").document["runs"]
        path = f"/runs/{run['run_id']}"
        documents = (
            "clusters",
            f"runs/{run['run_id']}",
            f"runs/{run['run_id']}/moves",
            "plans/plan.json",
            "openapi.json",
        )
        pages = ("/", path, f"{path}/report", "/plans", "/plans/plan.json", "/metrics")
        for page in (*pages, *(f"/api/v1/{name}" for name in documents)):
            answer = site.ask(page)
            assert answer.status == 200
            story.said += answer.text.encode() + json.dumps(dict(answer.headers)).encode()
    looked_at = dict(contents(folder))
    kinds = {path.suffix for path in looked_at}
    assert {".sqlite", ".gz", ".json", ".html", ".parquet"} <= kinds
    found = [(form, path) for form in forms(PLANTED, "admin") for path, content in contents(folder) if form in content]
    assert found == []
    assert [form for form in forms(PLANTED, "admin") if form in story.said + listed] == []
