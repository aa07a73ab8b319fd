"""Two autopilots of one cluster: one looks after it, and the other takes over within a minute. In the twin's time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from kreassign.admin import AdminClient
from kreassign.autopilot.events import Name, RunBegan
from kreassign.autopilot.messages import Message
from kreassign.autopilot.policy import Kind
from kreassign.errors import InputError, StandsBy, Unreachable
from kreassign.executor.events import LeaseLost, RunResumed
from kreassign.executor.journal import journal_path, read_events
from kreassign.executor.lease import OF_AUTOPILOTS, LeaseHolder, present_holder
from kreassign.model.error_codes import GROUP_AUTHORIZATION_FAILED
from kreassign.model.run import Operator
from kreassign.operations.autopilot import Autopilot, watch_or_stand_by
from kreassign.operations.autopilot_decisions import Decisions
from kreassign.operations.autopilot_journal import DECISIONS, Requests, decisions_path, was_here
from kreassign.operations.autopilot_keeper import Vigil
from kreassign.operations.autopilot_lease import AutopilotLease
from kreassign.operations.autopilot_looks import read_policy
from tests.autopilot.fleet import HOUR_S, Fleet, finding
from tests.autopilot.test_journal_elsewhere import Hosts, Killed, hosts_of
from tests.executor.odd_port import Answer, OddPort, Real, as_it_is, not_reached, refused
from tests.executor.test_lease_on_twin import with_offsets_topic
from tests.executor.twin_runs import TwinRig

LISTS = [[one, (one + 1) % 6, (one + 2) % 6] for one in range(6)]
ACT = "[broker-gone]\nlevel = 'act'\nact-after = '30m'\n[care]\ninterval = '60s'\n"
SLOW = f"{ACT}[runs]\nthrottle = '100kB/s'\n"
GONE = Name(Kind.BROKER_GONE, "broker 3")
MINUTE_S = 60.0


def cluster_of(tmp_path: Path, policy: str = ACT) -> Hosts:
    return hosts_of(Fleet(tmp_path, with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6)), policy))


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return cluster_of(tmp_path)


def watch(autopilot: Autopilot, seconds: float) -> None:
    """Look each minute, as its process does."""
    for _ in range(round(seconds / MINUTE_S)):
        autopilot.look()
        autopilot.decisions.lease.rest(MINUTE_S)


def is_due(autopilot: Autopilot) -> bool:
    """True once the plan was made twice: the next look runs it."""
    found = finding(autopilot, *GONE)
    plan = None if found is None else found.proposal
    return found is not None and plan is not None and plan.at_ms - found.steady_ms >= 5 * MINUTE_S * 1000


def unless_of_autopilots(answer: Answer) -> Answer:
    """This answer for the group of autopilots, the twin's own for others."""

    def chosen(real: Real, asked: Any, *rest: Any, **named: Any) -> Any:
        group = asked if isinstance(asked, str) else asked.group_id
        return (answer if group == OF_AUTOPILOTS.group_id else as_it_is)(real, asked, *rest, **named)

    return chosen


GROUP_CALLS = ("join_group", "describe_group", "heartbeat", "leave_group")


def test_the_second_acts_within_a_minute_of_the_death_of_the_first(hosts: Hosts) -> None:
    with hosts.killed("a") as first:
        hosts.fleet.rig.twin.crash(3)
        while not is_due(first):
            watch(first, MINUTE_S)
    died_ms = hosts.fleet.rig.transport.now_ms()
    with pytest.raises(StandsBy, match=r"zoe@a looks after the cluster"):
        hosts.on("b")
    with hosts.standing_by("b") as second:
        second.look()
    (begun,) = (one for one in read_events(hosts.path("b"), DECISIONS) if isinstance(one, RunBegan))
    assert begun.at_ms - died_ms <= 60_000
    assert 3 not in hosts.fleet.holders()


def test_the_second_goes_on_with_the_run_of_the_first(tmp_path: Path) -> None:
    hosts, died = cluster_of(tmp_path, SLOW), list[tuple[str, int]]()
    odd = OddPort(hosts.fleet.rig.client)

    def die(run: Any, _: object) -> None:
        if run.in_flight:
            died.append((run.run_id, hosts.fleet.rig.transport.now_ms()))
            odd.answer_always("leave_group", not_reached)  # what is killed releases nothing
            raise Killed

    context = hosts.fleet.context
    hosts.fleet.context = replace(context, observers=(die,))
    hosts.fleet.rig.client = cast(AdminClient, odd)
    with hosts.killed("a") as first:
        hosts.fleet.rig.twin.crash(3)
        watch(first, HOUR_S)
    hosts.fleet.context = context
    hosts.fleet.rig.client = hosts.fleet.rig.new_client()
    ((run_id, died_ms),) = died
    with hosts.standing_by("b") as second:
        second.look()
        assert [(one.run_id, one.outcome) for one in second.memory.acts] == [(run_id, "done")]
    events = read_events(journal_path(hosts.state_dir("b"), hosts.cluster_id, run_id))
    resumed = next(one for one in events if isinstance(one, RunResumed))
    assert resumed.at_ms - died_ms <= 60_000
    assert (3 in hosts.fleet.holders(), hosts.fleet.rig.throttles) == (False, {})


def test_a_suspended_autopilot_does_nothing_when_it_wakes(hosts: Hosts) -> None:
    rig, before = hosts.fleet.rig, hosts.fleet.rig.replicas
    others: list[Autopilot] = []

    def suspend(message: Message) -> None:
        """Between the decision and its first request, for two minutes, in which another one takes over."""
        if "is repaired by run" in message.what:
            hosts.wait(2 * MINUTE_S)
            others.append(hosts.on("b", None))
            others[0].look()

    rig.twin.crash(3)
    with hosts.killed("a") as first:
        first.decisions.tell = suspend
        with pytest.raises(StandsBy, match="zoe@b looks after the cluster"):
            watch(first, HOUR_S)
    assert (rig.replicas, rig.throttles) == (before, {})
    with others[0] as second:
        watch(second, HOUR_S)
    assert 3 not in hosts.fleet.holders()


def test_of_two_that_begin_together_one_decides(hosts: Hosts) -> None:
    with hosts.on("a", None) as first:
        with pytest.raises(StandsBy, match=r"zoe@a looks after the cluster .* was not heard of for 40s"):
            hosts.on("b", None)
        assert not hosts.path("b").exists()
        hosts.fleet.rig.twin.crash(3)
        watch(first, 45 * MINUTE_S)
        assert [one.outcome for one in first.memory.acts] == ["done"]
    with hosts.on("b", None) as second:  # the first one ended in good order
        second.look()


def test_the_first_repair_of_a_cluster_begins_with_both_leases(tmp_path: Path) -> None:
    """A cluster that keeps no groups yet has no lease of autopilots; that of the run makes it keep some."""
    hosts = hosts_of(Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=6), ACT))
    rig, others = hosts.fleet.rig, list[Autopilot]()
    odd = OddPort(rig.client)

    def begin_another(real: Real, *asked: Any, **named: Any) -> Any:
        joined = real(*asked, **named)
        if not others:
            rig.client = rig.new_client()
            others.append(hosts.on("b", None))
        return joined

    odd.answer_always("join_group", begin_another)
    rig.client = cast(AdminClient, odd)
    with hosts.on("a", None) as first:
        rig.twin.crash(3)
        with pytest.raises(StandsBy, match="zoe@b looks after the cluster"):
            watch(first, HOUR_S)
        assert (rig.throttles, first.memory.running) == ({}, None)
    with others[0] as second:
        watch(second, HOUR_S)
        assert [one.outcome for one in second.memory.acts] == ["done"]
    assert rig.throttles == {}


def test_many_that_begin_in_one_millisecond_leave_it_to_the_first(hosts: Hosts, tmp_path: Path) -> None:
    rig = hosts.fleet.rig
    with hosts.on("a"):
        for number in range(300):
            with pytest.raises(StandsBy):
                AutopilotLease(rig.client, Operator("zoe", f"host-{number}"), rig.transport).take(tmp_path)


@pytest.mark.parametrize(("trouble", "said"), [
    ("silence", "could not connect"), ("broken policy", "this is not TOML"), ("no policy", "no such file"),
])  # fmt: skip
def test_a_standby_outlasts_what_it_cannot_read(hosts: Hosts, tmp_path: Path, trouble: str, said: str) -> None:
    """It goes on when the cluster answers again, or the policy is there again."""
    file, warnings, odd = tmp_path / "policy.toml", list[str](), OddPort(hosts.fleet.rig.client)
    hosts.fleet.rig.client = cast(AdminClient, odd)
    file.write_text(ACT)

    def warn(text: str) -> None:
        warnings.append(text)
        is_first = len(warnings) == 1
        if trouble == "silence":
            odd.answer_always("describe_cluster", not_reached if is_first else as_it_is)
        else:
            file.write_text("[broken" if is_first else ACT)
        if is_first and trouble == "no policy":
            file.unlink()

    def begin() -> Autopilot:
        hosts.fleet.policy = read_policy(file)
        autopilot = hosts.on("b", None)
        autopilot.decisions.report = interrupt
        return autopilot

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with hosts.killed("a") as first:
        first.look()
    with pytest.raises(KeyboardInterrupt):
        watch_or_stand_by(begin, warn, hosts.fleet.rig.transport)
    assert "zoe@a looks after the cluster" in warnings[0]
    assert said in warnings[1]
    assert warnings[-1].startswith("this process looks after the cluster from now on")


def test_a_killed_process_is_replaced_at_once_on_its_host(hosts: Hosts) -> None:
    with hosts.killed("a") as first:
        first.look()
    with hosts.on("a") as second:
        second.look()


@pytest.mark.parametrize("calls", [GROUP_CALLS, ("heartbeat",)])
def test_without_an_answer_about_the_lease_nothing_is_repaired(tmp_path: Path, calls: tuple[str, ...]) -> None:
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    ours, warnings, odd = Fleet(tmp_path, rig, ACT), list[str](), OddPort(rig.client)
    context = replace(ours.context, warn=warnings.append)
    with Autopilot(
        Decisions(cast(AdminClient, odd), ours.policy, context, ours.messages.append, rig.transport)
    ) as autopilot:
        autopilot.look()
        for call in calls:
            odd.answer_always(call, unless_of_autopilots(not_reached))
        rig.twin.crash(3)
        watch(autopilot, HOUR_S)
        assert (autopilot.memory.acts, 3 in ours.holders()) == ((), True)
        assert any(str(GONE) in one.what for one in ours.messages), "it is told all the same"
        assert len(warnings) == 1
        assert warnings[0].startswith("nothing is repaired: whether another autopilot looks after the cluster is not")
        for call in calls:
            odd.answer_always(call, as_it_is)
        watch(autopilot, 5 * MINUTE_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]


def test_nothing_is_repaired_where_its_own_lease_is_forbidden(tmp_path: Path) -> None:
    """A cluster keeps groups from the first run on, and this client may not use the group of autopilots."""
    rig = TwinRig(tmp_path, LISTS, brokers=6)
    ours, odd, before = Fleet(tmp_path, rig, ACT), OddPort(rig.client), rig.replicas
    odd.answer_always("join_group", unless_of_autopilots(refused(GROUP_AUTHORIZATION_FAILED)))
    client = cast(AdminClient, odd)
    with Autopilot(Decisions(client, ours.policy, ours.context, ours.messages.append, rig.transport)) as autopilot:
        rig.twin.crash(3)
        watch(autopilot, HOUR_S)
        outcomes = {one.outcome for one in autopilot.memory.acts}
        assert rig.replicas == before
    assert outcomes == {"not begun: Group authorization failed. (Test, 30 GROUP_AUTHORIZATION_FAILED)"}


def test_a_repair_starts_nothing_while_the_lease_is_in_doubt(tmp_path: Path) -> None:
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    ours, odd, begun = Fleet(tmp_path, rig, SLOW), OddPort(rig.client), list[tuple[float, int]]()

    def silence(run: Any, _: object) -> None:
        """From the first move on, for five minutes."""
        begun.append((rig.transport.monotonic_s(), sum(one.submitted_ms is not None for one in run.records.values())))
        if run.in_flight and len(begun) > 1 and "heartbeat" not in odd._lasting:
            silent_s.append(begun[-1][0])
            for call in GROUP_CALLS:
                odd.answer_always(call, unless_of_autopilots(not_reached))
            rig.after(5 * MINUTE_S, answer)

    def answer() -> None:
        for call in GROUP_CALLS:
            odd.answer_always(call, as_it_is)

    silent_s: list[float] = []

    context = replace(ours.context, observers=(silence,))
    with Autopilot(
        Decisions(cast(AdminClient, odd), ours.policy, context, ours.messages.append, rig.transport)
    ) as autopilot:
        rig.twin.crash(3)
        watch(autopilot, 45 * MINUTE_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    (from_s,) = silent_s
    within = {count for at_s, count in begun if from_s + 40 < at_s < from_s + 5 * MINUTE_S}
    assert within == {min(within)} != {len(LISTS) // 2}, "no move is submitted meanwhile"


def test_a_repair_keeps_its_lease_during_a_look_of_a_minute(tmp_path: Path) -> None:
    """A broker that is slow to answer delays the looks beside the run; the thread of the process sends heartbeats."""
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    ours, odd, beside, waited = Fleet(tmp_path, rig, SLOW), OddPort(rig.client), rig.new_client(), list[int]()
    client = cast(AdminClient, odd)
    lease = AutopilotLease(client, ours.context.operator, rig.transport)

    def late(real: Real, *args: Any, **named: Any) -> Any:
        if autopilot.decisions.is_beside_run:
            waited.append(rig.transport.now_ms())
            while rig.transport.now_ms() < waited[-1] + 60_000:
                rig.transport.sleep(lease.beat_s)
                lease.beat_beside(beside)
        return real(*args, **named)

    odd.answer_always("describe_log_dirs", late)
    tell, time = ours.messages.append, rig.transport
    with Autopilot(Decisions(client, ours.policy, ours.context, tell, time, lease=lease)) as autopilot:
        rig.twin.crash(3)
        watch(autopilot, 45 * MINUTE_S)
        (act,) = autopilot.memory.acts
    assert (act.outcome, bool(waited)) == ("done", True)
    events = read_events(journal_path(tmp_path, rig.twin.cluster_id, act.run_id))
    assert [one for one in events if isinstance(one, LeaseLost)] == []


def test_a_process_that_gets_its_lease_late_is_named_in_its_folder(tmp_path: Path) -> None:
    """The next one here takes its place at once if it dies."""
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    ours, odd = Fleet(tmp_path, rig, ACT), OddPort(rig.client)
    odd.answer_always("join_group", unless_of_autopilots(not_reached))
    client, folder = cast(AdminClient, odd), decisions_path(tmp_path, rig.twin.cluster_id).parent
    with Autopilot(Decisions(client, ours.policy, ours.context, ours.messages.append, rig.transport)) as autopilot:
        odd.answer_always("join_group", as_it_is)
        autopilot.look()
        holder = present_holder(rig.client, OF_AUTOPILOTS)
        assert holder is not None
        assert was_here(folder, holder)


def test_heartbeats_of_the_thread_keep_the_lease_of_a_silent_process(tmp_path: Path) -> None:
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    odd, beside = OddPort(rig.client), rig.new_client()
    lease = AutopilotLease(cast(AdminClient, odd), Fleet(tmp_path, rig, ACT).context.operator, rig.transport)
    lease.take(tmp_path)
    odd.answer_always("heartbeat", not_reached)
    for _ in range(12):
        rig.transport.sleep(lease.beat_s)
        lease.beat_beside(beside)
    lease.confirm()
    assert lease.is_held
    rig.transport.sleep(MINUTE_S)
    lease.confirm()
    assert not lease.is_held


def test_an_unforeseen_error_ends_no_heartbeats(tmp_path: Path) -> None:
    def odd_answer(*_: object, **__: object) -> NoReturn:
        raise ValueError("no number")

    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    beside, warnings = OddPort(rig.new_client()), list[str]()
    lease = AutopilotLease(rig.client, Fleet(tmp_path, rig, ACT).context.operator, rig.transport)
    lease.take(tmp_path)
    beside.answer_always("heartbeat", odd_answer)
    for _ in range(3):
        lease.beat_beside(cast(AdminClient, beside), warnings.append)
    assert warnings == [
        "a heartbeat of the lease of autopilots failed, and others follow: ValueError, which nobody foresaw: no number"
    ]


def test_work_beside_a_silent_coordinator_asks_it_at_intervals(tmp_path: Path) -> None:
    """A rehearsal keeps the lease at each of its thousands of events."""
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    odd, calls = OddPort(rig.new_client()), list[float]()
    lease = AutopilotLease(cast(AdminClient, odd), Fleet(tmp_path, rig, ACT).context.operator, rig.transport)
    lease.take(tmp_path)

    def no_answer(*_: object, **__: object) -> NoReturn:
        calls.append(rig.transport.monotonic_s())
        raise Unreachable("could not connect")

    odd.answer_always("heartbeat", no_answer)
    rig.transport.sleep(MINUTE_S)
    for _ in range(1000):
        lease.beat_at_times()
    assert len(calls) == 1


def test_who_takes_over_waits_for_a_repair_that_goes_on(hosts: Hosts) -> None:
    refused = list[str]()

    def take_over(run: Any, _: object) -> None:
        if run.in_flight and not refused:
            with pytest.raises(StandsBy) as error:
                hosts.on("b", None)
            refused.append(str(error.value))

    hosts.vigils["b"] = Vigil(hosts.fleet.rig.transport, 0.0)
    hosts.fleet.context = replace(hosts.fleet.context, observers=(take_over,))
    with hosts.on("a", None) as first:
        hosts.fleet.rig.twin.crash(3)
        watch(first, HOUR_S)
        assert [one.outcome for one in first.memory.acts] == ["done"]
    assert "holds the lease of the cluster; this one goes on when that is over, or lost" in refused[0]


def test_requests_beside_a_standby_name_the_host_that_decides(hosts: Hosts) -> None:
    """Host b has looked after the cluster before, and keeps its decisions in its own state directory only."""

    def watcher() -> LeaseHolder | None:
        return present_holder(hosts.fleet.rig.client, OF_AUTOPILOTS)

    def ask() -> None:
        Requests(hosts.state_dir("b"), hosts.cluster_id, time, watcher).off(HOUR_S, "ann", "upgrade")

    time = hosts.fleet.rig.transport
    with hosts.on("b", None) as former:
        former.look()
    with hosts.on("a", None) as leader:
        leader.look()
        with pytest.raises(InputError, match=r"zoe@a does \(autopilot-.*: give this there, or pull the brake"):
            ask()
        assert hosts.memory("b").last_request == 0
    ask()
    with hosts.on("b", None) as next_one:
        next_one.look()
        assert next_one.memory.off is not None


def test_what_a_lost_host_left_is_left_alone_out_of_reach(tmp_path: Path) -> None:
    hosts, warnings = cluster_of(tmp_path, SLOW), list[str]()

    def die(run: Any, _: object) -> None:
        if run.in_flight:
            raise Killed

    context = hosts.fleet.context
    hosts.fleet.context = replace(context, observers=(die,))
    first = hosts.on("a", None)
    hosts.fleet.rig.twin.crash(3)
    with pytest.raises(Killed):
        watch(first, HOUR_S)
    first.decisions.journal.close()
    hosts.fleet.context = context
    left = hosts.fleet.rig.throttles
    assert left

    def begin() -> Autopilot:
        autopilot = hosts.on("b", None)
        looks: list[object] = []

        def report(status: object) -> None:
            looks.append(status)
            if len(looks) > 12:
                raise KeyboardInterrupt

        autopilot.decisions.report = report
        return autopilot

    with pytest.raises(KeyboardInterrupt):
        watch_or_stand_by(begin, warnings.append, hosts.fleet.rig.transport)
    assert "in the journals of that one, which are out of reach here" in warnings[1]
    assert hosts.fleet.rig.throttles == left
    gates = hosts.memory("b").findings[GONE].gates
    assert gates is not None
    assert "others have set throttles" in next(one.why for one in gates.closed if one.gate == "others")
