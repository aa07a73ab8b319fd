"""Preview of a run: every figure from moves, rates and disks given as values."""

from __future__ import annotations

import pytest

from kreassign.cli.terminal import preview_lines
from kreassign.executor.events import PlannedMove
from kreassign.executor.preview import FreeSpace, RunPreview, preview, propose
from kreassign.executor.throttle_rates import BrokerTraffic
from kreassign.model import LogDir, TopicPartition
from kreassign.model.run import LogDirTarget
from kreassign.model.throttle import NO_THROTTLE, AdaptiveThrottle, BrokerRate, ThrottleRates

MB = 1_000_000
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
AWAY = PlannedMove(T0, (0, 1), (2, 1), 600 * MB)
WIDER = PlannedMove(T1, (0, 1), (0, 1, 2), 60 * MB)
REORDERED = PlannedMove(TopicPartition("t", 2), (0, 1), (1, 0), 5 * MB)


def log_dir(free: int | None, total: int | None, error: str | None = None) -> LogDir:
    return LogDir("/d", error, total, free, is_cordoned=False, replicas=())


def of(*moves: PlannedMove, rates: ThrottleRates = NO_THROTTLE) -> RunPreview:
    return preview(moves, rates, {})


def test_the_preview_counts_bytes_leader_changes_and_brokers() -> None:
    found = of(AWAY, WIDER, REORDERED)
    assert (found.partitions, found.copies, found.copied_bytes, found.leader_changes) == (3, 2, 660 * MB, 2)
    assert (found.senders, found.receivers) == ((0,), (2,))


def test_the_duration_lies_between_full_and_remaining_rate() -> None:
    found = of(AWAY, WIDER, rates=ThrottleRates(11 * MB))
    assert (found.shortest_s, found.longest_s) == pytest.approx((60, 660 / (11 * 11 / 12)))
    written = PlannedMove(T0, (0, 1), (2, 1), 600 * MB, write_bytes_per_s=2.0 * MB)
    # At the leader what is written goes to the follower in sync and to the new copy, from one budget.
    assert of(written, rates=ThrottleRates(12 * MB)).longest_s == pytest.approx(600 / (11 - 4))
    assert of(written, rates=ThrottleRates(4 * MB)).longest_s is None


@pytest.mark.parametrize("rates", [NO_THROTTLE, ThrottleRates(None, (), AdaptiveThrottle(50 * MB))])
def test_nobody_knows_the_time_where_no_rate_is_fixed(rates: ThrottleRates) -> None:
    assert (of(AWAY, rates=rates).shortest_s, of(AWAY, rates=rates).longest_s) == (None, None)


def test_a_broker_without_a_limit_leaves_the_latest_end_open() -> None:
    found = of(AWAY, rates=ThrottleRates(None, (BrokerRate(2, 10 * MB),)))
    assert (found.shortest_s, found.longest_s) == (60, None)


@pytest.mark.parametrize(("rate", "is_slip"), [(50 * MB, False), (50_000 * MB, True)])
def test_a_throttle_beyond_every_network_is_named(rate: int, *, is_slip: bool) -> None:
    lines = [*preview_lines(of(AWAY, rates=ThrottleRates(rate)))]
    assert any("more than 100 Gbit/s: it slows nothing" in line for line in lines) == is_slip


def test_what_copies_nothing_takes_no_time() -> None:
    assert (of(REORDERED).shortest_s, of(REORDERED).longest_s) == (0, 0)


def test_copies_between_directories_are_counted_apart_and_have_no_time() -> None:
    targets = (LogDirTarget(0, "/d/1", "/d/0"), LogDirTarget(1, "/d/0", "/d/0"))
    within = PlannedMove(T0, (0, 1), (0, 1), 600 * MB, log_dirs=targets)
    found = of(within, rates=ThrottleRates(11 * MB))
    assert (found.log_dir_moves, found.log_dir_bytes, found.copies, found.copied_bytes) == (1, 600 * MB, 0, 0)
    assert (found.senders, found.receivers, found.shortest_s, found.longest_s) == ((), (0,), None, None)
    lines = [*preview_lines(found)]
    assert "  to another log directory of the same broker: 1 copy, 600 MB" in lines
    assert "  time: not known: it depends on the disks" in lines
    both = of(within, WIDER, rates=ThrottleRates(11 * MB))
    assert (both.log_dir_moves, both.copies, both.longest_s) == (1, 1, None)
    assert any(line.endswith("or longer, for copies between log directories meanwhile") for line in preview_lines(both))


def test_the_lowest_free_disk_is_the_least_free_share_at_the_end() -> None:
    to_three = PlannedMove(T1, (0, 1), (3, 1), 100 * MB)
    dirs = {2: (log_dir(500 * MB, 1_000 * MB), log_dir(400 * MB, 1_000 * MB)), 3: (log_dir(150 * MB, 200 * MB),)}
    assert preview((AWAY, to_three), NO_THROTTLE, dirs).lowest_free == FreeSpace(2, 300 * MB, 2_000 * MB)
    unknown = {2: (log_dir(None, None),), 3: dirs[3]}
    assert preview((AWAY, to_three), NO_THROTTLE, unknown).lowest_free == FreeSpace(3, 50 * MB, 200 * MB)
    failed = {2: (log_dir(None, None, "failed"), log_dir(700 * MB, 1_000 * MB))}
    assert preview((AWAY,), NO_THROTTLE, failed).lowest_free == FreeSpace(2, 100 * MB, 1_000 * MB)
    assert preview((AWAY,), NO_THROTTLE, {}).lowest_free is None


def test_two_directories_on_one_disk_have_its_free_space_once() -> None:
    dirs = {2: (log_dir(700 * MB, 1_000 * MB), log_dir(700 * MB, 1_000 * MB))}
    assert preview((AWAY,), NO_THROTTLE, dirs).lowest_free == FreeSpace(2, 100 * MB, 1_000 * MB)


def test_brokers_whose_free_space_is_not_known_are_named() -> None:
    dirs = {2: (log_dir(500 * MB, 1_000 * MB), log_dir(None, None)), 3: (log_dir(150 * MB, 200 * MB),)}
    to_three = PlannedMove(T1, (0, 1), (3, 1), 100 * MB)
    assert preview((AWAY, to_three), NO_THROTTLE, dirs).unsized == (2,)
    assert preview((to_three,), NO_THROTTLE, dirs).unsized == ()
    assert preview((AWAY, to_three), NO_THROTTLE, {}).unsized == (2, 3)


def test_the_proposed_throttle_leaves_room_for_the_busiest_broker() -> None:
    traffic = (BrokerTraffic(0, 20.4 * MB, 0), BrokerTraffic(2, 0, 3.0 * MB), BrokerTraffic(7, 99.0 * MB, 0))
    found = propose((AWAY,), traffic, {}, live=(0, 2, 7))
    assert found is not None
    # 70 % of 125 MB/s, less 20.4 MB/s, in whole MB/s; broker 7 has no part in the run.
    assert (found.text, found.busiest_broker, found.busiest_bytes_per_s) == ("67MB/s", 0, 20.4 * MB)
    assert not found.is_least
    told = preview((AWAY,), NO_THROTTLE, {}, proposal=found)
    assert told.shortest_s == pytest.approx(600 / 67)


def test_no_throttle_is_proposed_with_which_a_copy_would_never_end() -> None:
    busy = (BrokerTraffic(0, 80.0 * MB, 0),)
    found = propose((AWAY,), busy, {T0: 40.0 * MB}, live=(0,))
    assert found is not None
    assert (found.bytes_per_s, found.is_least) == (100 * MB, True)
    full = propose((AWAY,), (BrokerTraffic(0, 900.0 * MB, 0),), {}, live=(0,))
    assert full is not None
    assert full.bytes_per_s == MB


def test_no_throttle_is_proposed_without_copies_or_known_traffic() -> None:
    one = (BrokerTraffic(0, 1.0, 1.0),)
    assert propose((REORDERED,), one, {}, live=(0,)) is None
    assert propose((AWAY,), (), {}, live=()) is None
    assert propose((AWAY,), one, {}, live=(0, 3)) is not None, "broker 3 has no part in the run"
    assert propose((AWAY,), one, {}, live=(0, 1)) is None, "broker 1 may be the busiest"
