"""That a run asks pacing in which order its moves start."""

from __future__ import annotations

from kreassign.executor.events import PlannedMove, Whereabouts
from kreassign.executor.machine import handle
from kreassign.model import TopicPartition
from tests.executor.stories import look, started, told


def test_what_is_longest_on_the_busiest_broker_is_started_first() -> None:
    small, large, aside = (
        PlannedMove(TopicPartition("a", 0), (0, 1), (3, 1), 10),
        PlannedMove(TopicPartition("a", 1), (1, 0), (3, 0), 40),
        PlannedMove(TopicPartition("a", 2), (2, 1), (4, 1), 45),
    )
    moves = (small, aside, large)
    run, _ = told(started(*moves, throttle=None))
    handle(run, look(3_000, Whereabouts.UNTOUCHED, *moves))
    (order,) = handle(run, look(3_000, Whereabouts.UNTOUCHED, *moves))
    assert list(order.targets) == [large.topic_partition, small.topic_partition, aside.topic_partition]
