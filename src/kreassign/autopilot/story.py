"""The story of one finding, as the journal of decisions has it: what was seen, decided and done about it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kreassign.autopilot import events
from kreassign.autopilot.events import DiskUse, Event, Name, Planned, Rehearsed
from kreassign.autopilot.policy import Kind
from kreassign.model.text import format_amount, format_seconds


class Entry(NamedTuple):
    """One line of a story: when, what, and why."""

    at_ms: int
    what: str
    why: str = ""


class Point(NamedTuple):
    """Used share at a time."""

    at_ms: int
    share: float


MOST_ENTRIES = 500
"""Lines of a story that are kept, the latest ones."""


def story(journal: Iterable[Event], name: Name) -> tuple[Entry, ...]:
    """Lines about a finding, and about the outages of its broker, oldest first; of the same plan only the first.

    Its rehearsals that were made later have lines of their own, but for good ones after good ones.
    """
    entries: list[Entry] = []
    last: Planned | None = None
    for event in journal:
        if isinstance(event, Planned) and event.name == name:
            if last is None or event.plan_id != last.plan_id:
                entries.append(_entry(event))
            elif (rehearsal := event.last_rehearsal) is not None and _is_news(rehearsal, last.last_rehearsal):
                entries.append(Entry(event.at_ms, "its plan was rehearsed", _rehearsed(rehearsal)))
            last = event
        elif _is_about(event, name):
            entries.append(_entry(event))
    return tuple(entries[-MOST_ENTRIES:])


class Curve(NamedTuple):
    """Used shares as they were measured each hour, of the directory or of the broker that a finding is about."""

    about: str
    points: tuple[Point, ...]


def curve(journal: Iterable[Event], name: Name) -> Curve:
    """The evidence of a finding about a directory, or about the balance of brokers; no points for other findings."""
    measured = [one for one in journal if isinstance(one, events.DisksMeasured)]
    if name.kind in {Kind.DISK_FILLS, Kind.DIRECTORY_FAILED}:
        own = _points(measured, lambda one: (one.broker, one.path) == (name.broker, name.path))
        return Curve("the directory", tuple(own))
    if name.kind is not Kind.BAND_LEFT or not measured:
        return Curve("", ())
    brokers = {one.broker for one in measured[-1].disks}
    fullest = max(sorted(brokers), key=lambda broker: _share(measured[-1], lambda one: one.broker == broker) or 0.0)
    return Curve(f"broker {fullest}, the fullest", tuple(_points(measured, lambda one: one.broker == fullest)))


def _points(measured: Iterable[events.DisksMeasured], is_of_it: Callable[[DiskUse], bool]) -> Iterator[Point]:
    for event in measured:
        if (share := _share(event, is_of_it)) is not None:
            yield Point(event.at_ms, share)


def _share(measured: events.DisksMeasured, is_of_it: Callable[[DiskUse], bool]) -> float | None:
    uses = [one for one in measured.disks if is_of_it(one)]
    total = sum(one.total_bytes for one in uses)
    return sum(one.used_bytes for one in uses) / total if total else None


def _is_news(rehearsal: Rehearsed, last: Rehearsed | None) -> bool:
    return last is None or (rehearsal.at_ms != last.at_ms and bool(rehearsal.problem or last.problem))


def _rehearsed(rehearsal: Rehearsed) -> str:
    again = format_seconds(max(0, rehearsal.until_ms - rehearsal.at_ms) / 1000)
    return f"{rehearsal.problem}; it is tried again after {again}" if rehearsal.problem else rehearsal.text


def _is_about(event: Event, name: Name) -> bool:
    if isinstance(event, events.Silenced):
        return (event.kind, event.subject) == name
    if isinstance(event, events.BrokerWent | events.BrokerCame):
        return name.subject == f"broker {event.broker}"
    if isinstance(event, events.RunBegan) and name.subject in {f"broker {broker}" for broker in event.also}:
        return event.name.kind is name.kind
    return type(event) in TEXTS and getattr(event, "name", None) == name


def _entry(event: Event) -> Entry:
    return Entry(event.at_ms, *TEXTS[type(event)](event))


def _judged(event: events.ApprovalsJudged) -> tuple[str, str]:
    return f"approved by {', '.join(event.approved_by) or 'nobody'}", event.dead or event.lacking


def _gates(event: events.GatesJudged) -> tuple[str, str]:
    why = "; ".join(f"{gate}: {text}" for gate, text in event.closed)
    return "closed gates" if event.closed else "all gates are open", why


def _ended(event: events.RunEnded) -> tuple[str, str]:
    copied = format_amount(event.copied_bytes, "B")
    return f"its run ended: {event.text}, {copied} copied", event.by and f"ended by {event.by}"


GONE_TEXT = "it is not seen any more"
UNSURE_TEXT = "what shows it could not be read, is not known since copies, or shows nothing for too short a time"

LOW_TEXT = "its used share is below the limits; its growth is not known since copies"

TEXTS: Mapping[type[Event], Callable[[Any], tuple[str, str]]] = MappingProxyType({
    events.FindingMoved: lambda one: (f"{one.state}: {one.seen}", one.why),
    events.SightLost: lambda one: (GONE_TEXT if one.is_gone else LOW_TEXT if one.is_low else UNSURE_TEXT, ""),
    events.SightBack: lambda _: ("it is seen again", ""),
    events.BrokerWent: lambda one: (f"broker {one.broker} went", ""),
    events.BrokerCame: lambda one: (f"broker {one.broker} came back", ""),
    Planned: lambda one: (
        f"planned: {format_amount(one.copied_bytes, 'B')} to copy", "; ".join((*one.sentences[:1], *one.reasons)),
    ),
    events.NotPlanned: lambda one: ("not repaired", one.why),
    events.ApprovalAsked: lambda one: (f"approval asked for, request {one.request_id}", ""),
    events.ApprovalsJudged: _judged,
    events.GatesJudged: _gates,
    events.RunBegan: lambda one: (f"run {one.run_id} begins, {format_amount(one.copied_bytes, 'B')} to copy", ""),
    events.EndAsked: lambda one: ("its run is to end early", one.why),
    events.HoldAsked: lambda one: ("its run is to hold", one.by.why) if one.by else ("its run goes on", ""),
    events.PeopleHeld: lambda one: (f"{one.by} paused its run" if one.by else "people let its run go on", ""),
    events.RunEnded: _ended,
    events.Gained: lambda one: ("its repair has settled", one.text),
    events.Silenced: lambda one: (f"silenced by {one.by}", one.why),
})  # fmt: skip
"""Line for each class of event that is about a finding: the event in words, and its reason."""
