"""Show the progress of a run by move, by broker and in total, and describe its events.

`ProgressMeter` follows the events of a run and gives its progress and that of its moves at any moment: bytes done and
left, rates, the time left (`eta.py`) and the latest sentences of its log. `marks` and `sentences` describe an event
for people: a mark where it explains the course of a run, and a sentence for the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kreassign.executor import eta, events
from kreassign.executor.guards import NAMED
from kreassign.executor.state import MoveRecord, RunView
from kreassign.model import TopicPartition
from kreassign.model.cluster import named_brokers
from kreassign.model.run import ACTIVE, AT_REST, BrokerProgress, Estimate, Interval, MarkKind, MoveHistory, Progress
from kreassign.model.text import agreeing, by_reason, counted, each_partition, format_amount

# Events in words: marks for pictures of a run, sentences for its log.


def marks(event: events.Event) -> Iterator[tuple[MarkKind, str]]:
    """Marks for a picture of the run; guards, which report repeatedly, are not among these."""
    match event:
        case events.HoldRequested():
            yield MarkKind.PAUSED, "paused: nothing new is started, what is in flight goes on"
        case events.ReleaseRequested():
            yield MarkKind.RELEASED, "released: moves are started again"
        case events.StopRequested():
            yield MarkKind.STOPPED, "paused by Ctrl-C or a signal"
        case events.RunResumed():
            by = "" if event.operator is None else f" by {event.operator}"
            yield MarkKind.RESUMED, f"resumed{by}"
        case events.ThrottleRequested():
            yield MarkKind.THROTTLE, _throttle_text(event)
        case events.PaceRequested():
            yield MarkKind.PACE, "limits of moves in flight changed"
        case events.CancelRequested():
            how = "what is in flight is cancelled, too" if event.is_now else "what is in flight finishes"
            yield MarkKind.CANCELLED, f"cancelled: {how}"
        case events.MovesReplanned():
            go = f"{counted(len(event.targets), 'move')} {agreeing(len(event.targets), 'go')} elsewhere"
            yield MarkKind.REPLANNED, f"{named_brokers(event.lost, 'are lost')}: {go}"
        case events.LeaseLost():
            yield MarkKind.LEASE_LOST, f"the lease of the cluster was lost: {event.reason}"


def _throttle_text(event: events.ThrottleRequested) -> str:
    whose = f" for {named_brokers(event.brokers)}" if event.brokers else ""
    if event.adaptive is not None:
        return f"throttle: what traffic leaves over{whose}"
    if event.rate_bytes_per_s is None:
        return f"throttle: none{whose}"
    return f"throttle: {format_amount(float(event.rate_bytes_per_s), 'B/s')} per broker{whose}"


def new_sentences(event: events.Event, last: dict[str, events.Event]) -> tuple[str, ...]:
    """Log sentences of an event; none if it equals the last one of its kind but for the time.

    A query that finds the same each second is told once. `last` has the last events by kind, and is updated; a mark
    begins from scratch.
    """
    if any(True for _ in marks(event)):
        last.clear()
    found = tuple(sentences(event))
    kind, bare = type(event).__name__, replace(event, at_ms=0)
    if not found or last.get(kind) == bare:
        return ()
    last[kind] = bare
    return found


def sentences(event: events.Event) -> Iterator[str]:
    """Log sentences of an event, besides marks; none for polls, which are too frequent."""
    match event:
        case events.RunStarted():
            by = "" if event.operator is None else f", started by {event.operator}"
            yield f"run {event.run_id} of {counted(len(event.moves), 'move')}{by}"
        case events.ThrottleSet() if event.problems:
            yield f"the throttle was not set everywhere: {'; '.join(event.problems)}"
        case events.ThrottleRestored():
            yield "; ".join(event.problems) or "previous settings restored"
        case events.MovesSubmitted():
            yield from _submitted(event)
        case events.MovesCancelled():
            yield f"{counted(len(event.accepted), 'move')} cancelled"
        case events.LeadersElected():
            yield f"{counted(len(event.elected), 'preferred leader')} {'leads' if len(event.elected) == 1 else 'lead'}"
        case events.CallFailed():
            yield f"a call failed: {event.message}"
        case events.Verified():
            yield "; ".join(event.findings) or "verified: the cluster is as this run should leave it"
        case _:
            yield from _of_surroundings(event)


def _of_surroundings(event: events.Event) -> Iterator[str]:
    match event:
        case events.ClockStepped():
            yield f"the wall clock is {event.ahead_ms / 1000:.0f} s ahead"
        case events.LeaseTaken():
            yield "the lease of the cluster was taken"
        case events.LeaseForgone() | events.LeaseRefused():
            yield f"no lease of the cluster: {event.reason}"


def _submitted(event: events.MovesSubmitted) -> Iterator[str]:
    parts = ((len(event.accepted), "submitted"), (len(event.refused), "refused"),
             (len(event.deferred), "refused for now"), (len(event.unknown), "without an answer"))  # fmt: skip
    yield f"moves: {', '.join(f'{count} {word}' for count, word in parts if count)}"
    for message, names in by_reason((one.topic_partition, one.message) for one in event.refused).items():
        yield each_partition(names, NAMED, f"was refused: {message}")


# Progress of moves, of brokers and of the run.


REMEMBERED = 20
"""Number of recent log sentences that are kept."""

CURVE_POINTS = 240
"""Moments that the curve of copied bytes has at most; every other one goes when there are more."""

QUEUED_AS = {"out": "source", "in": "destination"}
"""Names of the broker ends in the queue."""


@dataclass(slots=True)
class _Sum:
    """Bytes of the copies that load one end of a broker: done and left now, passed and written since the run began.

    What passed stays with the broker that sent it, whoever leads the partition by now, and though a copy is discarded.
    """

    done_bytes: int = 0
    left_bytes: int = 0
    unknown: int = 0
    passed_bytes: int = 0
    written_bytes: int = 0
    samples: tuple[eta.ProgressSample, ...] = ()

    def add(self, copy: eta.Sample, sign: int) -> None:
        """Add a copy to the sums (sign 1), or take it out (sign -1)."""
        self.done_bytes += sign * copy.done_bytes
        self.left_bytes += sign * (copy.left_bytes or 0)
        self.unknown += sign * (copy.left_bytes is None)

    def sample(self, at_ms: int, *, is_busy: bool) -> None:
        """Append a sample of the present sums; `is_busy` while copies are in flight there."""
        now = eta.ProgressSample(at_ms, self.passed_bytes, self.left_bytes, self.written_bytes, is_busy)
        self.samples = (*(one for one in self.samples if one.at_ms >= at_ms - eta.INTERVAL_WINDOW_MS), now)


class ProgressMeter:
    """Follows a run. Call `follow` after each event that the run has processed.

    An observation costs what is in flight: all sums are kept, and only what may have changed is counted again.
    """

    def __init__(self, run: RunView) -> None:
        self._run = run
        self._samples: dict[TopicPartition, tuple[eta.Sample, ...]] = {}
        self._shown: dict[TopicPartition, MoveHistory] = {}
        self._counted: dict[TopicPartition, dict[int, tuple[tuple[eta.Endpoint, ...], eta.Sample]]] = {}
        self._sums: dict[eta.Endpoint, _Sum] = {}
        self._totals: tuple[eta.Sample, ...] = ()
        self._flying: set[TopicPartition] = set()
        self._begun: set[TopicPartition] = set()
        self._all = _Sum()
        self._best_bytes_per_s = 0.0
        self._curve: tuple[tuple[int, int], ...] = ()
        self._recent: tuple[tuple[int, str], ...] = ()
        self._last_told: dict[str, events.Event] = {}
        self.at_ms = 0
        """Time of the last event followed."""

    def state(self) -> dict[str, object]:
        """Complete state of the meter, for `restored`."""
        return {name: value for name, value in vars(self).items() if name not in {"_run", "_shown"}}

    @classmethod
    def restored(cls, run: RunView, state: dict[str, object]) -> ProgressMeter:
        """Restore a meter from the state of another one. Raises ValueError if the state does not fit."""
        meter = cls(run)
        if state.keys() != meter.state().keys():
            raise ValueError(f"a meter remembers other things than {sorted(state)}")
        vars(meter).update(state)
        return meter

    def follow(self, event: events.Event) -> None:
        """Follow an event; only observations of the cluster bring new figures."""
        self.at_ms = event.at_ms
        said = (*(text for _, text in marks(event)), *new_sentences(event, self._last_told))
        self._recent = (*self._recent, *((event.at_ms, text) for text in said))[-REMEMBERED:]
        if isinstance(event, events.MovesObserved) and not (event.observations or event.has_progress):
            return  # what was copied meanwhile is in a later poll
        in_flight = {record.name for record in self._run.in_flight}
        touched = self._flying | in_flight
        if isinstance(event, events.MovesObserved):
            touched |= {observation.topic_partition for observation in event.observations}
        if isinstance(event, events.MovesSubmitted):
            touched |= {refusal.topic_partition for refusal in event.refused}
        if isinstance(event, events.HealthObserved | events.MovesReplanned) or not self._counted:
            touched = set(self._run.records)
        self._flying = in_flight
        for name in touched:
            self._shown.pop(name, None)
        records = [record for name in touched if (record := self._run.records[name]).move.receiving]
        for record in records:
            self._count(record)
        if isinstance(event, events.MovesObserved):
            self._observe(records, has_progress=event.has_progress)

    def progress(self) -> Progress:
        """Current progress of the run."""
        end, why = self._end()
        overall = eta.estimate(self._totals or (self._total(),))
        return Progress(
            at_ms=self.at_ms,
            done_bytes=overall.done_bytes,
            left_bytes=overall.left_bytes,
            rate_bytes_per_s=overall.rate_bytes_per_s,
            write_bytes_per_s=overall.write_bytes_per_s,
            eta_s=None if end is None else end.expected_s,
            end=end,
            why_no_end=why,
            brokers=self.brokers(),
            recent=self._recent,
            curve=self._curve,
        )

    def moves(self) -> tuple[MoveHistory, ...]:
        """Every move of the run, with the estimate of its copies. Costs what may have changed since the last call."""
        return tuple(map(self._shown_move, self._run.records.values()))

    def brokers(self) -> tuple[BrokerProgress, ...]:
        """Progress by broker, by id, for brokers with moves. Costs what is in flight."""
        in_flight = self._run.in_flight
        reassigning: Counter[int] = Counter()
        out_of_sync: Counter[int] = Counter()
        lag: Counter[int] = Counter()
        for record in in_flight:
            sender = (record.source,) if record.move.adding else ()
            reassigning.update({*sender, *record.move.receiving})
            out_of_sync.update(record.lagging)
            lag.update(record.left_bytes)
        known = reassigning.keys() | {broker for _, broker in self._sums}
        return tuple(
            BrokerProgress(
                broker=broker,
                reassigning=reassigning[broker],
                read_bytes_per_s=self._rate(("out", broker)),
                written_bytes_per_s=self._rate(("in", broker)),
                within_bytes_per_s=self._rate(("within", broker)),
                left_bytes=sum(
                    self._sums[end].left_bytes for end in (("in", broker), ("within", broker)) if end in self._sums
                ),
                out_of_sync=out_of_sync[broker],
                lag_bytes=lag[broker],
                left_to_send_bytes=sends.left_bytes if (sends := self._sums.get(("out", broker))) else 0,
                throttle_bytes_per_s=self._run.present_rates.of(broker),
            )
            for broker in sorted(known)
        )

    def _rate(self, end: eta.Endpoint) -> float | None:
        """Present rate at this end; 0 if nothing is to pass, or the run is at rest."""
        side = self._sums.get(end)
        if side is None or self._run.phase in AT_REST:
            return 0.0
        return eta.Side(side.samples).present_bytes_per_s if side.samples else None

    def _count(self, record: MoveRecord) -> None:
        """Update the sums for the present state of a move."""
        before = self._counted.get(record.name, {})
        for ends, copy in before.values():
            for end in ends:
                self._sums[end].add(copy, -1)
        copies = _copy_samples(record, self.at_ms).items()
        self._counted[record.name] = {broker: (_ends(record, broker), copy) for broker, copy in copies}
        is_growing = record.status in ACTIVE and record.name in self._begun
        for broker, (ends, copy) in self._counted[record.name].items():
            ends_before, earlier = before.get(broker, (ends, copy))
            for end in ends:
                self._sums.setdefault(end, _Sum()).add(copy, 1)
            for end in ends_before:
                side = self._sums[end]
                side.passed_bytes += max(0, copy.done_bytes - earlier.done_bytes)
                side.written_bytes += _growth(earlier, copy) if is_growing else 0
        if record.copies:
            self._begun.add(record.name)

    def _observe(self, records: Iterable[MoveRecord], *, has_progress: bool) -> None:
        # The time before the first byte says nothing about the speed of the copies.
        begun = [record for record in records if record.copies]
        for record in begun:
            if has_progress or record.status not in ACTIVE:
                now = _sample(record, self.at_ms)
                self._samples[record.name] = eta.recent((*self._samples.get(record.name, ()), now))
            if record.status not in ACTIVE:
                self._shown[record.name] = self._seen_now(record)
                del self._samples[record.name]
        if not has_progress or not (begun or self._totals):
            return
        whole = self._total()
        self._totals = eta.recent((*self._totals, whole))
        curve = (*self._curve, (self.at_ms, whole.done_bytes))
        self._curve = curve if len(curve) <= CURVE_POINTS else curve[::2]
        into = [side for (kind, _), side in self._sums.items() if kind != "out"]
        self._all.left_bytes = whole.left_bytes or 0
        self._all.passed_bytes = sum(side.passed_bytes for side in into)
        self._all.written_bytes = sum(side.written_bytes for side in into)
        busy = self._busy_ends()
        self._all.sample(self.at_ms, is_busy=bool(busy))
        for end, side in self._sums.items():
            side.sample(self.at_ms, is_busy=end in busy)
            self._best_bytes_per_s = max(self._best_bytes_per_s, eta.Side(side.samples).rate_bytes_per_s or 0.0)

    def _busy_ends(self) -> set[eta.Endpoint]:
        """Ends with copies in flight that are not done."""
        copies = (one for record in self._run.in_flight for one in self._counted.get(record.name, {}).values())
        return {end for ends, copy in copies if copy.left_bytes != 0 for end in ends}

    def _total(self) -> eta.Sample:
        """Sum of all copies."""
        into = [side for (kind, _), side in self._sums.items() if kind != "out"]
        left = None if any(side.unknown for side in into) else sum(side.left_bytes for side in into)
        return eta.Sample(self.at_ms, sum(side.done_bytes for side in into), left)

    def _shown_move(self, record: MoveRecord) -> MoveHistory:
        shown = self._shown.get(record.name)
        if shown is None or shown.status is not record.status:
            shown = self._shown[record.name] = self._seen_now(record)
        return shown

    def _seen_now(self, record: MoveRecord) -> MoveHistory:
        if not record.move.receiving:
            return move_history(record)
        samples = self._samples.get(record.name) or [_sample(record, self.at_ms)]
        return move_history(record, eta.estimate(samples, self._limit(record)))

    def _limit(self, record: MoveRecord) -> int | None:
        """Rate limit for all copies of a move together, by the throttles of both sides; None for no limit."""
        if record.move.rearranging or not record.move.adding:
            return None
        rates = self._run.present_rates
        into = [rates.of(broker) for broker in record.move.adding]
        known = [rate for rate in into if rate is not None]
        sides = (rates.of(record.source), sum(known) if len(known) == len(into) else None)
        return min((side for side in sides if side is not None), default=None)

    def _end(self) -> tuple[Interval | None, str | None]:
        """End of the run, or the reason why it is unknown."""
        if not (self._totals or self._has_copies_left):
            return Interval(0.0, 0.0, 0.0), None
        measured_ms = self._totals[-1].at_ms if self._totals else None
        if (why := next(eta.reasons_without_end(self._run, self.at_ms, measured_ms), None)) is not None:
            return None, why
        limit = self._run.present_rates.fastest_bytes_per_s
        best = self._best_bytes_per_s if limit is None else min(limit, self._best_bytes_per_s)
        unknown = sum(side.unknown for (kind, _), side in self._sums.items() if kind != "out")
        sides = {end: self._side(end, side) for end, side in self._sums.items()}
        is_known = bool(self._totals and best) and not unknown
        end = eta.interval(sides.values(), eta.Side(self._all.samples), best) if is_known else None
        if end is None:
            return None, eta.reason_unmeasured(
                sides, has_begun=bool(self._totals), unknown_count=unknown, best_bytes_per_s=best
            )
        why = eta.beyond_hours(self._run, self.at_ms, end) or eta.too_wide(end)
        return (end, None) if why is None else (None, why)

    @property
    def _has_copies_left(self) -> bool:
        return any(record.status in ACTIVE and record.move.receiving for record in self._run.records.values())

    def _side(self, end: eta.Endpoint, side: _Sum) -> eta.Side:
        """Side with the write rate of waiting moves: sizes are those of the time when the run was prepared."""
        kind, broker = end
        waiting = self._run.waiting_write_bytes_per_s
        writes = waiting.get((QUEUED_AS[kind], broker), 0.0) if kind in QUEUED_AS else 0.0
        limit = self._run.present_rates.of(broker) if kind in QUEUED_AS else None
        # A side first seen since the last poll, after a change of leader or target, has no sample yet.
        now = eta.ProgressSample(self.at_ms, side.passed_bytes, side.left_bytes, side.written_bytes)
        return eta.Side(
            side.samples or (now,), writes, writes * (self.at_ms - self._run.identity.started_ms) / 1000, limit
        )


def move_history(record: MoveRecord, estimate: Estimate | None = None) -> MoveHistory:
    """Convert a move to its plain value."""
    move = record.move
    return MoveHistory(
        topic=move.topic_partition.topic,
        partition=move.topic_partition.partition,
        original=move.original,
        target=move.target,
        adding=move.adding,
        size_bytes=move.size_bytes,
        submitted_ms=record.submitted_ms,
        ended_ms=record.ended_ms,
        bytes_copied=record.bytes_copied,
        status=record.status,
        problem=record.problem,
        left=record.left,
        between=record.between,
        log_dirs=move.log_dirs,
        topic_id=move.topic_id,
        former_targets=tuple(one.before for one in record.replans),
        made_by_others=record.made_by_others,
        estimate=estimate,
    )


def _growth(earlier: eta.Sample, now: eta.Sample) -> int:
    """Bytes that producers added between two samples of a copy; 0 if unknown."""
    known = earlier.total_bytes is not None and now.total_bytes is not None
    return max(0, (now.total_bytes or 0) - (earlier.total_bytes or 0)) if known else 0


def _ends(record: MoveRecord, broker: int) -> tuple[eta.Endpoint, ...]:
    """Ends that a copy loads: the brokers at both ends, or the directories of the one broker."""
    if broker in record.move.adding:
        return ("out", record.source), ("in", broker)
    return (("within", broker),)


def _sample(record: MoveRecord, at_ms: int) -> eta.Sample:
    """Sum of all copies of a move."""
    return replace(eta.total([*_copy_samples(record, at_ms).values()]), at_ms=at_ms)


def _copy_samples(record: MoveRecord, at_ms: int) -> dict[int, eta.Sample]:
    """Samples of the new copies of a move. A move at its end has nothing left; one not begun has everything left."""
    if record.status not in ACTIVE:
        left: dict[int, int | None] = dict.fromkeys(record.move.receiving, 0)
    else:
        left = dict.fromkeys(record.move.receiving, record.move.size_bytes)
        left |= {copy.broker: copy.left_bytes for copy in record.copies}
    return {broker: eta.Sample(at_ms, done, left[broker]) for broker, done in record.bytes_received.items()}
