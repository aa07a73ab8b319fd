"""The two races of KIP-860: a tool takes an intermediate replica list for the replication factor.

The tool asks which moves are in progress (the controller answers: none) and describes the topic (some broker answers,
perhaps from old metadata), then moves the partition to as many brokers as it saw. Allowed to, that changes the factor
without anybody having wanted it; forbidden (`allow_replication_factor_change=False`), it is refused.
"""

from __future__ import annotations

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import Rejected
from kreassign.model import TopicPartition
from kreassign.twin import Twin, TwinTransport
from tests.twin.asking import cluster, partition

TP = TopicPartition("tp", 0)
NEXT_BROKERS = (7, 8, 9, 10, 11, 12)


class Race:
    """Brokers 1 to 12, and tp-0 on 1, 2, 3 in sync."""

    def __init__(self) -> None:
        self.twin = Twin(cluster({"tp": [[1, 2, 3]]}, brokers=13))
        self.transport = TwinTransport(self.twin)

    def client(self, broker: int = 12) -> AdminClient:
        """A client that knows no broker but this one, which therefore answers what any broker may."""
        settings = client_settings(bootstrap_servers=f"broker-{broker}:9092")
        return AdminClient.connect(settings, clock=self.transport, transport=self.transport)

    def begin_move(self, *target: int) -> None:
        """Begin a move as a second operator."""
        with self.client() as somebody:
            somebody.alter_partition_reassignments({TP: target}).raise_if_any()

    def end_move(self) -> None:
        """End all moves in progress."""
        self.transport.sleep(10.0)
        with self.client() as somebody:
            assert somebody.list_partition_reassignments() == {}

    def described(self, broker: int = 12) -> tuple[int, ...]:
        """The replicas that a broker tells."""
        with self.client(broker) as tool:
            return tool.describe_topics()["tp"].partitions[0].replicas

    def go_elsewhere(self, seen: tuple[int, ...], *, may_change_factor: bool) -> None:
        """Move like the tool: as many replicas as it saw, on other brokers."""
        target = NEXT_BROKERS[: len(seen)]
        with self.client() as tool:
            assert tool.list_partition_reassignments() == {}
            tool.alter_partition_reassignments(
                {TP: target}, allow_replication_factor_change=may_change_factor
            ).raise_if_any()

    def factor(self) -> int:
        """Number of replicas at the end."""
        self.end_move()
        return len(partition(self.twin, "tp")[0])


def described_before_the_move_ended() -> tuple[Race, tuple[int, ...]]:
    """The first example: described during the move, listed after it."""
    race = Race()
    race.begin_move(4, 5, 6)
    seen = race.described()
    race.end_move()
    return race, seen


def described_by_a_broker_that_lags() -> tuple[Race, tuple[int, ...]]:
    """The second example: listed after the move, described by a broker that does not know of its end."""
    race = Race()
    race.begin_move(4, 5, 6)
    race.twin.views.hold_back(11)
    race.end_move()
    assert race.described(broker=12) == (4, 5, 6)
    return race, race.described(broker=11)


def described_by_a_broker_that_missed_an_increase() -> tuple[Race, tuple[int, ...]]:
    """The other way round: a broker does not know yet that there are more replicas now."""
    race = Race()
    race.twin.views.hold_back(11)
    race.begin_move(1, 2, 3, 4)
    race.end_move()
    return race, race.described(broker=11)


RACES = [
    (described_before_the_move_ended, {1, 2, 3, 4, 5, 6}, (3, 6)),
    (described_by_a_broker_that_lags, {1, 2, 3, 4, 5, 6}, (3, 6)),
    (described_by_a_broker_that_missed_an_increase, {1, 2, 3}, (4, 3)),
]


@pytest.mark.parametrize(("example", "seen", "factors"), RACES)
def test_the_factor_changes_silently_where_it_may(example, seen, factors):
    race, replicas = example()
    assert set(replicas) == seen
    race.go_elsewhere(replicas, may_change_factor=True)
    assert race.factor() == factors[1]


@pytest.mark.parametrize(("example", "seen", "factors"), RACES)
def test_a_change_of_the_factor_is_refused_where_it_may_not(example, seen, factors):
    race, replicas = example()
    assert set(replicas) == seen
    with pytest.raises(Rejected, match=f"changed from {factors[0]} to {factors[1]}") as refused:
        race.go_elsewhere(replicas, may_change_factor=False)
    assert refused.value.name == "INVALID_REPLICATION_FACTOR"
    assert race.factor() == factors[0]
