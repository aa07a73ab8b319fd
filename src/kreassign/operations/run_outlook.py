"""Outlook of a prepared run: its write rates, hours and outages, and whether it still does what was seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kreassign.admin import AdminClient
from kreassign.clock import Clock
from kreassign.errors import ClusterError, Drifted, IllegalPlan
from kreassign.executor.cluster.measurements import TrafficMeter
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import partitions_of, read_topics
from kreassign.executor.events import RunStarted
from kreassign.executor.preflight import ProducerOutages, read_outages
from kreassign.executor.preview import (
    FAST_NETWORK_BYTES_PER_S,
    Proposal,
    RunPreview,
    measure_writes,
    propose,
    rate_advice,
    starved,
)
from kreassign.executor.scheduling.windows import REACHED, forecast, shortfalls
from kreassign.executor.state import MoveRecord, candidate
from kreassign.executor.throttle_ledger import ConfigKey
from kreassign.model import TopicPartition
from kreassign.model.authorization import reason_text
from kreassign.model.cluster import named_brokers
from kreassign.model.plan import partition_order
from kreassign.model.plan_facts import NOT_SAID
from kreassign.model.text import by_reason, counted, each_partition, some_of
from kreassign.model.throttle import ThrottleRates
from kreassign.operations.connect import Warn, warn_program
from kreassign.report.text import format_bytes, format_duration, format_rate, rates_text

SHOWN = 20
"""Most partitions that a message names."""

Effects = Mapping[TopicPartition | ConfigKey, object]
"""Changes by partition or setting."""


def refuse_drift(seen: RunStarted | None, now: RunStarted | None) -> None:
    """Raise Drifted, which names the differences, unless a run would do what was seen of it; None is no run."""
    refuse_changed(_effects(seen), _effects(now))


def refuse_changed(before: Effects, after: Effects) -> None:
    """Raise Drifted, which names the differences, unless both are the same."""
    names = sorted((name for name in {*before, *after} if before.get(name) != after.get(name)), key=_drift_order)
    if names:
        raise Drifted(
            f"nothing was started: {some_of(names, SHOWN)} changed since the preview. Look at a new preview",
            differences=tuple(map(str, names)),
        )


def _effects(started: RunStarted | None) -> Effects:
    """The moves of a run, and the settings that it takes over, with the values that they get in the end."""
    if started is None:
        return {}
    adopted = {one.key: one.value for one in started.adopted}
    in_the_end = {one.key: one.value for one in started.originals}
    settings = {key: (adopted.get(key), in_the_end.get(key)) for key in (*adopted, *in_the_end)}
    moves = {one.topic_partition: (one.original, one.target, one.log_dirs, one.topic_id) for one in started.moves}
    return dict([*moves.items(), *settings.items()])


def _drift_order(name: TopicPartition | ConfigKey) -> tuple[bytes, int, str]:
    return (b"", 0, str(name)) if isinstance(name, ConfigKey) else (*partition_order(name), "")


def measured(
    client: ClusterPort, started: RunStarted, seconds: float, clock: Clock, warn: Warn = warn_program
) -> RunStarted:
    """Measure the write rates of its partitions, and return the run with them.

    Raises IllegalPlan if a copy would never end at this throttle, or nobody can tell whether it would, as a leader does
    not answer; warns if it may not.
    """
    writes, unsized, unknown = measure_writes(client, clock, started.moves, seconds)
    silent = by_reason((name, reason_text(unknown[name])) for name in sorted(unknown, key=partition_order))
    if silent:
        raise IllegalPlan(
            tuple(
                each_partition(
                    names,
                    SHOWN,
                    f"has a leader that does not say how much is written to it ({why}), so nobody can tell whether its "
                    "copy would end at this throttle. Try again",
                )
                for why, names in silent.items()
            )
        )
    if unsized:
        names = some_of(sorted(unsized), SHOWN)
        warn(f"nobody can tell how much is written to {names}: their leaders keep no records that tell a size")
    for sentence in check_rates(started, writes):
        warn(sentence)
    moves = tuple(replace(move, write_bytes_per_s=writes.get(move.topic_partition, 0.0)) for move in started.moves)
    return replace(started, moves=moves)


def check_rates(started: RunStarted, writes: Mapping[TopicPartition, float]) -> tuple[str, ...]:
    """Sentences on copies of a run that may never end at its throttle. Raises IllegalPlan if one never does."""
    found = starved(started.moves, writes, started.rates, started.pace.caps)
    # One advice for all moves: what is enough for one may be too little for the next.
    advice = (str(rate_advice(started.moves, writes, started.pace.caps)),) if found else ()
    hopeless = tuple(str(starvation) for starvation in found if starvation.is_certain)
    if hopeless:
        # The advice comes first: of a long list only the beginning is shown.
        raise IllegalPlan((*advice, *hopeless))
    more = len(found) - SHOWN
    rest = (f"and {counted(more, 'more partition or broker', 'more partitions or brokers')}",) if more > 0 else ()
    return (*map(str, found[:SHOWN]), *rest, *advice)


def warn_of_outlook(started: RunStarted, warn: Warn = warn_program) -> None:
    """Warn about moves that will not end in time. Raises IllegalPlan if the run never can.

    Without a throttle the rate is unknown; then the run itself measures it.
    """
    hours, limit = started.pace.hours, started.rates.slowest_bytes_per_s
    if not hours.are_limited or limit is None:
        return
    moves = [candidate(MoveRecord(move)) for move in started.moves]
    found = forecast(moves, hours, started.at_ms, limit * REACHED, started.pace.order)
    sentences = shortfalls(found, hours, limit * REACHED)
    if (found.too_long and hours.deadline_ms is None) or found.in_time == 0:
        raise IllegalPlan(sentences)
    for sentence in sentences:
        warn(sentence)


def outages_of(
    client: AdminClient, targets: Mapping[TopicPartition, Sequence[int]], rates: ThrottleRates
) -> ProducerOutages:
    """Topics whose producers with acks=all are refused while these moves are made. Raises ClusterError."""
    topics = read_topics(client, {name.topic for name in targets})
    for error in topics.unknown.values():
        raise error
    return read_outages(client, targets, partitions_of(topics.known), rates)


def proposed(client: AdminClient, started: RunStarted, seconds: float, clock: Clock) -> Proposal | None:
    """Throttle for a run without one; None if not to be measured, or not possible."""
    if seconds <= 0 or not any(move.adding for move in started.moves):
        return None
    meter = TrafficMeter(client)
    names = [move.topic_partition for move in started.moves]
    try:
        meter.measure(clock.now_ms(), names)
        clock.sleep(seconds)
        traffic, writes = meter.measure(clock.now_ms(), names)
    except ClusterError:
        return None
    rates = {one.topic_partition: one.bytes_per_s for one in writes}
    return propose(started.moves, traffic, rates, started.live_brokers)


SHOWN_BROKERS = 8


def preview_facts(found: RunPreview) -> Iterator[tuple[str, str]]:
    """A run ahead, fact by fact: a name and a text. The first is what it changes."""
    copied = f"{counted(found.copies, 'copy', 'copies')}, {format_bytes(found.copied_bytes)}"
    yield f"this run changes {counted(found.partitions, 'partition')}", copied
    yield "preferred leaders that change", str(found.leader_changes)
    if found.log_dir_moves:
        dirs, size = counted(found.log_dir_moves, "copy", "copies"), format_bytes(found.log_dir_bytes)
        yield "to another log directory of the same broker", f"{dirs}, {size}"
    if found.copies:
        senders, receivers = (some_of(ids, SHOWN_BROKERS) or "none" for ids in (found.senders, found.receivers))
        yield "brokers", f"from {senders} to {receivers}"
    rates = rates_text(found.rates) or "none, so that copies take what disks and networks give"
    is_slip = (found.rates.slowest_bytes_per_s or 0) > FAST_NETWORK_BYTES_PER_S
    yield "throttle", f"{rates}{', more than 100 Gbit/s: it slows nothing' if is_slip else ''}"
    yield "time", _time_text(found)
    if found.opening is not None:
        yield "window", found.opening
    if (free := found.lowest_free) is not None:
        left = f"{format_bytes(free.usable_bytes)} ({free.share:.0%})"
        yield "lowest free disk", f"broker {free.broker}, {left} when all copies are there"
    if found.unsized:
        yield f"free space of {named_brokers(found.unsized)}", "not known, so nothing keeps a disk there from filling"
    yield "reason", found.reason or "not known, the plan has no facts file"
    if found.made_for is None:
        yield "cluster that it was made for", NOT_SAID
    yield "already moving by others", counted(found.others, "partition") if found.others else "nothing"


def _time_text(found: RunPreview) -> str:
    proposed = "" if found.proposal is None else f" at the proposed {format_rate(found.proposal.bytes_per_s)}"
    if found.shortest_s is None:
        return "not known: it depends on the disks" if found.log_dir_moves else "not known without a fixed throttle"
    if found.longest_s is None:
        why = "copies between log directories" if found.log_dir_moves else "producers write"
        return f"{format_duration(found.shortest_s)} or longer, for {why} meanwhile{proposed}"
    return f"from {format_duration(found.shortest_s)} to {format_duration(found.longest_s)}{proposed}"
