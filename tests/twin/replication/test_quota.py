"""Effects of a throttle on brokers. Measured on Kafka 4.3.1 with `python -m bench twin-calibration`."""

from dataclasses import replace

import pytest

from kreassign.twin.replication.copy_rates import directory_share, follower_share, leader_share, whole_batches
from kreassign.twin.replication.hardware import InSyncTraffic, ReplicationSettings
from tests.twin.boxes import MB, Box, Given

SETTINGS = ReplicationSettings(batch_bytes=0, fetch_start_ms=0, join_ms=0)
LATER = replace(SETTINGS, response_bytes=0)
"""Without first answers."""


def background(*, brokers: int = 2) -> InSyncTraffic:
    return InSyncTraffic(brokers, brokers)


@pytest.mark.parametrize(
    ("batch_bytes", "kept"),
    [(0, 1.0), (104_858, 0.95), (524_288, 0.75), (786_432, 0.75), (1_048_576, 1), (2_000_000, 1)],
)
def test_a_follower_keeps_only_the_whole_batches_of_what_it_is_sent(batch_bytes: int, kept: float) -> None:
    assert whole_batches(ReplicationSettings(batch_bytes=batch_bytes)) == pytest.approx(kept, abs=1e-4)


def test_a_pause_in_every_window_is_lost() -> None:
    idle = background()
    assert follower_share(SETTINGS, idle).tolist() == [11 / 12, 11 / 12]
    assert leader_share(SETTINGS, idle).tolist() == [11 / 11.5, 11 / 11.5]
    assert directory_share(SETTINGS) == 11 / 12


def test_a_follower_of_other_partitions_pauses_for_a_fetch_only() -> None:
    following = background()
    following.followed[0, 1] = 3
    assert follower_share(SETTINGS, following).tolist() == [11 / 12, 11 / 11.5]


def test_who_waits_is_woken_by_records_that_come_in() -> None:
    busy, settings = background(), ReplicationSettings(batch_bytes=10_000)
    busy.followed[0, 1] = 3
    busy.sent[0, 1] = busy.net_out[0] = 100_000
    kept = whole_batches(settings)
    assert follower_share(settings, busy).tolist() == pytest.approx([kept * 11 / 12, kept * 11 / 11.1])
    assert leader_share(settings, busy).tolist() == pytest.approx([kept * 11 / 11.1, kept * 11 / 11.5])


def test_one_throttled_copy_takes_twelve_elevenths_of_the_time() -> None:
    box = Box(Given((0,), size=110), settings=LATER)
    box.throttle(10)
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): 12_000}


def test_the_first_answer_passes_before_a_throttle_is_felt() -> None:
    box = Box(*[Given((0,), size=50)] * 3, settings=SETTINGS)
    box.throttle(0)
    box.add(0, 1)
    box.add(1, 1)
    box.run(0.001)
    assert [box.size(partition, 1) for partition in (0, 1)] == pytest.approx([1.048576, 1.048576], abs=0.001)


def test_however_low_a_throttle_is_an_answer_passes_in_every_window() -> None:
    box = Box(*[Given((0,), size=50)] * 3, brokers=3, settings=SETTINGS)
    box.throttle(0)
    box.add(0, 1)
    box.add(1, 1)
    box.add(2, 2)
    box.run(0.001)
    before = [box.size(partition, follower) or 0 for partition, follower in ((0, 1), (1, 1), (2, 2))]
    box.run(11)
    after = [box.size(partition, follower) or 0 for partition, follower in ((0, 1), (1, 1), (2, 2))]
    # Seen on Kafka 4.3.1, for one partition: 1.0, 2.0, 3.0 and 4.1 MB after 0.3, 11, 22 and 33 s.
    # The leader has counted the answer to one follower, of two partitions, before it answers the other.
    assert sum(after) - sum(before) == pytest.approx(2 * 1.048576, abs=0.01)


def test_a_rate_of_nothing_at_the_leader_alone_lets_nothing_more_through() -> None:
    box = Box(Given((0,), size=50), settings=SETTINGS)
    box.throttle(0, followers=None)
    box.add(0, 1)
    box.run(100)
    assert box.size(0, 1) == pytest.approx(1.048576)


def test_a_first_answer_has_ten_partitions_at_most() -> None:
    box = Box(*[Given((0,), size=50)] * 14, settings=SETTINGS)
    box.throttle(0)
    for partition in range(14):
        box.add(partition, 1)
    box.run(0.001)
    assert sum(box.size(partition, 1) or 0 for partition in range(14)) == pytest.approx(10.48576, abs=0.01)


def test_a_leader_answers_until_it_has_counted_a_second_of_its_rate() -> None:
    box = Box(*[Given((0,), size=50)] * 9, brokers=4, settings=SETTINGS)
    box.throttle(4, followers=None)
    for partition in range(9):
        box.add(partition, 1 + partition // 3)
    box.run(0.001)
    passed = [sum(box.size(partition, follower) or 0 for partition in range(9)) for follower in (1, 2, 3)]
    assert passed == pytest.approx([3 * 1.048576, 3 * 1.048576, 0], abs=0.02)


def test_a_follower_asks_all_leaders_before_it_counts() -> None:
    box = Box(Given((0,), size=50), Given((1,), size=50), Given((2,), size=50), settings=SETTINGS)
    box.throttle(0.001)
    for partition in range(3):
        box.add(partition, 3)
    box.run(0.001)
    assert [box.size(partition, 3) for partition in range(3)] == pytest.approx([1.048576] * 3, abs=0.01)


def test_a_throttle_that_is_in_use_lets_nothing_through_at_once() -> None:
    box = Box(Given((0,), size=50), Given((0,), size=50), settings=SETTINGS)
    box.throttle(1)
    box.add(0, 1)
    box.run(5)
    box.add(1, 1)
    box.run(0.001)
    assert (box.size(1, 1) or 0) * MB < 1000


def test_a_throttle_that_was_not_in_use_for_a_window_opens_again() -> None:
    box = Box(Given((0,), size=2), Given((0,), size=50), settings=SETTINGS)
    box.throttle(1)
    box.add(0, 1)
    box.live(1.5 + 11)
    box.add(1, 1)
    box.run(0.5)
    assert (box.size(1, 1) or 0) > 1.048576


def test_who_is_not_throttled_gets_no_first_answer() -> None:
    box = Box(Given((0,), size=50), settings=SETTINGS)
    box.throttle(1, leaders=None, followers=None)
    box.add(0, 1)
    box.run(0.001)
    assert box.size(0, 1) == pytest.approx(0.1, abs=0.01)
