"""The page of metrics of a run, against what its cluster says at the same time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from kreassign.executor import events
from kreassign.executor.guards import GuardName
from kreassign.executor.history.run_history import history
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import RunView
from kreassign.model.run import MoveStatus, Phase, RunHistory
from kreassign.monitoring.metrics import METRICS, exposition
from tests.executor.run_events import A0, WHOLE, fold_with_progress, look, measured, seen, started
from tests.executor.twin_runs import RATE, TwinRig
from tests.monitoring.pages import Page
from tests.twin.asking import MEGABYTES


class Scrapes:
    """Pages of a run, one after each event, with what the cluster said of its reassignments then."""

    def __init__(self, rig: TwinRig) -> None:
        self._rig = rig
        self._meter: ProgressMeter | None = None
        self.pages: list[Page] = []
        self.runs: list[RunHistory] = []
        self.reassigning: list[dict[str, float]] = []
        rig.listener = self._listen

    def _listen(self, event: events.Event, run: RunView) -> None:
        self._meter = self._meter or ProgressMeter(run)
        self._meter.follow(event)
        if (
            not isinstance(event, events.MovesObserved | events.HoldRequested | events.ReleaseRequested)
            and run.ended_ms is None
        ):
            return
        found = history(run, self._meter)
        self.runs.append(found)
        self.pages.append(Page(exposition((found,)).decode()))
        self.reassigning.append(self._moving())

    def _moving(self) -> dict[str, float]:
        """By broker, the partitions that the twin reassigns, of which it sends or gets a copy."""
        found: Counter[str] = Counter()
        for state in self._rig.twin.metadata.topics["t"].partitions.values():
            if state.adding:
                found.update({str(broker) for broker in (state.leader, *state.adding)})
        return dict(found)


@pytest.fixture
def scrapes(tmp_path: Path) -> Scrapes:
    """A run of two moves, of 10 MB each, throttled to 1 MB/s, that was held for some seconds in between."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    found = Scrapes(rig)
    rig.ask_after(4, events.HoldRequested)
    rig.ask_after(8, events.ReleaseRequested)
    rig.end_within(120)
    assert rig.run(rig.prepared({0: (2, 1), 1: (1, 3)})).state == "done"
    return found


def test_the_pages_of_a_run_say_what_its_cluster_does(scrapes: Scrapes) -> None:
    first, last = scrapes.pages[0], scrapes.pages[-1]
    assert all(set(page.families) == {metric.full_name for metric in METRICS} for page in scrapes.pages)
    assert all(family.type == "gauge" for page in scrapes.pages for family in page.families.values())
    whose = {(one.labels["cluster_id"], one.labels["run_id"]) for page in scrapes.pages for one in page.samples}
    assert whose == {("twin", "run-1")}

    # Moves by state: every move is in one, from the plan to the end.
    assert first.by("state", "run_moves") == {"planned": 2}
    assert all(sum(page.by("state", "run_moves").values()) == 2 for page in scrapes.pages)
    assert last.by("state", "run_moves") == {"complete": 2}
    assert [page.by("phase", "run_phase") for page in (first, last)] == [{"moving": 1}, {"done": 1}]

    # Bytes only go up here, and add up to the sizes.
    copied = [page.value("run_copied_bytes") or 0 for page in scrapes.pages]
    assert copied == sorted(copied)
    assert copied[-1] == pytest.approx(20 * MEGABYTES, rel=0.01)
    assert (first.value("run_left_bytes"), last.value("run_left_bytes")) == (20 * MEGABYTES, 0)

    # What KIP-455 wished for: reassigning partitions by broker as the cluster lists them, and bandwidth.
    moving = [(page, now) for page, now in zip(scrapes.pages, scrapes.reassigning, strict=True) if now]
    assert moving
    assert [page.by("broker", "broker_reassigning_partitions") for page, _ in moving] == [now for _, now in moving]
    read = [page.by("broker", "broker_reassignment_read_bytes_per_second") for page, _ in moving]
    written = [page.by("broker", "broker_reassignment_write_bytes_per_second") for page, _ in moving]
    assert (set().union(*read), set().union(*written)) == ({"0", "1"}, {"2", "3"})
    # The throttle is a mean: what the first seconds let through above it is in no long window.
    assert [max(rates.values()) for rates in (read[-1], written[-1])] == pytest.approx([RATE, RATE], rel=0.2)
    assert last.by("broker", "broker_reassigning_partitions") == {}
    assert last.by("broker", "broker_reassignment_write_bytes_per_second") == {}
    assert first.by("broker", "broker_throttle_bytes_per_second").keys() >= {"2", "3"}

    # In-sync lag shrinks to nothing, and counts the new replicas that are not in sync.
    lag = [sum(page.by("broker", "broker_in_sync_lag_bytes").values()) for page, _ in moving]
    assert all(after <= before for before, after in pairwise(lag))
    assert max(lag) > 0
    assert max(page.value("broker_out_of_sync_replicas", broker="2") or 0 for page, _ in moving) == 1
    assert last.by("broker", "broker_out_of_sync_replicas") == {}

    # The ETA is a range around what is expected; at first there is none.
    assert first.value("run_eta_expected_seconds") is None
    ranges = [tuple(page.value(f"run_eta_{bound}_seconds") for bound in ("earliest", "expected", "latest"))
              for page in scrapes.pages]  # fmt: skip
    known = [[value for value in one if value is not None] for one in ranges]
    assert sum(map(bool, known)) > 3
    assert all(one == sorted(one) and len(one) in {0, 3} for one in known)
    assert ranges[-1] == (None, None, None), "what has ended is not expected to end"

    # It was held in between, and the page said so.
    held = [page.value("run_held") for page in scrapes.pages]
    assert 1 in held
    assert (held[0], held[-1]) == (0, 0)
    assert any("paused by an operator" in str(run.why_held) for run in scrapes.runs)


def test_a_caught_up_new_replica_counts_as_in_sync_during_its_move() -> None:
    move = events.PlannedMove(A0, (0, 1), (2, 3), 1_000)
    half = replace(seen(move, events.PlacementState.MOVING, done=400), isr=(0, 1, 2))
    run, meter = fold_with_progress((
        started(move, throttle=None),
        look(3_000, events.PlacementState.UNTOUCHED, move),
        events.SubmissionIntended(3_000, (A0,)),
        events.MovesSubmitted(4_000, (A0,)),
        events.MovesObserved(5_000, (half,)),
    ))  # fmt: skip
    page = Page(exposition((history(run, meter),)).decode())
    assert page.by("broker", "broker_out_of_sync_replicas") == {"3": 1}
    assert page.by("broker", "broker_in_sync_lag_bytes") == {"3": 600}
    assert page.by("broker", "broker_reassigning_partitions") == {"0": 1, "2": 1, "3": 1}


@pytest.fixture
def whole() -> RunHistory:
    """A run that has ended."""
    return measured(WHOLE)


ODD = {
    "script": "<script>alert(1)</script>",
    "quote": 'a"b\\c',
    "line": "two\nlines",
    "label": '",run_id="other',
    "emoji": "größer 🦊",
}


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_the_page_is_read_back_whatever_its_cluster_is_called(whole: RunHistory, name: str) -> None:
    page = Page(exposition((replace(whole, cluster_id=name),)).decode())
    assert {(one.labels["cluster_id"], one.labels["run_id"]) for one in page.samples} == {(name, "run-1")}


@pytest.mark.parametrize(("name", "shown"), [("\udc80", "\\udc80"), ("a\x1b[2J", "a\\u001b[2J"), ("\u202e", "\\u202e")])
def test_what_cannot_be_shown_in_a_name_is_shown_by_its_number(whole: RunHistory, name: str, shown: str) -> None:
    page = Page(exposition((replace(whole, cluster_id=name),)).decode())
    assert {one.labels["cluster_id"] for one in page.samples} == {shown}


def test_several_runs_are_distinguished_by_their_labels(whole: RunHistory) -> None:
    other = replace(
        whole,
        run_id="run-2",
        state=Phase.MOVING,
        ended_ms=None,
        moves=(replace(whole.moves[0], status=MoveStatus.MOVING),),
    )
    page = Page(exposition((whole, other)).decode())
    assert page.value("run_moves", run_id="run-1", state="complete") == 2
    assert page.value("run_moves", run_id="run-2", state="moving") == 1
    assert page.value("run_end_time_seconds", run_id="run-1") is not None
    assert page.value("run_end_time_seconds", run_id="run-2") is None


def test_every_guard_is_on_the_page_breached_or_not(whole: RunHistory) -> None:
    page = Page(exposition((replace(whole, guards=(GuardName.DISK.value,)),)).decode())
    assert {one.labels["guard"]: one.value for one in page.families["kreassign_run_guard_breached"].samples} == {
        guard.value: float(guard is GuardName.DISK) for guard in GuardName
    }


def test_what_is_not_known_is_not_on_the_page(whole: RunHistory) -> None:
    unknown = replace(whole, progress=replace(whole.measured, left_bytes=None, rate_bytes_per_s=None, end=None))
    page = Page(exposition((unknown,)).decode())
    for name in ("run_left_bytes", "run_rate_bytes_per_second", "run_eta_expected_seconds"):
        assert page.value(name) is None
        assert f"kreassign_{name}" in page.families


def test_names_follow_the_conventions_of_prometheus() -> None:
    names = [metric.full_name for metric in METRICS]
    assert len(names) == len(set(names))
    assert all(name.startswith("kreassign_") and name == name.lower() for name in names)
    assert not [name for name in names if name.endswith("_total")], "a gauge is not called a total"
    assert all(metric.meaning.endswith(".") for metric in METRICS)
