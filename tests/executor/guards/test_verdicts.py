"""Verdicts of each guard."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from kreassign.executor.guards import (
    DEFAULTS,
    GUARDS,
    STALL_MS,
    GuardInputs,
    GuardName,
    Health,
    LogDirSpace,
    Reaction,
    Troubled,
    evaluate,
    guard_settings,
    reactions,
)
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.executor.throttle_rates import CopiedPartition
from kreassign.model import ConfigResource, TopicPartition

T0 = TopicPartition("t", 0)
WELL = Health(live=(0, 1, 2))
NOT_WRITTEN = CopiedPartition(0.0, 0, 1, (2,))
FOREIGN = ConfigValue(ConfigKey(ConfigResource.broker(1), "leader.replication.throttled.rate"), "7")


@dataclass(frozen=True)
class Copying:
    """A move in flight, as guards see it."""

    name: TopicPartition = T0
    lagging: tuple[int, ...] = (2,)
    progressed_ms: int | None = 0
    losing_ground: tuple[float, float] | None = None
    copied: CopiedPartition = NOT_WRITTEN
    story: str = "broker 2 has 5 bytes"


NONE = Troubled()


def advice(guard: GuardName, health: Health) -> str:
    verdicts = evaluate(GuardInputs(health, WELL, (), (2,), 0), DEFAULTS)
    return next(verdict.advice for verdict in verdicts if verdict.guard is guard)


@pytest.mark.parametrize(("live", "has_replan"), [((0, 1), True), ((0, 2), False)], ids=["destination", "other broker"])
def test_a_run_that_a_lost_broker_holds_for_ever_is_told_how_it_ends(live: tuple[int, ...], has_replan: bool) -> None:
    (gone,) = set(WELL.live) - set(live)
    found = advice(GuardName.UNDER_REPLICATED, Health(live, under_replicated=Troubled.of([T0], NONE)))
    assert found.startswith(f"Start broker {gone} again. If that is impossible the run cannot go on: end it with")
    assert "`kreassign cancel`" in found
    assert ("--replan" in found) == has_replan


def test_a_run_that_overloads_a_broker_is_not_told_that_one_is_lost() -> None:
    found = advice(GuardName.UNDER_REPLICATED, Health((0, 1, 2), under_replicated=Troubled.of([T0], NONE)))
    assert "overloaded" in found
    assert "lost" not in found


def told(health: Health, *moves: Copying, first: Health = WELL, at_ms: int = 0) -> list[tuple[GuardName, str]]:
    now = GuardInputs(health, first, moves, (2,), at_ms)
    return [(verdict.guard, verdict.seen) for verdict in evaluate(now, DEFAULTS)]


@pytest.mark.parametrize(("health", "guard", "word"), [
    (Health((0, 1, 2), offline=Troubled.of([T0], NONE)), GuardName.OFFLINE, "1 partition has no leader"),
    (Health((0, 1, 2), under_min_isr=Troubled.of([T0], NONE)), GuardName.MIN_ISR, "t-0"),
    (Health((0, 1, 2), under_replicated=Troubled.of([T0], NONE)), GuardName.UNDER_REPLICATED, "t-0"),
    (Health((0, 1)), GuardName.BROKER, "broker 2, which was there when the run began, is gone"),
    (Health((0, 1, 2), log_dir_space=(LogDirSpace(2, "/d", 1_000, 49),)), GuardName.DISK,
     "/d of broker 2 has 49 B of 1 kB left"),
    (Health((0, 1, 2), cordoned=(2,)), GuardName.CORDONED, "broker 2"),
    (Health((0, 1, 2), foreign_moves=(T0,)), GuardName.FOREIGN_MOVE, "t-0"),
    (Health((0, 1, 2), foreign_configs=(FOREIGN,)), GuardName.FOREIGN_THROTTLE, "broker 1"),
])  # fmt: skip
def test_a_guard_tells_what_it_saw(health: Health, guard: GuardName, word: str) -> None:
    ((found, seen),) = told(health)
    assert found is guard
    assert word in seen


@pytest.mark.parametrize(("cordoned", "refused", "named", "words"), [
    ((2,), (), (), "accepts such moves in silence"),
    ((2,), (2,), (0, 2), "refuses such moves"),
    ((), (1,), (1, 2), "broker 1 is to keep replicas of partitions that wait, but its log directories are cordoned"),
    ((), (1,), (), ""),
])  # fmt: skip
def test_a_cordon_is_told_as_the_release_has_it(
    cordoned: tuple[int, ...], refused: tuple[int, ...], named: tuple[int, ...], words: str
) -> None:
    health = Health((0, 1, 2), cordoned=cordoned, refused=refused)
    found = evaluate(GuardInputs(health, WELL, (), (2,), 0, to_be_named=named), reactions(guard_settings({})))
    assert [words in str(one) for one in found] == [True] * bool(words)


def test_a_move_without_progress_is_told_with_its_story() -> None:
    assert told(WELL, Copying(), at_ms=STALL_MS - 1) == []
    ((guard, seen),) = told(WELL, Copying(), at_ms=STALL_MS)
    assert guard is GuardName.STALL
    assert seen == "t-0 has made no progress for 10 minutes: broker 2 has 5 bytes"


def test_a_copy_that_loses_ground_is_told_with_both_rates() -> None:
    ((guard, seen),) = told(WELL, Copying(losing_ground=(100.0, 250.0)))
    assert guard is GuardName.RATE
    assert "100 B/s while producers write 250 B/s" in seen


def test_copies_that_lose_ground_share_one_advice_per_broker() -> None:
    losing = Copying(losing_ground=(100.0, 250.0), copied=CopiedPartition(250.0, 0, 2, (2,)))
    other = replace(losing, name=TopicPartition("t", 1), copied=CopiedPartition(150.0, 0, 1, (3,)))
    gaining = replace(other, name=TopicPartition("t", 2), losing_ground=None)
    said = evaluate(GuardInputs(WELL, WELL, (losing, other, gaining), (2, 3), 0), DEFAULTS)
    # Five quarters of 3 * 250 + 2 * 150 + 2 * 150.
    assert [verdict.advice for verdict in said] == 2 * ["Give every broker at least 1.69kB/s with `kreassign throttle`"]


def test_trouble_from_before_the_run_is_not_told_but_more_of_it_is() -> None:
    t1, one = TopicPartition("t", 1), Troubled.of([T0])
    first = Health((0, 1, 2), offline=one)
    assert told(first, first=first) == []
    assert told(Health((0, 1, 2), offline=Troubled.of([T0], one)), first=first) == []
    more = Health((0, 1, 2), offline=Troubled.of([T0, t1], one))
    seen = "1 partition has no leader, which was not so when the run began: t-1"
    assert told(more, first=first) == [(GuardName.OFFLINE, seen)]
    # As many as before, but not the same.
    assert told(Health((0, 1, 2), offline=Troubled.of([t1], one)), first=first) == [(GuardName.OFFLINE, seen)]


def test_disks_and_brokers_that_get_nothing_are_not_minded() -> None:
    assert told(Health((0, 1, 2), log_dir_space=(LogDirSpace(1, "/d", 1_000, 1),), cordoned=(1,))) == []
    assert told(Health((0, 1, 2), log_dir_space=(LogDirSpace(2, "/d", 1_000, 50),))) == []


def test_a_destination_must_have_room_for_what_is_to_come_in() -> None:
    room = (LogDirSpace(2, "/a", 1_000, 350), LogDirSpace(2, "/b", 1_000, 450))
    now = GuardInputs(Health((0, 1, 2), log_dir_space=room), WELL, (), (2,), 0, {2: 700})
    assert evaluate(now, DEFAULTS) == ()
    (verdict,) = evaluate(replace(now, incoming_bytes={2: 701}), DEFAULTS)
    assert verdict.seen.startswith("broker 2 has 700 B left above the reserve")
    assert verdict.seen.endswith("and 701 B are to come in")
    # With the same figures they share a disk.
    on_one_disk = replace(now, health=Health((0, 1, 2), log_dir_space=(room[0], replace(room[0], path="/b"))))
    (verdict,) = evaluate(on_one_disk, DEFAULTS)
    assert verdict.seen.startswith("broker 2 has 300 B left above the reserve")


def test_a_full_directory_is_fine_if_all_copies_go_elsewhere() -> None:
    room = (LogDirSpace(2, "/full", 1_000, 10), LogDirSpace(2, "/b", 1_000, 350))
    now = GuardInputs(Health((0, 1, 2), log_dir_space=room), WELL, (), (2,), 0, {2: 300})
    assert [verdict.guard for verdict in evaluate(now, DEFAULTS)] == [GuardName.DISK]
    relieving = replace(now, named_log_dirs={2: {"/b"}})
    assert evaluate(relieving, DEFAULTS) == ()
    (verdict,) = evaluate(replace(relieving, incoming_bytes={2: 301}), DEFAULTS)
    assert verdict.seen.startswith("broker 2 has 300 B left above the reserve")
    (verdict,) = evaluate(replace(now, named_log_dirs={2: {"/full"}}, incoming_bytes={}), DEFAULTS)
    assert verdict.seen.startswith("/full of broker 2 has 10 B of 1 kB left")


def test_a_guard_that_is_off_says_nothing_and_one_that_is_set_does_that() -> None:
    chosen = reactions(guard_settings({GuardName.CORDONED: Reaction.OFF, GuardName.BROKER: Reaction.CANCEL}))
    now = GuardInputs(Health((0, 1), cordoned=(2,)), WELL, (), (2,), 0)
    (verdict,) = evaluate(now, chosen)
    assert (verdict.guard, verdict.reaction) == (GuardName.BROKER, Reaction.CANCEL)
    assert "the run does cancel" in str(verdict)


def test_every_guard_has_a_default_and_none_throws_copied_bytes_away() -> None:
    assert set(DEFAULTS) == set(GUARDS) == set(GuardName)
    assert not set(DEFAULTS.values()) & {Reaction.CANCEL, Reaction.ROLLBACK, Reaction.OFF}


def test_many_troubled_partitions_are_counted_and_the_first_are_named() -> None:
    troubled = Troubled.of((TopicPartition("t", number) for number in range(50)), NONE)
    assert (troubled.count, troubled.fresh_count, len(troubled.first)) == (50, 50, 20)
    assert troubled.news.endswith("t-19 and 30 more")
