"""PURE. The rules of plausibility of a sample among the samples of its partition, in the order in which they are tried.

An end offset only grows while a log lives, so order alone convicts most readings. Where two readings disagree, the
median of three on each side says which one: it is right as long as no two of three are wrong. What goes back and then
grows as before was truncated (`truncated`, see `rates.py`), which is no error of the reading; only what comes back in
one step, as far as it went and more than usual, is one.

A rule is a function of arrays, and true at the implausible samples. NaN is what is not known, and no comparison with it
is true. The first rule that is true names the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from kreassign.pipeline.load.rules import (
    MOST_BYTES_PER_S,
    MOST_RECORDS_PER_S,
    SAME_TIME,
    TENFOLD,
    UNCONFIRMED,
    Treatment,
)
from kreassign.pipeline.load.series import Floats, Ints, Mask


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Samples with what is around them: samples of the same partition and topic id, in the order of time.

    `rise` is the largest step up among the last, or the next, three steps; `step` is the median of these steps, what is
    usual, or 0 where it is a step down. `median` is that of the three end offsets before, or after.
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
    """Samples that no rule of the first ones has set aside, among others of the same topic id that none has."""

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
    """`reason` is what a reader of the tables is told; `is_broken` the condition, `why` what speaks for it."""

    reason: str
    is_broken: Callable[[Around], Mask]
    why: str
    treatment: Treatment = Treatment.QUARANTINED


def _is_twice(near: Neighbours) -> Mask:
    return near.is_twice


def _is_of_other_topic(near: Neighbours) -> Mask:
    return near.is_other_topic


def _is_behind(near: Neighbours) -> Mask:
    return (near.end_offset < near.median_before) & (
        near.rise_after >= near.median_before - near.end_offset + near.step_before
    )


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
        & (near.end_offset / 2.0 > near.end_before)
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
        _is_twice,
        "a round that was stored twice counts once; of rows that differ, the one that is ahead was seen",
        Treatment.LATE,
    ),
    SeriesRule(
        "topic_id is that of another topic than before and after",
        _is_of_other_topic,
        "the answer of a broker that was behind: a topic that was re-created keeps its new id",
    ),
    SeriesRule(
        "end_offset is behind the samples before it, and comes back",
        _is_behind,
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
        f"it more than doubles, by {UNCONFIRMED} times what came before; with the next sample it counts if it is right",
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
)
"""Rules of a sample among all samples of its partition."""


def _is_behind_one(clean: CleanNeighbours) -> Mask:
    return (clean.end_offset < clean.end_before) & (clean.end_before <= clean.end_after)


def _is_ahead_of_two(clean: CleanNeighbours) -> Mask:
    return (
        (clean.end_offset > clean.end_after)
        & (clean.end_after >= clean.end_before)
        & (clean.end_offset > clean.end_after_next)
    )


def _is_behind_at_the_end(clean: CleanNeighbours) -> Mask:
    return (clean.end_offset < clean.end_before) & np.isnan(clean.end_after)


def _is_too_fast(clean: CleanNeighbours) -> Mask:
    return (clean.end_offset - clean.end_before) * 1000.0 > MOST_RECORDS_PER_S * (clean.taken_ms - clean.ms_before)


def _grows_too_fast(clean: CleanNeighbours) -> Mask:
    return (clean.size_bytes - clean.size_before) * 1000.0 > MOST_BYTES_PER_S * (clean.taken_ms - clean.ms_before)


SECOND_SERIES_RULES: tuple[SeriesRule[CleanNeighbours], ...] = (
    SeriesRule(
        "end_offset is behind the sample before and not behind the one after",
        _is_behind_one,
        "read from a leader that was behind, or with another clock",
    ),
    SeriesRule(
        "end_offset is ahead of the two samples after it",
        _is_ahead_of_two,
        "one of several readings that were too high",
    ),
    SeriesRule(
        "end_offset is behind the sample before it, and is the last",
        _is_behind_at_the_end,
        "one reading is no proof that a log went back; with the next samples it counts if it did",
    ),
    SeriesRule(
        "end_offset grows faster than a broker can write",
        _is_too_fast,
        "a hundred million records per second",
    ),
    SeriesRule(
        "size_bytes grows faster than a network can bring",
        _grows_too_fast,
        "50 GB/s, a network of 400 Gb/s",
    ),
)
"""Rules of a sample among those that the first rules have left."""

SERIES_RULES: tuple[SeriesRule[Neighbours] | SeriesRule[CleanNeighbours], ...] = (
    *FIRST_SERIES_RULES,
    *SECOND_SERIES_RULES,
)


def first_broken(rules: tuple[SeriesRule[Around], ...], near: Around, count: int, first_code: int) -> Ints:
    """For each of so many samples the code of the first rule that is true of it; 0 where none is.

    The codes of the rules follow each other from `first_code` on.
    """
    codes = np.zeros(count, np.int64)
    for number, rule in reversed(list(enumerate(rules, first_code))):
        codes[rule.is_broken(near)] = number
    return codes
