"""Pages of plans and runs, from files to files: what `kreassign report` and `rehearse --report` write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.errors import DataError
from kreassign.executor.events import HoldRequested, ReleaseRequested, ThrottleRequested
from kreassign.executor.history.audit_trail import audit_trail, planned_s
from kreassign.executor.history.run_history import fold, history
from kreassign.executor.journal import read_events
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import plan_id
from kreassign.operations.plan_files import write_plan
from kreassign.operations.report import write_audit_trail
from kreassign.pipeline.tables.parquet import read_rows, stored_rows
from kreassign.pipeline.tables.schemas import RUN_MOVES, RUNS
from kreassign.report.run_checks import CheckResult, checks_of
from kreassign.report.run_pictures import run_pictures
from tests.approved import approve
from tests.executor.run_events import started
from tests.executor.twin_runs import RATE, TwinRig
from tests.report.plans import FACTS, TARGETS
from tests.report.test_html import Page


def invoke(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(kreassign, [str(argument) for argument in arguments])
    return result.exit_code, result.output


PLAN = Plan(tuple(PartitionAssignment(name, target) for name, target in TARGETS.items()))


def test_a_plan_is_reported_from_its_two_files_alone(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan.json", PLAN, replace(FACTS, plan_id=plan_id(PLAN)))
    out = tmp_path / "plan.html"
    code, said = invoke("report", "--plan", tmp_path / "plan.json", "--out", out)
    assert code == 0
    approve(said, "report-of-a-plan", DIR=tmp_path)
    words = Page(out.read_text(encoding="utf-8")).words
    assert "Hottest broker: 2.35 × → 1.10 × the mean (disk)" in words
    assert "orders-2 2,1 → 2,3 1 GB" in words


def test_an_edited_plan_is_reported_without_its_former_figures(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan.json", PLAN, FACTS)
    out = tmp_path / "plan.html"
    code, said = invoke("report", "--plan", tmp_path / "plan.json", "--out", out)
    assert (code, out.exists()) == (2, False)
    assert "the plan was changed after it was made" in said


def test_a_plan_without_facts_has_no_page_and_a_clear_error(tmp_path: Path) -> None:
    write_plan(tmp_path / "plan.json", Plan((PartitionAssignment(TopicPartition("a", 0), (1,)),)), None)
    code, said = invoke("report", "--plan", tmp_path / "plan.json", "--out", tmp_path / "plan.html")
    assert code == 2
    assert "plan.json has no facts file (plan.facts.json) beside it" in said
    assert "`kreassign plan --out` writes both" in said


def test_a_plan_and_a_run_are_not_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    code, said = invoke("report", "--plan", tmp_path / "plan.json", "--run", "last")
    assert (code, "specify either --run RUN_ID or --plan FILE" in said) == (2, True)


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> TwinRig:
    """A run of two moves on a twin, slowed down after 3 s, held from 5 to 7 s, left after 9 s, and resumed."""
    rig = TwinRig(tmp_path_factory.mktemp("run"), [[0, 1], [1, 0]], write_bytes_per_s=RATE / 10)
    rig.ask_after(3, lambda at_ms, number: ThrottleRequested(at_ms, number, RATE // 2))
    rig.ask_after(5, HoldRequested)
    rig.ask_after(7, ReleaseRequested)
    rig.stop_after(9)
    rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}))
    rig.resume()
    return rig


def test_the_page_of_a_run_is_written_from_its_journal_alone(eventful: TwinRig, tmp_path: Path) -> None:
    out = tmp_path / "run.html"
    code, said = invoke("report", "--run", eventful.path(), "--out", out)
    assert code == 0
    approve(said, "report-of-a-run", DIR=tmp_path)
    words = Page(out.read_text(encoding="utf-8")).words
    for told in (
        "Moves completed 2 of 2",
        "throttle: 500 kB/s per broker",
        "paused: nothing new is started, what is in flight goes on",
        "The throttle was 500 kB/s and 1 MB/s.",
        "There are no snapshots to compare.",
        "No guard had anything to say.",
        "verified: the cluster is as this run should leave it",
    ):
        assert told in words, told


def test_what_a_run_copied_is_kept_apart_from_what_was_written_meanwhile(eventful: TwinRig) -> None:
    events = read_events(eventful.path())
    trail = audit_trail(events)
    found = history(fold(events))
    pictures = run_pictures(found, trail)
    copied = sum({(one.partition, one.broker): one.done_bytes for one in trail.copy_progress}.values())
    assert pictures.planned_bytes == sum(move.size_bytes for move in found.moves)
    assert copied == found.bytes_copied
    assert pictures.growth_bytes == pytest.approx(copied - pictures.planned_bytes)
    assert pictures.growth_bytes > 0
    # Two copies of ten megabytes to brokers of their own, from leaders of their own, at one megabyte a second.
    assert trail.planned_s == pytest.approx(10, rel=0.1)


def test_what_has_no_throttle_has_no_planned_time() -> None:
    assert planned_s(started(throttle=None)) is None
    # Broker 2 gets 1,000 bytes, broker 3 gets 500.
    assert planned_s(started(throttle=100)) == 10


def test_a_move_of_a_deleted_topic_has_no_completion(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    rig.between_steps(3, lambda: rig.client.delete_topics(["t"]).raise_if_any())
    rig.run(rig.prepared({0: (2, 1)}))
    trail = audit_trail(read_events(rig.path()))
    write_audit_trail(trail, tmp_path / "data")
    (row,) = read_rows(tmp_path / "data", RUN_MOVES)
    assert (row["status"], row["completed_ms"]) == ("failed", None)
    (completes, *_) = checks_of(trail.history, None)
    assert completes.outcome is CheckResult.FAILED
    assert completes.details == ("t-0 is not complete: its partition was deleted",)


def test_a_run_of_which_not_every_table_was_written_again_is_in_none(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    rig.run(rig.prepared({0: (2, 1)}, throttle=None))
    trail, data = audit_trail(read_events(rig.path())), tmp_path / "data"
    write_audit_trail(trail, data)
    for log in (data / RUN_MOVES.name / "_delta_log").glob("*.json"):
        log.write_text("damaged")
    with pytest.raises(DataError):
        write_audit_trail(trail, data)
    assert stored_rows(data, [RUNS]) == 0
