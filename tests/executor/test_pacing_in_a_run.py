"""A run starts its moves in the order of pacing."""

from __future__ import annotations

from dataclasses import replace

from kreassign.executor.events import MovesObserved, MovesSubmitted, PlacementState, PlannedMove, SubmissionIntended
from kreassign.executor.instructions import ObserveMoves, SubmitMoves
from kreassign.model import TopicPartition
from kreassign.model.pace import Cap, Caps, Pace
from kreassign.model.run import MoveStatus
from tests.executor.run_events import look, machine_after, started


def test_what_is_longest_on_the_busiest_broker_is_started_first() -> None:
    small, large, aside = (
        PlannedMove(TopicPartition("a", 0), (0, 1), (3, 1), 10),
        PlannedMove(TopicPartition("a", 1), (1, 0), (3, 0), 40),
        PlannedMove(TopicPartition("a", 2), (2, 1), (4, 1), 45),
    )
    moves = (small, aside, large)
    run, _ = machine_after(started(*moves, throttle=None))
    (order,) = run.replay(look(3_000, PlacementState.UNTOUCHED, *moves))
    assert list(order.targets) == [large.topic_partition, small.topic_partition, aside.topic_partition]


def test_what_waits_is_looked_at_again_right_before_it_starts() -> None:
    first, second = (PlannedMove(TopicPartition("a", number), (0, 1), (3, 1), 10) for number in (0, 1))
    one_at_a_time = replace(started(first, second, throttle=None), pace=Pace(caps=Caps(cluster=Cap(moves=1))))
    run, _ = machine_after(one_at_a_time, look(1_000, PlacementState.UNTOUCHED, first, second))
    run.replay(SubmissionIntended(1_000, (first.topic_partition,)))
    assert run.replay(MovesSubmitted(1_000, (first.topic_partition,))) == (ObserveMoves((first,)),)
    again = ObserveMoves((second,), frozenset({second.topic_partition}))
    assert run.replay(look(2_000, PlacementState.ARRIVED, first)) == (again,)
    assert run.replay(MovesObserved(2_000, ())) == (SubmitMoves({second.topic_partition: (3, 1)}),)


def test_what_changed_while_it_waited_is_not_sent() -> None:
    first, second = (PlannedMove(TopicPartition("a", number), (0, 1), (3, 1), 10) for number in (0, 1))
    one_at_a_time = replace(started(first, second, throttle=None), pace=Pace(caps=Caps(cluster=Cap(moves=1))))
    run, _ = machine_after(one_at_a_time, look(1_000, PlacementState.UNTOUCHED, first, second))
    run.replay(SubmissionIntended(1_000, (first.topic_partition,)))
    run.replay(MovesSubmitted(1_000, (first.topic_partition,)))
    run.replay(look(2_000, PlacementState.ARRIVED, first))
    run.replay(look(2_000, PlacementState.DIVERGED, second))
    assert run.view.records[second.topic_partition].status is MoveStatus.PLANNED
    run.replay(look(17_000, PlacementState.DIVERGED, second))
    assert run.view.records[second.topic_partition].status is MoveStatus.FAILED


def test_requests_follow_each_other_only_while_what_was_seen_is_fresh() -> None:
    moves = [PlannedMove(TopicPartition("a", number), (0, 1), (3, 1), 10) for number in range(1_001)]
    instructions = []
    for answered_ms in (2_000, 11_000):
        run, (order,) = machine_after(started(*moves, throttle=None), look(1_000, PlacementState.UNTOUCHED, *moves))
        assert isinstance(order, SubmitMoves)
        run.replay(SubmissionIntended(1_000, tuple(order.targets)))
        instructions += run.replay(MovesSubmitted(answered_ms, tuple(order.targets)))
    assert list(map(type, instructions)) == [SubmitMoves, ObserveMoves]
