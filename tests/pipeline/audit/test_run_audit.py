"""Runs on a twin, audited: from the journal and the snapshots around it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kreassign.cli.commands.report import lines
from kreassign.errors import Unreachable
from kreassign.executor.events import ThrottleRequested
from kreassign.executor.history.audit_trail import audit_trail
from kreassign.executor.journal import read_events
from kreassign.model import Batch, ConfigResource
from kreassign.model.throttle import BROKER_THROTTLES
from kreassign.operations.report import audit_page, found_of, write_audit_trail
from kreassign.operations.snapshot import observe
from kreassign.pipeline.ingest.snapshots import snapshot_tables
from kreassign.pipeline.run_audit import write_run_audit
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import AUDIT_BROKERS, AUDIT_MOVES, AUDIT_RUNS, RUN_CALLS, Row
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata import ConfigChanged
from tests.executor.twin_runs import RATE, TwinRig, tp
from tests.report.test_html import Page
from tests.twin.asking import MEGABYTES

pytestmark = pytest.mark.spark

SIZE = 10 * MEGABYTES


def take_snapshot(rig: TwinRig, data: Path, silent: int | None = None) -> None:
    seen = observe(rig.client, rig.transport.now_ms())
    if silent is not None:
        answered = {broker: dirs for broker, dirs in seen.log_dirs.ok.items() if broker != silent}
        seen = replace(seen, log_dirs=Batch(answered, {silent: Unreachable("no answer")}))
    for table, rows in snapshot_tables(seen):
        write_rows(data, table, rows, file_stem=seen.snapshot_id)


def audit(spark: SparkSession, rig: TwinRig, data: Path) -> Row:
    """The run as the command finds it."""
    write_audit_trail(audit_trail(read_events(rig.path())), data)
    tables = write_run_audit(spark, data)
    (run,) = tables["audit_runs"]
    return found_of(run, tables["audit_brokers"])


def give(rig: TwinRig, rate: int) -> None:
    changes = tuple(
        ConfigChanged(ConfigResource.broker(broker), name, str(rate)) for broker in (0, 2) for name in BROKER_THROTTLES
    )
    rig.twin.commit(Decision(changes, None))


def everything_made(data: Path) -> list[list[Row]]:
    return [sorted(read_rows(data, table), key=str) for table in (AUDIT_RUNS, AUDIT_MOVES, AUDIT_BROKERS)]


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path / "state", [[0, 1]] * 3)


def test_a_run_that_kept_its_promises(spark: SparkSession, rig: TwinRig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    take_snapshot(rig, data)
    assert rig.run(rig.prepared({0: (2, 1), 1: (3, 1)})).state == "done"
    rig.transport.sleep(1)
    take_snapshot(rig, data)

    run = audit(spark, rig, data)
    assert run["findings"] == []
    assert "  fullest broker above the mean: +150.0% before, +150.0% planned, +150.0% after" in lines(run)
    assert (run["move_count"], run["complete_count"], run["off_target_count"]) == (2, 2, 0)
    assert (run["predicted_bytes"], run["copied_bytes"]) == (2 * SIZE, 2 * SIZE)
    # Broker 0 leads both, so it has to send both.
    assert run["predicted_s"] == 2 * SIZE / RATE
    assert run["copying_s"] == pytest.approx(run["predicted_s"], rel=0.2)
    assert run["eta_error"] < 0.5
    assert (run["unrestored_count"], run["over_throttle_count"], run["failed_call_count"]) == (0, 0, 0)
    assert run["call_count"] == len(read_rows(data, RUN_CALLS))
    # Brokers 0 and 1 held three copies each; broker 1 still does, of six on five brokers.
    assert run["imbalance_before"] == pytest.approx(1.5)
    assert run["imbalance_planned"] == run["imbalance_after"] == pytest.approx(1.5)

    brokers = {row["broker"]: row for row in read_rows(data, AUDIT_BROKERS)}
    flows = {broker: (row["copied_in_bytes"], row["copied_out_bytes"]) for broker, row in brokers.items()}
    assert flows == {0: (0, 2 * SIZE), 1: (0, 0), 2: (SIZE, 0), 3: (SIZE, 0), 4: (0, 0)}
    assert (brokers[0]["leaders_before"], brokers[0]["leaders_planned"], brokers[0]["leaders_after"]) == (3, 1, 1)
    assert brokers[2]["stored_bytes_before"] == 0
    assert brokers[2]["stored_bytes_planned"] == brokers[2]["stored_bytes_after"] == SIZE
    assert brokers[0]["throttle_use"] == pytest.approx(1, abs=0.1)
    assert brokers[1]["throttle_use"] is None
    assert {row["is_on_target"] for row in read_rows(data, AUDIT_MOVES)} == {True}

    # The page, which does without Spark, has the same figures.
    assert audit_trail(read_events(rig.path())).planned_s == run["predicted_s"]
    warned: list[str] = []
    words = Page(audit_page(run, rig.path(), data, warned.append)).words
    assert [warning for warning in warned if "write rates" not in warning] == []
    for told in (
        "Audit of reassignment run-1",
        "bytes copied 20 MB 20 MB",
        "fullest broker above the mean +150.0% +150.0%",
        "The run did what it was to do, and kept to its throttle.",
        "The plan had 20 MB to copy, in 0:20 at the throttle it began with",
    ):
        assert told in words, told

    first = everything_made(data)
    audit(spark, rig, data)
    assert everything_made(data) == first


def test_bytes_of_a_broker_that_did_not_answer_are_unknown(spark: SparkSession, rig: TwinRig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    take_snapshot(rig, data, silent=1)
    assert rig.run(rig.prepared({0: (2, 1)})).state == "done"
    rig.transport.sleep(1)
    take_snapshot(rig, data)
    run = audit(spark, rig, data)
    brokers = {row["broker"]: row for row in read_rows(data, AUDIT_BROKERS)}
    held = [(row["stored_bytes_before"], row["leaders_before"]) for _, row in sorted(brokers.items())]
    assert held == [(3 * SIZE, 3), (None, 0), (0, 0), (0, 0), (0, 0)]
    assert (run["imbalance_before"], run["imbalance_planned"]) == (None, None)
    assert brokers[1]["stored_bytes_planned"] is None
    assert run["imbalance_after"] == pytest.approx(1.5)


def test_what_was_not_kept_is_found(spark: SparkSession, rig: TwinRig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    # Somebody else gives the brokers ten times the throttle, and moves a partition on in the end.
    rig.after(2, lambda: give(rig, 10 * RATE))
    assert rig.run(rig.prepared({0: (2, 1), 1: (2, 1), 2: (2, 1)})).state in {"done", "failed"}
    rig.client.alter_partition_reassignments({tp(0): (3, 1)}).raise_if_any()
    rig.transport.sleep(60)
    take_snapshot(rig, data)

    run = audit(spark, rig, data)
    assert "of its throttle over a minute" in " ".join(run["findings"])
    assert "1 complete move is elsewhere in the snapshot after: table audit_moves" in run["findings"]
    assert (run["snapshot_before"], run["imbalance_before"], run["imbalance_planned"]) == (None, None, None)
    assert [row["is_on_target"] for row in sorted(read_rows(data, AUDIT_MOVES), key=str)].count(False) == 1


def test_a_throttle_that_was_raised_counts_from_then_on(spark: SparkSession, rig: TwinRig, tmp_path: Path) -> None:
    rig.ask_after(4, lambda at_ms, number: ThrottleRequested(at_ms, number, 4 * RATE))
    assert rig.run(rig.prepared({0: (2, 1), 1: (2, 1)})).state == "done"
    run = audit(spark, rig, tmp_path / "data")
    receiver = next(row for row in run["brokers"] if row["broker"] == 2)
    assert receiver["peak_in_bytes_per_s"] > RATE
    assert receiver["is_within_throttle"]
    assert run["findings"] == []
