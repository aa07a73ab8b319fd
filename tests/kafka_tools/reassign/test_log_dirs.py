"""Repeating the order to move a replica until its broker has the replica, or until time is up."""

import pytest

from kreassign.clock import VirtualClock
from kreassign.kafka_tools.command_line import TerseError
from kreassign.kafka_tools.reassign.tool_client import ToolClient, start_directory_moves
from kreassign.model import TopicPartitionReplica

FOO = TopicPartitionReplica(1, "foo", 0)
BAR = TopicPartitionReplica(0, "bar", 2)


class SlowBrokers(ToolClient):
    """Brokers that take the order for a replica only when it was given so many times."""

    def __init__(self, needed):
        self.needed = dict(needed)
        self.orders = []

    def move_directories(self, targets):
        self.orders.append(dict(targets))
        self.needed = {replica: count - 1 for replica, count in self.needed.items()}
        return {replica for replica in targets if self.needed[replica] <= 0}


def test_orders_are_repeated_for_what_is_still_to_come(capsys):
    brokers = SlowBrokers({FOO: 3, BAR: 1})
    clock = VirtualClock()
    start_directory_moves(brokers, {FOO: "/f", BAR: "/b"}, 10_000, clock)
    assert brokers.orders == [{FOO: "/f", BAR: "/b"}, {FOO: "/f"}, {FOO: "/f"}]
    assert clock.monotonic_s() == pytest.approx(0.2)
    assert capsys.readouterr().out == (
        "Successfully started moving log directory to /b for replica bar-2 with broker 0 \n"
        "Successfully started moving log directory to /f for replica foo-0 with broker 1 \n"
    )


def test_replicas_that_do_not_come_in_time_are_named(capsys):
    brokers = SlowBrokers({FOO: 1000, BAR: 1})
    clock = VirtualClock()
    with pytest.raises(TerseError) as caught:
        start_directory_moves(brokers, {FOO: "/f", BAR: "/b"}, 500, clock)
    assert str(caught.value) == "Timed out before log directory move could be started for: foo-0-1"
    assert clock.monotonic_s() == pytest.approx(0.5)
    assert "replica bar-2" in capsys.readouterr().out


def test_without_patience_the_order_is_given_once():
    brokers = SlowBrokers({FOO: 2, BAR: 2})
    with pytest.raises(TerseError, match=r"log directory moves could be started for: bar-2-0,foo-0-1$"):
        start_directory_moves(brokers, {FOO: "/f", BAR: "/b"}, 0, VirtualClock())
    assert len(brokers.orders) == 1
