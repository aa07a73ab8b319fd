"""Why moves that wait are not started."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.executor import events
from kreassign.executor.guards import GuardName, Health, LogDirSpace, Reaction, Troubled, Verdict
from kreassign.executor.throttle_ledger import ConfigValue
from kreassign.model import NO_LEADER, ConfigResource
from kreassign.model.pace import Pace, PaceChange, Schedule, Window
from tests.executor.run_events import A0, LISTED, LISTS, LIVE, MOVES, PREPARED, SUBMITTED, look, seen
from tests.executor.state.played import LEADER_0, MOVING, UNTOUCHED, Played, begun, guarded

NOON_MS = 12 * 3_600_000
HELD = events.HoldRequested(5_000, 1)
NIGHT = events.PaceRequested(5_000, 2, PaceChange(hours=Schedule((Window(0, 60),))))
ASKED_IN_VAIN = (events.ThrottleRequested(6_000, 3, 5), events.CallFailed(6_000, "no answer"))
ODD = ConfigValue(LEADER_0, "5")
ODD_ONCE = events.ThrottleChecked(0, (ODD,))
UNREAD = (ConfigResource.broker(3), ConfigResource.broker(1))
LEADERLESS = events.MovesObserved(5_000, tuple(replace(seen(move, UNTOUCHED), leader=NO_LEADER) for move in MOVES))
HALF = events.MovesObserved(5_000, (LEADERLESS.observations[0], seen(MOVES[1], UNTOUCHED)))
NO_LEADER_0 = "a-0 has no leader, so its move is not started"
NOT_SET = events.ThrottleSet(4_000, ("no",), failed=(ConfigResource.topic("a"), ConfigResource.broker(3)))


def said(*guards: tuple[GuardName, Reaction]) -> Played:
    """A run of which these guards say something."""
    run = Played(begun(throttle=None, guards={GuardName.OFFLINE: Reaction.HOLD}), look(1_000, UNTOUCHED))
    run.on(events.HealthObserved(1_000, Health(LIVE, offline=Troubled.of([A0], Troubled()))))
    return run.on(events.VerdictsRecorded(1_000, tuple(Verdict(*one, "seen", "advice") for one in guards)))


def closed() -> Played:
    """A run one of whose two destinations is cordoned."""
    run = Played(begun(throttle=None, guards={GuardName.CORDONED: Reaction.HOLD}), look(1_000, UNTOUCHED))
    return run.on(events.HealthObserved(1_000, Health(LIVE, cordoned=(2,)))).go("submit")


def doubting(reaction: Reaction = Reaction.HOLD) -> Played:
    return Played(guarded(reaction=reaction)).go("check all").on(ODD_ONCE)


def full() -> Played:
    """A run that is only warned of full disks."""
    run = Played(begun(throttle=None, guards={GuardName.DISK: Reaction.WARN})).go("check health")
    rooms = tuple(LogDirSpace(broker, "/d", 10_000, 0) for broker in (2, 3))
    return run.on(events.HealthObserved(0, Health(LIVE, log_dir_space=rooms))).go("wait").on(HALF)


DISK, STALL = (GuardName.DISK, Reaction.HOLD), (GuardName.STALL, Reaction.HOLD)
ON_HOLD = "paused by an operator; continue with `kreassign resume run-1`"
CLOSED = "waits for its window, which opens 1970-01-02 00:00 UTC"
DOUBT = f"its throttle is checked before anything is started: {ODD}"
CANNOT_BE_READ = (
    "nothing is started while the throttle of broker 3 cannot be read: a broker has to answer, and to allow "
    "DescribeConfigs on the cluster"
)
DUE, UNSET = ("nothing is started before its throttle is set again",
              "nothing is started before the throttle of topic a is set")  # fmt: skip


@pytest.mark.parametrize(("run", "hindrance"), [
    (Played(*LISTED, HELD), ON_HOLD),
    (said(DISK, (GuardName.BROKER, Reaction.WARN), STALL, DISK),
     "nothing is started while these guards hold it: disk, stall"),
    (closed(), "broker 2 is closed to copies, and 1 move to it waits for it"),
    (Played(*LISTED, NIGHT), CLOSED),
    (doubting(), DOUBT),
    (doubting().go("check all").on(replace(ODD_ONCE, at_ms=10_000)), f"somebody else changed its throttle: {ODD}"),
    (Played(guarded()).go("check all").on(events.ThrottleChecked(0, unread=UNREAD)), CANNOT_BE_READ),
    (Played(guarded()).go("observe").on(*ASKED_IN_VAIN), DUE),
    (Played(*PREPARED, look(3_000, UNTOUCHED), events.ThrottleIntended(3_000, LISTS), NOT_SET), UNSET),
    (full(), "disks have no space for the move that waits"),
    (Played(begun(throttle=None), LEADERLESS, look(6_000, MOVING, MOVES[0])), NO_LEADER_0.replace("0", "1")),
    (Played(begun(throttle=None), LEADERLESS),
     "2 partitions (a-0, a-1) each has no leader, so its move is not started"),
    # Nothing but pacing holds them, none waits, or none is to be started any more.
    (Played(*LISTED), None),
    (said((GuardName.BROKER, Reaction.WARN)), None),
    (doubting(Reaction.WARN), None),
    (Played(*SUBMITTED, HELD), None),
    (Played(*LISTED, HELD, events.CancelRequested(5_000, 2, is_now=False)), None),
])  # fmt: skip
def test_each_reason_is_told_while_a_move_waits(run: Played, hindrance: str | None) -> None:
    assert run.copy().view.hindrance(NOON_MS) == hindrance


@pytest.mark.parametrize(("run", "first"), [
    (said(DISK).on(HELD), ON_HOLD),
    (said(DISK).on(NIGHT), "nothing is started while these guards hold it: disk"),
    (doubting().on(NIGHT), CLOSED),
    (Played(guarded()).go("check all").on(events.ThrottleChecked(0, (ODD,), UNREAD)), DOUBT),
    (Played(guarded()).go("check all").on(events.ThrottleChecked(0, unread=UNREAD), *ASKED_IN_VAIN), CANNOT_BE_READ),
    (Played(guarded()).go("set both").on(events.ThrottleIntended(3_000, LISTS), NOT_SET, *ASKED_IN_VAIN), DUE),
    (full(), "disks have no space for the move that waits"),
])  # fmt: skip
def test_of_several_reasons_the_first_is_told(run: Played, first: str) -> None:
    assert run.copy().view.hindrance(NOON_MS) == first


@pytest.mark.parametrize(("target", "hindrance"), [((2, 3), ON_HOLD), ((2, 1), None)])
def test_a_move_in_steps_waits_between_them(target: tuple[int, ...], hindrance: str | None) -> None:
    move = replace(MOVES[0], target=target)
    run = Played(begun(move, throttle=None, pace=Pace(is_stepwise=True))).go("wait")
    assert run.moves == "moving"
    assert run.on(HELD).view.hindrance(5_000) == hindrance
