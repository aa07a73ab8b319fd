"""A finding that outlasts its repair goes to people; one that was over, and is there again, is repaired again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kreassign.autopilot.events import FindingMoved, Name, Planned, State
from kreassign.autopilot.observation import Known, Observation, Unknown
from tests.autopilot.test_judgement import FULL_3
from tests.autopilot.test_scenarios import GONE_3, LISTS
from tests.autopilot.values import DAY, HOUR, MINUTE, Watched, cluster

DISKS = "[disk-fills]\nlevel = 'act'\nurgent-within = '12h'\n"


def moved_by_others(seen: Observation, *, is_moving: bool) -> Observation:
    """The look with a move of others, which hides what disks grow, or without."""
    return replace(seen, moves_of_others=Known(frozenset({seen.placed[0].topic_partition} if is_moving else ())))


def urgent_by_growth(now_s: float) -> float:
    """Used share of a disk that grows by 4% an hour, and so is urgent at 70%, after seven hours."""
    return 0.46 + 0.04 * min(now_s / HOUR, 7)


def test_a_disk_that_fills_long_after_its_repair_is_repaired_again() -> None:
    """Others move partitions from its repair on, so that its growth is not known when it is full at once."""

    def world(now_s: float) -> Observation:
        if not watched.runs:
            return cluster(0, LISTS, used={3: urgent_by_growth(now_s)})
        is_full = now_s >= 15 * HOUR
        seen = cluster(0, LISTS, used={3: (0.88 if len(watched.runs) == 1 else 0.7) if is_full else 0.66})
        return moved_by_others(seen, is_moving=8 * HOUR <= now_s < 14 * HOUR)

    watched = Watched(DISKS, world)
    watched.watch(14 * HOUR, every_s=600)
    assert (watched.runs, watched.memory.findings[FULL_3].state) == ([FULL_3], State.SETTLING)
    before = len(watched.messages)
    watched.watch(2 * HOUR, every_s=300)
    assert (watched.runs, State.GIVEN_UP in watched.states) == ([FULL_3, FULL_3], False)
    told = watched.messages[before]
    assert told.what == f"{FULL_3}: it was below its limits, and fills again"


def test_a_disk_that_people_emptied_is_repaired_when_it_fills_again() -> None:
    """Its repair did not help; people move half of it away, and it is full before its growth is known again."""

    def world(now_s: float) -> Observation:
        if now_s < 12 * HOUR:
            return cluster(0, LISTS, used={3: 0.9 if watched.runs else urgent_by_growth(now_s)})
        is_full = now_s >= 14 * HOUR and len(watched.runs) == 1
        return moved_by_others(cluster(0, LISTS, used={3: 0.88 if is_full else 0.5}), is_moving=now_s < 12.5 * HOUR)

    watched = Watched(DISKS, world)
    watched.watch(12 * HOUR, every_s=300)
    assert (watched.runs, watched.memory.findings[FULL_3].state) == ([FULL_3], State.GIVEN_UP)
    watched.watch(1.5 * HOUR, every_s=300)
    assert watched.memory.findings[FULL_3].state is State.GIVEN_UP, "it may fill by its growth"
    before = len(watched.messages)
    watched.watch(2 * HOUR, every_s=300)
    assert watched.runs == [FULL_3, FULL_3]
    assert watched.messages[before].what == f"{FULL_3}: it was below its limits, and fills again"


def full(now_s: float) -> Observation:
    return cluster(0, LISTS, used={3: 0.9})


def at_the_limit(now_s: float) -> Observation:
    """A disk that retention keeps just above the limit of a repair, and just below it, in turn."""
    return cluster(0, LISTS, used={3: 0.86 if now_s % HOUR < 30 * MINUTE else 0.845})


def urgent_for_weeks(now_s: float) -> Observation:
    """A disk that grows by 0.1% an hour, and so is full within 500 hours; others move partitions each day."""
    seen = cluster(0, LISTS, used={3: 0.5 + 0.001 * now_s / HOUR})
    return moved_by_others(seen, is_moving=now_s % DAY >= 10 * HOUR and now_s % DAY < 10.5 * HOUR)


def dead(now_s: float) -> Observation:
    return cluster(0, LISTS, down=[3])


@pytest.mark.parametrize(("world", "name", "looks_s"), [
    (full, FULL_3, 1.2 * HOUR), (at_the_limit, FULL_3, DAY), (urgent_for_weeks, FULL_3, DAY),
    (dead, GONE_3, 1.3 * HOUR),
])  # fmt: skip
def test_a_repair_that_helps_nothing_is_made_once(
    world: Callable[[float], Observation], name: Name, looks_s: float
) -> None:
    """After so long the autopilot itself is down for 20 minutes, and evidence begins again."""
    policy = "[broker-gone]\nlevel = 'act'\n[disk-fills]\nlevel = 'act'\nurgent-within = '600h'\ntell-within = '600h'\n"
    watched = Watched(policy, world)
    watched.moves = tuple(one.topic_partition for one in world(0).placed)
    while watched.now_s < 1.5 * DAY:
        watched.watch(looks_s, every_s=600)
        watched.now_s += 20 * MINUTE
    assert watched.runs == [name]
    told = [one.what for one in watched.messages if "look into it" in one.what]
    assert told == [f"{name}: it is still there after its repair: look into it"]


# Each change of a state is told.


def test_a_disk_that_its_repair_eased_is_told_as_it_is() -> None:
    watched = Watched(
        "[disk-fills]\nlevel = 'act'\n", lambda _: cluster(0, LISTS, used={3: 0.81 if watched.runs else 0.9})
    )
    watched.watch(HOUR, every_s=300)
    assert watched.memory.findings[FULL_3].state is State.TOLD
    told = watched.messages[-1]
    assert told.what == f"{FULL_3}: it is 81% full, its growth is not known"
    assert told.why.startswith("nothing is to be repaired now; its repair: ")


def test_a_disk_that_was_urgent_by_its_growth_is_told_when_its_share_is() -> None:
    """It is urgent at 70%; at 92% it is kept by retention, just above and just below."""

    def world(now_s: float) -> Observation:
        used = urgent_by_growth(now_s) + 0.04 * max(0, now_s / HOUR - 7)
        return cluster(0, LISTS, used={3: used if used < 0.93 else 0.925 - 0.01 * (now_s % 600 < 300)})

    watched = Watched("[disk-fills]\nurgent-within = '12h'\n", world)
    watched.watch(13 * HOUR, every_s=300)
    urgent = [one.what.removeprefix(f"{FULL_3}: ")[:40] for one in watched.messages if "urgent" in one.what]
    assert urgent == ["its used share alone makes it urgent now"]


@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize(("minutes", "times"), [(30, 0), (90, 1)])
def test_a_disk_is_told_as_urgent_again_after_an_hour_of_calm(minutes: int, times: int, *, is_read: bool) -> None:
    """It is urgent for five hours, then not for so long, and then again; another broker is silent now and then."""

    def world(now_s: float) -> Observation:
        is_calm = 5 * HOUR <= now_s < 5 * HOUR + minutes * MINUTE
        seen = cluster(0, LISTS, used={3: 0.9 if is_calm else 0.93})
        is_silent = not is_read and now_s % (30 * MINUTE) < 10 * MINUTE
        return replace(seen, log_dirs={**seen.log_dirs, 5: Unknown("no answer")}) if is_silent else seen

    watched = Watched("[disk-fills]\n", world)
    watched.watch(8 * HOUR, every_s=600)
    assert sum("it is urgent now" in one.what for one in watched.messages) == times


def test_urgency_that_comes_and_goes_takes_no_proposal_back() -> None:
    """It grows by 0.1% an hour, and retention cuts that much from it every 20 minutes: 440 hours are left, or 530."""

    def world(now_s: float) -> Observation:
        return cluster(0, LISTS, used={3: 0.55 + 0.001 * now_s / HOUR - 0.001 * (now_s % (20 * MINUTE) >= 600)})

    policy = "[disk-fills]\nlevel = 'propose'\nurgent-within = '480h'\ntell-within = '600h'\n"
    watched = Watched(policy, world)
    watched.watch(12 * HOUR, every_s=300)
    proposed = [one.at_ms for one in watched.events if isinstance(one, Planned)]
    moved = [one for one in watched.events if isinstance(one, FindingMoved) and one.at_ms > proposed[0]]
    assert {one.state for one in moved} == {State.PROPOSED}
