"""Decide which loads are doubtful, and the priors that replace them: see `kreassign.model.load`.

Both are decided per partition, from arrays with one entry per replica, whether they come from tables or from a
snapshot file. Partitions with enough load keep their rate, bit for bit. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kreassign.model import TopicPartition
from kreassign.model.load import MOST_NAMED, PRIORS, DoubtfulLoad, DoubtfulShare, LoadBasis
from kreassign.model.replica_columns import Floats, Ints, ReplicaColumns

NO_RATE = "no rate"


@dataclass(frozen=True, slots=True, eq=False)
class _Partitions:
    """One entry per partition; `of_replica` has the index of each replica's partition."""

    topics: Ints
    numbers: Ints
    size_bytes: Floats
    own: Floats
    reasons: Ints
    of_replica: Ints

    @property
    def is_doubtful(self) -> npt.NDArray[np.bool_]:
        return self.reasons >= 0


def heed(
    loads: ReplicaColumns, source: str, taken_ms: int, reason_names: Sequence[str] = (), reasons: Ints | None = None
) -> tuple[Floats, LoadBasis]:
    """Return the rates to plan with, one per replica, without NaN; and the basis of these rates.

    `reasons` are indices into `reason_names`, -1 where the load is not doubtful; None if no load is. The reason for an
    unknown rate is `NO_RATE`, unless they name another.
    """
    found = _per_partition(loads, len(reason_names), reasons)
    names = (*reason_names, NO_RATE)
    rates, priors = _settled(found, len(loads.topic_names))
    doubtful = found.is_doubtful
    basis = LoadBasis(
        source,
        taken_ms,
        len(rates),
        reasons=_counts(names, found.reasons[doubtful]),
        priors=_counts(PRIORS, priors[doubtful]),
        unsized=int(np.isnan(found.size_bytes).sum()),
        doubtful=_named((loads.topic_names, names), found, rates, priors),
        brokers=_shares(loads.brokers, found, rates),
    )
    return rates[found.of_replica], basis


def furthest_beyond(values: Floats, most: float) -> int | None:
    """Place of the value furthest from 0 of those below 0 or above `most`; None without such. NaN is unknown."""
    beyond = np.flatnonzero((values < 0) | (values > most))
    return int(beyond[np.argmax(np.abs(values[beyond]))]) if len(beyond) else None


def _per_partition(loads: ReplicaColumns, no_rate: int, told: Ints | None) -> _Partitions:
    _, first, of_replica = np.unique(loads.keys, return_index=True, return_inverse=True)
    rates = loads.write_bytes_per_s[first]
    reasons = np.full(len(first), -1) if told is None else told[first]
    own = np.where(np.isfinite(rates) & (rates >= 0), rates, np.nan)
    reasons = np.where(np.isnan(own) & (reasons < 0), no_rate, reasons)
    sizes = loads.size_bytes[first]
    sizes = np.where(np.isfinite(sizes) & (sizes >= 0), sizes, np.nan)
    return _Partitions(loads.topics[first], loads.partitions[first], sizes, own, reasons, of_replica.reshape(-1))


def _settled(found: _Partitions, topic_count: int) -> tuple[Floats, Ints]:
    """Rate of each partition, and the index of its prior in `PRIORS`, which is used for doubtful loads only."""
    is_enough = ~found.is_doubtful
    by_topic = _medians(found.topics[is_enough], found.own[is_enough], topic_count)[found.topics]
    # Above the largest rate with enough data, an error is likelier than a record.
    most = found.own[is_enough].max() if is_enough.any() else np.inf
    by_size = found.size_bytes * _rate_per_byte(found.size_bytes[is_enough], found.own[is_enough])
    candidates = np.stack(
        [by_topic, np.where(found.own <= most, found.own, np.nan), by_size, np.zeros(len(by_size))]
    )  # in the order of PRIORS
    priors = np.argmax(~np.isnan(candidates), axis=0)
    rates = candidates[priors, np.arange(len(priors))]
    return np.where(is_enough, found.own, rates), priors


def _medians(topics: Ints, rates: Floats, count: int) -> Floats:
    """Median rate of each of `count` topics; NaN without partitions."""
    order = np.lexsort((rates, topics))
    ranked = np.append(rates[order], np.nan)
    starts, ends = (np.searchsorted(topics[order], np.arange(count), side) for side in ("left", "right"))
    sizes = ends - starts
    lower, upper = ranked[starts + (sizes - 1) // 2], ranked[starts + sizes // 2]
    return np.where(sizes > 0, lower + (upper - lower) / 2, np.nan)


def _rate_per_byte(sizes: Floats, rates: Floats) -> float:
    """Mean write rate per stored byte of partitions with known size, 1/s; NaN if they store nothing."""
    known = ~np.isnan(sizes)
    total = float(sizes[known].sum())
    return float(rates[known].sum()) / total if total > 0 else float("nan")


def _counts(names: Sequence[str], codes: Ints) -> dict[str, int]:
    counts = np.bincount(codes, minlength=len(names)).tolist()
    return {name: count for name, count in sorted(zip(names, counts, strict=True)) if count}


def _named(
    names: tuple[Sequence[str], Sequence[str]], found: _Partitions, rates: Floats, priors: Ints
) -> tuple[DoubtfulLoad, ...]:
    """The largest doubtful loads, by rate, size and name. `names` has topic names and reason names."""
    topic_names, reason_names = names
    places = np.flatnonzero(found.is_doubtful)
    size = np.nan_to_num(found.size_bytes[places])
    order = np.lexsort((found.numbers[places], found.topics[places], -size, -rates[places]))
    return tuple(
        DoubtfulLoad(
            TopicPartition(topic_names[int(found.topics[place])], int(found.numbers[place])),
            reason_names[int(found.reasons[place])],
            PRIORS[int(priors[place])],
            float(rates[place]),
        )
        for place in places[order[:MOST_NAMED]].tolist()
    )


def _shares(brokers: Ints, found: _Partitions, rates: Floats) -> tuple[DoubtfulShare, ...]:
    """Doubtful shares of the brokers with doubtful replicas, by id."""
    # In the order of partitions: sums of floats depend on the order, and rows come in any.
    order = np.argsort(found.of_replica)
    held = found.of_replica[order]
    ids, which = np.unique(brokers[order], return_inverse=True)
    which, is_doubtful = which.reshape(-1), found.is_doubtful[held]

    def share(loads: Floats) -> Floats:
        part, whole = (np.bincount(which, each, len(ids)) for each in (np.where(is_doubtful, loads, 0.0), loads))
        return np.divide(part, whole, out=np.zeros(len(ids)), where=whole > 0)

    counts = np.bincount(which, is_doubtful, len(ids))
    writes, sizes = share(rates[held]), share(np.nan_to_num(found.size_bytes)[held])
    return tuple(
        DoubtfulShare(int(ids[place]), int(counts[place]), float(writes[place]), float(sizes[place]))
        for place in np.flatnonzero(counts).tolist()
    )
