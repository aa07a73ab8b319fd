"""Proposals that stay while loads change, and what people and brokers do beside repairs, on a twin."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from kreassign.autopilot import messages
from kreassign.autopilot.events import Name, Planned, State
from kreassign.autopilot.observation import US
from kreassign.autopilot.policy import Kind, parse_policy
from kreassign.executor.client_guard import ClientAnswer, ClientGuard, ClientQuery
from kreassign.executor.events import HoldRequested, PaceRequested, ReleaseRequested, ThrottleRequested
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import find_journals, journal_path, post_request, read_events
from kreassign.executor.lease import OFFSETS_TOPIC
from kreassign.executor.runner import ReadClients
from kreassign.executor.state import RunView
from kreassign.model import ConfigChange, ConfigResource, NewTopic, TopicPartition, TopicPartitionReplica
from kreassign.model.error_codes import NOT_CONTROLLER
from kreassign.monitoring.metrics import AutopilotStatus
from kreassign.operations.autopilot import Autopilot
from kreassign.operations.autopilot_decisions import Decisions
from kreassign.operations.autopilot_journal import BRAKE, DECISIONS, decisions_path
from kreassign.operations.autopilot_looks import read_policy, why
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.run import resume_run
from kreassign.twin.api.connection import AffectedResponses, Execute, Refused
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from tests.autopilot.fleet import HOUR_S, Fleet
from tests.executor.twin_runs import TwinRig, tp
from tests.simulation.cordons import cordon

LOOKS_S = 300.0
ALL = ConfigResource.all_brokers()
LISTS = [[one, (one + 1) % 6, (one + 2) % 6] for one in range(6)]
GONE_3 = Name(Kind.BROKER_GONE, "broker 3")
SLOW = "[broker-gone]\nlevel = 'act'\n[care]\ninterval = '60s'\n[runs]\nthrottle = '50kB/s'\n"


def with_new_broker(folder: Path, level: str) -> Fleet:
    policy = f"[new-broker]\nlevel = '{level}'\n[runs]\nthrottle = '400kB/s'\n"
    rig = TwinRig(folder, LISTS * 3, brokers=7, write_bytes_per_s=5_000, others={"u": [[5, 4, 3], [2, 1, 0]]})
    return Fleet(folder, rig, policy)


def test_a_topic_that_is_created_again_gets_a_proposal_of_its_own(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, LISTS, brokers=7, others={"u": LISTS})
    ours, lists = Fleet(tmp_path, rig, "[new-broker]\nlevel = 'act'\n"), tuple(rig.replicas.values())
    with ours.opened() as autopilot:
        ours.watch(autopilot, 2100.0, LOOKS_S)
        ours.rig.client.delete_topics(["t"]).raise_if_any()
        ours.rig.transport.sleep(10.0)
        ours.rig.client.create_topics([NewTopic("t", assignments=lists)]).raise_if_any()
        ours.watch(autopilot, 4 * LOOKS_S, LOOKS_S)
        (act,) = autopilot.memory.acts
    assert act.outcome == "done"
    assert not [one for one in ours.messages if "it is not repaired" in one.what]


def plan_ids(ours: Fleet) -> list[str]:
    path = decisions_path(ours.state_dir, ours.rig.twin.cluster_id)
    return [one.plan_id for one in read_events(path, DECISIONS) if isinstance(one, Planned)]


# The plan that was looked at is the one that runs.


def test_a_plan_runs_though_topics_come_and_others_would_be_best(tmp_path: Path) -> None:
    ours = with_new_broker(tmp_path, "act")
    with ours.opened() as autopilot:
        for number in range(16):
            lists = tuple(tuple((each + number + place) % 6 for place in range(3)) for each in range(3))
            ours.rig.client.create_topics([NewTopic(f"new-{number}", assignments=lists)]).raise_if_any()
            ours.watch(autopilot, LOOKS_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert len(plan_ids(ours)) >= 3
    assert len({*plan_ids(ours)}) == 1


def test_a_plan_that_others_overtook_is_replaced(tmp_path: Path) -> None:
    ours = with_new_broker(tmp_path, "propose")
    with ours.opened() as autopilot:
        ours.watch(autopilot, 0.75 * HOUR_S, LOOKS_S)
        (first,) = plan_ids(ours)
        (told,) = [one for one in ours.messages if "add broker 6" in one.what]
        kreassign, run, path, *options = shlex.split(told.commands[0])
        assert (kreassign, run, options) == ("kreassign", "run", ["--throttle", "400kB/s"])
        planned = read_plan_file(Path(path))
        assert planned.facts is not None
        moved = min(planned.plan.replicas)
        ours.rig.client.alter_partition_reassignments({moved: planned.expected[moved][::-1]}).raise_if_any()
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        again = plan_ids(ours)[-1]
    assert again != first
    assert read_plan_file(Path(path)).expected[moved] == planned.expected[moved][::-1]


def test_a_broker_above_the_budget_of_a_day_is_told_as_such(tmp_path: Path) -> None:
    policy = "[broker-gone]\nlevel = 'act'\n[budget]\nbytes-per-day = '1MB'\n"
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=6), policy)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        assert autopilot.memory.acts == ()
    (told,) = [one for one in ours.messages if "to copy" in one.what]
    assert told.why.startswith("that is more than the 1 MB a day of the policy, so it never begins by itself")


# Beside a run.


def test_a_pause_of_people_outlasts_the_brake_of_others(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS * 4, brokers=6), SLOW)
    held: list[str] = []
    client, clock = ours.rig.client, ours.rig.transport

    def beside(run: RunView, _: object) -> None:
        held.append(run.control.held_by)
        (path,) = find_journals(tmp_path, run.run_id)
        match len(held):
            case 2:
                post_request(path, lambda number: HoldRequested(clock.now_ms(), number, "ann@host"))
            case 12:
                client.incremental_alter_configs({ALL: [ConfigChange.set(BRAKE, "true")]}).raise_if_any()
            case 38:
                client.incremental_alter_configs({ALL: [ConfigChange.delete(BRAKE)]}).raise_if_any()
            case 75:
                post_request(path, lambda number: ReleaseRequested(clock.now_ms(), number))

    ours.context = replace(ours.context, observers=(beside,))
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert {*held[4:75]} == {"ann@host"}
    assert {*held[77:]} == {""}
    assert [one.what for one in ours.messages if "ann@host" in one.what] == [
        f"{GONE_3}: ann@host paused its repair, and it stays so"
    ]


def test_a_lowered_policy_ends_the_run_and_a_broken_one_does_not(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS * 4, brokers=6), SLOW)
    file, warnings, held = tmp_path / "policy.toml", list[str](), list[str]()
    file.write_text(SLOW)

    def beside(run: RunView, _: object) -> None:
        held.append(run.run_id)
        match len(held):
            case 3:
                file.write_text("[broker-gone")
            case 20:
                file.write_text(SLOW.replace("'act'", "'tell'"))
            case 40:
                file.write_text(SLOW)

    ours.context = replace(ours.context, warn=warnings.append, observers=(beside,))
    with ours.opened(reread=partial(read_policy, file)) as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        first, second = autopilot.memory.acts
    assert (first.outcome, second.outcome) == ("cancelled", "done")
    assert not {*first.moves} & {*second.moves}, "what was not begun was not moved"
    assert len({*held[:20]}) == 1, "it goes on while the file is broken, and until the next look"
    (warning,) = [one for one in warnings if "policy" in one]
    assert warning.startswith(f"the policy that was read before holds: {file}: this is not TOML")


def test_windows_of_a_changed_policy_hold_for_a_run(tmp_path: Path) -> None:
    """The window closes after ten minutes of the run; the policy without windows lets it go on."""
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS * 8, brokers=6), SLOW)
    at = [datetime.fromtimestamp(ours.rig.transport.now_ms() / 1000 + each, tz=UTC) for each in (4200, 4800)]
    file = tmp_path / "policy.toml"
    file.write_text(f"{SLOW}windows = ['{at[0]:%H:%M}-{at[1]:%H:%M}']\n")
    ours.policy = read_policy(file)
    with ours.opened(reread=partial(read_policy, file)) as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        act = autopilot.memory.running
        assert act is not None
        (path,) = find_journals(tmp_path, act.run_id)
        assert read_history(path).state == "paused"
        assert not [one for one in read_events(path) if isinstance(one, PaceRequested)]
        file.write_text(SLOW)
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert len([one for one in read_events(path) if isinstance(one, PaceRequested)]) == 1


def test_a_run_that_cannot_write_its_pause_goes_on(tmp_path: Path) -> None:
    """When its window closes, another process has locked its journal."""
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS * 8, brokers=6), SLOW)
    at = [datetime.fromtimestamp(ours.rig.transport.now_ms() / 1000 + each, tz=UTC) for each in (4200, 4920)]
    ours.policy = parse_policy(f"{SLOW}windows = ['{at[0]:%H:%M}-{at[1]:%H:%M}']\n", "policy.toml")
    locks, rests = list[sqlite3.Connection](), [False]

    def beside(run: RunView, _: object) -> None:
        rests[0] = not run.in_flight

    def lock(status: AutopilotStatus) -> None:
        paths = find_journals(tmp_path)
        if paths and rests[0] and status.looked_ms > at[1].timestamp() * 1000 and not locks:
            locks.append(sqlite3.connect(paths[0], isolation_level=None))
            locks[0].execute("BEGIN IMMEDIATE")

    ours.context = replace(ours.context, observers=(beside,))
    time = ours.rig.transport
    with Autopilot(
        Decisions(ours.rig.client, ours.policy, ours.context, ours.messages.append, time, report=lock)
    ) as autopilot:
        ours.rig.twin.crash(3)
        while not locks and time.now_ms() < at[1].timestamp() * 1000 + 600_000:
            ours.watch(autopilot, 60.0, 60.0)
        ours.watch(autopilot, 60.0, 60.0)
        locks[0].close()
        ours.watch(autopilot, 23 * HOUR_S, HOUR_S)
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert 3 not in ours.holders()


def test_a_changed_throttle_of_the_policy_holds_for_a_run(tmp_path: Path) -> None:
    """A rate that people set for the run stays until then."""
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS * 4, brokers=6), SLOW)
    file, rates = tmp_path / "policy.toml", list[int | None]()
    file.write_text(SLOW)

    def beside(run: RunView, _: object) -> None:
        rates.append(run.control.rates.bytes_per_s)
        match len(rates):
            case 20:
                path = journal_path(tmp_path, ours.rig.twin.cluster_id, run.run_id)
                post_request(path, lambda number: ThrottleRequested(run.identity.started_ms, number, 70_000))
            case 50:
                file.write_text(SLOW.replace("50kB/s", "200kB/s"))

    ours.context = replace(ours.context, observers=(beside,))
    with ours.opened(reread=partial(read_policy, file)) as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        (act,) = autopilot.memory.acts
    assert act.outcome == "done"
    assert list(dict.fromkeys(rates)) == [50_000, 70_000, 200_000]


def test_a_resumed_repair_asks_clients_that_the_policy_names_now(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=6), SLOW)
    file, asked = tmp_path / "policy.toml", list[ClientGuard]()
    file.write_text(SLOW)

    def ask_clients(guard: ClientGuard) -> AbstractContextManager[ReadClients]:
        asked.append(guard)
        return nullcontext(lambda: ())

    def leave(run: RunView, _: object) -> None:
        if run.in_flight and not asked:
            file.write_text(f"{SLOW.replace('50kB/s', '90kB/s')}[clients]\ncommand = 'check'\n")
            raise KeyboardInterrupt  # stands for the end of its process

    ours.context = replace(ours.context, observers=(leave,), ask_clients=ask_clients)
    ours.rig.twin.crash(3)
    with ours.opened(reread=partial(read_policy, file)) as autopilot, suppress(KeyboardInterrupt):
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
    with ours.opened(reread=partial(read_policy, file)) as autopilot:
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        (act,) = autopilot.memory.acts
    assert act.outcome == "done"
    assert [guard.command for guard in asked] == [("check",)]
    assert read_history(*find_journals(tmp_path, act.run_id)).rates.bytes_per_s == 90_000


def test_a_run_that_people_resume_hears_the_brake(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS * 4, brokers=6), SLOW)
    client, clock = ours.rig.client, ours.rig.transport
    pull, release = ({ALL: [change]} for change in (ConfigChange.set(BRAKE, "true"), ConfigChange.delete(BRAKE)))
    held: list[tuple[bool, str]] = []

    def leave(run: RunView, _: object) -> None:
        if run.in_flight:
            raise KeyboardInterrupt  # stands for the end of its process

    def beside(run: RunView, _: object) -> None:
        is_pulled = 12 <= len(held) < 50
        held.append((is_pulled, run.control.held_by))
        if len(held) in {12, 50}:
            client.incremental_alter_configs(pull if len(held) == 12 else release).raise_if_any()
        if len(held) % 8 == 0:
            autopilot.look()

    alone, ours.context = ours.context, replace(ours.context, observers=(leave,))
    ours.rig.twin.crash(3)
    with ours.opened() as autopilot, pytest.raises(KeyboardInterrupt):
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
    ours.context = alone
    with ours.opened() as autopilot:
        (path,) = find_journals(tmp_path)
        resume_run(client, path, replace(alone, observers=(beside,)), clock=clock)
        ours.watch(autopilot, LOOKS_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert {*held[25:50]} == {(True, US)}
    assert {*held[62:]} == {(False, "")}


def test_moves_of_our_own_run_are_not_those_of_others(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=6), SLOW)
    closed: list[set[str]] = []

    def beside(_: RunView, __: object) -> None:
        found = why(ours.rig.client, ours.policy, autopilot.memory, tmp_path, ours.rig.transport)
        closed.extend({gate for gate, text in one.gates.items() if text} for one in found if one.name == GONE_3)

    ours.context = replace(ours.context, observers=(beside,))
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
    assert len(closed) > 10
    assert not any({"others", "lease"} & one for one in closed)


def test_a_repair_that_guards_hold_long_is_told_once(tmp_path: Path) -> None:
    query = ClientQuery.parse("p99 < 0.2")
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=6), f"{SLOW}[clients]\ncommand = 'check'\n")

    def ask_clients(_: ClientGuard) -> AbstractContextManager[ReadClients]:
        begun_s = ours.rig.transport.monotonic_s()

        def read() -> tuple[ClientAnswer, ...]:
            is_silent = ours.rig.transport.monotonic_s() < begun_s + HOUR_S
            return (query.unknown("connection refused") if is_silent else query.read(0.1),)

        return nullcontext(read)

    ours.context = replace(ours.context, ask_clients=ask_clients, poll_s=20.0)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 2.5 * HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    told = [one for one in ours.messages if "is held for" in one.what]
    assert [one.why for one in told] == ["these guards hold it: clients"]


def test_a_run_that_was_killed_under_the_brake_leaves_no_throttle(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS * 4, brokers=6), SLOW)
    polls: list[int] = []

    def beside(run: RunView, _: object) -> None:
        polls.append(len(run.in_flight))
        if len(polls) == 50:
            raise KeyboardInterrupt  # stands for the end of the machine

    watched, ours.context = ours.context, replace(ours.context, observers=(beside,))
    ours.rig.twin.crash(3)
    with ours.opened() as autopilot, pytest.raises(KeyboardInterrupt):
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
    assert ours.rig.throttles
    ours.rig.client.incremental_alter_configs({ALL: [ConfigChange.set(BRAKE, "true")]}).raise_if_any()
    ours.context = watched
    sent = submitted(ours)
    with ours.opened() as autopilot:
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert ours.rig.throttles == {}
        assert submitted(ours) == sent, "nothing is started"
        ours.rig.client.incremental_alter_configs({ALL: [ConfigChange.delete(BRAKE)]}).raise_if_any()
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]


def submitted(ours: Fleet) -> int:
    """Number of moves that runs have sent."""
    return sum(
        one.submitted_ms is not None for path in find_journals(ours.state_dir) for one in read_history(path).moves
    )


# Leaders.


class Begins(list[messages.Message]):
    """Messages of which the one about the beginning of an election does something."""

    def __init__(self, deed: object) -> None:
        super().__init__()
        self._deed = deed

    def append(self, message: messages.Message) -> None:
        super().append(message)
        if "repaired by run election" in message.what and callable(self._deed):
            self._deed()


def astray(folder: Path, others: Mapping[str, list[list[int]]] | None = None) -> Fleet:
    """A cluster in which six partitions are not led by their preferred replica."""
    ours = Fleet(folder, TwinRig(folder, LISTS, brokers=6, others=others), "[leaders]\nlevel = 'act'\nstep = 2\n")
    ours.rig.client.alter_partition_reassignments(
        {tp(number): (one[1], one[0], one[2]) for number, one in enumerate(LISTS)}
    ).raise_if_any()
    return ours


def led_right(ours: Fleet) -> int:
    topics = ours.rig.client.describe_topics().raise_if_any()
    return sum(one.leader == one.preferred_leader for one in topics["t"].partitions)


def test_the_brake_stops_an_election_at_its_next_step(tmp_path: Path) -> None:
    ours = astray(tmp_path)
    pull = {ALL: [ConfigChange.set(BRAKE, "true")]}
    ours.messages = Begins(lambda: ours.rig.client.incremental_alter_configs(pull).raise_if_any())
    with ours.opened() as autopilot:
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        finding = autopilot.memory.findings[Name(Kind.LEADERS, "cluster")]
        assert (finding.state, finding.failures) == (State.PROPOSED, 0)
    assert led_right(ours) == 2


def test_leaders_that_were_not_elected_are_told(tmp_path: Path) -> None:
    ours = astray(tmp_path)
    ours.messages = Begins(lambda: ours.rig.twin.stop(0))
    with ours.opened() as autopilot:
        ours.watch(autopilot, 45 * 60.0, LOOKS_S)
        (act,) = autopilot.memory.acts
    assert act.outcome.startswith("without 1 of 6 leaders, such as t-5 (")
    assert "PREFERRED_LEADER_NOT_AVAILABLE" in act.outcome


class ElectedAgain:
    """Notes the APIs of all requests; the first election is refused for now."""

    def __init__(self) -> None:
        self.seen: list[Api] = []

    def meet(self, request: Request, execute: Execute) -> Message | None:
        self.seen.append(request.called)
        is_first = request.called == api.ELECT_LEADERS and self.seen.count(api.ELECT_LEADERS) == 1
        return Refused(NOT_CONTROLLER).meet(request, execute) if is_first else execute(request)


def test_each_election_is_confirmed_right_before_it_is_sent(tmp_path: Path) -> None:
    ours, noted = astray(tmp_path, {OFFSETS_TOPIC: [[0, 1, 2]]}), ElectedAgain()
    ours.rig.twin.response_faults.add(noted, AffectedResponses(), hits_once=False)
    with ours.opened() as autopilot:
        ours.watch(autopilot, HOUR_S, LOOKS_S)
    before = [one for one, after in pairwise(noted.seen) if after == api.ELECT_LEADERS]
    assert (led_right(ours), before) == (6, [api.HEARTBEAT] * 4)


# Directories.


def test_a_failed_directory_is_repaired_and_no_dead_broker_with_it(tmp_path: Path) -> None:
    ours = Fleet(tmp_path, TwinRig(tmp_path, LISTS * 2, brokers=6), "[directory-failed]\nlevel = 'act'\n")
    before = ours.rig.replicas
    ours.rig.twin.crash(5)
    ours.rig.twin.fail_log_dir(2, "/data/2/d0")
    with ours.opened() as autopilot:
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert [(one.name.kind, one.outcome) for one in autopilot.memory.acts] == [(Kind.DIRECTORY_FAILED, "done")]
        assert autopilot.memory.findings[Name(Kind.DIRECTORY_FAILED, "broker 2:/data/2/d0")].state is State.TOLD
    after = ours.rig.replicas
    changed = {name for name in before if before[name] != after[name]}
    assert changed
    assert all(2 in before[name] and 2 not in after[name] for name in changed)
    assert any(5 in after[name] for name in after), "nobody asked for that"


def test_a_full_disk_is_relieved_and_nothing_else_balanced(tmp_path: Path) -> None:
    """Broker 0 has more than its share, too, on disks that are nearly empty.

    Each of two directories of broker 5 has three replicas and room for hardly more: without one, it is 62 % full.
    """
    lists = [[0, 1 + one % 2, 5] for one in range(6)] + [[0, 3, 4]] * 4
    policy = "[disk-fills]\nlevel = 'act'\n[runs]\nthrottle = '50MB/s'\n"
    ours = Fleet(
        tmp_path, TwinRig(tmp_path, lists, brokers=6, size_bytes=200_000_000, log_dir_bytes=640_000_000), policy
    )
    before = ours.rig.replicas
    with ours.opened() as autopilot:
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        assert {(one.name.kind, one.outcome) for one in autopilot.memory.acts} == {(Kind.DISK_FILLS, "done")}
    changed = [name for name, lists in ours.rig.replicas.items() if lists != before[name]]
    assert len(changed) == 2, "no more than both directories need"
    assert all(5 in before[name] and 5 not in ours.rig.replicas[name] for name in changed)


@pytest.mark.parametrize("cordoned", [None, "/data/5/d1"])
def test_a_full_directory_is_eased_on_its_broker_alone(tmp_path: Path, cordoned: str | None) -> None:
    """Broker 0 has all replicas in one directory, too; a cordoned directory of broker 5 has room for others only."""
    lists = [[0, 1 + one % 2, 5] for one in range(6)]
    policy = "[disk-fills]\nlevel = 'act'\n[runs]\nthrottle = '50MB/s'\n"
    rig = TwinRig(tmp_path, lists, brokers=6, size_bytes=100_000_000, log_dir_bytes=640_000_000)
    ours = Fleet(tmp_path, rig, policy)
    crowd = {
        TopicPartitionReplica(broker, "t", number): f"/data/{broker}/d0" for number in range(6) for broker in (0, 5)
    }
    rig.client.alter_replica_log_dirs(crowd).raise_if_any()
    rig.transport.sleep(HOUR_S)
    if cordoned is not None:
        cordon(rig, 5, cordoned)
    before, lists_before = paths(rig), rig.replicas
    with ours.opened() as autopilot:
        ours.watch(autopilot, HOUR_S, LOOKS_S)
        assert [(one.name.subject, one.outcome) for one in autopilot.memory.acts] == [("broker 5:/data/5/d0", "done")]
    moved = {one for one, path in before.items() if paths(rig).get(one) != path}
    assert {broker for _, broker in moved} == {5}
    assert (lists_before == rig.replicas) == (cordoned is None), "to other brokers only where it has no room"


def paths(rig: TwinRig) -> dict[tuple[TopicPartition, int], str]:
    """Directory of each replica."""
    dirs = rig.client.describe_log_dirs(range(6)).raise_if_any()
    return {
        (copy.topic_partition, broker): one.path for broker in dirs for one in dirs[broker] for copy in one.replicas
    }
