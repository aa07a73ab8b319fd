"""A plan is rehearsed on a twin of the cluster before it runs, and one that does not end well there is not begun."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from kreassign.admin import AdminClient
from kreassign.autopilot.events import Name
from kreassign.autopilot.policy import Kind
from kreassign.autopilot.story import story
from kreassign.executor.journal import read_events
from kreassign.model import Batch
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.autopilot_journal import DECISIONS, decisions_path
from kreassign.operations.autopilot_plans import rehearsed
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunRequest
from tests.autopilot.fleet import HOUR_S, Fleet
from tests.autopilot.test_scenarios import ACT, GONE_3, LISTS, WITHOUT_3
from tests.autopilot.values import HOUR, Watched, cluster
from tests.executor.odd_port import OddPort, Real
from tests.executor.twin_runs import TwinRig, tp

RING = [[one, (one + 1) % 6, (one + 2) % 6] for one in range(6)]
POLICY = "[broker-gone]\nlevel = 'act'\nact-after = '30m'\n[care]\ninterval = '5m'\n"
GONE = Name(Kind.BROKER_GONE, "broker 3")
LOOKS_S = 300.0


def test_a_plan_that_failed_its_rehearsal_waits_for_a_good_one() -> None:
    watched = Watched(ACT, lambda _: cluster(0, WITHOUT_3 if watched.runs else LISTS, down=[3]))
    watched.breach = "rehearsed on a twin of the cluster: paused"
    watched.watch(5 * HOUR)
    gates = watched.memory.findings[GONE_3].gates
    assert gates is not None
    assert (watched.runs, [(one.gate, one.why) for one in gates.closed]) == ([], [("rehearsal", watched.breach)])
    (told,) = [one for one in watched.messages if "has been kept" in one.what]
    assert told.why == f"rehearsal: {watched.breach}"
    watched.breach = ""
    watched.watch(1.5 * HOUR)
    assert watched.runs == [GONE_3]


def test_a_plan_without_a_rehearsal_is_rehearsed_once_it_may_run() -> None:
    """The level of the policy is raised while the plan is proposed."""
    watched = Watched(ACT, lambda _: cluster(0, WITHOUT_3 if watched.runs else LISTS, down=[3]))
    watched.is_rehearsed = False
    watched.watch(3 * HOUR)
    assert watched.runs == []
    watched.is_rehearsed = True
    watched.watch(0.25 * HOUR)
    assert watched.runs == [GONE_3]


def test_what_a_rehearsal_showed_is_in_the_story(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, RING, brokers=6), POLICY)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    events = read_events(decisions_path(tmp_path, ours.rig.twin.cluster_id), DECISIONS)
    (planned,) = (one for one in story(events, GONE) if one.what.startswith("planned"))
    assert re.search(r"rehearsed on a twin of the cluster: done after \d+ s, and no guard held it", planned.why)


def test_a_plan_that_writes_outrun_is_not_begun(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, RING, brokers=6, write_bytes_per_s=60_000)
    ours, before = Fleet(tmp_path, rig, f"{POLICY}[runs]\nthrottle = '50kB/s'\n"), rig.replicas
    with ours.opened() as autopilot:
        rig.twin.crash(3)
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        gates = autopilot.memory.findings[GONE].gates
        assert (autopilot.memory.acts, rig.replicas) == ((), before)
    assert gates is not None
    closed = dict(gates.closed)
    assert closed["rehearsal"].startswith("it could not be rehearsed on a twin of the cluster: ")


def test_what_is_of_unknown_size_is_not_rehearsed_with_the_others(tmp_path: Path) -> None:
    """Sizes were known when the plan was made."""
    rig = TwinRig(tmp_path, RING, brokers=6)
    odd, plan = OddPort(rig.client), Plan((PartitionAssignment(tp(0), (0, 1, 4)),))
    both, lacking = Plan((*plan.assignments, PartitionAssignment(tp(1), (1, 2, 5)))), {tp(0)}

    def without_sizes(real: Real, *args: Any, **named: Any) -> Any:
        answer = real(*args, **named)
        bare = {
            broker: tuple(
                replace(one, replicas=tuple(each for each in one.replicas if each.topic_partition not in lacking))
                for one in dirs
            )
            for broker, dirs in answer.ok.items()
        }
        return Batch(bare, answer.failed)

    client, request = cast(AdminClient, odd), RunRequest(PlanFile(plan))
    assert not rehearsed(client, request, 0, rig.transport).problem
    odd.answer_always("describe_log_dirs", without_sizes)
    found = rehearsed(client, request, 0, rig.transport)
    assert found.problem == "it could not be rehearsed on a twin of the cluster: the size of t-0 is not known"
    found = rehearsed(client, RunRequest(PlanFile(both)), 0, rig.transport)
    assert found.problem == ""
    assert "without what cannot be tried (the size of t-0 is not known): done after" in found.text
