"""Partitions whose writes are known to the byte, in cohorts: the samples of each are spoilt in one way.

Each cohort is one topic. Records of every round are drawn from Poisson's distribution around a daily curve, and every
record of a round has the same size. What is written is the truth, whether a collector looked or not; what the samples
show is spoilt by the cohort. All is drawn with a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bench.known_load import BEGIN_MS

INTERVAL_S = 120
HOURS = 48
ROUNDS = HOURS * 3600 // INTERVAL_S
A_DAY = 24 * 3600 // INTERVAL_S
AN_HOUR = 3600 // INTERVAL_S
YEAR_MS = 365 * 24 * 3_600_000
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """One row per round, one column per partition.

    `records` and `record_bytes` are what is written between a round and the one before it: the truth. The others are
    what the samples say: `at_ms` since the epoch, offsets, sizes, leader, number of the topic id. Where `is_there` is
    false there is no sample.
    """

    records: Floats
    record_bytes: Floats
    at_ms: Floats
    start: Floats
    end: Floats
    size: Floats
    leader: Floats
    topic_id: Floats
    is_there: Flags

    @property
    def written(self) -> Floats:
        """Bytes per second of each round: the truth."""
        return self.records * self.record_bytes / INTERVAL_S


@dataclass(frozen=True, slots=True, eq=False)
class Cohort:
    """`first` is the round since which partitions can be known: the last restart of the log, or the first sample."""

    name: str
    history: History
    first: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def is_compacted(self) -> bool:
        """True if the topic is compacted, as its cleanup policy says."""
        return "cleaner" in self.name

    def true_rates(self, partition: int) -> Floats:
        """Bytes per second of every round that the load of this partition is about: a day at least."""
        first = min(int(self.first[partition]), ROUNDS - A_DAY)
        return self.history.written[first + 1 :, partition]


Spoil = Callable[[np.random.Generator, History], History]


def cohorts(count: int, seed: int = 7, names: Collection[str] | None = None) -> tuple[Cohort, ...]:
    """Cohorts with so many partitions: those of these names, or all."""
    found = []
    for number, (name, spoil) in enumerate(COHORTS.items()):
        if names is not None and name not in names:
            continue
        chance = np.random.default_rng([seed, number])
        history = spoil(chance, _clean(chance, count))
        ids, there = history.topic_id, history.is_there
        of_last = there & (ids == ids[-1])
        found.append(Cohort(name, history, np.argmax(of_last, axis=0)))
    return tuple(found)


def _clean(chance: np.random.Generator, count: int) -> History:
    days = np.arange(ROUNDS + 1)[:, None] * INTERVAL_S / 86_400
    swing, phase = chance.uniform(0.0, 0.8, count), chance.uniform(0, 1, count)
    rate = 10 * chance.lognormal(2.0, 1.0, count) * (1 + swing * np.sin(2 * np.pi * (days - phase)))
    return _from_records(
        chance.poisson(rate * INTERVAL_S).astype(float),
        np.broadcast_to(np.round(chance.uniform(100, 2000, count)), rate.shape),
    )


def _from_records(records: Floats, record_bytes: Floats) -> History:
    """Perfect samples of such writes; the log was not empty at the begin."""
    records = np.array(records)
    records[0] = 50_000
    rows, count = records.shape
    return History(
        records,
        np.array(record_bytes),
        at_ms=np.repeat(BEGIN_MS + np.arange(rows)[:, None] * 1000.0 * INTERVAL_S, count, axis=1),
        start=np.zeros(records.shape),
        end=np.cumsum(records, axis=0),
        size=np.cumsum(records * record_bytes, axis=0),
        leader=np.ones(records.shape),
        topic_id=np.zeros(records.shape),
        is_there=np.ones(records.shape, np.bool_),
    )


def _rounds(chance: np.random.Generator, history: History, low: int = 0, high: int = ROUNDS) -> npt.NDArray[np.int64]:
    """One round per partition."""
    return np.asarray(chance.integers(low, high, history.records.shape[1]))


def _changed(values: Floats, rounds: npt.NDArray[np.int64], change: Callable[[Floats], Floats | np.float64]) -> Floats:
    values, columns = np.array(values), np.arange(values.shape[1])
    values[rounds, columns] = change(values[rounds, columns])
    return values


def _passed(history: History, rounds: npt.NDArray[np.int64] | int) -> Flags:
    return np.asarray(np.arange(ROUNDS + 1)[:, None] >= np.broadcast_to(rounds, history.records.shape[1])[None, :])


def _as_it_is(_: np.random.Generator, history: History) -> History:
    return history


def _one_size(chance: np.random.Generator, history: History) -> History:
    return replace(history, size=_changed(history.size, _rounds(chance, history), lambda _: np.float64(10**15)))


def _largest_size(chance: np.random.Generator, history: History) -> History:
    return replace(history, size=_changed(history.size, _rounds(chance, history), lambda _: np.float64(10**17)))


def _frozen(chance: np.random.Generator, history: History) -> History:
    """For one to ten hours the same answer comes, with new times; then all that was missed."""
    since = _rounds(chance, history, 1, ROUNDS - 10 * AN_HOUR)
    until = since + chance.integers(AN_HOUR, 10 * AN_HOUR, len(since))
    is_frozen, columns = _passed(history, since) & ~_passed(history, until), np.arange(len(since))
    kept = {name: getattr(history, name) for name in ("start", "end", "size")}
    return replace(
        history, **{name: np.where(is_frozen, values[since, columns], values) for name, values in kept.items()}
    )


def _nulls(chance: np.random.Generator, history: History) -> History:
    return replace(history, size=np.where(chance.random(history.size.shape) < 0.1, np.nan, history.size))


def _negatives(chance: np.random.Generator, history: History) -> History:
    """-1 for unknown: sizes, and both offsets together."""
    shape = history.end.shape
    has_no_offsets = chance.random(shape) < 0.02
    return replace(
        history,
        size=np.where(chance.random(shape) < 0.02, -1, history.size),
        start=np.where(has_no_offsets, -1, history.start),
        end=np.where(has_no_offsets, -1, history.end),
    )


def _microseconds(chance: np.random.Generator, history: History) -> History:
    return replace(history, at_ms=_changed(history.at_ms, _rounds(chance, history), lambda at: at * 1000))


def _year_ahead(chance: np.random.Generator, history: History) -> History:
    return replace(history, at_ms=_changed(history.at_ms, _rounds(chance, history), lambda at: at + 5 * YEAR_MS))


def _low(chance: np.random.Generator, history: History) -> History:
    end = history.end
    for _ in range(2):
        end = _changed(end, _rounds(chance, history), lambda value: np.floor(value * 0.5))
    return replace(history, end=end)


def _many_low(chance: np.random.Generator, history: History) -> History:
    is_low = chance.random(history.end.shape) < 0.03
    return replace(history, end=np.where(is_low, np.floor(history.end * 0.7), history.end))


def _thousandfold(chance: np.random.Generator, history: History) -> History:
    return replace(history, end=_changed(history.end, _rounds(chance, history), lambda value: value * 1000))


def _ends_wrong(chance: np.random.Generator, history: History) -> History:
    """The first or the last reading is wrong: half, a little lower, or 1.2 or 1,000 times as much."""
    factors = chance.choice([0.5, 0.999, 1.2, 1000.0], history.end.shape[1])
    rounds = chance.choice([0, ROUNDS], history.end.shape[1])
    return replace(history, end=_changed(history.end, rounds, lambda value: np.floor(value * factors)))


def _truncated(chance: np.random.Generator, history: History) -> History:
    at = _rounds(chance, history, 10)
    lost = history.end[at, np.arange(len(at))] - history.end[at - 3, np.arange(len(at))]
    weighed = lost * history.record_bytes[0]
    has_passed = _passed(history, at)
    return replace(history, end=history.end - lost * has_passed, size=history.size - weighed * has_passed)


def _shifted_clock(chance: np.random.Generator, history: History) -> History:
    since = _rounds(chance, history, 0, ROUNDS - 8 * AN_HOUR)
    is_off = _passed(history, since) & ~_passed(history, since + 8 * AN_HOUR)
    shift = chance.choice([-300_000.0, 300_000.0], len(since))
    return replace(history, at_ms=history.at_ms + shift * is_off)


def _jittery_clock(chance: np.random.Generator, history: History) -> History:
    return replace(history, at_ms=history.at_ms + np.round(chance.uniform(-20_000, 20_000, history.at_ms.shape)))


def _two_hours_late(chance: np.random.Generator, history: History) -> History:
    is_off = chance.random(history.at_ms.shape) < 0.1
    return replace(history, at_ms=history.at_ms + 7_200_000.0 * is_off)


def _large_at_midday(_: np.random.Generator, history: History) -> History:
    hour = np.arange(ROUNDS + 1) // AN_HOUR % 24
    is_midday = ((hour >= 11) & (hour < 14))[:, None]
    return _from_records(history.records, history.record_bytes * np.where(is_midday, 10.0, 1.0))


def _larger_lately(_: np.random.Generator, history: History) -> History:
    return _from_records(history.records, history.record_bytes * np.where(_passed(history, ROUNDS - 3 * AN_HOUR), 3, 1))


def _recreated(chance: np.random.Generator, history: History) -> History:
    return _restarted(history, _rounds(chance, history, 1, ROUNDS - 26 * AN_HOUR))


def _recreated_lately(chance: np.random.Generator, history: History) -> History:
    return _restarted(history, _rounds(chance, history, ROUNDS - 12 * AN_HOUR, ROUNDS - AN_HOUR))


def _restarted(history: History, at: npt.NDArray[np.int64]) -> History:
    columns, has_passed = np.arange(len(at)), _passed(history, at)
    return replace(
        history,
        end=history.end - history.end[at, columns] * has_passed,
        size=history.size - history.size[at, columns] * has_passed,
        topic_id=history.topic_id + has_passed,
    )


def _outage(chance: np.random.Generator, history: History) -> History:
    since = _rounds(chance, history, 0, ROUNDS - 10 * AN_HOUR)
    until = since + chance.integers(AN_HOUR, 10 * AN_HOUR, len(since))
    return replace(history, is_there=~(_passed(history, since) & ~_passed(history, until)))


def _nights_off(_: np.random.Generator, history: History) -> History:
    hour = np.arange(ROUNDS + 1) // AN_HOUR % 24
    return replace(history, is_there=np.broadcast_to(hour[:, None] >= 7, history.is_there.shape))


def _lost_rounds(chance: np.random.Generator, history: History) -> History:
    return replace(history, is_there=chance.random(history.is_there.shape) < 0.6)


def _last_hours(hours: int) -> Spoil:
    def spoil(_: np.random.Generator, history: History) -> History:
        return replace(history, is_there=_passed(history, ROUNDS - hours * AN_HOUR))

    return spoil


def _bursts(chance: np.random.Generator, history: History) -> History:
    """Writes in short bursts: nothing but for some minutes, each as large as an hour otherwise, or larger."""
    is_burst = chance.random(history.records.shape) < chance.choice([0.002, 0.02, 0.04, 0.06, 0.2])
    return _from_records(np.where(is_burst, 50 * history.records, 0), history.record_bytes)


def _slow(chance: np.random.Generator, history: History) -> History:
    return _from_records(chance.poisson(np.full(history.records.shape, 1.5)).astype(float), history.record_bytes)


def _retention(chance: np.random.Generator, history: History) -> History:
    """Segments of two hours are deleted after twelve."""
    keep, step = 12 * AN_HOUR, 2 * AN_HOUR
    gone = np.maximum(((np.arange(ROUNDS + 1) - keep + chance.integers(step)) // step) * step, 0)
    written = np.cumsum(history.records * history.record_bytes, axis=0)
    start = np.where(gone[:, None] > 0, history.end[gone], 0)
    return replace(history, start=start, size=history.size - np.where(gone[:, None] > 0, written[gone], 0))


def _undone_by_retention(chance: np.random.Generator, history: History) -> History:
    """Often, the round before retention deletes twenty minutes, the size is too large by what comes in three rounds."""
    keep, step = 6 * AN_HOUR, 10
    gone = np.maximum(((np.arange(ROUNDS + 1) - keep + chance.integers(step)) // step) * step, 0)
    written = np.cumsum(history.records * history.record_bytes, axis=0)
    size = history.size - np.where(gone[:, None] > 0, written[gone], 0)
    is_before = np.append(np.diff(gone) > 0, [False])[:, None] & (chance.random(size.shape) < 0.5)
    more = 3 * INTERVAL_S * history.written[1:].mean(axis=0)
    return replace(
        history,
        start=np.where(gone[:, None] > 0, history.end[gone], 0),
        size=np.where(is_before, np.floor(size + more), size),
    )


def _compacted(chance: np.random.Generator, history: History) -> History:
    """Every three hours the cleaner halves the log."""
    size, history_size = np.array(history.size), np.diff(history.size, axis=0)
    every, offset = 3 * AN_HOUR, int(chance.integers(3 * AN_HOUR))
    for number in range(1, ROUNDS + 1):
        size[number] = size[number - 1] + history_size[number - 1]
        if number % every == offset:
            size[number] = np.floor(size[number] / 2)
    return replace(history, size=size)


def _leaders_move(chance: np.random.Generator, history: History) -> History:
    by_hour = chance.integers(0, 3, (HOURS + 1, history.leader.shape[1])).astype(float)
    leader = np.repeat(by_hour, AN_HOUR, axis=0)[: ROUNDS + 1]
    return replace(history, leader=leader, size=history.size + leader * 10_000)


def _uneven_days_and_outage(chance: np.random.Generator, history: History) -> History:
    """A day may write half or twice as much as the other, and nobody looks for some hours of one."""
    days = np.arange(ROUNDS + 1) // A_DAY
    factors = np.exp(chance.normal(0, 0.3, (3, history.records.shape[1])))[days]
    return _outage(chance, _from_records(np.floor(history.records * factors), history.record_bytes))


def _slightly_jittery_clock(chance: np.random.Generator, history: History) -> History:
    return replace(history, at_ms=history.at_ms + np.round(chance.uniform(-8_000, 8_000, history.at_ms.shape)))


def _bursts_with_losses(chance: np.random.Generator, history: History) -> History:
    return _lost_rounds(chance, _bursts(chance, history))


def _larger_lately_by_log(chance: np.random.Generator, history: History) -> History:
    return _no_sizes(chance, _larger_lately(chance, history))


def _no_sizes(_: np.random.Generator, history: History) -> History:
    """Only the last sample has a size."""
    is_last = _passed(history, ROUNDS)
    return replace(history, size=np.where(is_last, history.size, np.nan))


def _of_another(share: float, rounds: float) -> Spoil:
    """In so many of the rounds the size is that of another replica, larger by this share, under the same leader."""

    def spoil(chance: np.random.Generator, history: History) -> History:
        is_another = chance.random(history.size.shape) < rounds
        return replace(history, size=np.where(is_another, np.floor(history.size * (1 + share)), history.size))

    return spoil


def _another_for(hours: int, share: float) -> Spoil:
    def spoil(chance: np.random.Generator, history: History) -> History:
        since = _rounds(chance, history, 0, ROUNDS - hours * AN_HOUR)
        is_another = _passed(history, since) & ~_passed(history, since + hours * AN_HOUR)
        return replace(history, size=np.where(is_another, np.floor(history.size * (1 + share)), history.size))

    return spoil


def _follower_copies(chance: np.random.Generator, history: History) -> History:
    """For three hours the size is that of a follower that copies the log from its start, under the same leader."""
    since = _rounds(chance, history, AN_HOUR, ROUNDS - 3 * AN_HOUR)
    is_copy = _passed(history, since) & ~_passed(history, since + 3 * AN_HOUR)
    done = np.clip((np.arange(ROUNDS + 1)[:, None] - since[None, :] + 1) / (2 * AN_HOUR), 0, 1)
    return replace(history, size=np.where(is_copy, np.floor(history.size * done), history.size))


def _follower_copies_to_the_end(chance: np.random.Generator, history: History) -> History:
    since = _rounds(chance, history, AN_HOUR, ROUNDS - 4 * AN_HOUR)
    is_copy = _passed(history, since)
    done = np.clip((np.arange(ROUNDS + 1)[:, None] - since[None, :] + 1) / (3 * AN_HOUR), 0, 1)
    return replace(history, size=np.where(is_copy, np.floor(history.size * done), history.size))


def _two_copies(_: np.random.Generator, history: History) -> History:
    """Every other size is that of a broker that counts 20 MB of index files."""
    is_other = (np.arange(ROUNDS + 1) % 2 == 1)[:, None]
    return replace(history, size=np.where(is_other, history.size + 20_971_520, history.size))


def _copied_back(chance: np.random.Generator, history: History) -> History:
    """The replica is copied to an empty disk within two hours."""
    since = _rounds(chance, history, AN_HOUR, ROUNDS - 4 * AN_HOUR)
    done = np.clip((np.arange(ROUNDS + 1)[:, None] - since[None, :] + 1) / (2 * AN_HOUR), 0, 1)
    return replace(history, size=np.where(_passed(history, since), np.floor(history.size * done * 0.97), history.size))


def _stays_shorter(chance: np.random.Generator, history: History) -> History:
    """Segments of a tiered log leave the disk after twelve hours, and since some time after one; the start stays."""
    rounds = np.arange(ROUNDS + 1)
    keep = np.where(rounds < chance.integers(12 * AN_HOUR, 36 * AN_HOUR), 12 * AN_HOUR, AN_HOUR)
    gone = np.maximum.accumulate(np.maximum((rounds - keep) // AN_HOUR * AN_HOUR, 0))
    written = np.cumsum(history.records * history.record_bytes, axis=0)
    return replace(history, size=history.size - np.where(gone[:, None] > 0, written[gone], 0))


def _preallocated(chance: np.random.Generator, history: History) -> History:
    """Segments have their whole size from the start."""
    segment = np.maximum(history.written.mean(axis=0) * 3600 * chance.choice([0.5, 2, 12]), 1.0)
    return replace(history, size=np.ceil(history.size / segment) * segment)


def _two_clocks(chance: np.random.Generator, history: History) -> History:
    """Two collectors take turns; the clock of one is ahead by two to eight minutes."""
    ahead_ms = np.asarray(60_000.0 * chance.integers(2, 9, history.at_ms.shape[1]))
    is_other = (np.arange(ROUNDS + 1) % 2 == 1)[:, None]
    return replace(history, at_ms=history.at_ms + np.where(is_other, ahead_ms[None, :], 0.0))


def _lasting_jump(chance: np.random.Generator, history: History) -> History:
    """Once the log is larger by a tenth to a half, and stays so: another replica, or a move between directories."""
    at, share = _rounds(chance, history, AN_HOUR), chance.uniform(0.1, 0.5, history.size.shape[1])
    more = history.size[at, np.arange(len(at))] * share
    return replace(history, size=np.floor(history.size + _passed(history, at) * more))


def _in_kibibytes(chance: np.random.Generator, history: History) -> History:
    """Since some time the size is told in KiB."""
    at = _rounds(chance, history, 2 * AN_HOUR, ROUNDS - 2 * AN_HOUR)
    return replace(history, size=np.where(_passed(history, at), np.floor(history.size / 1024), history.size))


def _leader_unknown(_: np.random.Generator, history: History) -> History:
    return replace(history, leader=np.full(history.leader.shape, -1.0))


def _tiered_tail(chance: np.random.Generator, history: History) -> History:
    """Segments of one hour leave the disk two to three hours after they were written; the start is the local one."""
    keep, step = 2 * AN_HOUR + int(chance.integers(AN_HOUR)), AN_HOUR
    gone = np.maximum(((np.arange(ROUNDS + 1) - keep) // step) * step, 0)
    written = np.cumsum(history.records * history.record_bytes, axis=0)
    start = np.where(gone[:, None] > 0, history.end[gone], 0)
    return replace(history, start=start, size=history.size - np.where(gone[:, None] > 0, written[gone], 0))


def _compacted_with_new_sizes(chance: np.random.Generator, history: History) -> History:
    return _compacted(chance, _large_at_midday(chance, history))


def _frozen_sizes(chance: np.random.Generator, history: History) -> History:
    """For one to ten hours the size stays as it is while offsets go on; then it is right again."""
    since = _rounds(chance, history, 1, ROUNDS - 10 * AN_HOUR)
    until = since + chance.integers(AN_HOUR, 10 * AN_HOUR, len(since))
    is_frozen = _passed(history, since) & ~_passed(history, until)
    return replace(history, size=np.where(is_frozen, history.size[since, np.arange(len(since))], history.size))


def _megabytes(_: np.random.Generator, history: History) -> History:
    return replace(history, size=np.floor(history.size / 1_000_000))


def _bits_for_some_hours(chance: np.random.Generator, history: History) -> History:
    since = _rounds(chance, history, AN_HOUR, ROUNDS - 8 * AN_HOUR)
    is_other = _passed(history, since) & ~_passed(history, since + chance.integers(AN_HOUR, 8 * AN_HOUR, len(since)))
    return replace(history, size=np.where(is_other, history.size * 8, history.size))


def _whole_five_minutes(_: np.random.Generator, history: History) -> History:
    return replace(history, at_ms=np.floor(history.at_ms / 300_000) * 300_000)


def _drifting_clock(chance: np.random.Generator, history: History) -> History:
    """The clock is fast by a thousandth to a twentieth, and is set every six hours."""
    drift = chance.choice([0.001, 0.01, 0.05], history.at_ms.shape[1])
    return replace(history, at_ms=history.at_ms + np.round((history.at_ms - BEGIN_MS) % (6 * 3_600_000) * drift))


def _two_periods(_: np.random.Generator, history: History) -> History:
    """A collector looks every six minutes, another every fourteen."""
    rounds = np.arange(ROUNDS + 1)
    is_there = (rounds % 3 == 0) | (rounds % 7 == 2)
    return replace(history, is_there=np.broadcast_to(is_there[:, None], history.is_there.shape))


def _leaders_by_turns(chance: np.random.Generator, history: History) -> History:
    """Every half hour the other of two replicas leads, whose log is larger; who leads is known a round later."""
    leader = (np.arange(ROUNDS + 1) + chance.integers(15)) // 15 % 2
    size = history.size + leader[:, None] * np.floor(0.2 * history.size[0])
    return replace(history, leader=np.repeat(np.roll(leader, 1)[:, None] * 1.0, size.shape[1], axis=1), size=size)


def _retention_cut(chance: np.random.Generator, history: History) -> History:
    """Four times all but the last twenty minutes to two hours are deleted; the start offset is told a round later."""
    start, size, columns = history.start, history.size, np.arange(history.size.shape[1])
    for _ in range(4):
        at = _rounds(chance, history, 3 * AN_HOUR, ROUNDS - AN_HOUR)
        kept = at - chance.integers(10, 60, len(at))
        left = np.minimum(size, history.size - history.size[kept, columns])
        start = np.where(_passed(history, at + 1), np.maximum(start, history.end[kept, columns]), start)
        size = np.where(_passed(history, at), left, size)
    return replace(history, start=start, size=size)


def _compacted_often(chance: np.random.Generator, history: History) -> History:
    """Every ten minutes the cleaner takes half of what came since the last time."""
    passes = (np.arange(ROUNDS + 1) + chance.integers(5)) // 5 * 5
    return replace(history, size=history.size - np.floor(history.size[np.minimum(passes, ROUNDS)] / 2))


def _back_empty(chance: np.random.Generator, history: History) -> History:
    """A broker comes back with an empty disk, and leads while it copies the log for two hours."""
    since = _rounds(chance, history, AN_HOUR, ROUNDS - 10 * AN_HOUR)
    back = since + chance.integers(15, 60, len(since))
    done = np.clip((np.arange(ROUNDS + 1)[:, None] - back[None, :]) / (2 * AN_HOUR), 0, 1)
    is_away, is_back = _passed(history, since) & ~_passed(history, back), _passed(history, back)
    size = np.where(is_away, history.size * 1.07, np.where(is_back, history.size * done * 0.95, history.size))
    return replace(history, leader=np.where(is_away, 2.0, 1.0), size=np.floor(size))


def _added(chance: np.random.Generator, history: History) -> History:
    """Partitions that were added to their topic later, empty."""
    at = _rounds(chance, history, 1, ROUNDS - 26 * AN_HOUR)
    return replace(_restarted(history, at), topic_id=history.topic_id, is_there=_passed(history, at))


def _of_rounds(values: Floats, rounds: npt.NDArray[np.int64]) -> Floats:
    """Values of these rounds: one per round, or one per round and partition."""
    columns = np.arange(values.shape[1])
    return np.asarray(values[rounds[:, None] if rounds.ndim == 1 else rounds, columns])


def _answers_of(history: History, rounds: npt.NDArray[np.int64]) -> History:
    start, end, size = (_of_rounds(values, rounds) for values in (history.start, history.end, history.size))
    return replace(history, start=start, end=end, size=size)


def _read_later(history: History, share: Floats) -> History:
    """Read the answers of each round so much of an interval later; with negative shares, earlier."""
    rounds = np.arange(ROUNDS + 1)
    other = np.clip(rounds[:, None] + np.sign(share).astype(np.int64), 0, ROUNDS)
    ahead = np.floor((_of_rounds(history.end, other) - history.end) * np.abs(share))
    return replace(history, end=history.end + ahead, size=history.size + ahead * history.record_bytes)


def _repeated(chance: np.random.Generator, history: History) -> History:
    """Each answer may be one of up to five minutes before, as a metric that was not scraped since."""
    age = chance.integers(0, 3, history.end.shape)
    rounds = np.maximum.accumulate(np.maximum(np.arange(ROUNDS + 1)[:, None] - age, 0), axis=0)
    return _answers_of(history, rounds)


def _cached(_: np.random.Generator, history: History) -> History:
    return _answers_of(history, np.arange(ROUNDS + 1) // 3 * 3)


def _slow_rounds(chance: np.random.Generator, history: History) -> History:
    return _read_later(history, chance.uniform(0, 40 / INTERVAL_S, history.end.shape))


def _behind_by_turns(_: np.random.Generator, history: History) -> History:
    is_other = (np.arange(ROUNDS + 1) % 2 == 1)[:, None]
    return _read_later(history, np.where(is_other, -60 / INTERVAL_S, 0.0) * np.ones(history.end.shape))


def _offset_jumps(chance: np.random.Generator, history: History) -> History:
    """The offset jumps by a part of a day to four days; the log grows on as before."""
    at = _rounds(chance, history, AN_HOUR, ROUNDS - AN_HOUR)
    more = np.floor(history.end[-1] * chance.uniform(0.2, 2, len(at)))
    return replace(history, end=history.end + _passed(history, at) * more)


def _offsets_ahead(chance: np.random.Generator, history: History) -> History:
    """For three hours offsets are those of a copy that is ahead by a tenth."""
    at = _rounds(chance, history, AN_HOUR, ROUNDS - 4 * AN_HOUR)
    is_other = _passed(history, at) & ~_passed(history, at + 3 * AN_HOUR)
    return replace(history, end=np.floor(history.end + is_other * history.end[-1] * 0.1))


def _from_a_backup(chance: np.random.Generator, history: History) -> History:
    """The log is that of six hours before."""
    at, columns = _rounds(chance, history, 8 * AN_HOUR, ROUNDS - AN_HOUR), np.arange(history.end.shape[1])
    before, has_passed = at - 6 * AN_HOUR, _passed(history, at)
    lost = [(each[at, columns] - each[before, columns]) * has_passed for each in (history.end, history.size)]
    return replace(history, end=history.end - lost[0], size=history.size - lost[1])


def _clock_set(minutes: int) -> Spoil:
    def spoil(chance: np.random.Generator, history: History) -> History:
        at = _rounds(chance, history, AN_HOUR, ROUNDS - AN_HOUR)
        return replace(history, at_ms=history.at_ms + 60_000.0 * minutes * _passed(history, at))

    return spoil


def _kibibytes_by_turns(_: np.random.Generator, history: History) -> History:
    is_other = (np.arange(ROUNDS + 1) // 10 % 2 == 1)[:, None]
    return replace(history, size=np.where(is_other, np.floor(history.size / 1024), history.size))


def _whole_mebibytes(_: np.random.Generator, history: History) -> History:
    return replace(history, size=np.floor(history.size / 2**20) * 2**20)


def _retention_by_bytes(chance: np.random.Generator, history: History) -> History:
    """Five segments stay, of less than a round to twenty; the start offset is told a round later."""
    written = np.cumsum(history.records * history.record_bytes, axis=0)
    segment = np.maximum(history.written.mean(axis=0) * INTERVAL_S * chance.choice([0.7, 3, 20]), 1.0)
    gone = np.maximum(np.floor((written - 5 * segment) / segment) * segment, 0)
    start = np.where(gone > 0, np.floor(gone / history.record_bytes), 0)
    return replace(history, start=np.roll(start, 1, axis=0) * _passed(history, 1), size=written - gone)


def _directory_and_back(chance: np.random.Generator, history: History) -> History:
    """For one to six hours the replica is in another directory, where it is smaller."""
    at = _rounds(chance, history, AN_HOUR, ROUNDS - 8 * AN_HOUR)
    is_away = _passed(history, at) & ~_passed(history, at + chance.integers(AN_HOUR, 6 * AN_HOUR, len(at)))
    return replace(history, size=np.floor(np.where(is_away, history.size * 0.93, history.size)))


def _both_directories(chance: np.random.Generator, history: History) -> History:
    """While the replica moves between directories, for two hours, both copies count."""
    at = _rounds(chance, history, AN_HOUR, ROUNDS - 4 * AN_HOUR)
    is_moving = _passed(history, at) & ~_passed(history, at + 2 * AN_HOUR)
    done = (np.arange(ROUNDS + 1)[:, None] - at[None, :]) / (2 * AN_HOUR)
    return replace(history, size=np.floor(history.size * np.where(is_moving, 1 + done, 1)))


def _weights_vary(chance: np.random.Generator, history: History) -> History:
    factors = np.exp(chance.normal(0, 0.3, history.records.shape))
    return _from_records(history.records, np.round(history.record_bytes * factors))


def _compressed_otherwise(_: np.random.Generator, history: History) -> History:
    """Every twelve hours producers compress in another way."""
    factors = np.array([1, 0.3, 0.8, 1.5, 1.5])[np.arange(ROUNDS + 1) // (12 * AN_HOUR)]
    return _from_records(history.records, np.round(history.record_bytes * factors[:, None]))


def _cleaned_slowly(_: np.random.Generator, history: History) -> History:
    """In an hour of every three the cleaner takes four fifths of what comes, so that the log never shrinks."""
    grown = np.diff(history.size, axis=0, prepend=0)
    is_cleaned = (np.arange(ROUNDS + 1) % (3 * AN_HOUR) < AN_HOUR)[:, None]
    return replace(history, size=np.floor(np.cumsum(np.where(is_cleaned, grown * 0.2, grown), axis=0)))


def _sent_late(chance: np.random.Generator, history: History) -> History:
    """For six hours nothing comes; then all of it within one."""
    at = _rounds(chance, history, AN_HOUR, ROUNDS - 8 * AN_HOUR)
    begun, late, over = (_passed(history, at + hours * AN_HOUR) for hours in (0, 6, 7))
    factors = np.where(begun & ~late, 0, np.where(late & ~over, 7, 1))
    return _from_records(history.records * factors, history.record_bytes)


COHORTS: Mapping[str, Spoil] = {
    "clean": _as_it_is,
    "one size of 10^15": _one_size,
    "one time in microseconds": _microseconds,
    "one time years ahead": _year_ahead,
    "two low samples": _low,
    "3 % low samples": _many_low,
    "one offset × 1,000": _thousandfold,
    "the first or last reading wrong": _ends_wrong,
    "a truncation by 3 intervals": _truncated,
    "a clock ±5 min for 8 h": _shifted_clock,
    "a clock ±20 s at every round": _jittery_clock,
    "a clock ±8 s at every round": _slightly_jittery_clock,
    "10 % of rows +2 h": _two_hours_late,
    "records × 10 at midday": _large_at_midday,
    "records × 3 since 3 h": _larger_lately,
    "re-created, known for a day": _recreated,
    "re-created, known for 1 to 12 h": _recreated_lately,
    "an outage of 1 to 10 h": _outage,
    "days that differ by 30 %, and an outage": _uneven_days_and_outage,
    "no samples at night": _nights_off,
    "40 % of rounds lost": _lost_rounds,
    "known for 2 h": _last_hours(2),
    "known for 8 h": _last_hours(8),
    "known for 22 h": _last_hours(22),
    "bursts": _bursts,
    "bursts, 40 % of rounds lost": _bursts_with_losses,
    "45 records an hour": _slow,
    "retention": _retention,
    "compaction": _compacted,
    "leaders move every hour": _leaders_move,
    "sizes only at the end": _no_sizes,
    "sizes only at the end, records × 3 since 3 h": _larger_lately_by_log,
    "one size of 10^17": _largest_size,
    "frozen for 1 to 10 h": _frozen,
    "10 % without sizes": _nulls,
    "2 % negative": _negatives,
    "another replica, larger by 0.5 %, in 1 % of rounds": _of_another(0.005, 0.01),
    "another replica, larger by 3 %, in 5 % of rounds": _of_another(0.03, 0.05),
    "another replica, larger by 30 %, in 50 % of rounds": _of_another(0.3, 0.5),
    "another replica, larger by 10 %, for 3 h": _another_for(3, 0.1),
    "another replica, smaller by 10 %, for 3 h": _another_for(3, -0.1),
    "a follower that copies, for 3 h": _follower_copies,
    "a follower that copies, to the end": _follower_copies_to_the_end,
    "a lasting jump of the size": _lasting_jump,
    "sizes in KiB since some time": _in_kibibytes,
    "nobody knows who leads": _leader_unknown,
    "a tiered log, 2 to 3 h on disk": _tiered_tail,
    "compaction, records × 10 at midday": _compacted_with_new_sizes,
    "sizes frozen for 1 to 10 h": _frozen_sizes,
    "sizes of two brokers, one with index files": _two_copies,
    "a replica that is copied to an empty disk": _copied_back,
    "a tiered log whose size on disk shrinks": _stays_shorter,
    "sizes of preallocated segments": _preallocated,
    "two collectors, clocks apart by 2 to 8 min": _two_clocks,
    "sizes in MB": _megabytes,
    "sizes in bits for 1 to 8 h": _bits_for_some_hours,
    "times of whole 5 min": _whole_five_minutes,
    "a clock that drifts, set every 6 h": _drifting_clock,
    "two collectors, every 6 and 14 min": _two_periods,
    "two leaders by turns, told a round late": _leaders_by_turns,
    "retention cut within the hour": _retention_cut,
    "compaction every 10 min": _compacted_often,
    "a broker that is back empty leads at once": _back_empty,
    "partitions added": _added,
    "steps of the size that retention hides": _undone_by_retention,
    "answers repeated for up to 5 min": _repeated,
    "answers of a cache of 6 min": _cached,
    "rounds of up to 40 s": _slow_rounds,
    "a follower answers by turns, a minute behind": _behind_by_turns,
    "an offset that jumps": _offset_jumps,
    "offsets ahead by a tenth for 3 h": _offsets_ahead,
    "a log put back from a backup of 6 h": _from_a_backup,
    "a clock set back by an hour": _clock_set(-60),
    "a clock set ahead by an hour": _clock_set(60),
    "sizes in KiB by turns of 20 min": _kibibytes_by_turns,
    "sizes of whole MiB": _whole_mebibytes,
    "retention by bytes, the start told a round late": _retention_by_bytes,
    "a replica in another directory and back": _directory_and_back,
    "a size of both directories of a move": _both_directories,
    "sizes of records that vary by 30 %": _weights_vary,
    "sizes of records by another compression": _compressed_otherwise,
    "a cleaner that takes less than comes": _cleaned_slowly,
    "records sent 6 h late": _sent_late,
}
"""What is wrong with the samples of each cohort. Each is drawn by its place: new ones go to the end."""
