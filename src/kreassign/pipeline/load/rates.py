"""Compute writes between the samples of many partitions: arrays, rules for samples among neighbours, rates.

Pure: NumPy only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kreassign.pipeline.load.rules import (
    MOST_BYTES_PER_S,
    MOST_RECORDS_PER_S,
    SAME_TIME,
    TENFOLD,
    UNCONFIRMED,
    Treatment,
)

# Arrays of the samples of many partitions: partition after partition, each in order of time.
#
# A sample is compared with its neighbours in the array, if they are of the same partition. Unknown figures are NaN,
# which makes every comparison false.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Series:
    """Bounds of partitions: for each sample, the first index of its partition and the index after the last.

    `starts` has the first index of each partition, in order.
    """

    begin: Ints
    end: Ints
    starts: Ints

    @classmethod
    def of(cls, numbers: Ints) -> Series:
        """Build from each sample's partition number; samples of one partition are contiguous."""
        starts = np.flatnonzero(run_starts(numbers))
        lengths = np.diff(starts, append=len(numbers))
        return cls(np.repeat(starts, lengths), np.repeat(starts + lengths, lengths), starts)

    def only(self, chosen: Mask) -> Series:
        """Series of the chosen samples."""
        return Series.of(self.begin[chosen])

    def before(self, values: Floats, place: int = 1) -> Floats:
        """Value `place` samples earlier in the same partition; NaN if there is none."""
        found = np.arange(len(values)) - place
        return np.where(found >= self.begin, values[np.maximum(found, 0)], np.nan)

    def after(self, values: Floats, place: int = 1) -> Floats:
        """Value `place` samples later in the same partition; NaN if there is none."""
        return self._at(np.arange(len(values)) + place, values)

    def after_among(self, chosen: Mask, values: Floats, place: int = 1) -> Floats:
        """Value of the `place`-th chosen sample after each sample; NaN if there is none."""
        places = np.append(np.flatnonzero(chosen), len(values))
        return self._at(places[np.minimum(np.cumsum(chosen) + (place - 1), len(places) - 1)], values)

    def _at(self, places: Ints, values: Floats) -> Floats:
        """Values at later places; NaN where the place is in another partition."""
        return np.where(places < self.end, values[np.minimum(places, len(values) - 1)], np.nan)

    def sum_so_far(self, values: Ints) -> Ints:
        """Running sum within each partition, including the sample itself."""
        total = np.cumsum(values)
        return total - (total - values)[self.begin]

    def largest_so_far(self, values: Ints) -> Ints:
        """Running maximum within each partition, including the sample itself. Values are from 0 to 2^31."""
        # Each partition is lifted above all before it, so one running maximum restarts with each.
        level = np.cumsum(np.arange(len(values)) == self.begin) << 32
        so_far: Ints = np.maximum.accumulate(values + level)
        return so_far - level

    def largest(self, values: Floats) -> Floats:
        """Largest known value of each sample's partition; NaN if none is known."""
        return self._spread(np.fmax.reduceat(values, self.starts))

    def least(self, values: Floats) -> Floats:
        """Least known value of each sample's partition; NaN if none is known."""
        return self._spread(np.fmin.reduceat(values, self.starts))

    def _spread(self, of_partitions: Floats) -> Floats:
        return np.repeat(of_partitions, np.diff(self.starts, append=len(self.begin)))


def run_starts(*keys: Ints | Floats | Mask) -> Mask:
    """True where a run of equal keys begins."""
    starts = np.zeros(len(keys[0]), np.bool_)
    starts[:1] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    return starts


def known_at(chosen: Mask, values: Floats) -> Floats:
    """Scatter the values of the chosen samples to their places; NaN elsewhere."""
    placed = np.full(len(chosen), np.nan)
    placed[chosen] = values
    return placed


# Plausibility rules for a sample among the samples of its partition, in the order in which they are tried.
#
# An end offset only grows while a log lives, so order alone exposes most wrong readings. Where two readings disagree,
# the median of three on each side decides: it is right as long as no two of three are wrong. An offset that goes back
# and then grows as before was truncated (`truncated`, see `rates`), which is no error of the reading; it is an error
# only if it comes back in one step, all the way and by more than usual.
#
# A rule is a function of arrays that is true for implausible samples. NaN means unknown and makes every comparison
# false. The first true rule names the reason.


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Samples with their neighbours: samples of the same partition and topic id, in order of time.

    `rise` is the largest step up among the last, or the next, three steps; `step` is the median of these steps (the
    usual step), or 0 if it is a step down. `median` is that of the three end offsets before, or after.
    """

    is_twice: Mask
    is_other_topic: Mask
    end_offset: Floats
    size_bytes: Floats
    end_before: Floats
    end_after: Floats
    has_two_after: Mask
    median_before: Floats
    median_after: Floats
    rise_before: Floats
    rise_after: Floats
    step_before: Floats
    step_after: Floats
    size_before: Floats
    size_after: Floats
    start_before: Floats


@dataclass(frozen=True, slots=True)
class CleanNeighbours:
    """Samples that pass the first rules, with their neighbours of the same topic id that pass, too."""

    taken_ms: Floats
    end_offset: Floats
    size_bytes: Floats
    ms_before: Floats
    end_before: Floats
    size_before: Floats
    end_after: Floats
    end_after_next: Floats


Around = TypeVar("Around")


@dataclass(frozen=True, slots=True)
class SeriesRule(Generic[Around]):
    """A rule for samples among neighbours: `reason` is shown in the tables, `why` its grounds, `is_broken` tests it."""

    reason: str
    is_broken: Callable[[Around], Mask]
    why: str
    treatment: Treatment = Treatment.QUARANTINED


def _is_rounded(near: Neighbours) -> Mask:
    usual = np.fmax(near.rise_before, near.rise_after)
    return near.is_twice & (near.end_offset >= near.end_before) & (near.end_after - near.end_offset > 0.1 * usual)


def _is_ahead(near: Neighbours) -> Mask:
    return (
        (near.end_offset > near.median_after)
        & (near.median_after >= near.median_before)
        & (near.rise_before >= near.end_offset - near.median_after + near.step_after)
        & (
            near.end_offset - near.median_after
            > np.where(near.has_two_after, 0.0, 3.0 * (near.median_after - near.median_before) + 1.0)
        )
    )


def _is_unconfirmed(near: Neighbours) -> Mask:
    return (
        np.isnan(near.end_after)
        & (near.end_before > near.median_before)
        & (near.end_offset - near.end_before > UNCONFIRMED * (near.end_before - near.median_before))
    )


def _is_much_larger(near: Neighbours) -> Mask:
    return (near.size_bytes > TENFOLD * np.fmax(near.size_before, near.size_after)) & (
        near.size_bytes - near.size_before
        > TENFOLD
        * (np.abs(near.end_offset - near.end_before) + 1.0)
        * near.size_before
        / (near.end_before - near.start_before)
    )


def _is_much_smaller(near: Neighbours) -> Mask:
    return (near.size_bytes < np.fmin(near.size_before, near.size_after) / TENFOLD) & (
        near.size_after - near.size_bytes
        > TENFOLD
        * (np.abs(near.end_after - near.end_offset) + 1.0)
        * near.size_before
        / (near.end_before - near.start_before)
    )


FIRST_SERIES_RULES: tuple[SeriesRule[Neighbours], ...] = (
    SeriesRule(
        SAME_TIME,
        lambda near: near.is_twice & ~_is_rounded(near),
        "a round that was stored twice counts once; of rows that differ, the one that is ahead was seen",
        Treatment.LATE,
    ),
    SeriesRule(
        "topic_id is that of another topic than before and after",
        lambda near: near.is_other_topic,
        "the answer of a broker that was behind: a topic that was re-created keeps its new id",
    ),
    SeriesRule(
        "end_offset is behind the samples before it, and comes back",
        lambda near: (
            (near.end_offset < near.median_before)
            & (near.rise_after >= near.median_before - near.end_offset + near.step_before)
        ),
        "read from a leader that was behind, or with another clock",
    ),
    SeriesRule(
        "end_offset is ahead of the samples after it, and comes back",
        _is_ahead,
        "a single reading that is too high, or was taken with a clock that was behind",
    ),
    SeriesRule(
        "end_offset jumps, and no later sample confirms it",
        _is_unconfirmed,
        f"by {UNCONFIRMED} times what came before; with the next sample it counts if it is right",
    ),
    SeriesRule(
        "size_bytes jumps without records",
        _is_much_larger,
        "ten times what was there before and after, and ten times what the new records weigh",
    ),
    SeriesRule(
        "size_bytes collapses and comes back without records",
        _is_much_smaller,
        "less than a tenth of what was there before and after: what a broker says while it reads its logs",
    ),
    SeriesRule(
        "taken_ms is that of a later round, too",
        _is_rounded,
        "more came within one time than a tenth of what comes between samples: it was rounded, or two clocks differ",
    ),
)
"""Rules for a sample among all samples of its partition."""


SECOND_SERIES_RULES: tuple[SeriesRule[CleanNeighbours], ...] = (
    SeriesRule(
        "end_offset is behind the sample before and not behind the one after",
        lambda clean: (clean.end_offset < clean.end_before) & (clean.end_before <= clean.end_after),
        "read from a leader that was behind, or with another clock",
    ),
    SeriesRule(
        "end_offset is ahead of the two samples after it",
        lambda clean: (
            (clean.end_offset > clean.end_after)
            & (clean.end_after >= clean.end_before)
            & (clean.end_offset > clean.end_after_next)
        ),
        "one of several readings that were too high",
    ),
    SeriesRule(
        "end_offset is behind the sample before it, and is the last",
        lambda clean: (clean.end_offset < clean.end_before) & np.isnan(clean.end_after),
        "one reading is no proof that a log went back; with the next samples it counts if it did",
    ),
    SeriesRule(
        "end_offset grows faster than a broker can write",
        lambda clean: (
            (clean.end_offset - clean.end_before) * 1000.0 > MOST_RECORDS_PER_S * (clean.taken_ms - clean.ms_before)
        ),
        "a hundred million records per second",
    ),
    SeriesRule(
        "size_bytes grows faster than a network can bring",
        lambda clean: (
            (clean.size_bytes - clean.size_before) * 1000.0 > MOST_BYTES_PER_S * (clean.taken_ms - clean.ms_before)
        ),
        "50 GB/s, a network of 400 Gb/s",
    ),
)
"""Rules for a sample among those that pass the first rules."""

SERIES_RULES: tuple[SeriesRule[Neighbours] | SeriesRule[CleanNeighbours], ...] = (
    *FIRST_SERIES_RULES,
    *SECOND_SERIES_RULES,
)


def first_broken(rules: tuple[SeriesRule[Around], ...], near: Around, count: int, first_code: int) -> Ints:
    """Code of the first rule that is true of each of `count` samples; 0 if none is.

    Codes count up from `first_code` in the order of the rules.
    """
    codes = np.zeros(count, np.int64)
    for number, rule in reversed(list(enumerate(rules, first_code))):
        codes[rule.is_broken(near)] = number
    return codes


# From samples to the writes between them, as arrays.
#
# A sample is a reading of counters that only grow while a log lives. What spoils the difference of two readings, and
# how it is treated:
#
#     the same round twice        one of both counts
#     a reading that is odd       does not count, see the rules above; the difference is of the readings around it
#     a topic created again       it has another id: no difference, a new epoch
#     a log that went back        for good, in a topic of the same id: truncated; no difference, the same epoch. Where
#                                 brokers report no ids (before 2.8), a log with less than half left is another log
#     a gap                       rounds are missing: the difference is right on average, but says nothing of peaks
#     a change of leader          offsets go on; sizes are of another copy, so no bytes are known for that time, nor for
#                                 the interval before and after
#     nobody knows who leads      neither does anybody know of which copy sizes are: no bytes are known
#     a log that was cleaned      it shrank, though it begins where it began: no bytes are known for that time
#     bytes that contradict       the log grew by far more or less than its records weigh: the size is of another copy;
#                                 no bytes are known for that time
#     an offset that jumped       ten times as many records as usual, of a tenth of their weight, while the log grew on:
#                                 the offset is of another log; nothing is known for that time
#
# Restarts of brokers need no rule: offsets and sizes are on disk, and a broker that is down leaves a gap.
#
# A gap is detected from the intervals around it, of the same partition: collectors may have different or changing
# cadences and may overlap, so that intervals of different lengths alternate. All samples stay in one order, which
# decides everything; those that do not count have a reason and no figures.
#
# A load judges new samples, with some earlier ones (`is_closed`) as neighbours of the first; the decisions about these
# stay. `hours.py` chooses them.

PARTITION_KEY = ("cluster_id", "topic", "partition")
EPOCH_KEY = (*PARTITION_KEY, "epoch")
GAP = 3.0
"""A gap is an interval more than this many times as long as those around it."""
_AROUND = 4
"""Intervals to look at before and after: as many collectors may interleave as they like."""
_ALIKE = 2
"""This many long intervals around it make a cadence, not a gap; one is enough if not all are known."""
_ENOUGH = 3
"""Least number of known intervals around one to judge it by."""
_UNDONE = 1.5
"""Where a log shrinks, records may not weigh so many times more before than after it, nor less."""
_MOST_CUTS = 1
"""Times that a log may shrink within the intervals around one."""
_LEAST_RECORD_BYTES = 1.0
"""Kafka writes seven bytes of a record and more; compressed they are hardly ever less than this."""
LEFT_OF_A_LOG = 0.5
_NEAR = (1, 2, 3)

REASONS = (None, *(rule.reason for rule in SERIES_RULES))
"""Reason why a sample does not count, by code. Reasons of earlier loads may have codes after these."""
COUNTS, TWICE = 0, 1
_FIRST, _SECOND = 1, 1 + len(FIRST_SERIES_RULES)


class IntervalVerdict(IntEnum):
    """Use of the interval that ends with a sample; the cases exclude each other and are complete."""

    GOOD = 0
    GAP = 1
    """More than three times as long as the intervals around it: right on average, useless for peaks."""
    FIRST = 2
    """There is no sample before it."""
    RESET = 3
    TRUNCATED = 4
    """The end offset of the same log went back, or jumped ahead without bytes."""
    ODD = 5
    """The sample does not count."""
    TWICE = 6


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of many partitions in the order of `series`. Texts are numbers, equal if and only if the texts are.

    For closed samples, `was_clean`, `reason_before` and `epoch_before` (-1 if unknown) are the earlier decisions; for
    all samples judged before, `open_from_before` is the start of their partition's open hours.
    """

    series: Series
    taken_ms: Floats
    topic_id: Floats
    leader: Floats
    start_offset: Floats
    end_offset: Floats
    size_bytes: Floats
    is_closed: Mask
    was_clean: Mask
    reason_before: Ints
    epoch_before: Ints
    open_from_before: Floats


@dataclass(frozen=True, slots=True)
class Rates:
    """Per sample: why it does not count, and the writes since the previous sample that does.

    `reason` is a code of `REASONS`; `is_clean` is the result of the first rules. `epoch` counts resets of the log so
    far. `seconds`, `new_records`, and where the log only grew `sized_records` and `new_bytes`, are NaN if unknown.
    `contradicts` where the bytes since then cannot be those of the records. `verdict` is a `Verdict`.
    """

    reason: Ints
    is_clean: Mask
    epoch: Ints
    seconds: Floats
    new_records: Floats
    sized_records: Floats
    new_bytes: Floats
    contradicts: Mask
    verdict: Ints

    @property
    def counts(self) -> Mask:
        """Mask of the samples that count."""
        counts: Mask = self.reason == COUNTS
        return counts


def rates(samples: Samples) -> Rates:
    """Judge samples, and compute the writes between those that count."""
    with np.errstate(all="ignore"):  # a quotient by 0 is unknown
        is_clean, reason = _judged(samples)
        counts = reason == COUNTS
        epoch, is_reset, grown, contradicts = _grown(samples, counts)
        verdict = _verdict(samples.series, reason, is_reset, grown)
    return Rates(reason, is_clean, epoch, *grown, contradicts, verdict)


def _judged(samples: Samples) -> tuple[Mask, Ints]:
    """Mask of samples that pass the first rules, and each sample's reason not to count."""
    count = len(samples.taken_ms)
    first = first_broken(FIRST_SERIES_RULES, _neighbours(samples), count, _FIRST)
    is_clean = np.where(samples.is_closed, samples.was_clean, first == COUNTS)
    second = first_broken(SECOND_SERIES_RULES, _clean_neighbours(samples, is_clean), int(is_clean.sum()), _SECOND)
    reason = first.copy()
    reason[is_clean] = second
    return is_clean, np.where(samples.is_closed, samples.reason_before, reason)


def _grown(samples: Samples, counts: Mask) -> tuple[Ints, Mask, tuple[Floats, Floats, Floats, Floats], Mask]:
    """Epoch, whether the log was reset, and of each sample that counts what was written since the previous one.

    The last is the mask of those whose bytes contradict their records.
    """
    series = samples.series.only(counts)
    taken_ms, topic_id, leader, start, end, size = (
        values[counts]
        for values in (samples.taken_ms, samples.topic_id, samples.leader, samples.start_offset, samples.end_offset,
                       samples.size_bytes)
    )  # fmt: skip
    records, end_before, id_before = end - series.before(end), series.before(end), series.before(topic_id)
    no_ids = np.isnan(topic_id) | np.isnan(id_before)
    is_other_log = np.where(no_ids, end < LEFT_OF_A_LOG * end_before, topic_id != id_before)
    # Without a sample before, there is no reset.
    is_reset = is_other_log & ~np.isnan(end_before) & ~samples.is_closed[counts]
    goes_on = ~is_reset & (end >= end_before)
    # The size is that of the leader's copy: two of the same one, to which records were only appended.
    is_appended = goes_on & (leader >= 0) & (start == series.before(start))
    growth = np.where(is_appended, size - series.before(size), np.nan)
    new_bytes = np.where(leader == series.before(leader), growth, np.nan)
    contradicts = _contradict(series, records, size, (growth, new_bytes))
    goes_on &= ~(contradicts & _jumps(series, records, new_bytes))
    is_sized = (new_bytes >= 0) & ~contradicts & ~_leader_moves(series, leader)
    figures = (
        (taken_ms - series.before(taken_ms)) / 1000.0,
        np.where(goes_on, records, np.nan),
        np.where(is_sized, records, np.nan),
        np.where(is_sized, new_bytes, np.nan),
    )
    resets, contradicted = np.zeros_like(samples.epoch_before), np.zeros(len(counts), np.bool_)
    resets[counts], contradicted[counts] = is_reset, contradicts
    begun = samples.series.largest_so_far(np.maximum(samples.epoch_before, 0))
    seconds, new_records, sized_records, new_bytes = (known_at(counts, each) for each in figures)
    epoch = begun + samples.series.sum_so_far(resets)
    return epoch, resets == 1, (seconds, new_records, sized_records, new_bytes), contradicted


def _leader_moves(series: Series, leader: Floats) -> Mask:
    """True within an interval of a change of leader: who leads may be told a round before or after the sizes."""
    near = (series.before(leader), series.before(leader, 2), series.after(leader))
    moves: Mask = np.any([(other != leader) & ~np.isnan(other) for other in near], axis=0)
    return moves


def _contradict(series: Series, records: Floats, size: Floats, grown: tuple[Floats, Floats]) -> Mask:
    """Mask of intervals whose bytes cannot be those of their records, judged by four intervals on each side.

    `grown` is the growth of the log, and that of one copy of it. The copy of a new leader that is shorter shrinks the
    log, too: a broker that came back empty may lead before it has copied all.

    Records that weigh more from now on are no contradiction, unless the log has just shrunk: it takes both sides. A
    record more or less allows for sizes that were asked a moment before or after the offsets. A log that shrinks again
    and again is not cleaned so often: readings of two copies alternate, and each step up is of the difference. One of
    which hardly anything is left was cleaned, or is copied from scratch: no size shows which.
    """
    growth, new_bytes = grown
    weight = np.where((new_bytes > 0) & (records > 0), new_bytes / records, np.nan)
    places = range(1, _AROUND + 1)
    before, after = (_median_of([look(weight, place) for place in places]) for look in (series.before, series.after))
    (cuts_before, cuts_after), (shrank_before, shrinks) = (
        [np.sum([look(bytes_, place) < 0 for place in places], axis=0) for look in (series.before, series.after)]
        for bytes_ in (new_bytes, growth)
    )
    most, least = np.fmax(before, after) * (records + 1.0), np.fmin(before, after) * (records - 1.0)
    contradicts: Mask = (new_bytes >= 0) & (
        (new_bytes > TENFOLD * most)
        | ((shrinks > 0) & (new_bytes > _UNDONE * most))
        | ((shrank_before > 0) & ((after > _UNDONE * before) | (before > _UNDONE * after)))
        | (new_bytes * TENFOLD < least)
        | ((new_bytes > 0) & (new_bytes < _LEAST_RECORD_BYTES * (records - 1.0)))
        | (cuts_before + cuts_after > _MOST_CUTS)
    )
    contradicts |= (growth < 0) & (TENFOLD * size < size - growth)
    return contradicts


def _jumps(series: Series, records: Floats, new_bytes: Floats) -> Mask:
    """True where many more records came than around, and of bytes no more: a size that stands still is no such proof.

    Where bytes contradict records, one of both is wrong.
    """
    places = range(1, _AROUND + 1)

    def usual(values: Floats) -> Floats:
        return _median_of([look(values, place) for place in places for look in (series.before, series.after)])

    return (records > TENFOLD * (usual(records) + 1)) & (new_bytes > 0) & (new_bytes < TENFOLD * usual(new_bytes))


def _median_of(values: list[Floats]) -> Floats:
    """Median of the known ones of several values, the lower of two; NaN if none is known."""
    ranked = np.sort(np.stack(values), axis=0)
    middle = np.maximum(np.count_nonzero(~np.isnan(ranked), axis=0) - 1, 0) // 2
    found: Floats = np.take_along_axis(ranked, middle[np.newaxis], axis=0)[0]
    return found


def _verdict(series: Series, reason: Ints, is_reset: Mask, grown: tuple[Floats, Floats, Floats, Floats]) -> Ints:
    seconds, new_records, _, _ = grown
    has_before = ~np.isnan(seconds)
    verdict = np.full_like(reason, IntervalVerdict.GOOD)
    verdict[has_before] = np.where(
        _is_gap(series.only(has_before), seconds[has_before]), IntervalVerdict.GAP, IntervalVerdict.GOOD
    )
    verdict[np.isnan(new_records)] = IntervalVerdict.TRUNCATED
    verdict[is_reset] = IntervalVerdict.RESET
    verdict[~has_before] = IntervalVerdict.FIRST
    verdict[reason != COUNTS] = IntervalVerdict.ODD
    verdict[reason == TWICE] = IntervalVerdict.TWICE
    return verdict


def _is_gap(series: Series, seconds: Floats) -> Mask:
    """True for intervals much longer than those around them."""
    known, alike = np.zeros(len(seconds), np.int8), np.zeros(len(seconds), np.int8)
    for place in range(1, _AROUND + 1):
        for near in (series.before(seconds, place), series.after(seconds, place)):
            known += ~np.isnan(near)
            alike += GAP * near >= seconds
    return (known >= _ENOUGH) & (alike < np.where(known == 2 * _AROUND, _ALIKE, 1))


def _neighbours(samples: Samples) -> Neighbours:
    series, log, end = samples.series, samples.topic_id, samples.end_offset
    before = [_of_same_log(log, series.before(log, place), series.before(end, place)) for place in _NEAR]
    after = [_of_same_log(log, series.after(log, place), series.after(end, place)) for place in _NEAR]
    log_before, log_after = series.before(log), series.after(log)
    back = [near - far for near, far in pairwise([end, *before])]
    ahead = [far - near for near, far in pairwise([end, *after])]
    return Neighbours(
        is_twice=series.after(samples.taken_ms) == samples.taken_ms,
        # An unknown id (from an exporter, between samples of a collector) is not a different id.
        is_other_topic=(log_before == log_after) & ~np.isnan(log) & (log != log_before),
        end_offset=end,
        size_bytes=samples.size_bytes,
        end_before=before[0],
        end_after=after[0],
        has_two_after=~np.isnan(after[1]),
        median_before=_median(*before),
        median_after=_median(*after),
        rise_before=np.fmax(np.fmax(back[0], back[1]), back[2]),
        rise_after=np.fmax(np.fmax(ahead[0], ahead[1]), ahead[2]),
        step_before=np.fmax(_median(*back), 0.0),
        step_after=np.fmax(_median(*ahead), 0.0),
        size_before=series.before(samples.size_bytes),
        size_after=series.after(samples.size_bytes),
        start_before=series.before(samples.start_offset),
    )


def _clean_neighbours(samples: Samples, is_clean: Mask) -> CleanNeighbours:
    series, log = samples.series.only(is_clean), samples.topic_id[is_clean]
    taken_ms, end, size = (values[is_clean] for values in (samples.taken_ms, samples.end_offset, samples.size_bytes))
    log_before, log_after = series.before(log), series.after(log)
    return CleanNeighbours(
        taken_ms=taken_ms,
        end_offset=end,
        size_bytes=size,
        ms_before=_of_same_log(log, log_before, series.before(taken_ms)),
        end_before=_of_same_log(log, log_before, series.before(end)),
        size_before=_of_same_log(log, log_before, series.before(size)),
        end_after=_of_same_log(log, log_after, series.after(end)),
        end_after_next=_of_same_log(log, series.after(log, 2), series.after(end, 2)),
    )


def _of_same_log(log: Floats, other_log: Floats, values: Floats) -> Floats:
    """Values of other samples with the same topic id, or where either id is unknown; else NaN."""
    return np.where((other_log != log) & ~np.isnan(other_log) & ~np.isnan(log), np.nan, values)


def _median(one: Floats, two: Floats, three: Floats) -> Floats:
    """Median of the known numbers of three; of two the smaller."""
    least = np.fmin(one, two)
    middle = np.fmax(least, np.fmin(np.fmax(one, two), three))
    is_known = ~(np.isnan(one) | np.isnan(two) | np.isnan(three))
    return np.where(is_known, middle, np.fmin(least, three))
