"""Nothing is started that cannot end in time, and what will not fit is told beforehand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kreassign.executor.scheduling import Candidate, Order, Schedule, TimeLeft, Window, choose, forecast
from kreassign.executor.scheduling.forecast import told
from kreassign.model import TopicPartition


def _move(number: int, size_bytes: int, source: int, *destinations: int, writes: float = 0.0) -> Candidate:
    return Candidate(TopicPartition("t", number), size_bytes, source, destinations, write_bytes_per_s=writes)


def test_what_shares_a_broker_has_to_end_in_time_together() -> None:
    chosen = choose([_move(0, 600, 1, 8), _move(1, 600, 1, 9)], [], order=Order.NAME, supplies=(TimeLeft(100, 10.0),))
    assert [partition.partition for partition in chosen.starting] == [0]
    assert chosen.waiting[0].reason == "it would not end in the 100 s that are left for what broker 1 copies"


def test_brokers_do_not_wait_for_each_other() -> None:
    assert len(choose([_move(0, 1000, 1, 8), _move(1, 1000, 2, 9)], [], supplies=(TimeLeft(100, 10.0),)).starting) == 2


def test_what_is_in_flight_counts_with_what_is_left_of_it() -> None:
    left = [_move(5, 100, 1, 7)]
    assert choose([_move(0, 900, 1, 8)], left, supplies=(TimeLeft.after(100, 10.0, left),)).starting
    assert not choose([_move(0, 901, 1, 8)], left, supplies=(TimeLeft.after(100, 10.0, left),)).starting


def test_a_partition_that_is_written_takes_longer() -> None:
    assert choose([_move(0, 500, 1, 8, writes=5.0)], [], supplies=(TimeLeft(100, 10.0),)).starting
    assert not choose([_move(0, 501, 1, 8, writes=5.0)], [], supplies=(TimeLeft(100, 10.0),)).starting


def test_while_no_rate_is_known_one_move_goes_ahead() -> None:
    waiting = [_move(0, 10, 1, 8), _move(1, 10, 2, 9), _move(2, 0, 3)]
    chosen = choose(waiting, [], order=Order.NAME, supplies=(TimeLeft(100, None),))
    assert [partition.partition for partition in chosen.starting] == [0, 2]


def test_when_no_time_is_left_nothing_starts_not_even_a_change_of_order() -> None:
    assert choose([_move(0, 0, 1)], [], supplies=(TimeLeft(0, 10.0),)).starting == ()


MOVES = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 3), st.sets(st.integers(4, 7), min_size=1, max_size=2)), max_size=12
).map(lambda rows: [_move(number, size, source, *sorted(into)) for number, (size, source, into) in enumerate(rows)])


@given(MOVES, st.sampled_from(Order), st.integers(0, 100))
def test_the_sum_of_what_starts_ends_in_time_at_every_broker(
    moves: list[Candidate], order: Order, seconds: int
) -> None:
    starting = choose(moves, [], order=order, supplies=(TimeLeft(seconds, 10.0),)).starting
    started = [move for move in moves if move.topic_partition in starting]
    for broker in range(4):
        assert sum(move.total_bytes for move in started if move.source == broker) <= seconds * 10
    for broker in range(4, 8):
        assert sum(move.size_bytes for move in started if broker in move.destinations) <= seconds * 10


def test_a_deadline_that_holds_all_moves_needs_no_words() -> None:
    hours = Schedule(deadline_ms=100_000)
    assert told(forecast([_move(0, 1000, 1, 8)], hours, 0, 10.0), hours, 10.0) == ()


def test_a_deadline_that_cannot_be_met_is_told_with_what_fits_and_what_is_needed() -> None:
    hours = Schedule(deadline_ms=100_000)
    found = forecast([_move(number, 400, 1, 8) for number in range(5)], hours, 0, 10.0)
    assert (found.fitting, found.fitting_bytes, found.least_bytes_per_s, found.endless) == (2, 800, 20, ())
    (sentence,) = told(found, hours, 10.0)
    assert sentence.startswith("at 10 B/s per broker at most 2 of 5 moves (800 B) end by 1970-01-01 00:01 UTC; ")
    assert sentence.endswith("all need at least 20 B/s, or more time")


def test_windows_before_the_deadline_count_together_but_a_move_has_to_fit_into_one() -> None:
    hours = Schedule((Window(0, 1), Window(2, 3)), deadline_ms=180_000)
    small, large = [_move(number, 600, 1, 8) for number in range(2)], [_move(9, 601, 1, 8)]
    assert forecast(small, hours, 0, 10.0).fitting == 2
    found = forecast(large, hours, 0, 10.0)
    assert (found.fitting, found.endless) == (0, (large[0].topic_partition,))
    assert "no time to come is long enough for 1 moves (t-9)" in told(found, hours, 10.0)[0]
