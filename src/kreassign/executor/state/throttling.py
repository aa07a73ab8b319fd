"""Choose the rates of the throttle, and detect changes that others make to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from kreassign.executor import throttle_ledger
from kreassign.executor.client_guard import slowed_rate
from kreassign.executor.events import ThrottleChecked, TrafficMeasured, topic_ids_of_moves
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.instructions import CheckThrottle, MeasureTraffic
from kreassign.executor.scheduling.limits import PacedMove
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.phases import Names
from kreassign.executor.state.run import Run
from kreassign.executor.state.setting import Conclusion, SettingState
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue
from kreassign.executor.throttle_rates import WORTH_A_CHANGE, adaptive_rate, demand, least_rate
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.text import MOST_TEXT_BYTES
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    TOPIC_THROTTLES,
    WHOLE,
    AdaptiveThrottle,
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
    rates = throttle_ledger.wanted_rates(run.throttle.found, run.control.rates)
    adaptive, percent = run.control.rates.adaptive, run.clients.backoff.percent
    if adaptive is None and percent == WHOLE:
        return rates
    needed = _needed(run, starting)
    if adaptive is not None:
        rates |= {key: str(_left_over(run, adaptive, key, needed)) for key in rates if _follows_traffic(run, key)}
    return rates if percent == WHOLE else rates | dict(_slowed(run, rates, percent, needed))


def _slowed(
    run: Run, rates: Mapping[ConfigKey, str | None], percent: int, needed: Needs
) -> Iterator[tuple[ConfigKey, str]]:
    """Part of each rate of the run that copies have while clients suffer; brokers without a limit keep none."""
    for key, rate in rates.items():
        if rate is not None and is_limited(run, key):
            least = least_rate(needed[_way(key), key.broker or 0])
            yield key, str(_unless_near(run, key, slowed_rate(int(rate), percent, least)))


def _unless_near(run: Run, key: ConfigKey, bytes_per_s: int) -> int:
    """The present rate if one that follows the traffic is off by little: each change is a request to the broker."""
    setting = run.throttle.of(key)
    value = setting.pending.value if setting.is_open and _follows_traffic(run, key) else None
    is_near = value is not None and abs(bytes_per_s - int(value)) <= WORTH_A_CHANGE * int(value)
    return int(value) if value is not None and is_near else bytes_per_s


def _way(key: ConfigKey) -> str:
    return SENDING if key.name == LEADER_THROTTLED_RATE else RECEIVING


def is_limited(run: Run, key: ConfigKey) -> bool:
    """True for a rate that the run sets: its broker has a limit."""
    return key.broker is not None and (run.control.rates.of(key.broker) is not None or _follows_traffic(run, key))


def follows_clients(run: Run) -> bool:
    """True if rates may differ from those of the run for the sake of clients."""
    return run.clients.has_slowed and run.control.rates.is_limited


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
    """False if no rate follows, or the broker has one of its own, or is down and has one already."""
    return (
        run.control.rates.adaptive is not None
        and not run.control.rates.has_own_rate(key.broker)
        and not (key.broker in run.throttle.awaited and run.throttle.of(key).is_open)
    )


def _left_over(run: Run, adaptive: AdaptiveThrottle, key: ConfigKey, needed: Needs) -> int:
    assert key.broker is not None, f"{key} is no rate of a broker"
    way = _way(key)
    seen = run.traffic.brokers.get(key.broker)
    traffic = None if seen is None else seen[1].sent_bytes_per_s if way == SENDING else seen[1].received_bytes_per_s
    setting = run.throttle.of(key)
    value = setting.pending.value if setting.is_open else None
    return adaptive_rate(adaptive, key.broker, traffic, needed[way, key.broker], None if value is None else int(value))


def _needed(run: Run, starting: Names) -> Needs:
    """Write rates of the copied partitions at their source and at each destination.

    Copies between the directories of a broker need as much there.
    """
    needed: Needs = defaultdict(float)
    copied = []
    for record in run.moves.copying_with(starting):
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
# A value of a setting is a text of Kafka's protocol. New entries are appended before
# those of copies that have arrived are removed, so both count.

MOST_LIST_CHARACTERS = MOST_TEXT_BYTES
"""Longest value of a setting that Kafka takes."""


@dataclass(slots=True)
class ListRoom:
    """Characters left in the lists of throttled replicas; shrinks with each move that starts.

    `listed` are the entries of each list; lists that are not in it take no entries of the run. `full` are topics of
    which a move was refused.
    """

    depends_on_size: ClassVar = True  # a move of another topic may fit
    records: Mapping[TopicPartition, MoveRecord]
    listed: dict[ConfigKey, set[str]]
    full: set[str] = field(default_factory=set)

    def refuses(self, move: PacedMove) -> str | None:
        """Describe the list that has no room for the entries of the move, or None."""
        for key, entries in self._entries(move):
            if len(",".join(self.listed[key] | entries)) > MOST_LIST_CHARACTERS:
                self.full.add(key.resource.name)
                return f"{key} has room for no more entries ({MOST_LIST_CHARACTERS:,} characters)"
        return None

    def promise(self, move: PacedMove) -> None:
        """Add the entries of the move."""
        for key, entries in self._entries(move):
            self.listed[key] |= entries

    def _entries(self, move: PacedMove) -> Iterator[tuple[ConfigKey, set[str]]]:
        step, (topic, partition) = self.records[move.topic_partition].step, move.topic_partition
        sides = ((LEADER_THROTTLED_REPLICAS, step.original), (FOLLOWER_THROTTLED_REPLICAS, step.adding))
        for name, brokers in sides if step.adding else ():
            key = ConfigKey(ConfigResource.topic(topic), name)
            if key in self.listed:
                yield key, {f"{partition}:{broker}" for broker in brokers}


def list_room(run: Run) -> ListRoom:
    """Room in the lists of the run, given what is in them now; entries beside `*` are sent, too."""
    listed: dict[ConfigKey, set[str]] = {}
    for key, setting in run.throttle.settings.items() if run.control.rates.is_limited else ():
        if setting.found is not None and key.name in TOPIC_THROTTLES:
            ours = setting.pending.our_items if setting.is_open else frozenset()
            listed[key] = {*throttle_ledger.items(setting.found.value), *ours}
    return ListRoom(run.moves.records, listed)


# Changes by others: which settings to read again, and how to treat an unexpected value (`setting.py`).
#
# The first unexpected value only stops new moves; a change by others is reported after a second one.
#
# The same holds for changes while no process executed the run: its remaining settings are read before any is set again.
# A change that a process intended when it died, without an answer, counts as ours either way.

DOUBT_EVERY_MS = 5_000
"""Doubtful settings are read again at least this often, and sooner at first; also while nothing is about to start."""


def is_check_due(run: Run, topics: Collection[ConfigResource]) -> bool:
    """True if the throttle must be read again before lists of these topics are changed and moves are sent.

    The present time is that of the last observation.
    """
    throttle, now_ms = run.throttle, run.moves.observed_ms
    if not _reaction(run) or not throttle.watched:
        return False
    since_ms = [setting.doubt.since_ms for setting in throttle.settings.values() if setting.doubt is not None]
    if not since_ms or throttle.checked_ms is None:
        return bool(topics or since_ms)
    # A stale answer passes at once, and a change by others lasts long.
    return now_ms - throttle.checked_ms >= min(now_ms - min(since_ms), DOUBT_EVERY_MS)


def check(run: Run, topics: Collection[ConfigResource]) -> CheckThrottle:
    """Check rates, the lists of these topics, and all doubtful settings."""
    concerned = (
        setting.expected
        for setting in run.throttle.watched
        if setting.key.broker is not None or setting.key.resource in topics or setting.doubt is not None
    )
    return CheckThrottle(tuple(concerned), _topic_ids(run, {setting.key.resource for setting in run.throttle.doubtful}))


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
    throttle, silent = run.throttle, set(event.unread)
    throttle.close_gone(event.gone)
    take_in_check(run, event.at_ms, tuple(throttle.pending), event.differ, event.unread)
    throttle.was_found_changed = throttle.was_found_changed or bool(throttle.foreign)
    read_for = "a throttle was asked for" if throttle.is_asked_for else "the run was resumed"
    for present in throttle.foreign:
        setting = throttle.of(present.key)
        if setting.is_open and setting.told != present:
            ours = f"the run had set it to {setting.pending.value!r}"
            run.note(f"someone else had changed a throttle when {read_for}: {present.then}, and {ours}")
            throttle.put(replace(setting, told=present))
    for setting in throttle.open:
        # Settings of a broker that is down are read, and set, when it is back.
        is_due = setting.is_due and (setting.key.broker is None or setting.key.broker in throttle.live_brokers)
        if setting.is_foreign:
            is_due = throttle.is_asked_for or (is_due and not is_left_alone(run, setting.key))
        is_unread = setting.key.resource in silent or setting.is_undecided
        throttle.put(replace(setting, is_due=is_due, is_unread=is_unread))


def take_in_first(run: Run, at_ms: int, present: ConfigValue) -> None:
    """Take in a value that the run did not set. A rate about which nothing was agreed is of others, unless it passes.

    The preflight has found none there: it was set since, or on a broker that was down, and is not to be overwritten.
    """
    setting = run.throttle.of(present.key).first_read(present)
    is_agreed = setting.original is not None or setting.found != present or run.throttle.takes_found
    is_theirs = present.key.broker is not None and present.value is not None and not is_agreed and is_guarded(run)
    # An operator who requests a throttle has it set in any case.
    run.throttle.put(setting.doubted(present, at_ms) if is_theirs and not setting.is_due else setting.settled())


def note_request(run: Run) -> None:
    """Read what is in force before setting a requested throttle, which would hide changes of others."""
    throttle = run.throttle
    for setting in throttle.open:
        is_read = is_guarded(run) and setting.state is SettingState.IN_FORCE
        is_due = setting.is_due or (is_read and setting.key.broker is not None)
        throttle.put(replace(setting, is_due=is_due, is_unread=setting.is_unread or is_read))
    for setting in throttle.doubtful:
        throttle.put(replace(setting, is_due=True))
    throttle.is_asked_for = throttle.is_unread


def note_differences(run: Run, were_set: Collection[ConfigKey], event: ThrottleChecked) -> None:
    """Report settings changed since the run lost the lease: no breach, because another run may have restored them.

    Such are set again. A rate that is neither gone nor that from before the run is of somebody who set it, and stays.
    """
    run.throttle.close_gone(event.gone)
    for present in event.differ:
        setting = run.throttle.of(present.key)
        if present.key in were_set and setting.is_open:
            is_theirs = (
                present.key.broker is not None
                and present.value is not None
                and setting.certain(present.value) is Conclusion.THEIRS
            )
            if is_theirs:
                run.throttle.put(replace(setting.doubted(present, event.at_ms), is_due=False))
            ours = f"the run had set it to {setting.pending.value!r} and {'leaves it' if is_theirs else 'set it again'}"
            run.note(f"when the run had the lease again, {present.then}; {ours}")


def take_in_check(
    run: Run, at_ms: int, read: Iterable[ConfigKey], differ: Iterable[ConfigValue], unread: Iterable[ConfigResource]
) -> None:
    """Conclude from reading these settings. Unreadable ones stay as doubtful as before."""
    throttle, silent = run.throttle, set(unread)
    odd = {present.key: present for present in differ}
    for setting in map(throttle.of, read):
        value = odd.get(setting.key)
        if not (setting.is_open or setting.doubt):
            continue  # It was given up while it was read.
        if value is not None and (not setting.is_open or setting.meaning(value.value) is Conclusion.DOUBT):
            throttle.put(setting.doubted(value, at_ms))
        elif setting.key.resource not in silent:
            throttle.settle(setting)


def was_lost(run: Run) -> bool:
    """True if moves finished unthrottled and the guard is stricter than warn."""
    return run.throttle.is_lost and not _only_warns(run)


def allows_start(run: Run) -> bool:
    """True if moves may start. With a guard that only warns the operator accepts the risk."""
    return not run.throttle.is_due and (not run.throttle.doubtful or _only_warns(run))


def is_left_alone(run: Run, key: ConfigKey) -> bool:
    """True if this setting is not adapted for now: that would hide, and silently undo, changes of others.

    With a guard that only warns lists are adapted: without its entries the next moves would start unthrottled.
    """
    return run.throttle.of(key).doubt is not None and not (key.broker is None and _only_warns(run))


def _only_warns(run: Run) -> bool:
    return _reaction(run) in {None, Reaction.WARN}


def _reaction(run: Run) -> Reaction | None:
    return run.identity.reactions.get(GuardName.FOREIGN_THROTTLE)
