"""The view of a run: nothing outside the machine imports its internals; past problems are in the past tense."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import tzset

import pytest

from kreassign import executor
from kreassign.executor.events import (
    BrokersForgotten,
    ClockStepped,
    Event,
    HealthObserved,
    HoldRequested,
    MovesObserved,
    MovesReplanned,
    NewTarget,
    PlannedMove,
    Refusal,
    StopRequested,
    ThrottleChecked,
    ThrottleIntended,
    ThrottleSet,
    Unwritten,
    VerdictsRecorded,
)
from kreassign.executor.guards import GuardName, GuardSetting, Health, Reaction, Verdict
from kreassign.executor.state import RunView
from kreassign.executor.state.run import GuardBreach, PassingProblem, time_of_day
from kreassign.model import ConfigResource, TopicPartition
from tests.executor.run_events import (
    A0,
    A1,
    ELECTED,
    LIVE,
    MOVES,
    OVERRIDES,
    PREPARED,
    RATES,
    SUBMITTED,
    WHOLE,
    look,
    seen,
)
from tests.executor.state.played import FOLLOWERS, MOVING, UNTOUCHED, Played, begun, guarded

SOURCE = Path(executor.__file__).parent.parent
STATE = SOURCE / "executor" / "state"


def imports(path: Path) -> Iterator[str]:
    """Every module of the machine that a file imports, and others."""
    text = path.read_text(encoding="utf-8")
    # Reading all of the product as programs would take a second.
    for node in ast.walk(ast.parse(text if "executor.state" in text else "")):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_nobody_outside_the_machine_imports_its_insides() -> None:
    outside = [path for path in SOURCE.rglob("*.py") if STATE not in path.parents]
    strangers = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in outside
        for name in imports(path)
        if name.startswith("kreassign.executor.state.")
    }
    assert len(outside) > 100
    assert strangers == set()


def test_a_view_is_read_only() -> None:
    assert [name for name, value in vars(RunView).items() if isinstance(value, property) and value.fset] == []
    view = Played(*SUBMITTED).view
    for facts in (view.records, view.pending_restores, view.overrides):
        with pytest.raises(TypeError):
            facts["a"] = None


@pytest.mark.parametrize(("events", "can_be_resumed"), [
    (PREPARED, True),
    ((begun(throttle=None), look(1_000, UNTOUCHED)), True),
    (ELECTED, True),
    (WHOLE, False),
])  # fmt: skip
def test_a_run_can_be_resumed_while_anything_is_left_to_do(events: tuple[Event, ...], can_be_resumed: bool) -> None:
    assert Played(*events).view.can_be_resumed == can_be_resumed


def test_moves_are_in_flight_from_when_they_were_sent_to_their_end() -> None:
    counts = [len(Played(*WHOLE[:count]).view.in_flight) for count in range(1, len(WHOLE) + 1)]
    assert counts == [0] * 7 + [2] * 4 + [0] * 6


def test_the_view_tells_the_write_rate_of_waiting_moves() -> None:
    written = replace(MOVES[0], write_bytes_per_s=3.0)
    run = Played(begun(written, throttle=None), look(1_000, UNTOUCHED, written))
    assert run.view.waiting_write_bytes_per_s == {("source", 0): 3.0, ("destination", 2): 3.0}


def test_every_entry_that_was_added_to_a_list_is_an_override() -> None:
    caught_up = replace(seen(MOVES[0], MOVING), isr=(0, 1, 2))
    run = Played(*SUBMITTED, MovesObserved(6_000, (caught_up, seen(MOVES[1], MOVING)))).go("wait")
    assert run.view.pending_restores[FOLLOWERS].our_items == {"1:3"}
    assert run.view.overrides[FOLLOWERS].our_items == {"0:2", "1:3"}
    assert [*run.view.overrides] == [one.key for one in OVERRIDES]


def test_a_setting_that_has_its_old_value_is_no_residue() -> None:
    run = Played(*PREPARED[:2], ThrottleIntended(1_000, (replace(RATES[0], value=None), RATES[1])))
    assert (run.pending, run.view.residue) == ("leader 0, leader 1", (str(RATES[1]),))


FOREIGN, FULL = (
    Verdict(guard, Reaction.HOLD, "seen", "do it") for guard in (GuardName.FOREIGN_THROTTLE, GuardName.DISK)
)


@pytest.mark.parametrize(("verdict", "is_kept"), [(FOREIGN, False), (FULL, True)])
def test_a_throttle_was_kept_unless_a_guard_said_otherwise(verdict: Verdict, is_kept: bool) -> None:
    barred = Health(LIVE, cordoned=(2,))
    run = Played(begun(throttle=None, guards={GuardName.CORDONED: Reaction.HOLD}), look(1_000, UNTOUCHED))
    assert run.on(HealthObserved(1_000, barred), VerdictsRecorded(1_000, (verdict,))).view.was_throttle_kept == is_kept


def test_destinations_that_are_down_are_told_with_what_copies_to_them() -> None:
    run = Played(*SUBMITTED, replace(look(5_000, MOVING), absent=(2, 4)))
    waits = "broker 2 is down, and 1 move copies to it; the copies go on when it is back"
    assert run.view.outlook == run.view.lost_destinations == (waits,)
    assert (run.view.absent, run.view.as_left.outlook) == ((2, 4), ())
    assert run.on(StopRequested(6_000)).view.outlook == ()


BREACH = GuardBreach(replace(FULL, seen="full"), 3_600_000, 3_601_000)
HALF_AN_HOUR_MS = 1_800_000


@pytest.mark.parametrize(("problem", "now", "left"), [
    (PassingProblem("no", 3_600_000), "no", "when the run was left, since 01:30:00 UTC: no"),
    (PassingProblem("no", 3_600_000, 3_605_000), "over, from 01:30:00 to 01:30:05 UTC: no", None),
    (PassingProblem("no", 3_600_000, 3_605_000, 2), "over, 2 times from 01:30:00 to 01:30:05 UTC: no", None),
    (BREACH, "disk: full; nothing new is started meanwhile. do it", "disk (as last checked, 01:30:01 UTC): full"),
    (replace(BREACH, until_ms=3_603_000), "disk (over, from 01:30:00 to 01:30:03 UTC): full", None),
])  # fmt: skip
def test_past_problems_are_told_in_the_past_tense(
    problem: PassingProblem | GuardBreach, now: str, left: str | None
) -> None:
    assert problem.told(is_going_on=True, ahead_ms=HALF_AN_HOUR_MS) == now
    assert problem.told(is_going_on=False, ahead_ms=HALF_AN_HOUR_MS) == (left or now)
    assert problem.told(is_going_on=True) == now.replace("01:30", "01:00")


def test_problems_are_told_in_their_order_and_as_past_once_the_run_is_left() -> None:
    guards = (GuardSetting(GuardName.FOREIGN_THROTTLE, Reaction.HOLD), GuardSetting(GuardName.CORDONED, Reaction.WARN))
    run = Played(replace(guarded(), guards=guards), PREPARED[1], PREPARED[2], ClockStepped(1_500, HALF_AN_HOUR_MS))
    run.on(ThrottleSet(2_000, (), (Unwritten(3, "it is down"),)))
    run.on(replace(look(3_000, UNTOUCHED, MOVES[0]), unread=(Refusal(A1, "no"),)))
    run.on(HealthObserved(3_000, Health((0, 1, 2, 4), cordoned=(3,)))).go("check")
    run.on(ThrottleChecked(4_000, unread=(ConfigResource.broker(1), FOLLOWERS.resource)), BrokersForgotten(5_000, (2,)))
    noted, unset, first, second, passing, breach = run.problems
    assert "given up as lost" in noted
    assert unset == "the throttle of broker 3 could not be written: it is down; it is set when the broker is back"
    assert [one.partition(" cannot")[0][-8:] for one in (first, second)] == ["broker 1", " topic a"]
    assert (passing, breach.partition(",")[0]) == ("a-1 no", "cordoned: broker 3 shall get copies")
    past = (
        "when the run was left, since 00:30:03 UTC: a-1 no",
        breach.replace(":", " (as last checked, 00:30:03 UTC):", 1),
    )
    left = run.view.as_left.problems
    assert left[:2] == (noted, past[0])
    assert past[1].startswith(left[2])
    assert run.view.time_of_day(3_600_000) == "01:30:00 UTC"


def test_a_problem_that_comes_again_is_counted() -> None:
    run = Played(*SUBMITTED)
    for at_ms in (5_000, 6_000, 7_000, 8_000):
        run.on(MovesObserved(at_ms, (), (Refusal(A0, "no"),) if at_ms in {5_000, 7_000} else ()))
    assert run.problems == ("over, 2 times from 00:00:05 to 00:00:08 UTC: a-0 no",)


def test_moves_that_were_planned_again_are_told_together() -> None:
    moves = tuple(PlannedMove(TopicPartition("a", number), (0,), (2,), 0) for number in range(23))
    without_2 = Health((0, 1, 3, 4))
    run = Played(begun(*moves, throttle=None, replans=True), HoldRequested(0, 1), look(0, UNTOUCHED, *moves))
    run.on(HealthObserved(0, without_2), look(60_000, UNTOUCHED, *moves), HealthObserved(60_000, without_2))
    targets = [NewTarget(move.topic_partition, (2,), (3,)) for move in moves]
    run.on(MovesReplanned(60_000, (2,), tuple(targets[1:])))
    told = "broker 2 was down, so that moves were planned again at 00:01:00 UTC: "
    (problem,) = run.problems
    assert problem == told + "; ".join(f"a-{number} to [3] instead of [2]" for number in range(1, 21)) + " and 2 more"
    run.on(look(100_000, UNTOUCHED, *moves), HealthObserved(100_000, without_2))
    run.on(MovesReplanned(100_000, (2, 4), (replace(targets[0], target=(4,)),)))
    again = told.replace("broker 2 was", "brokers 2,4 were").replace("00:01:00", "00:01:40")
    assert run.problems == (f"{again}a-0 to [4] instead of [2]", problem)


def test_times_of_day_are_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    tzset()
    try:
        assert [time_of_day(at_ms) for at_ms in (0, 86_399_999, 86_400_000)] == ["00:00:00", "23:59:59", "00:00:00"]
    finally:
        monkeypatch.undo()
        tzset()
