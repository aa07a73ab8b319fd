"""Others come first between the look and the run of a repair: it waits for them, and has not failed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.autopilot.events import Name
from kreassign.autopilot.policy import Kind, Policy, parse_policy
from kreassign.executor.history.run_history import history
from kreassign.executor.journal import journal_path, writer
from kreassign.executor.journal.folder import ClusterLock
from kreassign.executor.state import RunView
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.run import ENDED
from kreassign.operations import journal_waits
from kreassign.operations.autopilot_journal import BRAKE, decisions_path
from kreassign.operations.leases import leased
from tests.autopilot.fleet import HOUR_S, POLL_S, Fleet, finding
from tests.executor.test_lease_on_twin import request, with_offsets_topic
from tests.executor.twin_runs import TwinRig, tp

LOOKS_S = 300.0
ACT = "[broker-gone]\nlevel = 'act'\nact-after = '30m'\n[care]\ninterval = '5m'\n"
GONE = Name(Kind.BROKER_GONE, "broker 3")
ALL = ConfigResource.all_brokers()
LISTS = [[one, (one + 1) % 6, (one + 2) % 6] for one in range(6)]
PULLED, RELEASED = 10, 60
Race = Callable[[TwinRig], AbstractContextManager[object]]


def lease(rig: TwinRig) -> AbstractContextManager[object]:
    """Another host has the lease of the cluster."""
    return leased(rig.new_client(), request(rig, "run-of-ann"), rig.transport)


@contextmanager
def run(rig: TwinRig) -> Iterator[None]:
    """A process of this host executes a run."""
    lock = ClusterLock(journal_path(rig.state_dir, rig.twin.cluster_id, "run-of-ann"))
    lock.execute()
    yield
    lock.close()


@contextmanager
def moves(rig: TwinRig) -> Iterator[None]:
    """Move a partition as with Kafka's own tools."""
    rig.client.alter_partition_reassignments({tp(0, "u"): (0, 2)}).raise_if_any()
    yield
    rig.client.alter_partition_reassignments({tp(0, "u"): None}).raise_if_any()


@contextmanager
def drift(rig: TwinRig) -> Iterator[None]:
    """Move a replica of a partition of the plan."""
    if rig.replicas[3] == (3, 4, 5):
        rig.client.alter_partition_reassignments({tp(3): (3, 4, 0)}).raise_if_any()
        rig.transport.sleep(60.0)
    yield


def test_a_brake_pulled_while_a_repair_is_planned_holds_it(tmp_path: Path) -> None:
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    ours, before, pulled = Fleet(tmp_path, rig, ACT), rig.replicas, list[str]()

    def pull() -> Policy:
        """Pull it after the cluster was read, once the plan is to run."""
        known = finding(autopilot, GONE.kind, GONE.subject)
        if known is not None and known.proposal is not None and known.proposal.at_ms > known.steady_ms and not pulled:
            rig.client.incremental_alter_configs({ALL: [ConfigChange.set(BRAKE, "true")]}).raise_if_any()
            pulled.append(known.proposal.plan_id)
        return ours.policy

    with ours.opened(reread=pull) as autopilot:
        rig.twin.crash(3)
        ours.watch(autopilot, 3600.0, LOOKS_S)
        assert (autopilot.memory.acts, rig.replicas, len(pulled)) == ((), before, 1)
        rig.client.incremental_alter_configs({ALL: [ConfigChange.delete(BRAKE)]}).raise_if_any()
        ours.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        (act,) = autopilot.memory.acts
    assert act.outcome == "done"


@pytest.mark.parametrize(("kind", "locked", "elected"), [
    (Kind.BROKER_GONE, 2, 0), (Kind.LEADERS, 2, 0), (Kind.LEADERS, 3, 2),
])  # fmt: skip
def test_a_brake_pulled_while_a_journal_is_locked_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, locked: int, elected: int
) -> None:
    """Another process locks the journal of decisions right before a repair, or its second step, is written."""
    monkeypatch.setattr(journal_waits, "TOLD_AFTER_S", 0.0)
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    ours = Fleet(tmp_path, rig, f"{ACT}[leaders]\nlevel = 'act'\nstep = 2\n")
    reads, locks = [0], list[sqlite3.Connection]()

    def lock() -> Policy:
        """Lock it when the policy is read for the second time within a look, all is prepared; or beside an election."""
        reads[0] += 1
        proposal = next((one.proposal for one in autopilot.memory.open if one.name.kind is kind), None)
        if proposal is not None and reads[0] == locked and not locks:
            locks.append(sqlite3.connect(autopilot.decisions.journal.path, isolation_level=None))
            locks[0].execute("BEGIN IMMEDIATE")
        return ours.policy

    def warn(text: str) -> None:
        if "the autopilot holds" in text:
            rig.client.incremental_alter_configs({ALL: [ConfigChange.set(BRAKE, "true")]}).raise_if_any()
            locks[0].close()

    def placed() -> list[object]:
        topic = rig.client.describe_topics().raise_if_any()["t"]
        return [one.leader if kind is Kind.LEADERS else one.replicas for one in topic.partitions]

    if kind is Kind.LEADERS:
        turned = {tp(number): (one[1], one[0], one[2]) for number, one in enumerate(LISTS)}
        rig.client.alter_partition_reassignments(turned).raise_if_any()
    else:
        rig.twin.crash(3)
    before, ours.context = placed(), replace(ours.context, warn=warn)
    with ours.opened(reread=lock) as autopilot:
        for _ in range(20):
            reads[0] = 0
            autopilot.look()
            rig.transport.sleep(LOOKS_S)
        assert len(locks) == 1
        assert sum(is_now != was for is_now, was in zip(placed(), before, strict=True)) == elected
        assert rig.throttles == {}
        rig.client.incremental_alter_configs({ALL: [ConfigChange.delete(BRAKE)]}).raise_if_any()
        ours.watch(autopilot, 6 * LOOKS_S, LOOKS_S)
        assert autopilot.memory.acts[-1].outcome == "done"


def test_a_repair_hears_the_brake_though_no_look_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process locks the journal of decisions for five minutes of the repair, which looks once a minute."""
    monkeypatch.setattr(writer, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(journal_waits, "TOLD_AFTER_S", 0.0)
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS * 2, brokers=6))
    ours, sent = Fleet(tmp_path, rig, f"{ACT}[runs]\nthrottle = '100kB/s'\n".replace("5m", "1m")), list[int]()
    pull, release = ({ALL: [change]} for change in (ConfigChange.set(BRAKE, "true"), ConfigChange.delete(BRAKE)))
    path = decisions_path(tmp_path, rig.twin.cluster_id)

    def beside(run: RunView, _: object) -> None:
        """Count polls."""
        seen = history(run)
        sent.append(sum(one.submitted_ms is not None for one in seen.moves))
        if seen.state in ENDED and locks:
            locks[0].close()  # else the next look would wait for it
        if len(sent) == PULLED:
            locks.append(sqlite3.connect(path, isolation_level=None))
            locks[0].execute("BEGIN IMMEDIATE")
            rig.client.incremental_alter_configs(pull).raise_if_any()
        elif len(sent) == RELEASED:
            locks[0].close()
            rig.client.incremental_alter_configs(release).raise_if_any()

    locks, told = list[sqlite3.Connection](), list[str]()
    ours.context = replace(ours.context, observers=(beside,), warn=told.append)
    rig.twin.crash(3)
    with ours.opened() as autopilot:
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]
    assert sent[PULLED + round(120 / POLL_S)] == sent[RELEASED - 1] < sent[-1]
    began, over = told
    assert began.startswith("the autopilot holds: ")
    assert over.startswith("the journal of the autopilot can be written again")


def test_a_policy_lowered_while_a_repair_is_prepared_stops_it(tmp_path: Path) -> None:
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6))
    ours, before, looks = Fleet(tmp_path, rig, ACT), rig.replicas, list[int]()

    def lower() -> Policy:
        """Lower it when it is read for the second time within a look."""
        known = finding(autopilot, GONE.kind, GONE.subject)
        proposal = None if known is None else known.proposal
        looks.append(0 if proposal is None else proposal.at_ms)
        is_prepared = proposal is not None and len(looks) > starts[-1] + 1
        return parse_policy(ACT.replace("'act'", "'tell'"), "policy.toml") if is_prepared else ours.policy

    starts = [0]
    with ours.opened(reread=lower) as autopilot:
        rig.twin.crash(3)
        for _ in range(12):
            starts.append(len(looks))
            autopilot.look()
            rig.transport.sleep(LOOKS_S)
        assert (autopilot.memory.acts, rig.replicas) == ((), before)
    assert len(looks) > 12, "it was prepared"


@pytest.mark.parametrize("race", [lease, run, moves, drift])
def test_who_came_first_is_waited_for_and_no_failure(tmp_path: Path, race: Race) -> None:
    rig = with_offsets_topic(TwinRig(tmp_path, LISTS, brokers=6, others={"u": [[0, 1]]}))
    ours, theirs = Fleet(tmp_path, rig, ACT), ExitStack()
    refused: list[str] = []

    def between() -> Policy:
        """Change something after the cluster was read, and before that is decided on."""
        known = finding(autopilot, GONE.kind, GONE.subject)
        proposal = None if known is None else known.proposal
        if known is not None and proposal is not None and proposal.at_ms > known.steady_ms and not refused:
            theirs.enter_context(race(rig))
        return ours.policy

    with ours.opened(reread=between) as autopilot:
        rig.twin.crash(3)
        for _ in range(20):
            with theirs:
                autopilot.look()
            found = autopilot.memory.findings.get(GONE)
            if found is not None and found.problem:
                refused.append(found.problem)
                assert found.failures == 0
            rig.transport.sleep(LOOKS_S)
        (act,) = autopilot.memory.acts
    assert refused[0].startswith("its run cannot begin: ")
    assert act.outcome == "done"
