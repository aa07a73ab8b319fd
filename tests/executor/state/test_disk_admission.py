"""Disks during runs: what has no room waits, and brokers that can only be relieved by each other are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kreassign.executor.events import (
    CancelRequested,
    Event,
    HealthObserved,
    MovesObserved,
    MovesSubmitted,
    PlannedMove,
    Refusal,
    SubmissionIntended,
)
from kreassign.executor.guards import ForeignCopy, GuardName, Health, LogDirSpace, Reaction
from kreassign.executor.scheduling.limits import find_cycle
from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.pace import Cap, Caps, Order, Pace, Schedule, Window
from kreassign.model.run import LogDirTarget
from kreassign.model.throttle import LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from tests.executor.odd_port import OddPort, lost_on_the_way_there
from tests.executor.run_events import LIVE, look, machine_after, seen
from tests.executor.state.played import MOVING, UNTOUCHED, Played, begun
from tests.executor.twin_runs import TwinRig, tp
from tests.twin.asking import MEGABYTES


def move(number: int, original: tuple[int, ...], target: tuple[int, ...], size: int = 1_000) -> PlannedMove:
    return PlannedMove(TopicPartition("a", number), original, target, size)


def space(*rooms: tuple[int, str, int, int]) -> Health:
    """Log directories: broker, path, bytes in all, and free ones."""
    return Health(LIVE, log_dir_space=tuple(LogDirSpace(*room) for room in rooms))


def free(**usable: int) -> Health:
    """Brokers `b2`, `b3`, … with one directory each of 10,000 bytes, and so many of them free."""
    return space(*((int(broker[1:]), "/d", 10_000, left) for broker, left in usable.items()))


def run_of(*moves: PlannedMove, reserve: float = 0.0, reaction: Reaction = Reaction.HOLD, **more: Any) -> Played:
    """A run that guards disks, before its first poll."""
    pace = Pace(order=Order.NAME, disk_reserve=reserve)
    begin = begun(*moves, guards={GuardName.DISK: reaction}, pace=pace, **{"throttle": None, **more})
    return Played(begin)


def inspected(health: Health, *moves: PlannedMove, **how: Any) -> Played:
    """A run after its first inspection."""
    return run_of(*moves, **how).go("check health").on(HealthObserved(0, health))


TWO = (move(0, (0, 1), (2, 1)), move(1, (1, 0), (2, 0)))
A0, A1 = (one.topic_partition for one in TWO)
WRITTEN = replace(TWO[0], write_bytes_per_s=500.0)
IN_A, IN_B, IN_C = (replace(TWO[0], log_dirs=(LogDirTarget(2, path),)) for path in ("/a", "/b", "/c"))
ROOMS = space((2, "/a", 10_000, 3_000), (2, "/b", 20_000, 2_500), (2, "/c", 30_000, 3_000), (3, "/a", 1_000, 1_000))
"""With a tenth in reserve there is room for 2,000 bytes in /a, 500 in /b, and none in /c of broker 2."""
TENTH = {"reserve": 0.1}
NOON_MS = 12 * 3_600_000


ON_ONE_DISK = space((2, "/a", 10_000, 3_000), (2, "/b", 10_000, 3_000))
SHARED = replace(ON_ONE_DISK, log_dir_space=tuple(replace(one, replica_count=1) for one in ON_ONE_DISK.log_dir_space))
TO_B = replace(IN_B, topic_partition=A1)


@pytest.mark.parametrize(("left_in_a", "decided"), [(999, "record disk"), (1_000, "wait")])
def test_a_copy_that_its_directory_has_no_room_for_any_more_is_told(left_in_a: int, decided: str) -> None:
    """Others write into that directory meanwhile; the other one of its broker is empty."""
    rooms = [LogDirSpace(2, "/a", 10_000, 5_000, 1), LogDirSpace(2, "/b", 30_000, 30_000, 1)]
    run = inspected(Health(LIVE, log_dir_space=tuple(rooms)), TWO[0]).go("wait")
    rooms[0] = replace(rooms[0], usable_bytes=left_in_a, arriving=(A0,))
    run.on(
        MovesObserved(40_000, (seen(TWO[0], MOVING),)), HealthObserved(40_000, Health(LIVE, log_dir_space=tuple(rooms)))
    )
    assert run.decided == decided
    if decided != "wait":
        (problem,) = run.go("").problems
        assert problem.startswith("disk: /a of broker 2 has 999 B left above the reserve, and 1 kB are to come into it")


def holding(*counts: int | None) -> Health:
    """Usage with so many replicas in the directories of broker 2."""
    spaces = zip(ROOMS.log_dir_space, (*counts, None), strict=True)
    return replace(ROOMS, log_dir_space=tuple(replace(one, replica_count=count) for one, count in spaces))


OTHER = TopicPartition("b", 0)


def taken(health: Health, *copies: ForeignCopy) -> Health:
    return replace(health, foreign_copies=copies)


@pytest.mark.parametrize(("health", "moves", "how", "decided"), [
    (free(b2=2_000), TWO, {}, "submit a-0 a-1"),
    (free(b2=1_999), TWO, {}, "submit a-0"),
    (free(b2=999), TWO, {}, "record disk"),
    (free(b2=4_000), TWO, {"reserve": 0.2}, "submit a-0 a-1"),
    (free(b2=3_999), TWO, {"reserve": 0.2}, "submit a-0"),
    (free(b2=2_999), TWO, {"reserve": 0.2}, "record disk"),
    (free(b3=0), TWO, {}, "submit a-0 a-1"),
    (free(b2=2_000), (WRITTEN,), {"throttle": 1_000}, "set followers of a=0:2, leaders of a=0:0,0:1"),
    (free(b2=1_999), (WRITTEN,), {"throttle": 1_000}, "wait"),
    (free(b2=1_000), (WRITTEN,), {}, "submit a-0"),
    # Where the plan names no directory, Kafka takes that with the fewest replicas.
    (holding(2, 1, 3), (replace(TWO[0], size_bytes=500),), TENTH, "submit a-0"),
    (holding(2, 1, 3), (replace(TWO[0], size_bytes=501),), TENTH, "wait"),
    (holding(1, 2, 3), (replace(TWO[0], size_bytes=2_000),), TENTH, "submit a-0"),
    # Among equals, or where nobody could count, the one with the least space has to do.
    (holding(1, 1, 3), (replace(TWO[0], size_bytes=501),), TENTH, "wait"),
    (holding(1, None, 3), (replace(TWO[0], size_bytes=501),), TENTH, "wait"),
    (ROOMS, (replace(TWO[0], size_bytes=1),), TENTH, "wait"),
    # Each copy counts in its directory, so that the next one goes elsewhere.
    (holding(0, 1, 3), (replace(TWO[0], size_bytes=400), replace(TWO[1], size_bytes=400)), TENTH, "submit a-0 a-1"),
    (holding(0, 1, 3), (replace(TWO[0], size_bytes=400), replace(TWO[1], size_bytes=501)), TENTH, "submit a-0"),
    # Copies of others have their room first: in their directory, or wherever Kafka may take them.
    (taken(free(b2=2_000), ForeignCopy(OTHER, 2, 1_001)), TWO, {}, "wait"),
    (taken(free(b2=2_000), ForeignCopy(OTHER, 2, 1_000, "/d")), TWO, {}, "submit a-0"),
    (taken(holding(1, 0, 9), ForeignCopy(OTHER, 2, 400)), (replace(TWO[0], size_bytes=100),), TENTH, "submit a-0"),
    (taken(holding(1, 0, 9), ForeignCopy(OTHER, 2, 400)), (replace(TWO[0], size_bytes=101),), TENTH, "wait"),
    (taken(holding(0, 9, 9), ForeignCopy(OTHER, 2, 400)), (replace(TWO[0], size_bytes=1_600),), TENTH, "submit a-0"),
    (taken(holding(0, 9, 9), ForeignCopy(OTHER, 2, 400)), (replace(TWO[0], size_bytes=1_601),), TENTH, "wait"),
    (taken(holding(2, 1, 3), ForeignCopy(OTHER, 2, 9, "/a")), (replace(TWO[0], size_bytes=500),), TENTH, "submit a-0"),
    (ROOMS, (replace(IN_A, size_bytes=2_000),), TENTH, "submit a-0"),
    (ROOMS, (replace(IN_A, size_bytes=2_001),), TENTH, "record disk"),
    (ROOMS, (replace(IN_B, size_bytes=500), replace(IN_A, topic_partition=A1)), TENTH, "submit a-0 a-1"),
    (ROOMS, (replace(IN_B, size_bytes=501), replace(IN_A, topic_partition=A1)), TENTH, "submit a-1"),
    (ROOMS, (replace(IN_C, size_bytes=1),), TENTH, "record disk"),
    # Directories on one disk have its room once.
    (SHARED, (replace(IN_A, size_bytes=1_500), replace(TO_B, size_bytes=500)), TENTH, "submit a-0 a-1"),
    (SHARED, (replace(IN_A, size_bytes=1_500), replace(TO_B, size_bytes=501)), TENTH, "submit a-0"),
    (SHARED, (replace(TWO[0], size_bytes=1_500), replace(TWO[1], size_bytes=500)), TENTH, "submit a-0 a-1"),
    (SHARED, (replace(TWO[0], size_bytes=1_500), replace(TWO[1], size_bytes=501)), TENTH, "submit a-0"),
])  # fmt: skip
def test_only_moves_with_room_on_their_disks_are_sent(
    health: Health, moves: tuple[PlannedMove, ...], how: dict[str, Any], decided: str
) -> None:
    assert inspected(health, *moves, **how).decided == decided


@pytest.mark.parametrize(("size", "decided"), [(2_000, "submit a-0"), (2_001, "wait")])
def test_a_directory_below_its_reserve_takes_no_room_from_others(size: int, decided: str) -> None:
    rooms = holding(0, 1, 2).log_dir_space
    overfull = replace(ROOMS, log_dir_space=(*rooms[:2], LogDirSpace(2, "/c", 30_000, 100, 2)))
    run = inspected(overfull, replace(TWO[0], size_bytes=size), reserve=0.1, reaction=Reaction.WARN)
    assert run.go("").decided == decided


def test_disk_space_does_not_matter_without_its_guard() -> None:
    run = run_of(*TWO, reaction=Reaction.OFF).go("submit")
    assert run.decided == "submit a-0 a-1"
    other = Played(begun(*TWO, throttle=None, guards={GuardName.BROKER: Reaction.HOLD})).go("check health")
    assert other.on(HealthObserved(0, free(b2=0))).decided == "submit a-0 a-1"


@pytest.mark.parametrize(("left", "decided"), [(1_599, "wait"), (1_600, "submit a-1")])
def test_copies_in_flight_have_their_room_already(left: int, decided: str) -> None:
    half_way = MovesObserved(1_000, (seen(TWO[0], MOVING, done=400), seen(TWO[1], UNTOUCHED)))
    run = run_of(*TWO).on(half_way, HealthObserved(1_000, free(b2=left)))
    # Nothing is wrong where something in flight may free some.
    assert (run.decided, run.problems) == (decided, ())


@pytest.mark.parametrize(("counts", "size", "decided"), [((2, 1), 501, "wait"), ((2, 1), 500, "submit a-1"),
                                                          ((3, 1), 2_000, "submit a-1")])  # fmt: skip
def test_a_directory_that_moves_in_flight_leave_may_be_filled_next(
    counts: tuple[int, int], size: int, decided: str
) -> None:
    """It has fewer replicas once they have ended, which may be before the request arrives."""
    leaving = move(0, (2, 1), (3, 1))
    coming = move(1, (1, 0), (2, 0), size)
    full, empty = LogDirSpace(2, "/a", 10_000, 1_500, counts[0], (A0,)), LogDirSpace(2, "/b", 20_000, 5_000, counts[1])
    rooms = Health(LIVE, log_dir_space=(full, empty, LogDirSpace(3, "/a", 10_000, 5_000)))
    run = run_of(leaving, coming, reserve=0.1)
    run.on(
        MovesObserved(1_000, (seen(leaving, MOVING, done=400), seen(coming, UNTOUCHED))), HealthObserved(1_000, rooms)
    )
    assert run.decided == decided


@pytest.mark.parametrize(("left", "decided"), [(1_000, "submit a-0"), (1_999, "submit a-0"),
                                               (2_000, "submit a-0 a-1")])  # fmt: skip
def test_a_move_that_is_sent_again_takes_its_room_once(left: int, decided: str) -> None:
    run = inspected(free(b2=5_000), *TWO)
    run.on(SubmissionIntended(0, (A0,)), MovesSubmitted(0, (), unknown=(A0,)), look(20_000, UNTOUCHED, *TWO))
    assert run.copy().on(HealthObserved(20_000, free(b2=left))).decided == decided
    assert run.on(HealthObserved(20_000, free(b2=0))).go("").decided == "submit a-0"


def lost(at_ms: int) -> tuple[Event, ...]:
    """A submission without an answer."""
    return SubmissionIntended(at_ms, (A0,)), MovesSubmitted(at_ms, (), unknown=(A0,))


@pytest.mark.parametrize("left", [1_000, 1_999])
def test_a_move_that_was_sent_is_not_refused_its_own_room(left: int) -> None:
    """The last inspection has subtracted its copy already."""
    run = inspected(free(b2=left), TWO[0]).on(*lost(0), look(20_000, UNTOUCHED, TWO[0]))
    run.on(HealthObserved(20_000, free(b2=left)), *lost(20_000), look(25_000, UNTOUCHED, TWO[0]))
    assert (run.decided, run.problems) == ("submit a-0", ())


def test_a_copy_that_has_arrived_in_its_named_directory_is_counted_once() -> None:
    rooms = [LogDirSpace(2, "/a", 10_000, 2_000, 1, (A0,)), LogDirSpace(2, "/b", 10_000, 9_000, 1)]
    to_a = replace(TWO[1], log_dirs=(LogDirTarget(2, "/a"),))
    half_way = MovesObserved(1_000, (seen(IN_A, MOVING), seen(to_a, UNTOUCHED)))
    run = run_of(IN_A, to_a).on(half_way, HealthObserved(1_000, Health(LIVE, log_dir_space=tuple(rooms))))
    assert run.decided == "submit a-1"


def test_a_directory_is_left_once_by_a_move_that_is_sent_again() -> None:
    """Counted twice, the fuller directory would look the emptier, and small moves would wait for its room."""
    leaving, coming = move(0, (2, 1), (3, 1)), move(1, (1, 0), (2, 0), 501)
    rooms = (LogDirSpace(2, "/a", 10_000, 500, 3, (A0,)), LogDirSpace(2, "/b", 20_000, 5_000, 1))
    health = Health(LIVE, log_dir_space=(*rooms, LogDirSpace(3, "/a", 10_000, 9_000)))
    run = run_of(leaving, coming).on(look(0, UNTOUCHED, leaving, coming), HealthObserved(0, health))
    run.on(*lost(0), look(2_000, UNTOUCHED, leaving, coming), *lost(2_000), look(3_000, UNTOUCHED, leaving, coming))
    assert run.decided == "submit a-1"


@pytest.mark.parametrize(("left", "decided"), [(999, "wait"), (1_000, "submit a-0")])
def test_a_move_that_was_refused_for_now_needs_room_again(left: int, decided: str) -> None:
    for_now = MovesSubmitted(0, (), deferred=(Refusal(A0, "not the controller"),))
    run = inspected(free(b2=5_000), TWO[0]).on(SubmissionIntended(0, (A0,)), for_now, look(20_000, UNTOUCHED, TWO[0]))
    run.on(HealthObserved(20_000, free(b2=left)))
    assert (run if run.decided == "submit a-0" else run.go("")).decided == decided


def refused_for_now(health: Health, *moves: PlannedMove) -> Played:
    """A run whose first move was refused for now, and is to be sent again a second later."""
    for_now = MovesSubmitted(0, (), deferred=(Refusal(A0, "not the controller"),))
    return inspected(health, *moves).on(SubmissionIntended(0, (A0,)), for_now)


def test_a_move_that_was_refused_for_now_takes_no_room_from_another() -> None:
    """The guard counts what fills disks, as the budget does."""
    run = refused_for_now(free(b2=1_400), *TWO).on(look(500, UNTOUCHED, *TWO))
    assert (run.decided, run.problems) == ("wait", ())
    shrunk = MovesObserved(30_500, (seen(TWO[0], UNTOUCHED), replace(seen(TWO[1], UNTOUCHED), size_bytes=400)))
    run.on(shrunk, HealthObserved(30_500, free(b2=999)))
    assert (run.decided, run.problems) == ("submit a-1", ())


def test_a_refused_move_without_room_is_told_for_as_long_as_it_waits() -> None:
    run = refused_for_now(free(b2=1_000), TWO[0])
    for at_ms in (20_000, 50_000, 80_000):
        run.on(look(at_ms, UNTOUCHED, TWO[0]), HealthObserved(at_ms, free(b2=999))).settle()
    assert [one.split(":")[0] for one in run.problems] == ["disks have no space for the move that waits", "disk"]


def test_full_disks_are_not_told_beside_a_submission_without_an_answer() -> None:
    """It may copy, and free space where its replica was."""
    night = Pace(Order.NAME, disk_reserve=0.0, hours=Schedule((Window(0, 60),)))
    run = Played(begun(*TWO, throttle=None, guards={GuardName.DISK: Reaction.HOLD}, pace=night)).go("check health")
    run.on(HealthObserved(0, free(b2=1_000)), *lost(0), look(NOON_MS, UNTOUCHED, *TWO))
    assert (run.moves, run.problems) == ("sent planned", ())


@pytest.mark.parametrize(("target", "decided", "why"), [
    ((3, 0), "submit a-1", None),
    ((2, 0), "wait", "these guards hold it: disk"),
], ids=["elsewhere", "there"])  # fmt: skip
def test_a_full_disk_holds_only_moves_to_it(target: tuple[int, int], decided: str, why: str | None) -> None:
    other = move(1, (1, 0), target)
    run = run_of(TWO[0], other).on(MovesObserved(1_000, (seen(TWO[0], MOVING), seen(other, UNTOUCHED))))
    run.on(HealthObserved(1_000, free(b2=999, b3=1_000)))
    assert run.decided == "record disk"
    assert (run.go("").decided, run.view.why_held) == (decided, why)


CIRCLE = (move(0, (2, 1), (3, 1)), move(1, (3, 1), (2, 1)), move(2, (2, 1), (4, 1), 5_000))
FULL = free(b2=10, b3=20, b4=30)


def stuck(health: Health = FULL, *moves: PlannedMove) -> Played:
    """A run whose moves have no room, a second after that was found out."""
    return inspected(health, *(moves or CIRCLE)).go("wait").on(look(1_000, UNTOUCHED, *(moves or CIRCLE)))


def told(run: Played) -> list[str]:
    return [problem for problem in run.problems if "disks have" in problem]


TOLD = (
    "disks have no space for any of 3 moves: a-0 waits because log directory /d of broker 3 has 20 B left for copies, "
    "and this one needs 1 kB"
    "; brokers 2 -> 3 -> 2 wait for each other; free space there, or `kreassign cancel` and replan"
)
ALONE = TOLD.replace("any of 3 moves", "the move that waits").replace("; brokers 2 -> 3 -> 2 wait for each other", "")
NAMED = tuple(replace(one, log_dirs=(LogDirTarget(one.target[0], "/d"),)) for one in CIRCLE[:2])


@pytest.mark.parametrize(("moves", "sentence"), [
    (CIRCLE, TOLD),
    (CIRCLE[:1], ALONE),
    (NAMED, TOLD.replace("3 moves", "2 moves")),
], ids=["circle", "no circle", "directories"])  # fmt: skip
def test_full_disks_are_told_with_brokers_that_wait_for_each_other(
    moves: tuple[PlannedMove, ...], sentence: str
) -> None:
    run = stuck(FULL, *moves)
    assert (run.decided, told(run)) == ("wait", [sentence])
    assert run.view.hindrance(1_000) is not None


def test_full_directories_make_brokers_wait_for_each_other_too() -> None:
    rooms = [(broker, path, 10_000, left) for broker, left in ((2, 10), (3, 20)) for path in ("/d", "/e")]
    health = space(*((broker, path, total, 9_000 if path == "/e" else left) for broker, path, total, left in rooms))
    (sentence,) = told(stuck(health, *NAMED))
    assert "a-0 waits because log directory /d of broker 3 has 20 B left for copies" in sentence
    assert "; brokers 2 -> 3 -> 2 wait for each other" in sentence


def test_other_figures_of_full_disks_are_not_told_again() -> None:
    run = stuck().on(look(31_000, UNTOUCHED, *CIRCLE), HealthObserved(31_000, free(b2=11, b3=21, b4=30)))
    assert told(run.on(look(32_000, UNTOUCHED, *CIRCLE))) == [TOLD]


def test_moves_start_once_there_is_room_and_that_is_told() -> None:
    roomy = free(b2=10, b3=1_000, b4=30)
    run = stuck().on(look(31_000, UNTOUCHED, *CIRCLE), HealthObserved(31_000, roomy)).go("wait")
    run.on(look(42_000, UNTOUCHED, *CIRCLE), HealthObserved(42_000, roomy))
    assert (run.decided, run.go("").decided) == ("record ", "submit a-0")
    assert told(run) == [f"over, from 00:00:01 to 00:00:42 UTC: {TOLD}"]


def test_disks_do_not_hold_a_run_while_something_is_in_flight() -> None:
    run = stuck().on(look(31_000, MOVING, CIRCLE[0]))
    assert told(run) == [f"over, from 00:00:01 to 00:00:31 UTC: {TOLD}"]


def test_a_chain_of_full_brokers_is_no_circle() -> None:
    assert find_cycle({1: {2}, 2: {3}, 3: {1, 4}}) == (1, 2, 3)
    assert find_cycle({4: {2}, 2: {4}, 1: {2}}) == (2, 4)
    assert find_cycle({1: {2}, 2: {3}}) == ()


def test_urgent_moves_go_first(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 4], [2, 3], [0, 1]])
    rig.twin.crash(1)
    rig.twin.advance(60_000)
    started = rig.prepared({0: (2, 4), 1: (0, 3), 2: (3, 0)}, throttle=None, lost_after_ms=None)
    assert [one.is_urgent for one in started.moves] == [False, False, True]
    run, _ = machine_after(replace(started, guards=(), pace=Pace(order=Order.NAME)))
    (order,) = run.replay(look(1_000, UNTOUCHED, *started.moves))
    assert list(order.targets) == [tp(2), tp(0), tp(1)]


def test_a_run_fills_no_disk_and_says_what_it_waits_for(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 3, log_dir_bytes=12 * MEGABYTES)
    rig.ask_after(300, lambda at_ms, number: CancelRequested(at_ms, number, is_now=False))
    found = rig.run(rig.prepared(dict.fromkeys(range(3), (4, 1))))
    assert [one.status for one in found.moves] == ["complete", "complete", "cancelled"]
    (story,) = [problem for problem in found.problems if "disks have no space" in problem]
    assert "t-2 waits because log directory /data/4/d1 of broker 4 has 1.4 MB left for copies" in story


def test_moves_whose_submissions_are_lost_are_sent_again_to_full_disks(tmp_path: Path) -> None:
    """Each directory of the broker has room for one of the two."""
    rig = TwinRig(tmp_path, [[0, 1]] * 2, log_dir_bytes=12 * MEGABYTES)
    odd = OddPort(rig.client)
    rig.odd_port = odd.port
    rig.end_within(600)
    odd.answer("alter_partition_reassignments", *[lost_on_the_way_there] * 3)
    assert rig.run(rig.prepared(dict.fromkeys(range(2), (4, 1)))).state == "done"


def test_copies_of_others_have_their_room_before_those_of_a_run(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]] * 2, log_dir_bytes=12 * MEGABYTES, others={"u": [[0, 1]]})
    theirs, started = tp(0, "u"), rig.prepared({0: (4, 1), 1: (4, 1)}, throttle=None)
    slow = {
        ConfigResource.broker(0): [ConfigChange.set(LEADER_THROTTLED_RATE, "1")],
        ConfigResource.topic("u"): [ConfigChange.set(LEADER_THROTTLED_REPLICAS, "*")],
    }
    rig.client.incremental_alter_configs(slow).raise_if_any()
    rig.client.alter_partition_reassignments({theirs: (4, 1)}).raise_if_any()
    rig.between_steps(60, lambda: rig.client.alter_partition_reassignments({theirs: None}).raise_if_any())
    assert rig.run(started).state == "done"
    sent = [event.at_ms - started.at_ms for event in rig.seen if isinstance(event, SubmissionIntended)]
    assert [at_ms >= 60_000 for at_ms in sent] == [False, True]


@pytest.mark.parametrize(("size", "decided"), [(1_000, "submit a-0 a-1"), (1_001, "submit a-0"), (2_001, "submit a-1")])
def test_a_move_that_has_grown_meanwhile_needs_room_for_all_of_it(size: int, decided: str) -> None:
    grown = (replace(seen(TWO[0], UNTOUCHED), size_bytes=size), seen(TWO[1], UNTOUCHED))
    assert run_of(*TWO).on(MovesObserved(0, grown), HealthObserved(0, free(b2=2_000))).decided == decided


ONE_BY_ONE = Pace(order=Order.NAME, caps=Caps(cluster=Cap(moves=1)))


def test_a_partition_that_grows_while_it_waits_fills_no_disk(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [2, 3], [4, 0]], write_bytes_per_s=50_000, log_dir_bytes=35 * MEGABYTES)
    rig.ask_after(330, lambda at_ms, number: CancelRequested(at_ms, number, is_now=False))
    started = rig.prepared({0: (4, 1), 1: (4, 3)}, throttle=100_000, pace=ONE_BY_ONE)
    found = rig.run(started)
    assert [one.status for one in found.moves] == ["complete", "cancelled"]
    assert any("t-1 waits because log directory /data/4/d" in problem for problem in found.problems)
