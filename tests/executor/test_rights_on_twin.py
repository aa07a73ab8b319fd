"""A right that is withdrawn in the middle of a run: it is named, nothing more is started, nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kreassign.executor.events import Event
from kreassign.executor.state.view import RunView
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.run import RunHistory
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin.access import ALL_TOPICS, ANONYMOUS, Allow, Operation, Permissions
from tests.executor.twin_runs import TwinRig, pace, tp

NAMED_WITHIN_S = 5.0
WITHDRAWN_S, GIVEN_BACK_S = 4, 60
MOVES = {0: (2, 1), 1: (3, 0), 2: (4, 1), 3: (2, 0)}
LOOK, SEE = Allow(ANONYMOUS, Operation.DESCRIBE), Allow(ANONYMOUS, Operation.DESCRIBE, ALL_TOPICS)
ALTER, ALTER_SETTINGS = Allow(ANONYMOUS, Operation.ALTER), Allow(ANONYMOUS, Operation.ALTER_CONFIGS)
ALTER_TOPICS = Allow(ANONYMOUS, Operation.ALTER_CONFIGS, ALL_TOPICS)
READ_SETTINGS = {Allow(ANONYMOUS, Operation.DESCRIBE_CONFIGS, topic) for topic in (None, ALL_TOPICS)}
ALL = frozenset({LOOK, SEE, ALTER, ALTER_SETTINGS, ALTER_TOPICS, *READ_SETTINGS})
HOLDS = {
    # Who may alter may look.
    "Describe on the cluster": frozenset({ALTER, LOOK}),
    "Describe on topic t": frozenset({SEE}),
    "AlterConfigs on topic t": frozenset({ALTER_TOPICS}),
}


@dataclass
class Withdrawn:
    """A run of four moves, one at a time, from which rights are withdrawn in the first, and given back later.

    `named_s` is when the status named the permission, counted from then, and `in_flight` which moves were meanwhile.
    """

    rig: TwinRig
    sentence: str
    named_s: list[float] = field(default_factory=list)
    in_flight: set[TopicPartition] = field(default_factory=set)

    def may(self, rules: frozenset[Allow]) -> Callable[[], None]:
        def change() -> None:
            self.rig.twin.settings = replace(self.rig.twin.settings, permissions=Permissions(rules))

        return change

    def run(self, withdrawn: frozenset[Allow]) -> RunHistory:
        self.may(ALL)()
        started = self.rig.prepared(MOVES, throttle=2_000_000, pace=pace(moves=1))
        begun_ms = self.rig.transport.now_ms()

        def listen(_: Event, run: RunView) -> None:
            since_s = (self.rig.transport.now_ms() - begun_ms) / 1000 - WITHDRAWN_S
            if any(self.sentence in problem for problem in run.problems if not problem.startswith("over, ")):
                self.named_s.append(since_s)
            if 0 < since_s < GIVEN_BACK_S - WITHDRAWN_S:
                self.in_flight |= {record.name for record in run.in_flight}

        self.rig.listener = listen
        self.rig.after(WITHDRAWN_S, self.may(ALL - withdrawn))
        self.rig.after(GIVEN_BACK_S, self.may(ALL))
        done = self.rig.run(started)
        self.may(ALL)()
        return done

    def throttles(self) -> list[object]:
        resources = [*map(ConfigResource.broker, range(5)), ConfigResource.topic("t")]
        found = self.rig.client.describe_configs(resources, names=(*BROKER_THROTTLES, *TOPIC_THROTTLES))
        return [entry for entries in found.raise_if_any().values() for entry in entries.values() if entry.value]


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [[0, 1], [1, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize("said", HOLDS)
def test_withdrawn_rights_are_named_and_hold_new_moves(rig: TwinRig, said: str) -> None:
    asked = Withdrawn(rig, f"permission is missing: {said}; allow it with `kafka-acls --add ")
    done = asked.run(HOLDS[said])
    # Settings are changed when a move ends and another begins, two seconds later.
    assert 0 <= asked.named_s[0] <= NAMED_WITHIN_S
    assert asked.named_s[-1] <= GIVEN_BACK_S - WITHDRAWN_S + NAMED_WITHIN_S
    assert len(asked.in_flight) <= 1
    assert (done.state, asked.throttles()) == ("done", [])
    (told,) = (problem for problem in done.problems if asked.sentence in problem)
    assert told.startswith("over, from ")


def test_what_only_the_end_needs_is_named_there_and_waited_for(rig: TwinRig) -> None:
    """The rates of brokers are set once for all moves."""
    asked = Withdrawn(rig, "permission is missing: AlterConfigs on the cluster; allow it with `kafka-acls --add ")
    done = asked.run(frozenset({ALTER_SETTINGS}))
    assert asked.in_flight == {tp(number) for number in MOVES}
    assert 0 < asked.named_s[0] < asked.named_s[-1] < GIVEN_BACK_S - WITHDRAWN_S + NAMED_WITHIN_S
    assert (done.state, asked.throttles()) == ("done", [])


def test_who_may_not_even_read_the_throttle_is_told_that_it_takes_a_right(rig: TwinRig) -> None:
    asked = Withdrawn(
        rig, "broker 0 cannot be read: a broker has to answer, and to allow DescribeConfigs on the cluster"
    )
    done = asked.run(frozenset({ALTER_SETTINGS, Allow(ANONYMOUS, Operation.DESCRIBE_CONFIGS)}))
    assert 0 <= asked.named_s[0] <= NAMED_WITHIN_S
    assert (len(asked.in_flight), done.state, asked.throttles()) == (1, "done", [])


def test_without_alter_unstarted_moves_fail_and_throttles_go(rig: TwinRig) -> None:
    asked = Withdrawn(rig, "permission is missing: Alter on the cluster; allow it with `kafka-acls --add ")
    done = asked.run(frozenset({ALTER}))
    assert (done.state, asked.throttles(), rig.client.list_partition_reassignments()) == ("failed", [], {})
    assert [move.status for move in done.moves] == ["complete", "failed", "failed", "failed"]
    assert all(asked.sentence in (move.problem or "") for move in done.moves[1:])
