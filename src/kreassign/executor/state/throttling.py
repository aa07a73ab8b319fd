"""Choose the rates of the throttle, and detect changes that others make to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kreassign.executor import throttle_ledger
from kreassign.executor.events import ConfigsRead, ThrottleChecked, TrafficMeasured, topic_ids_of_moves
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.instructions import CheckThrottle, MeasureTraffic
from kreassign.executor.scheduling import Candidate
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.phases import Names
from kreassign.executor.state.run import Doubt, Run, ThrottleLedger
from kreassign.executor.throttle_ledger import EVERY_REPLICA, ConfigKey, ConfigOverride, ConfigValue
from kreassign.executor.throttle_rates import AdaptiveThrottle, adaptive_rate, demand
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    TOPIC_THROTTLES,
)

# The rates: as given, or what the measured traffic leaves free.

MEASURE_EVERY_MS = 10_000
"""Interval of measurements: each reads all partitions, so it is not made with every poll."""

STALE_MS = 60_000
"""Age from which a measurement is ignored."""

SENDING, RECEIVING = "sending", "receiving"

Needs = defaultdict[tuple[str, int], float]
"""Bytes per second that a broker must send, or receive, to keep copies from falling behind, by direction and broker."""


def wanted_rates(run: Run, starting: Names = ()) -> dict[ConfigKey, str | None]:
    """Wanted value of each rate among the settings of the run."""
    rates = throttle_ledger.wanted_rates(run.throttle.before, run.control.rates)
    adaptive = run.control.rates.adaptive
    if adaptive is None:
        return rates
    needed = _needed(run, starting)
    return rates | {key: str(_left_over(run, adaptive, key, needed)) for key in rates if _follows_traffic(run, key)}


def is_measurement_due(run: Run, at_ms: int) -> bool:
    """True if the traffic must be measured before going on."""
    if run.control.rates.adaptive is None:
        return False
    return run.traffic.measured_ms is None or at_ms - run.traffic.measured_ms >= MEASURE_EVERY_MS


def measurement(run: Run) -> MeasureTraffic:
    """Instruction to measure the traffic."""
    return MeasureTraffic(tuple(record.name for record in run.moves.in_flight))


def take_in_traffic(run: Run, event: TrafficMeasured) -> None:
    """Store a measurement; for brokers without a new one the last one holds for a while."""
    run.traffic.measured_ms = event.at_ms
    fresh = {
        broker: (at_ms, one) for broker, (at_ms, one) in run.traffic.brokers.items() if event.at_ms - at_ms < STALE_MS
    }
    run.traffic.brokers = fresh | {one.broker: (event.at_ms, one) for one in event.brokers}
    run.traffic.writes |= {one.topic_partition: one.bytes_per_s for one in event.writes}


def _follows_traffic(run: Run, key: ConfigKey) -> bool:
    """False if the broker has a rate of its own, or is down and has a rate already."""
    return not run.control.rates.has_own_rate(key.broker) and not (
        key.broker in run.throttle.awaited and key in run.throttle.pending
    )


def _left_over(run: Run, adaptive: AdaptiveThrottle, key: ConfigKey, needed: Needs) -> int:
    assert key.broker is not None, f"{key} is no rate of a broker"
    way = SENDING if key.name == LEADER_THROTTLED_RATE else RECEIVING
    seen = run.traffic.brokers.get(key.broker)
    traffic = None if seen is None else seen[1].sent_bytes_per_s if way == SENDING else seen[1].received_bytes_per_s
    value = run.throttle.pending[key].value if key in run.throttle.pending else None
    return adaptive_rate(adaptive, key.broker, traffic, needed[way, key.broker], None if value is None else int(value))


def _needed(run: Run, starting: Names) -> Needs:
    """Write rates of the copied partitions at their source and at each destination.

    Copies between the directories of a broker need as much there.
    """
    needed: Needs = defaultdict(float)
    copied = []
    for record in (*run.moves.in_flight, *(run.moves.records[name] for name in starting)):
        written = run.traffic.writes.get(record.name, record.move.write_bytes_per_s)
        copied.append(replace(record.copied, write_bytes_per_s=written))
        for broker in set(record.lagging).difference(record.step.adding):
            needed[RECEIVING, broker] += written
    whole = demand(copied)
    for way, of_brokers in ((SENDING, whole.sent), (RECEIVING, whole.received)):
        for broker, bytes_per_s in of_brokers.items():
            needed[way, broker] += bytes_per_s
    return needed


# The lists: as many moves at a time as fit into them.
#
# A value of a setting is a string of Kafka's protocol, with its length in 16 bits. New entries are appended before
# those of copies that have arrived are removed, so both count.

MOST_LIST_CHARACTERS = 32_767
"""Longest value of a setting that Kafka takes."""


@dataclass(slots=True)
class ListRoom:
    """Characters left in the lists of throttled replicas; shrinks with each move that starts.

    `listed` are the entries of each list; lists that are not in it take no entries of the run. `full` are topics of
    which a move was refused.
    """

    records: Mapping[TopicPartition, MoveRecord]
    listed: dict[ConfigKey, set[str]]
    full: set[str] = field(default_factory=set)

    @property
    def depends_on_size(self) -> bool:
        """True: a move of another topic may fit."""
        return True

    def refuses(self, move: Candidate) -> str | None:
        """Describe the list that has no room for the entries of the move, or None."""
        for key, entries in self._entries(move):
            if len(",".join(self.listed[key] | entries)) > MOST_LIST_CHARACTERS:
                self.full.add(key.resource.name)
                return f"{key} has room for no more entries ({MOST_LIST_CHARACTERS:,} characters)"
        return None

    def promise(self, move: Candidate) -> None:
        """Add the entries of the move."""
        for key, entries in self._entries(move):
            self.listed[key] |= entries

    def _entries(self, move: Candidate) -> Iterator[tuple[ConfigKey, set[str]]]:
        step, (topic, partition) = self.records[move.topic_partition].step, move.topic_partition
        sides = ((LEADER_THROTTLED_REPLICAS, step.original), (FOLLOWER_THROTTLED_REPLICAS, step.adding))
        for name, brokers in sides if step.adding else ():
            key = ConfigKey(ConfigResource.topic(topic), name)
            if key in self.listed:
                yield key, {f"{partition}:{broker}" for broker in brokers}


def list_room(run: Run) -> ListRoom:
    """Room in the lists of the run, given what is in them now; a list that has `*` takes no entries."""
    throttle = run.throttle
    lists = [key for key in throttle.before if key.name in TOPIC_THROTTLES] if run.control.rates.is_limited else []
    listed = {key: set(throttle_ledger.items(throttle.before[key])) for key in lists}
    for key in lists:
        if key in throttle.pending:
            listed[key] |= throttle.pending[key].our_items
    return ListRoom(
        run.moves.records, {key: entries for key, entries in listed.items() if EVERY_REPLICA not in entries}
    )


# Changes by others: which settings to read again, and how to treat an unexpected value.
#
# While a setting is in force, every value but ours is a breach, also the original value: others delete throttles that
# they take for forgotten (Kafka's own `--cancel` deletes all). One unexpected answer proves nothing, because a broker
# may answer with the value from before our last change, seen 11 ms after it on 4.3.1. So the first such answer only
# stops new moves; a change by others is reported after a second one, `PROPAGATION_MS` later.
#
# The same holds for changes while no process executed the run: its remaining settings are read before any is set again.
# A change that a process intended when it died, without an answer, counts as ours either way.

PROPAGATION_MS = 10_000
"""A broker that is behind the controller for longer than broker.session.timeout.ms, 9 s, is fenced: settings of a
broker that is down are not read.
"""

DOUBT_EVERY_MS = 5_000
"""Doubtful settings are read again at least this often, and sooner at first; also while nothing is about to start."""


def is_check_due(run: Run, topics: Collection[ConfigResource]) -> bool:
    """True if the throttle must be read again before lists of these topics are changed and moves are sent.

    The present time is that of the last observation.
    """
    throttle, now_ms = run.throttle, run.moves.observed_ms
    if not run.identity.rereads_throttle or not _reaction(run) or not throttle.in_force:
        return False
    if not throttle.doubts or throttle.checked_ms is None:
        return bool(topics) or bool(throttle.doubts)
    # A stale answer passes at once, and a change by others lasts long.
    age_ms = now_ms - min(doubt.since_ms for doubt in throttle.doubts.values())
    return now_ms - throttle.checked_ms >= min(age_ms, DOUBT_EVERY_MS)


def check(run: Run, topics: Collection[ConfigResource]) -> CheckThrottle:
    """Check rates, the lists of these topics, and all doubtful settings."""
    throttle = run.throttle
    concerned = (
        key
        for key in throttle.pending
        if key in throttle.in_force and (key.broker is not None or key.resource in topics or key in throttle.doubts)
    )
    doubtful = {key.resource for key in throttle.doubts}
    return CheckThrottle(tuple(throttle.pending[key] for key in concerned), _topic_ids(run, doubtful))


def is_to_be_read_first(run: Run) -> bool:
    """True if remaining settings must be read before they are set again; False without the guard."""
    return bool(run.throttle.unseen) and is_guarded(run)


def is_guarded(run: Run) -> bool:
    """True unless the foreign-throttle guard is off."""
    return _reaction(run) is not None


def check_of_all(run: Run) -> CheckThrottle:
    """Check all remaining settings, and whether their topics are still the same."""
    pending = tuple(run.throttle.pending.values())
    return CheckThrottle(pending, _topic_ids(run, {override.key.resource for override in pending}))


def _topic_ids(run: Run, resources: Collection[ConfigResource]) -> dict[str, str]:
    moves = [record.move for record in run.moves.records.values()] if resources else []
    found = topic_ids_of_moves(moves)
    return {topic: topic_id for topic, topic_id in found.items() if ConfigResource.topic(topic) in resources}


def take_in_check_of_all(run: Run, event: ThrottleChecked) -> None:
    """Conclude from reading the remaining settings, and report at once what others have changed."""
    throttle = run.throttle
    throttle.close_gone(event.gone)
    silent = set(event.unread)
    take_in_check(run, event.at_ms, tuple(throttle.pending), event.differ, event.unread)
    throttle.unseen = {key for key in throttle.pending if key.resource in silent or is_undecided(run, key)}
    throttle.was_found_changed = throttle.was_found_changed or bool(foreign_settings(run))
    read_for = "a throttle was asked for" if throttle.is_asked_for else "the run was resumed"
    for present in foreign_settings(run):
        if throttle.told.get(present.key) != present:
            ours = f"the run had set it to {throttle.pending[present.key].value!r}"
            run.note(f"someone else had changed a throttle when {read_for}: {present.then}, and {ours}")
            throttle.told[present.key] = present
    # Settings of a broker that is down are read, and set, when it is back.
    throttle.due -= {key for key in throttle.due if key.broker is not None and key.broker not in throttle.live_brokers}
    if throttle.is_asked_for:
        throttle.due |= {present.key for present in foreign_settings(run)}
    else:
        throttle.due -= {present.key for present in foreign_settings(run) if is_left_alone(run, present.key)}


def note_request(run: Run) -> None:
    """Read what is in force before setting a requested throttle, which would hide changes of others."""
    throttle = run.throttle
    if run.identity.rereads_first and is_guarded(run):
        in_force = throttle.in_force.intersection(throttle.pending)
        throttle.unseen |= in_force
        throttle.due |= {key for key in in_force if key.broker is not None}
    throttle.due |= set(throttle.doubts)
    throttle.is_asked_for = bool(throttle.unseen)


def note_differences(run: Run, were_set: Collection[ConfigKey], event: ThrottleChecked) -> None:
    """Report settings changed since the run lost the lease: no breach, because another run may have restored them.

    Others may have changed them too, so they are reported before they are set again.
    """
    run.throttle.close_gone(event.gone)
    pending = run.throttle.pending
    for present in event.differ:
        if present.key in were_set and present.key in pending:
            ours = f"the run had set it to {pending[present.key].value!r} and set it again"
            run.note(f"when the run had the lease again, {present.then}; {ours}")


def in_force(run: Run) -> tuple[ConfigOverride, ...]:
    """Settings that must have our values."""
    return tuple(override for key, override in run.throttle.pending.items() if key in run.throttle.in_force)


def take_in_check(
    run: Run, at_ms: int, read: Iterable[ConfigKey], differ: Iterable[ConfigValue], unread: Iterable[ConfigResource]
) -> None:
    """Conclude from reading these settings. Unreadable ones stay as doubtful as before."""
    throttle, silent = run.throttle, set(unread)
    odd = {present.key: present for present in differ if not _may_be_unset(throttle, present)}
    for key in read:
        if key in odd:
            known = throttle.doubts.get(key)
            since_ms = at_ms if known is None else known.since_ms
            throttle.doubts[key] = Doubt(odd[key], since_ms, at_ms - since_ms >= PROPAGATION_MS)
        elif key.resource not in silent and throttle.doubts.pop(key, None) is not None:
            throttle.told.pop(key, None)
            if key in throttle.pending and throttle.pending[key].unconfirmed:
                throttle.unset |= {key.resource}  # It was not set again while in doubt.


def take_in_check_at_end(run: Run, event: ConfigsRead, *, is_end: bool) -> None:
    """Conclude about settings about to be restored, or just restored; what guards reported is not repeated."""
    throttle = run.throttle
    kept = {key: throttle.pending[key] for key in throttle.in_force if key.resource not in event.gone}
    odd = throttle_ledger.differing(kept.values(), (present for present in event.values if present.key in kept))
    rest = (one for key, one in throttle.pending.items() if key not in kept)
    theirs = throttle_ledger.restoration(rest, event.values).foreign
    take_in_check(run, event.at_ms, (present.key for present in event.values), (*odd, *theirs), ())
    for present in odd:
        if throttle.doubts[present.key].is_foreign:
            override = kept[present.key]
            stays = not (override.is_restored(present.value) or override.is_ours(present.value))
            if throttle.told.get(present.key) != present and not stays:
                ours = f"the run had set it to {override.value!r}"
                run.note(f"someone else changed a throttle during the run: {present.then}, and {ours}")
                throttle.told[present.key] = present
            throttle.is_lost = throttle.is_lost or is_end


def is_undecided(run: Run, key: ConfigKey) -> bool:
    """True if a second reading has to decide about this setting."""
    doubt = run.throttle.doubts.get(key)
    return doubt is not None and not doubt.is_foreign


def was_lost(run: Run) -> bool:
    """True if moves finished unthrottled and the guard is stricter than warn."""
    return run.throttle.is_lost and not _only_warns(run)


def _may_be_unset(throttle: ThrottleLedger, present: ConfigValue) -> bool:
    """True if nothing of ours is set, in a setting that may or may not be in force."""
    key, pending = present.key, throttle.pending
    return key not in throttle.in_force and key in pending and pending[key].is_without_ours(present.value)


def allows_start(run: Run) -> bool:
    """True if moves may start. With a guard that only warns the operator accepts the risk."""
    if run.throttle.due:
        return False
    return not run.throttle.doubts or _only_warns(run)


def is_left_alone(run: Run, key: ConfigKey) -> bool:
    """True if this setting is not adapted for now: that would hide, and silently undo, changes of others.

    With a guard that only warns lists are adapted: without its entries the next moves would start unthrottled.
    """
    return key in run.throttle.doubts and not (key.broker is None and _only_warns(run))


def foreign_settings(run: Run) -> tuple[ConfigValue, ...]:
    """Settings that others have certainly changed."""
    return tuple(doubt.found for _, doubt in sorted(run.throttle.doubts.items()) if doubt.is_foreign)


def _only_warns(run: Run) -> bool:
    return _reaction(run) in {None, Reaction.WARN}


def _reaction(run: Run) -> Reaction | None:
    return run.identity.reactions.get(GuardName.FOREIGN_THROTTLE)
