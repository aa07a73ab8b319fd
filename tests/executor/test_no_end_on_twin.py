"""Reasons shown in place of a time while copies stand still: a test for each, on the twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kreassign.executor.eta import CALCULATING
from kreassign.executor.events import CancelRequested
from kreassign.executor.guards import GuardName, Reaction
from kreassign.model import Batch
from kreassign.model.pace import AtWindowEnd, Schedule, Window
from kreassign.model.run import Progress
from tests.approved import approve
from tests.executor.odd_port import OddPort, Real, as_it_is, not_reached
from tests.executor.test_foreign_throttle_on_twin import ONE_BY_ONE, clear_all
from tests.executor.test_lease_on_twin import give_up, lease_of, take_over, with_offsets_topic
from tests.executor.test_lost_destinations import shown
from tests.executor.twin_runs import RATE, TwinRig

pytestmark = pytest.mark.thorough

AWAY = {0: (2, 1), 1: (3, 0)}
OFF = dict.fromkeys(GuardName, Reaction.OFF)


class Watched:
    """Display of a run while it is executed: either a time or a reason."""

    def __init__(self, rig: TwinRig) -> None:
        self._found = shown(rig)

    def __iter__(self) -> Iterator[tuple[float, Progress]]:
        for at_ms, run in self._found:
            progress = run.measured
            assert (progress.end is None) == (progress.why_no_end is not None)
            assert (progress.end is None) == (progress.eta_s is None)
            yield at_ms / 1000, progress

    def reasons(self, begin_s: float = 0.0, end_s: float = float("inf")) -> list[str]:
        """Each reason once, in the order in which they were told; where a time was told, "a time"."""
        return list(dict.fromkeys(_told(progress) for at_s, progress in self if begin_s <= at_s < end_s))


def _told(progress: Progress) -> str:
    return progress.why_no_end or "a time"


def cancel_after(rig: TwinRig, seconds: float, *, is_now: bool = True) -> None:
    rig.ask_after(seconds, lambda at_ms, number: CancelRequested(at_ms, number, is_now=is_now))


def test_the_end_is_calculated_until_copies_are_measured(rig: TwinRig) -> None:
    watched = Watched(rig)
    rig.run(rig.prepared(AWAY, throttle=RATE // 2))
    approve(watched.reasons(), "why-there-is-no-end")


def test_a_plan_that_copies_nothing_is_not_calculated_for_ever(rig: TwinRig) -> None:
    watched = Watched(rig)
    rig.run(rig.prepared({0: (1, 0)}))
    assert watched.reasons() == ["a time"]


def test_a_destination_that_is_down(rig: TwinRig) -> None:
    watched = Watched(rig)
    rig.after(12, lambda: rig.twin.crash(2))
    rig.after(50, lambda: rig.twin.start(2))
    rig.run(rig.prepared(AWAY, throttle=RATE // 4))
    assert watched.reasons(30, 50) == ["broker 2 is down, and 1 move copies to it"]
    assert "a time" in watched.reasons(60)


def test_a_log_directory_of_a_destination_that_is_offline(rig: TwinRig) -> None:
    """The cluster shows a replica that is offline on a live broker."""

    def offline_on_2(real: Real, *args: Any, **named: Any) -> Any:
        found = real(*args, **named)
        moving = replace(found.ok["t"].partitions[0], offline=(2,))
        return Batch({"t": replace(found.ok["t"], partitions=(moving, *found.ok["t"].partitions[1:]))}, {})

    odd = OddPort(rig.client)
    rig.odd_port = odd.port
    watched = Watched(rig)
    started = rig.prepared(AWAY, throttle=RATE // 4)
    rig.after(12, lambda: odd.answer_always("describe_topics", offline_on_2))
    rig.after(30, lambda: odd.answer_always("describe_topics", as_it_is))
    rig.run(started)
    assert watched.reasons(15, 30) == ["a log directory of broker 2 is offline, and 1 move copies to it"]
    assert "a time" in watched.reasons(32)


def test_a_partition_in_flight_without_a_leader(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0]])
    watched = Watched(rig)
    rig.after(12, lambda: rig.twin.crash(0))
    rig.after(40, lambda: rig.twin.start(0))
    rig.run(rig.prepared({0: (2,)}, throttle=RATE // 4))
    assert watched.reasons(30, 40) == ["t-0 has no leader, so there is nothing to copy from"]


def window_in(rig: TwinRig, minutes: int, *, long_min: int = 1) -> Window:
    """A window that opens at the next full minute but so many."""
    minute = -(-rig.transport.now_ms() // 60_000) % (24 * 60) + minutes
    return Window(minute % (24 * 60), (minute + long_min) % (24 * 60))


def test_a_window_that_is_closed_and_then_what_does_not_fit_into_it(rig: TwinRig) -> None:
    hours = Schedule((window_in(rig, 3, long_min=3),), at_end=AtWindowEnd.CANCEL)
    watched = Watched(rig)
    cancel_after(rig, 500)
    rig.run(rig.prepared(AWAY, throttle=RATE // 12, pace=replace(ONE_BY_ONE, hours=hours)))
    first, *others = [reason for reason in watched.reasons() if CALCULATING not in reason]
    assert first.startswith("waits for its window, which opens ")
    assert any("and moves may be in flight only until " in one for one in others)


def test_a_lease_that_was_lost(rig: TwinRig) -> None:
    rig.lease = lease = lease_of(with_offsets_topic(rig), "run-1")
    lease.take()
    watched = Watched(rig)
    rig.after(4, lambda: take_over(rig))
    rig.after(60, lambda: give_up(rig))
    rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE))
    waited = watched.reasons(30, 60)
    assert len(waited) == 1
    assert waited[0].startswith("nothing is changed without the lease of the cluster: run run-2 of alice")


def test_a_throttle_that_is_checked_and_then_known_to_be_changed_by_others(rig: TwinRig) -> None:
    watched = Watched(rig)
    rig.after(5, lambda: clear_all(rig))
    cancel_after(rig, 60)
    rig.run(rig.prepared(AWAY, pace=ONE_BY_ONE))
    checked, *others = [one for one in watched.reasons(6) if "throttle" in one]
    assert checked.startswith("its throttle is checked before anything is started: ")
    assert any("guards hold it: foreign-throttle" in one for one in others)


def test_a_cluster_that_does_not_answer(rig: TwinRig) -> None:
    odd = OddPort(rig.client)
    rig.odd_port = odd.port
    watched = Watched(rig)
    started = rig.prepared(AWAY, throttle=RATE // 4)
    rig.after(12, lambda: odd.answer_always("list_partition_reassignments", not_reached))
    rig.after(40, lambda: odd.answer_always("list_partition_reassignments", as_it_is))
    rig.run(started)
    (reason,) = watched.reasons(15, 39)
    assert reason.startswith("the cluster has not answered since ")


def test_copies_that_grow_as_fast_as_they_are_made(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]], write_bytes_per_s=2.0 * RATE)
    watched = Watched(rig)
    cancel_after(rig, 90)
    rig.run(rig.prepared({0: (2, 1)}, guards=OFF))
    assert any("copies grow as fast as they are made: broker " in one for one in watched.reasons(40, 90))
    assert "a time" not in watched.reasons(20, 90)


def test_copies_that_stand_still_for_no_known_reason(rig: TwinRig) -> None:
    """The only evidence: brokers report the same progress again and again."""
    told: list[Any] = []

    def the_same(real: Real, *args: Any, **named: Any) -> Any:
        told.append(real(*args, **named))
        return told[0]

    odd = OddPort(rig.client)
    rig.odd_port = odd.port
    watched = Watched(rig)
    started = rig.prepared({0: (2, 1)}, throttle=RATE // 20, guards=OFF)
    rig.after(12, lambda: odd.answer_always("replica_status", the_same))
    rig.run(started)
    (reason,) = watched.reasons(45, 90)
    assert reason.startswith("no copy has made progress since ")


def test_sizes_that_nobody_knows(rig: TwinRig) -> None:
    def without_lags(real: Real, *args: Any, **named: Any) -> Any:
        found = real(*args, **named)
        statuses = {name: tuple(replace(one, lag_bytes=None) for one in all_of) for name, all_of in found.ok.items()}
        return Batch(statuses, found.failed)

    odd = OddPort(rig.client)
    odd.answer_always("replica_status", without_lags)
    rig.odd_port = odd.port
    watched = Watched(rig)
    rig.run(rig.prepared(AWAY, throttle=RATE // 2))
    assert "the size of 2 copies is not known" in watched.reasons(8)


def test_moves_that_are_being_cancelled(rig: TwinRig) -> None:
    watched = Watched(rig)
    cancel_after(rig, 12)
    rig.run(rig.prepared(AWAY, throttle=RATE // 8))
    assert "its moves in flight are being cancelled" in watched.reasons(11)


def test_a_run_that_was_paused_and_what_was_set_before_it_goes_on(rig: TwinRig) -> None:
    watched = Watched(rig)
    rig.stop_after(12)
    assert rig.run(rig.prepared(AWAY, throttle=RATE // 4)).state == "paused"
    assert watched.reasons()[-1] == ("it was paused, and no process executes it; go on with `kreassign resume run-1`")
    watched = Watched(rig)
    rig.resume()
    assert watched.reasons()[0] == "what the run had set is read again before it goes on"
