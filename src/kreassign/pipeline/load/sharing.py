"""PURE. What a broker measured in an hour, shared out to the partitions that it led: arrays in, arrays out.

A broker counts what it sends to consumers, and what it is asked, for itself, some of it for each topic, hardly any for
each partition. What a partition has of it comes from the finest metric that there is (`basis`):

    partition   the metric is of the partition
    topic       that of the topic on the broker, or in the whole cluster where only that is told (Confluent Cloud);
                less its partitions that are told; to the others that the broker led, by what was written to them
    broker      that of the broker, less what is told of its topics and partitions; to the others, likewise

Where nothing was written it is shared out evenly. `spread` is how far the part of a partition may be off, as a share
of it: `SPREADS` says how much more or less than the others with which it shares a metric a partition may be read. It
shrinks as its part of the whole grows: a partition that is alone in what is measured has it exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NO_BROKER = -1
"""Broker of what is told of a cluster as a whole."""
NO_TOPIC = NO_PARTITION = -1
PARTITION, TOPIC, BROKER = range(3)
NOTHING = -1
BASES = ("partition", "topic", "broker")
SPREADS: Mapping[int, float] = {PARTITION: 0.0, TOPIC: 0.2, BROKER: 1.0}
"""In one topic groups read all partitions alike, give or take a fifth; topics of one broker have different readers."""
MEASURED_COLUMNS = (
    "read_bytes_per_s", "read_basis", "read_error_share", "read_measured_share", "requests_per_s",
    "requests_error_share", "cpu_share", "follower_cpu_share", "cpu_error_share",
)  # fmt: skip
"""Columns of table `load_model` that only brokers can tell."""
_BITS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Led:
    """Partitions in one hour: numbers of topics, partitions and leaders, and bytes per second written."""

    topics: Ints
    partitions: Ints
    leaders: Ints
    written: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """One metric in the same hour: of which broker, topic and partition, its mean, and the part that was measured."""

    brokers: Ints
    topics: Ints
    partitions: Ints
    values: Floats
    shares: Floats

    def where(self, which: npt.NDArray[np.bool_]) -> Told:
        """Some of the rows."""
        keys = (self.brokers[which], self.topics[which], self.partitions[which])
        return Told(*keys, self.values[which], self.shares[which])


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """One entry per partition: its rate, `basis` as a place in `BASES`, spread, and the part that was measured.

    NaN, `NOTHING`, NaN and 0 where nothing was.
    """

    rates: Floats
    basis: Ints
    spread: Floats
    told: Floats


def share_out(led: Led, told: Told) -> Shares:
    """What each partition has of a metric; see the top of this module."""
    count = len(led.topics)
    rates, spread = np.full(count, np.nan), np.full(count, np.nan)
    basis, measured = np.full(count, NOTHING, np.int64), np.zeros(count)
    weights = led.written + 1e-9
    for level, keys, metric in _levels(led, told):
        found = _sums(keys, metric)
        is_open = np.isnan(rates)
        _, groups = np.unique(keys, return_inverse=True)
        taken = np.bincount(groups, np.where(is_open, 0.0, rates))[groups]
        part = weights / np.maximum(np.bincount(groups, np.where(is_open, weights, 0.0))[groups], 1e-300)
        takes = is_open & found.is_told
        rates[takes] = (np.maximum(found.rates - taken, 0.0) * part)[takes]
        spread[takes] = (SPREADS[level] * (1 - part))[takes]
        basis[takes], measured[takes] = level, found.told[takes]
    return Shares(rates, basis, spread, measured)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """By partition: what a level says of all that share its metric."""

    rates: Floats
    told: Floats
    is_told: npt.NDArray[np.bool_]


def _levels(led: Led, told: Told) -> Iterator[tuple[int, Ints, tuple[Ints, Told]]]:
    """From the finest on: the level, a key of each partition, and the metrics of the level with theirs."""
    is_of_partition = told.partitions != NO_PARTITION
    is_of_topic = ~is_of_partition & (told.topics != NO_TOPIC)
    is_of_cluster = told.brokers == NO_BROKER
    one = told.where(is_of_partition)
    yield PARTITION, _key(led.topics, led.partitions), (_key(one.topics, one.partitions), one)
    one = told.where(is_of_topic & ~is_of_cluster)
    yield TOPIC, _key(led.topics, led.leaders), (_key(one.topics, one.brokers), one)
    one = told.where(is_of_topic & is_of_cluster)
    yield TOPIC, led.topics, (one.topics, one)
    one = told.where((told.topics == NO_TOPIC) & ~is_of_cluster)
    yield BROKER, led.leaders, (one.brokers, one)


def _key(first: Ints, second: Ints) -> Ints:
    return (first << _BITS) + second


def _sums(keys: Ints, metric: tuple[Ints, Told]) -> _Found:
    """The metrics of the same key together.

    Of a partition whose leader moved each broker has told a part of the hour, or both all of it: amounts add up.
    """
    theirs, told = metric
    if not len(theirs):
        return _Found(np.zeros(len(keys)), np.zeros(len(keys)), np.zeros(len(keys), np.bool_))
    known, places = np.unique(theirs, return_inverse=True)
    amounts = np.bincount(places, told.values * told.shares)
    measured = np.minimum(np.bincount(places, told.shares), 1.0)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    is_told = (known[at] == keys) & (measured[at] > 0)
    return _Found(amounts[at] / np.maximum(measured[at], 1e-300), measured[at], is_told)
