"""One question, one answer: plans, runs, programs, the page and the doctor say the same of it, in the same words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import kreassign
from kreassign.admin import AdminClient
from kreassign.errors import IllegalPlan, KreassignError
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.reassignment import WAIT_OR_CANCEL
from kreassign.model.replication_factor import CONSENT, undercut
from kreassign.operations.connect import KreassignWarning
from kreassign.operations.decommission import DecommissionRequest, preview_decommission
from kreassign.operations.plan_files import Assignments, PlanFile, write_plan
from kreassign.operations.plan_tasks import ChangeReplicationFactor, DrainBrokers, Import, Restore
from kreassign.operations.run import RunContext
from kreassign.planner.problem.holds import Hold
from kreassign.planner.results import Outcome
from kreassign.planner.tasks import TopicChoice
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.web.operations import Served
from kreassign.web.previews import PreviewRequest
from kreassign.web.settings import Reach, WebSettings
from kreassign.web.tasks import TaskRequest
from tests.executor.twin_runs import tp
from tests.kafka_tools.served_twin import served
from tests.twin.asking import MEGABYTES, cluster

pytestmark = pytest.mark.thorough


@dataclass(frozen=True, slots=True)
class Asked:
    """A cluster as programs reach it, and its page, with a plan for it that is named `plan.json`."""

    client: AdminClient
    page: Served
    state_dir: Path


@contextmanager
def asking(folder: Path, twin: Twin, plan: Plan) -> Iterator[Asked]:
    (folder / "plans").mkdir()
    write_plan(folder / "plans" / "plan.json", plan, None)
    with served(twin) as address, kreassign.connect(address) as client:
        settings = WebSettings(folder, plans=folder / "plans", reach=Reach(address), measure_for_s=0.0)
        yield Asked(client, Served(settings), folder)


def to(*replicas: int) -> Plan:
    return Plan((PartitionAssignment(tp(0), replicas),))


def test_a_factor_that_falls_too_low_is_told_in_the_same_words(tmp_path: Path) -> None:
    twin, plan, lone = Twin(cluster({"t": [[0, 1]], "u": [[0]]}), TwinSettings()), to(1), undercut(1, 2)
    told = ("replication factor of 1 partition falls from 2 to 1: t-0", f"topic t: {lone}")
    with asking(tmp_path, twin, plan) as asked:
        two = ConfigChange.set("min.insync.replicas", "2")
        topics = {ConfigResource.topic(name): [two] for name in "tu"}
        asked.client.incremental_alter_configs(topics).raise_if_any()
        seen = kreassign.snapshot(asked.client, measure_for_s=0)
        calls: dict[str, Callable[[], object]] = {
            "run": lambda: kreassign.run(asked.client, plan, measure_for_s=0, state_dir=tmp_path),
            "rehearse": lambda: kreassign.rehearse(plan, seen),
            "factor": lambda: kreassign.plan(seen, ChangeReplicationFactor(1, TopicChoice(("t",)))),
            "restore": lambda: kreassign.plan(seen, Restore(plan, "x.json")),
            "import": lambda: kreassign.plan(seen, Import(Assignments(PlanFile(plan), "x.json"))),
            "page": lambda: asked.page.preview("plan.json", PreviewRequest()),
        }
        for name, call in calls.items():
            with pytest.raises(IllegalPlan) as refusal:
                call()
            assert refusal.value.violations == (*told, CONSENT), name
        assert kreassign.verify(asked.client, plan, ignore_throttles=True).factors == told
        found = {one.subject: one.seen for one in kreassign.doctor(asked.client, state_dir=tmp_path)}
        shown = {one.subject: one.seen for one in asked.page.cluster().recommendations}
        assert found["topic u"] == shown["topic u"] == lone


def told_by(call: Callable[[], object]) -> str:
    """Output about a plan, or about its refusal."""
    try:
        found = call()
    except KreassignError as error:
        return str(error)
    return "; ".join(found.facts.remaining) if isinstance(found, Outcome) else str(found)


def test_a_copy_that_no_live_broker_has_is_the_cause_that_is_told(tmp_path: Path) -> None:
    twin = Twin(cluster({"t": [[3]]}), TwinSettings())
    twin.crash(3)
    twin.advance(60_000)
    with asking(tmp_path, twin, to(2)) as asked:
        with pytest.warns(KreassignWarning, match="t-0 has no leader"):
            seen = kreassign.snapshot(asked.client, measure_for_s=0)
        drain, warnings = DecommissionRequest((3,)), list[str]()
        gone = f"({Hold.OUT_OF_REACH.why}); {Hold.OUT_OF_REACH.remedy}"
        for call in (
            lambda: kreassign.plan(seen, DrainBrokers((3,))),
            lambda: kreassign.plan(seen, Restore(to(2), "x.json")),
            lambda: asked.page.make_plan(TaskRequest("drain-brokers", (3,))),
            lambda: preview_decommission(asked.client, drain, RunContext(tmp_path, warn=warnings.append)),
        ):
            assert gone in told_by(call)


def test_a_partition_that_moves_is_waited_for_or_cancelled(tmp_path: Path) -> None:
    twin = Twin(cluster({"t": [[0, 1]]}, size_bytes=100_000 * MEGABYTES), TwinSettings())
    with asking(tmp_path, twin, to(0, 3)) as asked:
        asked.client.alter_partition_reassignments({tp(0): (0, 2)}).raise_if_any()
        seen = kreassign.snapshot(asked.client, measure_for_s=0)
        for call in (
            lambda: kreassign.plan(seen, DrainBrokers((1,))),
            lambda: kreassign.plan(seen, Restore(to(0, 3), "x.json")),
            lambda: kreassign.run(asked.client, to(0, 3), measure_for_s=0, state_dir=tmp_path),
            lambda: asked.page.make_plan(TaskRequest("drain-brokers", (1,))),
            lambda: asked.page.preview("plan.json", PreviewRequest()),
        ):
            assert WAIT_OR_CANCEL in told_by(call)
