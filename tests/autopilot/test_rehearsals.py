"""A plan is rehearsed on a twin of the cluster before it runs, and one that does not end well there is not begun."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from kreassign.admin import AdminClient
from kreassign.autopilot.events import Looked, Name, Planned, Rehearsed
from kreassign.autopilot.memory import Finding
from kreassign.autopilot.observation import Asked, Known, Unknown
from kreassign.autopilot.policy import Kind, parse_policy
from kreassign.autopilot.rehearsals import counts_still, dated, runs_at_any_time
from kreassign.autopilot.story import story
from kreassign.errors import Infeasible
from kreassign.executor.journal import read_events
from kreassign.executor.lease import OF_AUTOPILOTS, present_holder
from kreassign.model import Batch, ConfigChange, ConfigResource, LogDir
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations import autopilot_plans, autopilot_proposals
from kreassign.operations.autopilot_journal import BRAKE, DECISIONS, decisions_path
from kreassign.operations.autopilot_looks import why
from kreassign.operations.autopilot_proposals import rehearsed
from kreassign.operations.plan import make_plan
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunRequest
from tests.autopilot.fleet import HOUR_S, Fleet, HostClock
from tests.autopilot.test_judgement import FULL_3
from tests.autopilot.test_scenarios import ACT, GONE_3, LISTS, WITHOUT_3
from tests.autopilot.values import DAY, HOUR, MINUTE, Watched, cluster
from tests.executor.odd_port import OddPort, Real
from tests.executor.test_lease_on_twin import with_offsets_topic
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
    closed = {one.gate: one.why for one in gates.closed}
    assert (watched.runs, set(closed)) == ([], {"rehearsal"})
    assert closed["rehearsal"].startswith(f"{watched.breach}; it is rehearsed again ")
    (told,) = [one for one in watched.messages if "has been kept" in one.what]
    assert told.why.startswith(f"rehearsal: {watched.breach}")
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


def rehearsals(state_dir: Path, cluster_id: str) -> list[Rehearsed]:
    """All rehearsals of an autopilot, in order."""
    events = read_events(decisions_path(state_dir, cluster_id), DECISIONS)
    planned = (one.last_rehearsal for one in events if isinstance(one, Planned))
    made = [one for one in planned if one is not None]
    return list({one.at_ms: one for one in made}.values())


OUTRUN = f"{POLICY}[runs]\nthrottle = '50kB/s'\n"


def test_a_plan_that_fails_its_rehearsal_is_tried_less_often(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, RING, brokers=6, write_bytes_per_s=60_000)
    ours = Fleet(tmp_path, rig, OUTRUN)
    with ours.opened(reread=lambda: ours.policy) as autopilot:
        rig.twin.crash(3)
        ours.watch(autopilot, 4 * HOUR_S, LOOKS_S)
        tried_ms = [one.at_ms for one in rehearsals(tmp_path, rig.twin.cluster_id)]
        hours = [(after - before) / 3_600_000 for before, after in pairwise(tried_ms)]
        assert len(tried_ms) in range(4, 8)
        assert hours[0] < 0.5 < hours[-1] <= 1.25
        gates = autopilot.memory.findings[GONE].gates
        assert gates is not None
        assert "; it is rehearsed again from 1970-01-01 0" in dict(gates.closed)["rehearsal"]
        ours.policy = parse_policy(f"{POLICY}[runs]\nthrottle = '10MB/s'\n", "policy.toml")
        ours.watch(autopilot, 3 * LOOKS_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    told = story(read_events(decisions_path(tmp_path, rig.twin.cluster_id), DECISIONS), GONE)
    tried = [one.why for one in told if one.what == "its plan was rehearsed"]
    assert len(tried) == len(tried_ms)
    assert tried[0].endswith("; it is tried again after 10m")


def test_no_plan_is_rehearsed_while_the_brake_is_pulled(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, RING, brokers=6)
    ours = Fleet(tmp_path, rig, POLICY)
    everywhere = ConfigResource.all_brokers()
    rig.client.incremental_alter_configs({everywhere: [ConfigChange.set(BRAKE, "true")]}).raise_if_any()
    with ours.opened() as autopilot:
        rig.twin.crash(3)
        ours.watch(autopilot, 4 * HOUR_S, LOOKS_S)
        assert autopilot.memory.findings[GONE].proposal is not None
        assert rehearsals(tmp_path, rig.twin.cluster_id) == []
        rig.client.incremental_alter_configs({everywhere: [ConfigChange.delete(BRAKE)]}).raise_if_any()
        ours.watch(autopilot, HOUR_S / 4, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert len(rehearsals(tmp_path, rig.twin.cluster_id)) == 1


def test_a_plan_that_writes_outrun_is_not_begun(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, RING, brokers=6, write_bytes_per_s=60_000)
    ours, before = Fleet(tmp_path, rig, OUTRUN), rig.replicas
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


@pytest.mark.parametrize("step", ["make_plan", "rehearse"])
def test_lack_of_memory_keeps_a_repair_and_ends_no_autopilot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def lacking(*_: object, **__: object) -> NoReturn:
        raise error

    error: BaseException = MemoryError("no room for the plan")
    monkeypatch.setattr(autopilot_proposals if step == "rehearse" else autopilot_plans, step, lacking)
    ours = Fleet(tmp_path, TwinRig(tmp_path, RING, brokers=6), POLICY)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        (found,) = why(ours.rig.client, ours.policy, autopilot.memory, tmp_path, ours.rig.transport)
        closed = found.gates["rehearsal" if step == "rehearse" else "two looks"]
        assert "MemoryError, which nobody foresaw: no room for the plan" in str(closed)
        error = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)


@pytest.mark.parametrize("step", ["make_plan", "rehearse"])
def test_a_plan_that_takes_long_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """It takes longer than the break between two looks after which all evidence begins again."""
    room = autopilot_proposals if step == "rehearse" else autopilot_plans
    made = getattr(room, step)

    def late(*args: Any, **named: Any) -> Any:
        ours.rig.transport.sleep(12 * 60.0)
        return made(*args, **named)

    monkeypatch.setattr(room, step, late)
    ours = Fleet(tmp_path, TwinRig(tmp_path, RING, brokers=6), POLICY)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 3 * HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert len(rehearsals(tmp_path, ours.rig.twin.cluster_id)) == 1


def test_a_clock_set_during_a_rehearsal_makes_it_count_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is set ahead by a day. Nobody knows the traffic of then."""
    ours = Fleet(tmp_path, TwinRig(tmp_path, RING, brokers=6), POLICY)
    clock = HostClock(ours.rig.transport)

    def late(*args: Any, **named: Any) -> Any:
        clock.ahead_s = DAY
        return rehearsed(*args, **named)

    monkeypatch.setattr(autopilot_proposals, "rehearsed", late)
    with ours.opened(clock=clock) as autopilot:
        ours.rig.twin.crash(3)
        while not clock.ahead_s and ours.rig.transport.monotonic_s() < 2 * HOUR_S:
            ours.watch(autopilot, LOOKS_S, LOOKS_S)
        proposal = autopilot.memory.findings[GONE].proposal
    assert proposal is not None
    assert proposal.rehearsal is not None
    assert proposal.rehearsal.until_ms < clock.now_ms()


def test_the_lease_is_kept_while_a_plan_is_rehearsed(tmp_path: Path) -> None:
    rig, asked = TwinRig(tmp_path, RING, brokers=6), list[float]()
    request = RunRequest(PlanFile(Plan((PartitionAssignment(tp(0), (0, 1, 4)),))))
    found = rehearsed(rig.client, request, 0, rig.transport, lambda: asked.append(rig.transport.monotonic_s()))
    assert not found.problem
    assert len(asked) > 10


def test_the_lease_is_kept_while_a_plan_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of the search takes most of the time after which a silent process loses it."""
    rig, holders = with_offsets_topic(TwinRig(tmp_path, RING, brokers=6)), list[object]()

    def slow(inputs: Any, task: Any, request: Any, watch: Any = lambda _: None) -> Any:
        def step(text: str) -> None:
            rig.transport.sleep(30.0)
            watch(text)

        outcome = make_plan(inputs, task, request, step)
        holders.append(present_holder(rig.new_client(), OF_AUTOPILOTS))
        return outcome

    monkeypatch.setattr(autopilot_plans, "make_plan", slow)
    ours = Fleet(tmp_path, rig, POLICY.replace("'act'", "'propose'"))
    with ours.opened() as autopilot:
        rig.twin.crash(3)
        ours.watch(autopilot, HOUR_S, LOOKS_S)
    assert holders
    assert None not in holders


def test_time_of_planning_is_no_evidence() -> None:
    """A broker that was down before it may have been back meanwhile."""
    watched = Watched(ACT, lambda _: cluster(0, LISTS, down=[3]))
    watched.watch(20 * MINUTE)
    before_s = watched.now_s * 1000 - watched.memory.findings[GONE_3].since_ms
    watched.now_s += 50 * MINUTE
    watched.note(Looked(round(watched.now_s * 1000), are_read=False, are_moves_read=False))
    watched.now_s += MINUTE
    watched.look()
    found = watched.memory.findings[GONE_3]
    assert found.proposal is None
    assert watched.now_s * 1000 - found.since_ms == pytest.approx(before_s, abs=5 * MINUTE * 1000)


def test_failures_of_last_night_delay_no_rehearsal_of_tonight() -> None:
    watched = Watched(f"{ACT}[runs]\nwindows = ['00:00-04:00']\n", lambda _: cluster(0, LISTS, down=[3]))
    watched.watch(0.2 * HOUR)
    finding, waits = watched.memory.findings[GONE_3], list[float]()
    for hour in (1.0, 1.5, 2.0, 24.1, 24.5):
        at_ms, look = round(hour * 3_600_000), watched.last_look
        look = look._replace(now=replace(look.now, at_ms=at_ms))
        tried = dated(Rehearsed(at_ms, "", "paused"), look, finding, at_ms)
        finding = replace(finding, proposal=Planned(at_ms, GONE_3, "plan", 0, (), rehearsal=tried))
        waits.append((tried.until_ms - at_ms) / 60_000)
    assert waits == [5, 10, 20, 5, 10]


def test_flickering_urgency_shortens_no_wait_after_failed_rehearsals() -> None:
    """A run of an urgent disk has no windows, and so rehearsals of its own."""
    policy = "[disk-fills]\nlevel = 'act'\nurgent-any-time = true\n[runs]\nwindows = ['00:00-04:00']\n"
    watched = Watched(policy, lambda now_s: cluster(0, LISTS, used={3: 0.95 if now_s % 600 < 300 else 0.88}))
    watched.watch(0.2 * HOUR)
    planned, waits = Planned(0, FULL_3, "plan", 0, ()), list[float]()
    for _ in range(6):
        look, finding = watched.last_look, replace(watched.memory.findings[FULL_3], proposal=planned)
        assert not counts_still(look, finding)
        tried = dated(Rehearsed(look.now.at_ms, "", "paused"), look, finding, look.now.at_ms)
        planned = planned.rehearsed(tried, at_any_time=runs_at_any_time(look, finding))
        waits.append((tried.until_ms - look.now.at_ms) / 60_000)
        assert counts_still(look, replace(finding, proposal=planned))
        watched.now_s += 45 * MINUTE
    assert waits == [5, 5, 10, 10, 20, 20]


def test_a_failed_rehearsal_without_a_wait_is_made_at_the_next_look() -> None:
    watched = Watched(ACT, lambda _: cluster(0, LISTS, down=[3]))
    watched.breach = "rehearsed on a twin of the cluster: paused"
    watched.watch(2 * HOUR)
    gates = watched.memory.findings[GONE_3].gates
    assert gates is not None
    assert dict(gates.closed)["rehearsal"] == (
        f"{watched.breach}; it is rehearsed again at the next look that finds all else open"
    )


def test_a_refusal_is_told_again_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = list[bool]()

    def made(*args: Any, **named: Any) -> Any:
        if full[-1]:
            raise Infeasible("no broker has room")
        return make_plan(*args, **named)

    monkeypatch.setattr(autopilot_plans, "make_plan", made)
    ours = Fleet(tmp_path, TwinRig(tmp_path, RING, brokers=6), POLICY.replace("'act'", "'propose'"))
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        for is_full, wait_s, told in ((True, 0, 1), (False, 3 * HOUR, 1), (True, 0, 1), (False, DAY, 1), (True, 0, 2)):
            full.append(is_full)
            ours.rig.transport.sleep(wait_s)
            ours.watch(autopilot, 3 * HOUR_S, LOOKS_S)
            assert sum(one.what.endswith("it is not repaired") for one in ours.messages) == told
            assert bool(autopilot.memory.findings[GONE].problem) == is_full


# A good rehearsal counts for what it was made of.


def rehearsed_at(watched: Watched) -> Finding:
    """The finding about broker 3, with a plan whose good rehearsal ended at the last look."""
    look = watched.last_look
    tried = dated(Rehearsed(look.now.at_ms, "done"), look, watched.memory.findings[GONE_3], look.now.at_ms)
    return replace(
        watched.memory.findings[GONE_3], proposal=Planned(look.now.at_ms, GONE_3, "plan", 0, (), rehearsal=tried)
    )


@pytest.mark.parametrize(("dirs", "counts"), [
    (Known((LogDir("/d0", None, 1000, 500, is_cordoned=False, replicas=()),)), True),
    (Known((LogDir("/d0", "it is offline", None, None, is_cordoned=False, replicas=()),)), False),
    (Unknown("no answer"), False),
])  # fmt: skip
def test_a_good_rehearsal_counts_for_the_directories_that_it_saw(dirs: Asked[tuple[LogDir, ...]], counts: bool) -> None:
    watched = Watched(ACT, lambda _: cluster(0, LISTS, down=[3]))
    watched.watch(0.2 * HOUR)
    finding, look = rehearsed_at(watched), watched.last_look
    now = replace(look.now, log_dirs={**look.now.log_dirs, 5: dirs})
    assert counts_still(look._replace(now=now), finding) is counts


def test_a_rehearsal_at_any_time_does_not_count_for_a_run_in_windows() -> None:
    """The disk was urgent a minute ago, when its run would have begun at once."""
    policy = "[disk-fills]\nurgent-any-time = true\n[runs]\nwindows = ['00:00-01:00']\n"
    watched = Watched(policy, lambda now_s: cluster(0, LISTS, used={3: 0.95 if now_s <= 2 * HOUR else 0.88}))
    watched.now_s = 2 * HOUR
    watched.look()
    look, finding = watched.last_look, watched.memory.findings[FULL_3]
    tried = dated(Rehearsed(look.now.at_ms, "done"), look, finding, look.now.at_ms)
    planned = Planned(look.now.at_ms, FULL_3, "plan", 0, ()).rehearsed(tried, at_any_time=True)
    finding = replace(finding, proposal=planned)
    counts = [counts_still(look, finding)]
    watched.now_s += MINUTE
    assert [*counts, counts_still(watched.last_look, finding)] == [True, False]


def test_a_good_rehearsal_counts_for_two_looks_and_the_run() -> None:
    """However long the evidence must last: nobody knows the traffic of an hour later."""
    watched = Watched(ACT, lambda _: cluster(0, LISTS, down=[3]))
    watched.watch(0.2 * HOUR)
    finding, look = rehearsed_at(watched), watched.last_look
    counts = [
        counts_still(look._replace(now=replace(look.now, at_ms=look.now.at_ms + minutes * 60_000)), finding)
        for minutes in (14, 16)
    ]
    assert counts == [True, False]
