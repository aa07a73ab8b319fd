"""Whole repairs on a twin in virtual time: looks, plans, runs, journals, and the brake by Kafka's own setting."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient
from kreassign.autopilot.events import Name, RunBegan, State
from kreassign.autopilot.gates import GATES, KNOWN_OF, TOLD_OF, others_now
from kreassign.autopilot.messages import Message
from kreassign.autopilot.observation import Known
from kreassign.autopilot.policy import Kind
from kreassign.errors import ExecutionError, InputError, StandsBy
from kreassign.executor.client_guard import ClientAnswer, ClientGuard, read_exit_code
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import file, find_journals
from kreassign.executor.runner import ReadClients
from kreassign.executor.state import RunView
from kreassign.model import ConfigChange, ConfigResource
from kreassign.operations import journal_waits
from kreassign.operations.autopilot import Autopilot, watch_or_stand_by
from kreassign.operations.autopilot_journal import BRAKE, Requests, looked_after, remembered
from kreassign.operations.autopilot_looks import observe, why
from kreassign.operations.run_journals import NO_CLUSTER, InForce
from tests.autopilot.fleet import HOUR_S, Fleet, HostClock, finding
from tests.executor.journal.test_locks import locked_by_another
from tests.executor.odd_port import OddPort, not_reached
from tests.executor.test_lease_on_twin import with_offsets_topic
from tests.executor.twin_runs import TwinRig, tp

LOOKS_S = 300.0
ACT = "[broker-gone]\nlevel = 'act'\n[care]\ninterval = '5m'\n"
GONE = Name(Kind.BROKER_GONE, "broker 3")
ALL = ConfigResource.all_brokers()


LISTS = [[one, (one + 1) % 6, (one + 2) % 6] for one in range(6)]
MANY = [[one % 3, 3, 4 + one % 2] for one in range(30)]


def fleet(tmp_path: Path, policy: str = ACT) -> Fleet:
    return Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=6), policy)


def test_a_dead_broker_is_repaired_and_its_outage_remembered(tmp_path: Path) -> None:
    ours = fleet(tmp_path)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        assert 3 not in ours.holders()
        assert ours.rig.throttles == {}
        (act,) = autopilot.memory.acts
        assert (act.outcome, act.copied_bytes) == ("done", 30_000_000)
        ours.rig.twin.start(3)
        ours.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        assert [one.broker for one in autopilot.memory.outages] == [3]
        assert remembered(tmp_path, ours.rig.twin.cluster_id) == autopilot.memory


def test_a_new_broker_gets_its_whole_share(tmp_path: Path) -> None:
    policy = "[new-broker]\nlevel = 'act'\n[care]\ninterval = '60s'\n[runs]\nthrottle = '100kB/s'\n"
    ours = Fleet(tmp_path, TwinRig(tmp_path, [*LISTS, *LISTS], brokers=7), policy)
    with ours.opened() as autopilot:
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        (act,) = autopilot.memory.acts
        assert (act.outcome, act.copied_bytes) == ("done", 50_000_000)
        assert sum(6 in replicas for replicas in ours.rig.replicas.values()) == 5


@pytest.mark.parametrize("is_second", [False, True])
def test_a_broker_that_people_emptied_gets_nothing_of_a_repair(tmp_path: Path, *, is_second: bool) -> None:
    """Though a destination of the repair dies, too."""
    lists = [[one, (one + 1) % 7, (one + 2) % 7] for one in range(7)]
    rig = TwinRig(tmp_path, lists, brokers=7, size_bytes=60_000_000)
    ours, died = Fleet(tmp_path, rig, f"{ACT}[runs]\nthrottle = '100kB/s'\n"), list[int]()

    def crash(run: RunView, _: object) -> None:
        if is_second and run.in_flight and not died:
            died.extend(run.in_flight[0].move.adding)
            rig.twin.crash(died[0])

    ours.context = replace(ours.context, poll_s=20.0, observers=(crash,))
    with ours.opened() as autopilot:
        ours.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        drained = {
            tp(number): tuple(min({*range(6)} - {*one}) if broker == 6 else broker for broker in one)
            for number, one in ours.rig.replicas.items()
            if 6 in one
        }
        ours.rig.client.alter_partition_reassignments(drained).raise_if_any()
        ours.watch(autopilot, 0.5 * HOUR_S, LOOKS_S)
        assert 6 not in ours.holders()
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert len(autopilot.memory.acts) == 1
        assert 6 not in ours.holders()
        assert len(died) == is_second


def test_a_repair_has_few_moves_in_flight_so_that_it_can_be_stopped(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, MANY, brokers=6), f"{ACT}[runs]\nthrottle = '1MB/s'\n")
    flights: list[int] = []
    ours.context = replace(ours.context, observers=(lambda run, _: flights.append(len(run.in_flight)),))
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert 2 <= max(flights) <= 2 * 3, "two from each of three leaders"


@pytest.mark.parametrize("jump_s", [0.0, 2 * HOUR_S, -2 * HOUR_S])
def test_scenario_11_two_autopilots_of_a_cluster_begin_one_repair(tmp_path: Path, jump_s: float) -> None:
    """Each has a state directory of its own, as on two hosts; one tries to look while the other's run goes on.

    The clock of that one jumps when a broker dies.
    """
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    slow = f"{ACT}[runs]\nthrottle = '50kB/s'\n"
    first, second = (Fleet(tmp_path / name, rig, slow) for name in ("first", "second"))
    refusals: list[str] = []
    clock = HostClock(rig.transport)

    def look(*_: object) -> None:
        with pytest.raises(StandsBy) as refusal:
            second.opened(clock=clock)
        refusals.append(str(refusal.value))

    first.context = replace(first.context, observers=(look,))
    with first.opened() as autopilot:
        autopilot.look()
        look()
        rig.twin.crash(3)
        clock.ahead_s = jump_s
        first.watch(autopilot, 15 * LOOKS_S, LOOKS_S)
        assert [one.name for one in autopilot.memory.acts] == [GONE]
    assert len(refusals) > 1
    assert all("looks after the cluster" in one for one in refusals)
    assert 3 not in first.holders()


def test_a_repair_is_held_while_clients_suffer(tmp_path: Path) -> None:
    ours = fleet(tmp_path, f"{ACT}[clients]\ncommand = 'check'\n")
    asked: list[ClientGuard] = []

    def ask_clients(guard: ClientGuard) -> AbstractContextManager[ReadClients]:
        asked.append(guard)
        begun_s = ours.rig.transport.monotonic_s()

        def read() -> tuple[ClientAnswer, ...]:
            code = 1 if ours.rig.transport.monotonic_s() < begun_s + 600 else 0
            return (read_exit_code(guard.command, code, ""),)

        return nullcontext(read)

    ours.context = replace(ours.context, ask_clients=ask_clients)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        (act,) = autopilot.memory.acts
        assert (act.outcome, ours.rig.throttles, asked) == ("done", {}, [ClientGuard(command=("check",))])
    (journal,) = find_journals(tmp_path, act.run_id)
    cost = read_history(journal).clients
    assert cost is not None
    assert 540_000 <= cost.held_ms <= 660_000


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(tmp_path: Path) -> None:
    ours = fleet(tmp_path)
    before = ours.rig.replicas
    with ours.opened(is_dry=True) as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        assert ours.rig.replicas == before
        assert any("would be repaired now" in one.what for one in ours.messages)


def test_why_names_what_hides_a_finding(tmp_path: Path) -> None:
    ours = fleet(tmp_path, "[broker-gone]\nlevel = 'tell'\n")
    odd = OddPort(ours.rig.client)
    odd.answer_always("describe_topics", not_reached)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        found = why(cast(AdminClient, odd), ours.policy, autopilot.memory, tmp_path, ours.rig.transport)
        gates = {one.name: one.gates for one in found}
    unread = "partitions could not be read (could not connect)"
    assert gates[GONE] == {"evidence": f"whether it is still there is not known: {unread}"}


def test_the_brake_of_kafka_configs_is_seen_and_named(tmp_path: Path) -> None:
    ours = fleet(tmp_path)
    before = ours.rig.replicas
    ours.rig.client.incremental_alter_configs({ALL: [ConfigChange.set(BRAKE, "true")]}).raise_if_any()
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        assert ours.rig.replicas == before
        (one,) = why(ours.rig.client, ours.policy, autopilot.memory, tmp_path, ours.rig.transport)
        assert one.gates.keys() == GATES.keys()
        assert GATES.keys() >= TOLD_OF | KNOWN_OF
        closed = {name: text for name, text in one.gates.items() if text is not None}
        assert closed.keys() == {"brake", "two looks"}
        noted = autopilot.memory.findings[GONE].gates
        assert noted is not None
        assert dict(noted.closed).keys() == closed.keys()
        assert str(closed["brake"]).startswith(f"the brake is pulled: {BRAKE} is set for all brokers")
        ours.rig.client.incremental_alter_configs({ALL: [ConfigChange.delete(BRAKE)]}).raise_if_any()
        ours.watch(autopilot, 3 * LOOKS_S, LOOKS_S)
        assert 3 not in ours.holders()


def test_an_autopilot_waits_for_a_journal_that_others_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open transaction of a SQLite shell ended it after a second."""
    monkeypatch.setattr(journal_waits, "TOLD_AFTER_S", 0.0)
    ours, told, others = fleet(tmp_path), list[str](), list[subprocess.Popen[bytes]]()

    def warn(text: str) -> None:
        told.append(text)
        others[0].kill()

    ours.context = replace(ours.context, warn=warn)
    ours.rig.twin.crash(3)
    with ours.opened() as autopilot, locked_by_another(next(tmp_path.glob("**/decisions.sqlite"))) as other:
        others.append(other)
        ours.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        assert autopilot.memory.findings
    assert told[0].startswith("the autopilot holds: ")
    assert "Until then it looks at nothing" in told[0]
    assert "the journal of the autopilot can be written again" in told[1]


def test_an_autopilot_stands_by_while_others_keep_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "LOCK_PATIENCE_S", 0.0)
    ours, told = fleet(tmp_path), list[str]()
    with ours.opened() as autopilot:
        autopilot.look()
    with locked_by_another(next(tmp_path.glob("**/decisions.sqlite")), "all") as other:

        def warn(text: str) -> None:
            told.append(text)
            other.kill()
            other.wait()

        def begin() -> Autopilot:
            autopilot = ours.opened()
            autopilot.decisions.report = interrupt
            return autopilot

        def interrupt(_: object) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            watch_or_stand_by(begin, warn, ours.rig.transport)
    assert told[0].startswith("it stands by, and decides nothing: ")
    assert f"process {other.pid} (" in told[0]
    assert told[1:] == ["this process looks after the cluster from now on"]


def test_a_message_outlives_a_crash_before_it_was_sent(tmp_path: Path) -> None:
    """The next process goes on from what the state directory had when the message was sent."""
    ours = fleet(tmp_path / "lives")
    copies = tmp_path / "copies"

    class Messages(list[Message]):
        """Receivers that keep the state directory as it is when a message comes."""

        def append(self, message: Message) -> None:
            shutil.copytree(tmp_path / "lives", copies / str(len(self)))
            super().append(message)

    ours.messages = Messages()
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 3 * LOOKS_S, LOOKS_S)
    (told,) = ours.messages
    next_one = Fleet(copies / "0", ours.rig, ACT)
    with next_one.opened() as autopilot:
        autopilot.look()
    assert [one.name for one in next_one.messages] == [told.name]


def test_a_look_that_fails_beside_a_run_is_made_again(tmp_path: Path) -> None:
    """Else nobody reads the brake any more while the run goes on."""
    ours = Fleet(tmp_path, TwinRig(tmp_path, MANY, brokers=6), f"{ACT}[runs]\nthrottle = '100kB/s'\n")
    warnings, failures, is_held = list[str](), list[str](), list[bool]()

    class Messages(list[Message]):
        """Receivers of which the first message about a hold finds a full disk."""

        def append(self, message: Message) -> None:
            if "holds" in message.what and not failures:
                failures.append(message.what)
                raise OSError("no space left on device")
            super().append(message)

    def watch(run: RunView, _: object) -> None:
        if len(is_held) == 50:
            Requests(tmp_path, ours.rig.twin.cluster_id, ours.rig.transport).off(HOUR_S, "ann", "look")
        is_held.append(run.control.is_held)

    ours.messages = Messages()
    ours.context = replace(ours.context, warn=warnings.append, observers=(watch,))
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
    assert (len(failures), any("a look beside a run" in one for one in warnings)) == (1, True)
    assert any(is_held)


def test_a_look_that_fails_unforeseen_leaves_the_run_to_the_next_process(tmp_path: Path) -> None:
    """Else the run goes on for days, and nobody reads the brake."""
    ours = Fleet(tmp_path, TwinRig(tmp_path, MANY, brokers=6), f"{ACT}[runs]\nthrottle = '100kB/s'\n")
    looks: list[None] = []

    class Closed(list[Message]):
        """Receivers that are gone beside the run."""

        def append(self, message: Message) -> None:
            if "holds" in message.what:
                raise ValueError("I/O operation on closed file")
            super().append(message)

    def watch(*_: object) -> None:
        looks.append(None)
        if len(looks) == 50:
            Requests(tmp_path, ours.rig.twin.cluster_id, ours.rig.transport).off(HOUR_S, "ann", "look")

    ours.messages, ours.context = Closed(), replace(ours.context, observers=(watch,))
    ours.rig.twin.crash(3)
    with (
        pytest.raises(ExecutionError, match=r"beside run .* nobody foresaw"),
        ours.opened() as autopilot,
    ):
        ours.watch(autopilot, 3 * HOUR_S, LOOKS_S)
    assert 3 in ours.holders()
    ours.messages = []
    with ours.opened() as autopilot:
        ours.watch(autopilot, 4 * HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert 3 not in ours.holders()


def test_a_topic_that_is_deleted_meanwhile_is_no_failure_of_a_repair(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, MANY, brokers=6, others={"u": [[3, 1, 2]] * 4})
    ours = Fleet(tmp_path, rig, f"{ACT}[runs]\nthrottle = '1MB/s'\n")

    def delete(run: RunView, _: object) -> None:
        if run.in_flight and "u" in rig.client.list_topics():
            rig.client.delete_topics(["u"]).raise_if_any()

    ours.context = replace(ours.context, observers=(delete,))
    with ours.opened() as autopilot:
        rig.twin.crash(3)
        ours.watch(autopilot, 3 * HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]


def test_one_partition_that_others_changed_does_not_end_the_repair_of_all(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, MANY, brokers=6), f"{ACT}[runs]\nthrottle = '1MB/s'\n")
    theirs = tp(29)

    def change(run: RunView, _: object) -> None:
        if run.in_flight and theirs not in run.in_flight and ours.rig.replicas[29] == tuple(MANY[29]):
            ours.rig.client.alter_partition_reassignments({theirs: (3, *MANY[29][::2])}).raise_if_any()

    ours.context = replace(ours.context, observers=(change,))
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 6 * HOUR_S, LOOKS_S)
        assert 3 not in ours.holders(), autopilot.memory.acts


def test_requests_hold_for_a_process_that_starts_later(tmp_path: Path) -> None:
    ours = fleet(tmp_path)
    with ours.opened() as autopilot:
        autopilot.look()
    cluster_id, clock = ours.rig.twin.cluster_id, ours.rig.transport
    Requests(tmp_path, cluster_id, clock).off(HOUR_S, "ann@host", "upgrade")
    Requests(tmp_path, cluster_id, clock).silence(GONE, HOUR_S, "ann@host", "new disk")
    with ours.opened() as autopilot:
        autopilot.look()
        assert autopilot.memory.off is not None
        assert autopilot.memory.findings[GONE].silence is not None
        Requests(tmp_path, cluster_id, clock).on("ann@host")
        ours.rig.transport.sleep(LOOKS_S)
        autopilot.look()
        assert autopilot.memory.off is None


def test_no_other_cluster_is_meant_than_the_one_that_is_named(tmp_path: Path) -> None:
    ours = fleet(tmp_path)
    with ours.opened() as autopilot:
        autopilot.look()
    cluster_id = ours.rig.twin.cluster_id
    assert looked_after(tmp_path, NO_CLUSTER) == looked_after(tmp_path, InForce(cluster_id)) == cluster_id
    for here, said in (
        (InForce("other"), "has not looked after cluster other with state directory"),
        (InForce(why="it is silent"), "it is silent"),
    ):
        with pytest.raises(InputError, match=said):
            looked_after(tmp_path, here)


def test_a_repair_that_a_killed_process_had_not_begun_is_settled(tmp_path: Path) -> None:
    ours = fleet(tmp_path)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        begun = RunBegan(ours.rig.transport.now_ms(), GONE, "20270131T220000Z-1a2b", 5, ())
        autopilot.decisions.note(begun)  # killed before anything was sent
    with ours.opened() as autopilot:
        autopilot.look()
        assert autopilot.memory.running is None
        gone = finding(autopilot, Kind.BROKER_GONE, "broker 3")
        assert gone is not None
        assert (gone.state, gone.problem) == (State.PROPOSED, "its run 20270131T220000Z-1a2b is not begun")
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert 3 not in ours.holders()


def test_moves_of_others_are_seen_as_theirs_with_who_they_may_be(tmp_path: Path) -> None:
    others = {"__CruiseControlMetrics": [[0, 1, 2]]}
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=6, others=others), ACT)
    (name,) = [one for one in ours.rig.client.describe_topics()["t"].partitions if one.topic_partition.partition == 0]
    ours.rig.client.alter_partition_reassignments({name.topic_partition: (0, 1, 5)}).raise_if_any()
    seen = observe(ours.rig.client, 0)
    assert seen.moves_of_others == Known(frozenset({name.topic_partition}))
    assert seen.unread() == ""
    who = "others (perhaps Cruise Control, by its topic __CruiseControlMetrics) move 1 partition, such as t-0"
    assert others_now(seen) == who


def test_a_topic_with_too_few_brokers_keeps_no_other_from_its_copies(tmp_path: Path) -> None:
    """On three brokers, of which one is dead, no topic has three copies; those with two have."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 2], [2, 0]], brokers=3, others={"u": [[0, 1, 2]]})
    ours = Fleet(tmp_path, rig, ACT)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(2)
        ours.watch(autopilot, 3 * HOUR_S, LOOKS_S)
        assert [(one.name.subject, one.outcome) for one in autopilot.memory.acts] == [("broker 2", "done")]
        problem = autopilot.memory.findings[Name(Kind.BROKER_GONE, "broker 2")].problem
        assert "u-0: broker 2 is not live, but is to have a copy: no broker can take a copy (0, 1 hold one" in problem
    assert ours.holders() == {0, 1}
    assert not [one for one in ours.messages if "look into it" in one.what]


def test_looks_that_are_too_far_apart_are_warned_of(tmp_path: Path) -> None:
    ours, warned = Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=6), "[care]"), list[str]()
    ours.context = replace(ours.context, warn=warned.append)
    with ours.opened() as autopilot:
        ours.watch(autopilot, 0.5 * HOUR_S, 540.0)
        assert warned == []
        ours.watch(autopilot, 0.5 * HOUR_S, 900.0)
    assert warned[0].startswith("the last look was 15 min ago: ")
