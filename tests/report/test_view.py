from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.model import TopicPartition
from kreassign.model.run import MoveStatus
from kreassign.report.run_page import Holding, ReceiverView, busy_s, holdings, report_view
from tests.report.runs import AFTER, BEFORE, MB, STARTED_MS, TWO_MOVES, a_move, a_run, partition, snapshot

RATES = {TopicPartition("orders", 0): 10.0, TopicPartition("orders", 1): 5.0}


def test_brokers_are_shown_before_and_after_with_empty_ones() -> None:
    one, two, three = report_view(a_run(TWO_MOVES), BEFORE, AFTER, RATES).brokers
    assert (one.rack, two.rack) == ("a", None)
    assert one.before == Holding(200 * MB, 2, 1, 15.0)
    assert one.after == Holding(100 * MB, 1, 1, 5.0)
    assert (two.before, two.after) == (Holding(200 * MB, 2, 1, 15.0), Holding(200 * MB, 2, 0, 15.0))
    assert (three.before, three.after) == (Holding(0, 0, 0, 0.0), Holding(100 * MB, 1, 1, 10.0))


def test_write_rates_are_unknown_as_soon_as_one_partition_is() -> None:
    known = holdings(BEFORE, RATES)[1].write_bytes_per_s
    without_model = holdings(BEFORE, {})[3].write_bytes_per_s
    with_gap = holdings(BEFORE, RATES | {TopicPartition("orders", 1): None})[1].write_bytes_per_s
    assert (known, without_model, with_gap) == (15.0, None, None)


def test_unknown_sizes_count_as_empty_and_unlisted_brokers_show() -> None:
    seen = snapshot(1, partition(0, (1, 9)), size_bytes=None)
    assert holdings(seen, {})[9] == Holding(0, 1, 0, None)


def test_a_broker_that_only_one_snapshot_knows_is_shown() -> None:
    shrunk = replace(AFTER, brokers=AFTER.brokers[1:], replicas=())
    one = report_view(a_run(TWO_MOVES), BEFORE, shrunk, {}).brokers[0]
    assert one.before is not None
    assert one.after is None
    assert report_view(a_run(TWO_MOVES), None, None, {}).brokers == ()


def test_a_move_has_its_time_and_its_mean_rate() -> None:
    move = a_move("orders", 0, (1, 2), (3, 2), STARTED_MS + 500, STARTED_MS + 4500, bytes_copied=8 * MB)
    (view,) = report_view(a_run((move,)), None, None, {}).moves
    assert (view.name, view.start_s, view.duration_s, view.end_s) == ("orders-0", 0.5, 4.0, 4.5)
    assert (view.rate_bytes_per_s, view.adding) == (2.0 * MB, (3,))


def test_open_moves_and_mere_reorders_have_no_rate() -> None:
    moves = (
        a_move("a", 0, (1, 2), (2, 1), bytes_copied=0),
        a_move("b", 0, (1, 2), (3, 2), ended_ms=None, bytes_copied=5),
        a_move("c", 0, (1, 2), (3, 2), submitted_ms=None, ended_ms=None, bytes_copied=0),
    )
    reorder, open_move, waiting = report_view(a_run(moves), None, None, {}).moves
    assert (reorder.duration_s, reorder.rate_bytes_per_s) == (10.0, None)
    assert (open_move.start_s, open_move.duration_s, open_move.rate_bytes_per_s) == (0.0, None, None)
    assert (waiting.start_s, waiting.end_s) == (None, None)


def test_moves_are_shown_in_the_order_in_which_they_began() -> None:
    moves = tuple(
        replace(TWO_MOVES[0], partition=number, submitted_ms=at)
        for number, at in enumerate((None, STARTED_MS + 5, STARTED_MS, STARTED_MS))
    )
    names = [move.name for move in report_view(a_run(moves), None, None, {}).moves]
    assert names == ["orders-2", "orders-3", "orders-1", "orders-0"]


def test_the_run_is_summed_up_over_the_time_in_which_something_was_copied() -> None:
    moves = (
        a_move("a", 0, (1, 2), (3, 2), STARTED_MS, STARTED_MS + 2000, bytes_copied=10),
        a_move("a", 1, (1, 2), (3, 2), STARTED_MS + 1000, STARTED_MS + 3000, bytes_copied=20),
        a_move("a", 2, (1, 2), (3, 2), STARTED_MS + 9000, STARTED_MS + 10_000, bytes_copied=10),
        a_move("a", 3, (1, 2), (3, 2), STARTED_MS + 5000, None, bytes_copied=4),
        a_move("a", 4, (1, 2), (2, 1), STARTED_MS, STARTED_MS + 10_000, bytes_copied=0),
    )
    view = report_view(a_run(moves, ended_ms=STARTED_MS + 12_500), None, None, {})
    assert (len(view.run.moves), view.run.moves_by_state[MoveStatus.COMPLETE], view.run.bytes_copied) == (5, 4, 44)
    assert view.run.duration_s == 12.5
    assert view.rate_bytes_per_s == pytest.approx(44 / 4)
    assert report_view(a_run(moves, ended_ms=None), None, None, {}).run.duration_s is None


def test_receivers_share_a_move_and_rest_between_moves() -> None:
    moves = (
        a_move("a", 0, (1,), (3, 4), STARTED_MS, STARTED_MS + 2000, bytes_copied=80),
        a_move("a", 1, (1,), (3,), STARTED_MS + 8000, STARTED_MS + 10_000, bytes_copied=20),
        a_move("a", 2, (1,), (4,), STARTED_MS + 8000, None, bytes_copied=7),
    )
    three, four = report_view(a_run(moves), None, None, {}).receivers
    assert three == ReceiverView(3, 60.0, 4.0, 15.0)
    assert four == ReceiverView(4, 40.0, 2.0, 20.0)


def test_busy_time_counts_overlaps_once() -> None:
    assert busy_s([(5, 6), (0, 2), (1, 3), (1, 2)]) == 4
    assert busy_s([]) == 0
