"""Audits and reports whose snapshots and tables are in the store, beside the same of a copy on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import kreassign
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import AUDIT_BROKERS, AUDIT_MOVES, AUDIT_RUNS, DATA_AUDIT
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.server import serving
from testbed import ClusterSpec, KafkaCluster
from testbed.jars import spark_kafka_jars
from testbed.records import load_topic
from tests.s3.conftest import BUCKET, Store, jars
from tests.s3.test_tables_on_s3 import copy_of
from tests.twin.asking import cluster

DATA, SAME = f"s3://{BUCKET}/audits", f"s3a://{BUCKET}/audits"

# They wait for Spark, Kafka and the store, one after the other.
pytestmark = pytest.mark.timeout(900)


def done(store: Store, *words: object, **changed: str | None) -> str:
    """Output of a successful command."""
    finished = store.run(*map(str, words), **changed)
    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
    return finished.stdout


def test_a_run_is_audited_and_reported_by_snapshots_in_the_store(store: Store, tmp_path: Path) -> None:
    plan, pages = tmp_path / "plan.json", [tmp_path / name for name in ("audit.html", "report.html", "local.html")]
    moves = [{"topic": "t", "partition": number, "replicas": [1, 2]} for number in (0, 1)]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    with (
        serving(Twin(cluster({"t": [[0, 3], [3, 1]]}), TwinSettings()), speed=10.0) as thread,
        kreassign.connect(thread.bootstrap_servers) as client,
    ):
        where = ("--bootstrap-server", thread.bootstrap_servers)
        kreassign.store_snapshot(client, kreassign.SnapshotOutputs(DATA))
        said = done(store, "run", "--yes", plan, *where, "--state-dir", tmp_path / "state", "--format", "json")
        kreassign.store_snapshot(client, kreassign.SnapshotOutputs(SAME))
    run, state = json.loads(said)["run_id"], ("--state-dir", tmp_path / "state")
    copy_of(DATA, tmp_path / "copy")

    audited = done(store, "audit", "run", run, "--data", SAME, *state, "--report", pages[0])
    assert "done, 2 of 2 moves complete" in audited
    assert done(store, "audit", "run", run, "--data", tmp_path / "copy", *state) == audited
    for table in (AUDIT_RUNS, AUDIT_MOVES, AUDIT_BROKERS):
        stored, local = (sorted(map(str, read_rows(place, table))) for place in (DATA, tmp_path / "copy"))
        assert stored == local
        assert stored
    assert {row["is_on_target"] for row in read_rows(DATA, AUDIT_MOVES)} == {True}

    for place, page in ((SAME, pages[1]), (tmp_path / "copy", pages[2])):
        done(store, "report", "--run", run, "--data", place, *state, "--out", page)
    assert pages[1].read_text() == pages[2].read_text()
    assert "Audit of reassignment" in pages[0].read_text()


def test_readings_of_records_are_kept_and_compared_in_the_store(
    store: Store, start_cluster: Callable[[ClusterSpec], KafkaCluster]
) -> None:
    kafka = start_cluster(ClusterSpec(brokers=3))
    one, two, *_ = sorted(kafka.brokers)
    kafka.create_topic("records", [[one, two], [two, one]])
    written = load_topic(kafka.bootstrap_servers, "records", {0: 100_000, 1: 50_000}, seed=1)
    # Of jars that this variable names and those of --jars DIR Spark takes the former alone.
    paths = ",".join(map(str, [*jars(of_s3=True), *sorted(spark_kafka_jars().glob("*.jar"))]))
    changed = {"PYSPARK_SUBMIT_ARGS": f"--jars {paths} pyspark-shell"}
    reading = ("audit", "records", "--topics", "records", "--bootstrap-server", kafka.bootstrap_servers, "--label")
    assert f"before: {written.count} records of 2 part" in done(store, *reading, "before", "--data", DATA, **changed)
    again = load_topic(kafka.bootstrap_servers, "records", {0: 20_000}, seed=2)
    assert f"after: {written.count + again.count} re" in done(store, *reading, "after", "--data", SAME, **changed)
    done(store, "audit", "compare", "before", "after", "--data", DATA)
    rows = {row["partition"]: (row["verdict"], row["appended"]) for row in read_rows(SAME, DATA_AUDIT)}
    assert rows == {0: ("same", again.count), 1: ("same", 0)}
