"""All that an autopilot remembers: what the events of its journal come to. Pure.

`remember` folds the events, so that any process goes on where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple

from kreassign.autopilot import events
from kreassign.autopilot.events import CLUSTER, OPEN, ClosedGate, Event, Follower, Name, Planned, Result, State
from kreassign.autopilot.policy import MOST_REST_S, Kind
from kreassign.model import TopicPartition
from kreassign.model.text import DAY_MS, HOUR_MS, format_amount, rough_span


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding, and how far it has come; fields that its events have mean the same here.

    `since_ms` is from when on it was there without a break; `steady_ms` from when on two plans were the same.
    `not_before_ms` is the end of its back-off after `failures`. The brokers that it is `silent_about` were down when
    its `silence` was given. `asked` is the request for approval of the `proposal`, and `judged` its signatures.
    `gates` are those that were closed when they were written down last. `lost_ms` is from when on it is not seen, 0
    while it is; `urgent_ms` when it became urgent, None where it is not, and `calm_ms` from when on no look shows that
    it is. `told_ms` are the times of the last 24 hours at which it was told, or was not since it comes and goes, and
    `begun_ms` those at which it began. `was_full` if its used share made it urgent since it is, and `low_ms` is when
    that was last seen below its limits.
    """

    name: Name
    state: State
    since_ms: int
    state_ms: int
    seen: str
    why: str = ""
    proposal: Planned | None = None
    steady_ms: int = 0
    failures: int = 0
    not_before_ms: int = 0
    problem: str = ""
    silence: events.Silenced | None = None
    silent_about: frozenset[int] = frozenset()
    asked: events.ApprovalAsked | None = None
    judged: events.ApprovalsJudged | None = None
    gates: events.GatesJudged | None = None
    lost_ms: int = 0
    is_gone: bool = False
    urgent_ms: int | None = None
    calm_ms: int | None = None
    told_ms: tuple[int, ...] = ()
    is_told_late: bool = False
    brokers: frozenset[int] = frozenset()
    begun_ms: tuple[int, ...] = ()
    by_growth: bool | None = None
    urgent_by_growth: bool | None = None
    was_full: bool = False
    low_ms: int = 0

    @property
    def was_low(self) -> bool:
        """True if the used share of a disk was seen below its limits since the finding came into its state."""
        return self.low_ms > self.state_ms

    @property
    def is_told(self) -> bool:
        """True if people were told of it since it is there."""
        return self.is_told_late or len(self.told_ms) <= MOST_TOLD

    @property
    def may_be_urgent_by_growth(self) -> bool:
        """True if growth of a disk alone makes it urgent, or may do so."""
        return self.urgent_ms is not None and self.urgent_by_growth is not False

    @property
    def may_be_by_growth(self) -> bool:
        """True if growth of a disk alone keeps it open or urgent, or may do so."""
        return self.by_growth is not False or self.may_be_urgent_by_growth


MOST_TOLD = 4
"""A finding that comes and goes is told so often within a day."""


class Act(NamedTuple):
    """A repair that ran, or runs (`ended_ms` is None); it `is_approved` where people had signed its plan.

    `copied_bytes` are what it is to copy as long as it runs, and what it copied afterwards. Times count pauses, too. It
    repairs findings of its kind about the brokers `also`, too. `before` is the amount that it is to change, `gain` that
    and the amount once it has settled.
    """

    name: Name
    run_id: str
    begun_ms: int
    copied_bytes: int
    moves: tuple[TopicPartition, ...]
    ended_ms: int | None = None
    result: Result | None = None
    outcome: str = ""
    end_asked_ms: int | None = None
    held: ClosedGate | None = None
    at_any_time: bool = False
    held_by_people: str = ""
    is_approved: bool = False
    promised_bytes: int = 0
    promised_s: float | None = None
    also: tuple[int, ...] = ()
    before: str = ""
    gain: str = ""

    @property
    def is_end_asked(self) -> bool:
        """True if the autopilot asked it to end early."""
        return self.end_asked_ms is not None

    @property
    def names(self) -> tuple[Name, ...]:
        """The findings that it repairs: its own, and those about other brokers."""
        return (self.name, *(Name(self.name.kind, f"broker {broker}") for broker in self.also))

    @property
    def brokers(self) -> frozenset[int]:
        """Brokers that it is about; none where it is about the cluster."""
        return frozenset(one.broker for one in self.names if one.subject != CLUSTER)

    @property
    def account(self) -> str:
        """Sentence on bytes and time, achieved against promised, and on what was gained; only the promise at first."""
        time = "" if self.promised_s is None else f" and {rough_span(self.promised_s)}"
        promised = f"{format_amount(self.promised_bytes, 'B')}{time} promised"
        if self.ended_ms is None or self.result in UNBEGUN:
            return promised
        spent = rough_span((self.ended_ms - self.begun_ms) / 1000)
        gain = f"; gained: {self.gain}" if self.gain else ""
        return f"{format_amount(self.copied_bytes, 'B')} copied in {spent}, {promised}{gain}"

    def runs_since(self, at_ms: int) -> bool:
        """True if it ran after this time, or runs."""
        return self.ended_ms is None or self.ended_ms > at_ms


class Totals(NamedTuple):
    """Counts since the journal began: findings told, by kind; repairs that ended, by kind and result; bytes copied."""

    findings: Mapping[Kind, int] = MappingProxyType({})
    acts: Mapping[tuple[Kind, str], int] = MappingProxyType({})
    copied_bytes: int = 0


NO_TOTALS = Totals()


class Outage(NamedTuple):
    """A time for which a broker was down."""

    broker: int
    from_ms: int
    to_ms: int


class Replaced(NamedTuple):
    """A broker whose replicas a repair gave to others, since it was gone."""

    broker: int
    at_ms: int


REPLACED_MS = 30 * DAY_MS
"""How long it is remembered that a broker was replaced."""

MOST_REPLACED = 3
"""A broker that is replaced more often within that time is filled again by people only."""


@dataclass(frozen=True, slots=True)
class Memory:
    """All that the autopilot remembers of a cluster.

    `read_ms` is the time of the last look that read the brokers, `moves_read_ms` of the last that read the list of
    moves. `away` has brokers that are down, with the time since which that is known; those that are `unwitnessed` may
    have gone earlier, at any time since brokers were read before. `went_with` has the bytes of their replicas at that
    time, where known. `planned` are down and in maintenance, `overdue` are down still since their maintenance ended, or
    since others that went with them are back.
    `drained` has brokers that others emptied while they were live, with the time; one that holds replicas again is not.
    `replaced` are brokers that were gone for long. `behind` has followers that fell out of sync, as written at
    `sync_ms`, and `fell_ms` the last times within 24 hours at which these and others fell so. `foreign_ms` has
    when others were seen to move a partition last, and `others_moved_ms` when any. `went_on_ms` is the end of the last
    break. `keeper` is the process that went on last, where the journal is kept in a second place.
    """

    cluster_id: str = ""
    looked_ms: int | None = None
    read_ms: int | None = None
    moves_read_ms: int | None = None
    findings: Mapping[Name, Finding] = field(default_factory=dict)
    away: Mapping[int, int] = field(default_factory=dict)
    unwitnessed: Mapping[int, int] = field(default_factory=dict)
    went_with: Mapping[int, int] = field(default_factory=dict)
    planned: frozenset[int] = frozenset()
    overdue: Mapping[int, int] = field(default_factory=dict)
    outages: tuple[Outage, ...] = ()
    held: events.ReplicasHeld | None = None
    drained: Mapping[int, int] = field(default_factory=dict)
    replaced: tuple[Replaced, ...] = ()
    disks: tuple[events.DisksMeasured, ...] = ()
    behind: frozenset[Follower] = frozenset()
    fell_ms: Mapping[Follower, tuple[int, ...]] = field(default_factory=dict)
    sync_ms: int | None = None
    others: events.OthersMoved | None = None
    others_moved_ms: int | None = None
    went_on_ms: int | None = None
    foreign_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    acts: tuple[Act, ...] = ()
    off: events.TurnedOff | None = None
    digest_ms: int | None = None
    last_request: int = 0
    keeper: events.Resumed | None = None
    totals: Totals = NO_TOTALS

    @property
    def kept_in(self) -> str | None:
        """The second place of the journal; None where it has none."""
        return None if self.keeper is None else self.keeper.journal_to

    @property
    def racks(self) -> Mapping[int, str]:
        """Last known racks of the brokers that hold replicas."""
        held = events.ReplicasHeld(0, ()) if self.held is None else self.held
        return {broker: rack for broker, rack in zip(held.brokers, held.racks, strict=False) if rack}

    @property
    def open(self) -> tuple[Finding, ...]:
        """Findings that are not closed, the most urgent first."""
        found = (one for one in self.findings.values() if one.state in OPEN)
        return tuple(sorted(found, key=lambda one: (one.name.kind.urgency, one.since_ms, one.name.subject)))

    def times_replaced(self, broker: int, at_ms: int) -> int:
        """Repairs within 30 days that gave the replicas of this broker to others."""
        return sum(one.broker == broker and one.at_ms > at_ms - REPLACED_MS for one in self.replaced)

    @property
    def begun(self) -> tuple[Act, ...]:
        """Repairs that sent something, or would have in a dry run, and the one that runs."""
        return tuple(one for one in self.acts if one.result is not Result.NOT_BEGUN)

    @property
    def running(self) -> Act | None:
        """The repair that runs."""
        return next((one for one in self.acts if one.ended_ms is None), None)


BACK_OFF_MS = (HOUR_MS, 4 * HOUR_MS, DAY_MS)
"""Waiting time after the first, second and each further failure."""

SOON_MS = 300_000
"""Waiting time after a plan or a run for which the cluster did not answer: that is no failure of the repair."""

UNBEGUN = frozenset({Result.NOT_BEGUN, Result.NOT_BEGUN_DRY})
"""Results of repairs that copied nothing."""

SILENT_MS = DAY_MS
"""How long a finding rests after people ended its repair."""

KEPT_MS = round(MOST_REST_S * 1000) + DAY_MS
"""Acts that are older count for nothing: budgets take a week, and partitions rest for 30 days at most."""

OFTEN = 4
"""Times within a day from which on a thing that comes and goes is told of."""

OUTAGES_KEPT = 20
"""Outages of each broker that are remembered, the last ones: a return is priced by them, and other rules need fewer."""

DISKS_KEPT_MS = 12 * HOUR_MS
"""Growth is that of the last hours."""


def remember(memory: Memory, event: Event) -> Memory:
    """The memory after an event."""
    return TAKEN_IN[type(event)](memory, event)


def memory_of(journal: Iterable[Event]) -> Memory:
    """The memory after all events of a journal."""
    return reduce(remember, journal, Memory())


def last_act(memory: Memory, name: Name) -> Act | None:
    """The last repair of a finding, also together with others."""
    return next((one for one in reversed(memory.acts) if name in one.names), None)


def _with(memory: Memory, finding: Finding) -> Memory:
    return replace(memory, findings={**memory.findings, finding.name: finding})


def _finding_changed(memory: Memory, name: Name, **fields: Any) -> Memory:
    return _with(memory, replace(memory.findings[name], **fields))


def _changed(memory: Memory, **fields: Any) -> Memory:
    """The running repair with other fields."""
    acts = (one if one.ended_ms is not None else one._replace(**fields) for one in memory.acts)
    return replace(memory, acts=tuple(acts))


def _went_on(memory: Memory, event: events.WentOn) -> Memory:
    at_ms, last_ms = event.at_ms, memory.looked_ms or 0
    past: Memory = _set_back(memory, at_ms, last_ms) if last_ms > at_ms else memory
    findings = {
        name: replace(one, since_ms=at_ms, steady_ms=at_ms, lost_ms=at_ms if one.lost_ms else 0, calm_ms=None)
        for name, one in past.findings.items()
    }
    return replace(past, looked_ms=at_ms, went_on_ms=at_ms, findings=findings)


TO_COME = MappingProxyType({"until_ms": "at_ms", "not_before_ms": "state_ms"})
"""Times that may be later than now, with the field beside each that has the time from which it counts."""


def _set_back(value: Any, at_ms: int, last_ms: int, field_name: str = "") -> Any:
    """A value, and all in it, by a clock that was ahead and has been set back from `last_ms` to `at_ms`.

    No time is later than that; what was given at a time still to come lasts as long as it was given for. Times are
    numbers in fields that end in `_ms`, or listed by broker.
    """
    is_event = is_dataclass(value) and not isinstance(value, type)
    names = [one.name for one in fields(value)] if is_event else getattr(value, "_fields", ())
    if names:
        changes = {one: _set_back(getattr(value, one), at_ms, last_ms, one) for one in names if one not in TO_COME}
        for ends in TO_COME.keys() & set(names):
            given_ms, ends_ms = getattr(value, TO_COME[ends]), getattr(value, ends)
            by_ms = max(given_ms, last_ms) - at_ms if at_ms < given_ms <= ends_ms else 0
            changes[ends] = max(0, ends_ms - by_ms)
        return replace(value, **changes) if is_event else value._replace(**changes)
    if isinstance(value, tuple):
        return tuple(_set_back(one, at_ms, last_ms, field_name) for one in value)
    if isinstance(value, Mapping):
        return {key: _set_back(one, at_ms, last_ms, field_name) for key, one in value.items()}
    is_time = field_name.endswith("_ms") or field_name in {"away", "unwitnessed", "overdue", "drained"}
    return min(value, at_ms) if is_time and isinstance(value, int) else value


def _sight_lost(memory: Memory, event: events.SightLost) -> Memory:
    low_ms = event.at_ms if event.is_low else memory.findings[event.name].low_ms
    return _finding_changed(memory, event.name, lost_ms=event.at_ms, is_gone=event.is_gone, low_ms=low_ms)


def _sight_back(memory: Memory, event: events.SightBack) -> Memory:
    return _finding_changed(memory, event.name, since_ms=event.since_ms, lost_ms=0, is_gone=False)


def _gained(memory: Memory, event: events.Gained) -> Memory:
    acts = list(memory.acts)
    last = max(place for place, one in enumerate(acts) if one.name == event.name)
    acts[last] = acts[last]._replace(gain=event.text)
    return replace(memory, acts=tuple(acts))


def _others_moved(memory: Memory, event: events.OthersMoved) -> Memory:
    kept = {name: at_ms for name, at_ms in memory.foreign_ms.items() if at_ms > event.at_ms - KEPT_MS}
    moved_ms = event.at_ms if event.are_moving else memory.others_moved_ms
    moved = kept | dict.fromkeys(event.moves, event.at_ms)
    return replace(memory, others=event, others_moved_ms=moved_ms, foreign_ms=moved)


def _measured(memory: Memory, event: events.DisksMeasured) -> Memory:
    kept = [one for one in memory.disks if one.at_ms > event.at_ms - DISKS_KEPT_MS]
    return replace(memory, disks=(*kept, event))


def _sync_changed(memory: Memory, event: events.SyncChanged) -> Memory:
    at_ms, recent = event.at_ms, memory.fell_ms
    if (memory.sync_ms or 0) // HOUR_MS != at_ms // HOUR_MS:
        recent = {one: times for one, times in recent.items() if times[-1] > at_ms - DAY_MS}
    fell = {one: (*recent.get(one, ()), at_ms)[-OFTEN:] for one in event.fell}
    behind = (memory.behind | {*event.fell}) - {*event.back}
    return replace(memory, behind=behind, fell_ms={**recent, **fell}, sync_ms=at_ms)


def _began(memory: Memory, event: events.RunBegan) -> Memory:
    acts = [one for one in memory.acts if one.runs_since(event.at_ms - KEPT_MS)]
    before = memory.findings[event.name]
    is_approved = before.asked is not None and before.judged is not None and not before.judged.lacking
    acts.append(
        Act(
            event.name, event.run_id, event.at_ms, event.copied_bytes, event.moves, at_any_time=event.at_any_time,
            is_approved=is_approved, promised_bytes=event.copied_bytes, promised_s=event.seconds,
            also=event.also, before=event.before,
        )
    )  # fmt: skip
    finding = replace(before, problem="", gates=None, state=State.RUNNING, state_ms=event.at_ms)
    return _with(replace(memory, acts=tuple(acts)), finding)


def _went(memory: Memory, event: events.BrokerWent) -> Memory:
    unwitnessed = {**memory.unwitnessed, **({} if event.is_witnessed else {event.broker: memory.read_ms or 0})}
    held = {} if event.held_bytes is None else {event.broker: event.held_bytes}
    away, went_with = {**memory.away, event.broker: event.at_ms}, {**memory.went_with, **held}
    return replace(memory, away=away, unwitnessed=unwitnessed, went_with=went_with)


def _came(memory: Memory, event: events.BrokerCame) -> Memory:
    since = memory.away.get(event.broker, event.at_ms)
    away = {broker: at_ms for broker, at_ms in memory.away.items() if broker != event.broker}
    outages = (*memory.outages, Outage(event.broker, since, event.at_ms))
    last = [one for one in outages if one.broker == event.broker][-OUTAGES_KEPT:]
    kept = tuple(one for one in outages if one.broker != event.broker or one in last)
    overdue = {broker: at_ms for broker, at_ms in memory.overdue.items() if broker != event.broker}
    unwitnessed = {broker: at_ms for broker, at_ms in memory.unwitnessed.items() if broker != event.broker}
    went_with = {broker: size for broker, size in memory.went_with.items() if broker != event.broker}
    memory = replace(memory, away=away, overdue=overdue, outages=kept)
    return replace(memory, unwitnessed=unwitnessed, went_with=went_with)


def _outages_planned(memory: Memory, event: events.OutagesPlanned) -> Memory:
    planned = frozenset(event.brokers)
    kept = {broker: at_ms for broker, at_ms in memory.overdue.items() if broker in memory.away.keys() - planned}
    ended = dict.fromkeys(memory.planned & memory.away.keys() - planned, event.at_ms)
    return replace(memory, planned=planned, overdue=kept | ended)


def _looked(memory: Memory, event: events.Looked) -> Memory:
    read_ms = event.at_ms if event.are_read else memory.read_ms
    moves_read_ms = event.at_ms if event.are_moves_read else memory.moves_read_ms
    return replace(memory, looked_ms=event.at_ms, read_ms=read_ms, moves_read_ms=moves_read_ms)


def _held(memory: Memory, event: events.ReplicasHeld) -> Memory:
    before = memory.held or event
    lost = set(before.brokers) - set(event.brokers) - memory.away.keys()
    ours = (one.brokers for one in memory.acts if one.runs_since(event.at_ms - HOUR_MS))
    drained = lost.difference(*ours)
    kept = {one: at_ms for one, at_ms in memory.drained.items() if one not in event.brokers}
    return replace(memory, held=event, drained=kept | dict.fromkeys(drained, event.at_ms))


def _moved(memory: Memory, event: events.FindingMoved) -> Memory:
    before = memory.findings.get(event.name)
    if before is None or before.state is State.CLOSED:
        since_ms = event.at_ms if event.since_ms is None else event.since_ms
        begun = Finding(event.name, event.state, since_ms, event.at_ms, event.seen, event.why)
        begun = replace(begun, brokers=frozenset(event.brokers), by_growth=event.by_growth)
        if before is not None:
            begun = replace(begun, silence=before.silence, silent_about=before.silent_about, told_ms=before.told_ms)
        earlier = () if before is None else (one for one in before.begun_ms if one > event.at_ms - DAY_MS)
        return _with(memory, replace(begun, begun_ms=(*earlier, event.at_ms)))
    urgent_ms = _urgent_ms(before, event)
    is_urgent = urgent_ms is not None
    calm_ms = before.calm_ms if event.is_calm is None else event.at_ms if event.is_calm else None
    moved = replace(
        before,
        state=event.state,
        state_ms=before.state_ms if event.state is before.state else event.at_ms,
        seen=event.seen,
        why=event.why,
        urgent_ms=urgent_ms,
        calm_ms=calm_ms if is_urgent else None,
        is_told_late=before.is_told_late or event.is_told_late,
        brokers=before.brokers.union(event.brokers),
        by_growth=_last(before.by_growth, event.by_growth),
        urgent_by_growth=_last(before.urgent_by_growth, event.urgent_by_growth) if is_urgent else None,
        was_full=is_urgent and (before.was_full or event.urgent_by_growth is False),
    )
    if (before.state, event.state) == (State.SEEN, State.TOLD):
        moved = replace(moved, told_ms=(*(one for one in before.told_ms if one > event.at_ms - DAY_MS), event.at_ms))
        counts = _counted(memory.totals.findings, event.name.kind)
        memory = replace(memory, totals=memory.totals._replace(findings=counts))
    if event.name.kind is Kind.MANY_GONE and event.state is State.CLOSED:
        memory = _one_by_one(memory, before, event.at_ms)
    return _with(memory, _unproposed(moved) if event.state in {State.TOLD, State.CLOSED} else moved)


def _last(before: bool | None, now: bool | None) -> bool | None:
    return before if now is None else now


def _urgent_ms(before: Finding, event: events.FindingMoved) -> int | None:
    if event.is_urgent is None or before.urgent_ms is None:
        return event.at_ms if event.is_urgent else before.urgent_ms
    return before.urgent_ms if event.is_urgent else None


def _one_by_one(memory: Memory, many: Finding, at_ms: int) -> Memory:
    """The memory when brokers are gone at once no more: time in which all was the network is no evidence of one.

    What was proposed before was ripe by then, and people who silenced it know better.
    """
    if many.silence is not None and many.silence.until_ms > at_ms:
        return memory
    begun_again = {
        name: replace(one, since_ms=at_ms)
        for name, one in memory.findings.items()
        if name.kind is Kind.BROKER_GONE and one.state in {State.SEEN, State.TOLD} and name.broker in memory.away
    }
    overdue = {**memory.overdue, **{name.broker: at_ms for name in begun_again}}
    return replace(memory, findings={**memory.findings, **begun_again}, overdue=overdue)


def _counted(counts: Mapping[Any, int], key: object) -> Mapping[Any, int]:
    return {**counts, key: counts.get(key, 0) + 1}


def _unproposed(finding: Finding) -> Finding:
    return replace(finding, proposal=None, asked=None, judged=None)


def _planned(memory: Memory, event: Planned) -> Memory:
    before = memory.findings[event.name]
    is_same = before.proposal is not None and before.proposal.plan_id == event.plan_id
    proposed = replace(
        before,
        state=State.PROPOSED,
        state_ms=before.state_ms if before.state is State.PROPOSED else event.at_ms,
        proposal=event,
        steady_ms=before.steady_ms if is_same else event.at_ms,
        asked=before.asked if is_same else None,
        problem="",
    )
    return _with(memory, proposed)


def _judged(memory: Memory, event: events.ApprovalsJudged) -> Memory:
    asked = None if event.dead else memory.findings[event.name].asked
    return _finding_changed(memory, event.name, judged=event, asked=asked)


def _not_planned(memory: Memory, event: events.NotPlanned) -> Memory:
    finding = replace(memory.findings[event.name], state_ms=event.at_ms)
    finding = finding if event.is_passing else _unproposed(finding)
    if event.is_passing and not event.is_repeated:
        return _with(memory, _postponed(finding, event.at_ms, event.why))
    return _with(memory, _failed(finding, event.at_ms, event.why))


def _postponed(finding: Finding, at_ms: int, problem: str) -> Finding:
    return replace(_waiting(finding), not_before_ms=at_ms + SOON_MS, problem=problem)


def _waiting(finding: Finding) -> Finding:
    return replace(finding, state=State.TOLD if finding.proposal is None else State.PROPOSED)


def _failed(finding: Finding, at_ms: int, problem: str) -> Finding:
    wait_ms = BACK_OFF_MS[min(finding.failures, len(BACK_OFF_MS) - 1)]
    return replace(_waiting(finding), failures=finding.failures + 1, not_before_ms=at_ms + wait_ms, problem=problem)


def _silenced(memory: Memory, event: events.Silenced) -> Memory:
    name = Name(event.kind, event.subject)
    finding = memory.findings.get(name) or Finding(name, State.CLOSED, event.at_ms, event.at_ms, "")
    if not event.number:  # the autopilot silences it itself
        return _with(memory, _resting(finding, event))
    return _with(
        replace(memory, last_request=max(memory.last_request, event.number)),
        replace(finding, silence=event, silent_about=frozenset(memory.away)),
    )


def rests_since(finding: Finding, act: Act) -> bool:
    """True if a finding was silenced since its repair began, by people or for their sake: that is for how long."""
    silence = finding.silence
    return silence is not None and silence.at_ms >= act.begun_ms and silence.until_ms > silence.at_ms


def _resting(finding: Finding, silence: events.Silenced) -> Finding:
    """A finding whose repair people ended or paused, silent for a day; a longer silence of people stays."""
    is_longer = finding.silence is not None and finding.silence.until_ms >= silence.until_ms
    return finding if is_longer else replace(finding, silence=silence)


def _ended(memory: Memory, event: events.RunEnded) -> Memory:
    act = next(one for one in memory.acts if one.ended_ms is None)
    moves = act.moves if event.moved is None else event.moved
    memory = _changed(
        memory, ended_ms=event.at_ms, result=event.result, outcome=event.text, copied_bytes=event.copied_bytes,
        moves=moves,
    )  # fmt: skip
    is_copied = event.result not in UNBEGUN
    totals = Totals(
        memory.totals.findings,
        _counted(memory.totals.acts, (event.name.kind, event.result)),
        memory.totals.copied_bytes + is_copied * event.copied_bytes,
    )
    replaced = [one for one in memory.replaced if one.at_ms > event.at_ms - REPLACED_MS]
    # Once for each time that it was gone, however many runs that took.
    is_replaced = event.copied_bytes and is_copied and event.name.kind is Kind.BROKER_GONE
    for broker in sorted(act.brokers) if is_replaced else ():
        gone_ms = memory.away.get(broker, event.at_ms)
        if not any(one.broker == broker and one.at_ms >= gone_ms for one in replaced):
            replaced.append(Replaced(broker, event.at_ms))
    memory = replace(memory, totals=totals, replaced=tuple(replaced))
    for name in act.names:
        finding = memory.findings[name]
        if name == event.name or finding.state in {State.TOLD, State.PROPOSED}:  # others are over, or have begun again
            finding = _after_run(event, act, finding)
        is_for_silence = act.is_end_asked and rests_since(finding, act)
        if event.by and event.result not in {Result.DONE, *UNBEGUN} and not is_for_silence:
            why, until_ms = f"{event.by} ended its run {act.run_id}", event.at_ms + SILENT_MS
            finding = _resting(finding, events.Silenced(event.at_ms, 0, *name, until_ms, event.by, why))
        memory = _with(memory, finding)
    return memory


def _after_run(event: events.RunEnded, act: Act, finding: Finding) -> Finding:
    before = replace(finding, state_ms=event.at_ms)
    finding, problem = _unproposed(before), f"its run {act.run_id} is {event.text}"
    if event.result is Result.DONE:
        return replace(finding, state=State.SETTLING, failures=0, not_before_ms=0)
    if event.result is Result.NOT_BEGUN_DRY:
        return replace(finding, state=State.GIVEN_UP)
    if event.result is Result.NOT_BEGUN:
        return _postponed(before, event.at_ms, problem)
    if event.by or act.is_end_asked:
        return replace(finding, state=State.TOLD)
    return _failed(finding, event.at_ms, problem)


TAKEN_IN: Mapping[type[Event], Callable[[Memory, Any], Memory]] = MappingProxyType({
    events.Began: lambda memory, event: replace(memory, cluster_id=event.cluster_id),
    events.WentOn: _went_on,
    events.Looked: _looked,
    events.BrokerWent: _went,
    events.OutagesPlanned: _outages_planned,
    events.BrokerCame: _came,
    events.ReplicasHeld: _held,
    events.OthersMoved: _others_moved,
    events.DisksMeasured: _measured,
    events.SyncChanged: _sync_changed,
    events.FindingMoved: _moved,
    Planned: _planned,
    events.NotPlanned: _not_planned,
    events.ApprovalAsked: lambda memory, event: _finding_changed(memory, event.name, asked=event, judged=None),
    events.ApprovalsJudged: _judged,
    events.GatesJudged: lambda memory, event: _finding_changed(memory, event.name, gates=event),
    events.RunBegan: _began,
    events.EndAsked: lambda memory, event: _changed(memory, end_asked_ms=event.at_ms),
    events.HoldAsked: lambda memory, event: _changed(memory, held=event.by),
    events.PeopleHeld: lambda memory, event: _changed(memory, held_by_people=event.by),
    events.WindowsLifted: lambda memory, _: _changed(memory, at_any_time=True),
    events.SightLost: _sight_lost,
    events.SightBack: _sight_back,
    events.RunEnded: _ended,
    events.Gained: _gained,
    events.TurnedOff: lambda memory, event: replace(memory, off=event, last_request=event.number),
    events.TurnedOn: lambda memory, event: replace(memory, off=None, last_request=event.number),
    events.Silenced: _silenced,
    events.DigestTold: lambda memory, event: replace(memory, digest_ms=event.at_ms),
    events.Resumed: lambda memory, event: replace(memory, keeper=event),
    events.Ended: lambda memory, _: memory,
    events.FileKept: lambda memory, _: memory,
})  # fmt: skip
"""Changes of the memory by each event."""
