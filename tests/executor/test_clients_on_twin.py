"""Runs on a twin whose clients suffer: held within a minute, slowed, and given their rate back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.executor.client_guard import ClientAnswer, ClientGuard, ClientQuery
from kreassign.executor.events import (
    Event,
    RunStarted,
    SubmissionIntended,
    ThrottleIntended,
    ThrottleRequested,
    VerdictsRecorded,
)
from kreassign.executor.guards import DEFAULTS, GuardName, Reaction
from kreassign.executor.history.run_history import read_history, read_view
from kreassign.executor.throttle_ledger import ConfigKey
from kreassign.model import ConfigResource
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, AdaptiveThrottle
from tests.executor.twin_runs import RATE, TwinRig, pace

pytestmark = pytest.mark.thorough

P99 = ClientQuery.parse("p99 < 0.2")
GUARD = ClientGuard((P99,), "http://localhost:9090")
RATE_OF_2 = ConfigKey(ConfigResource.broker(2), FOLLOWER_THROTTLED_RATE)
FOUR = [[0, 1]] * 4
AWAY = dict.fromkeys(range(4), (2, 1))
ONE_BY_ONE = pace(moves=1)


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    """Four copies of a minute and a half each, one after the other."""
    return of_size(tmp_path, 80)


def of_size(tmp_path: Path, seconds: int, write_bytes_per_s: float = 0.0) -> TwinRig:
    rig = TwinRig(tmp_path, FOUR, size_bytes=seconds * RATE, write_bytes_per_s=write_bytes_per_s)
    rig.poll_s = 10.0
    return rig


def prepared(rig: TwinRig, reaction: Reaction = Reaction.HOLD, throttle: int | None = RATE) -> RunStarted:
    guards = {**DEFAULTS, GuardName.CLIENTS: reaction}
    return replace(rig.prepared(AWAY, throttle=throttle, guards=guards, pace=ONE_BY_ONE), clients=GUARD)


def feel(rig: TwinRig, p99_s: Callable[[float], float | None]) -> None:
    """Let producers have this p99 at seconds since the run began; None is no answer."""
    begun_ms = rig.transport.now_ms()

    def read() -> tuple[ClientAnswer, ...]:
        value = p99_s((rig.transport.now_ms() - begun_ms) / 1000)
        return (P99.unknown("no answer") if value is None else P99.read(value),)

    rig.read_clients = read


def rates_set(events: list[Event]) -> list[int]:
    """Rates that broker 2 had for what it gets, one after the other."""
    found = [
        int(override.value or 0)
        for event in events
        if isinstance(event, ThrottleIntended)
        for override in event.overrides
        if override.key == RATE_OF_2
    ]
    return [rate for number, rate in enumerate(found) if number == 0 or rate != found[number - 1]]


def seconds_of(rig: TwinRig, *kinds: type[Event]) -> list[float]:
    begun_ms = rig.seen[0].at_ms
    return [(event.at_ms - begun_ms) / 1000 for event in rig.seen if isinstance(event, kinds)]


def rate_of(rig: TwinRig) -> int:
    return int(rig.throttles.get(f"broker 2 {FOLLOWER_THROTTLED_RATE}", "0"))


def test_a_run_whose_producers_suffer_is_held_in_a_minute_and_ends(rig: TwinRig) -> None:
    """Scenario 14: p99 doubles three minutes after the run began, by copies at more than half their rate."""
    feel(rig, lambda second: 0.3 if second > 180 and rate_of(rig) > RATE // 2 else 0.1)
    found = rig.run(prepared(rig))
    assert (found.state, rig.throttles, found.throttle_residue) == ("done", {}, ())
    assert rates_set(rig.seen)[:3] == [RATE, RATE // 2, RATE * 55 // 100]
    assert any(180 < at_s <= 240 for at_s in seconds_of(rig, ThrottleIntended))
    assert found.clients is not None
    assert found.clients.held_ms > 0
    assert 40 <= found.clients.slowdown_percent <= 65
    assert "p99 is 0.3, and is to be < 0.2" in str(found.clients)
    assert any("clients (over" in problem for problem in found.problems)
    assert read_history(rig.path()).clients == found.clients


def test_nothing_starts_while_clients_suffer(rig: TwinRig) -> None:
    feel(rig, lambda second: 0.3 if 60 < second < 600 else 0.1)
    assert rig.run(prepared(rig)).state == "done"
    starts = seconds_of(rig, SubmissionIntended)
    assert not [at_s for at_s in starts if 100 < at_s < 600]
    assert rates_set(rig.seen)[:4] == [RATE, RATE // 2, RATE // 4, RATE * 12 // 100]
    assert max(rates_set(rig.seen)) == RATE


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_what_is_unknown_holds_the_run_and_leaves_its_rate(rig: TwinRig, nothing: float | None) -> None:
    feel(rig, lambda second: nothing if second < 300 else 0.1)
    found = rig.run(prepared(rig))
    assert found.state == "done"
    assert min(seconds_of(rig, SubmissionIntended)) >= 300
    assert rates_set(rig.seen) == [RATE]
    assert any("p99 < 0.2 could not be read" in problem for problem in found.problems)


def test_a_throttle_that_an_operator_sets_meanwhile_wins(rig: TwinRig) -> None:
    feel(rig, lambda second: 0.3 if 30 < second < 400 else 0.1)
    rig.ask_after(130, lambda at_ms, number: ThrottleRequested(at_ms, number, 4 * RATE))
    found = rig.run(prepared(rig))
    assert (found.state, found.throttle_bytes_per_s, rig.throttles) == ("done", 4 * RATE, {})
    assert rates_set(rig.seen) == [RATE, RATE // 2, RATE // 4, 4 * RATE]


def test_a_resumed_run_takes_the_guard_up_at_the_rate_it_had(rig: TwinRig) -> None:
    feel(rig, lambda second: 0.3 if 30 < second < 70 else 0.1)
    rig.stop_after(80)
    assert rig.run(prepared(rig)).state == "paused"
    before = len(rig.seen)
    feel(rig, lambda _: 0.1)
    found = rig.resume()
    assert (found.state, rig.throttles) == ("done", {})
    resumed = rates_set(rig.seen[before:])
    assert resumed[0] == RATE // 2
    assert max(resumed) > RATE * 3 // 4


def test_a_resumed_run_without_its_secrets_is_held(rig: TwinRig) -> None:
    feel(rig, lambda _: 0.1)
    rig.stop_after(40)
    assert rig.run(prepared(rig)).state == "paused"
    starts = len(seconds_of(rig, SubmissionIntended))
    feel(rig, lambda _: None)
    rig.stop_after(400)
    assert rig.resume().state == "paused"
    assert len(seconds_of(rig, SubmissionIntended)) == starts


def test_a_guard_that_cancels_does_so_after_a_second_bad_look(rig: TwinRig) -> None:
    feel(rig, lambda second: 0.3 if second > 30 else 0.1)
    found = rig.run(prepared(rig, Reaction.CANCEL))
    assert (found.state, rig.throttles) == ("cancelled", {})
    reactions = [v.reaction for event in rig.seen if isinstance(event, VerdictsRecorded) for v in event.verdicts]
    assert reactions == [Reaction.HOLD, Reaction.CANCEL]


def test_a_guard_that_cancels_is_held_at_most_by_what_is_unknown(rig: TwinRig) -> None:
    feel(rig, lambda second: None if 30 < second < 300 else 0.1)
    assert rig.run(prepared(rig, Reaction.CANCEL)).state == "done"


def test_a_run_without_a_throttle_is_held_only(rig: TwinRig) -> None:
    feel(rig, lambda second: 0.3 if second < 100 else 0.1)
    found = rig.run(prepared(rig, throttle=None))
    assert (found.state, rates_set(rig.seen)) == ("done", [])
    assert min(seconds_of(rig, SubmissionIntended)) >= 100


def test_a_slowed_rate_stays_above_what_producers_write(tmp_path: Path) -> None:
    rig = of_size(tmp_path, 200, RATE // 4)
    feel(rig, lambda second: 0.3 if second > 30 else 0.1)
    started = prepared(rig, throttle=2 * RATE)
    moves = tuple(replace(move, write_bytes_per_s=RATE / 4) for move in started.moves)
    assert rig.run(replace(started, moves=moves[:1])).state == "done"
    # One follower in sync and one new copy: a leader sends each byte twice, a destination gets it once.
    assert min(rates_set(rig.seen)) == round(1.25 * RATE / 4)


def test_a_throttle_that_follows_the_traffic_is_slowed_as_well(rig: TwinRig) -> None:
    feel(rig, lambda second: 0.3 if 30 < second < 70 else 0.1)
    adaptive = AdaptiveThrottle(RATE, floor_bytes_per_s=1_000)
    started = replace(rig.prepared(AWAY, throttle=None, adaptive=adaptive, pace=ONE_BY_ONE), clients=GUARD)
    found = rig.run(started)
    assert (found.state, rig.throttles) == ("done", {})
    assert RATE // 2 in rates_set(rig.seen)


def test_a_resumed_run_takes_another_guard_if_one_is_given(rig: TwinRig) -> None:
    feel(rig, lambda _: 0.1)
    rig.stop_after(40)
    assert rig.run(prepared(rig)).state == "paused"
    other = ClientGuard(command=("check",))
    assert rig.resume(clients=other).state == "done"
    assert read_view(rig.path()).client_guard == other


def test_a_guard_that_was_off_is_on_when_a_resume_names_one(rig: TwinRig) -> None:
    feel(rig, lambda _: None)
    rig.stop_after(40)
    assert rig.run(prepared(rig, Reaction.OFF)).state == "paused"
    starts = len(seconds_of(rig, SubmissionIntended))
    assert starts > 0
    rig.stop_after(300)
    assert rig.resume(clients=GUARD).state == "paused"
    assert len(seconds_of(rig, SubmissionIntended)) == starts


def test_a_slowed_run_says_so_while_it_goes_on(rig: TwinRig) -> None:
    feel(rig, lambda second: 0.3 if 30 < second < 70 else 0.1)
    told: list[str] = []
    rig.listener = lambda _, run: told.extend(run.outlook)
    assert rig.run(prepared(rig)).state == "done"
    assert "copies have 50 % of the rate of the run, for its clients" in told
