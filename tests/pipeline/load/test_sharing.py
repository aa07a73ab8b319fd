"""Measurements of brokers, shared out: beside the true reads of each partition, and the estimated error."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from kreassign.pipeline.load.measured import (
    BASES,
    BROKER,
    NO_PARTITION,
    NO_TOPIC,
    SPREADS,
    TOPIC,
    Led,
    Shares,
    Told,
    share_out,
)

TOPICS, PARTITIONS, BROKERS = 6, 8, 3


def world(seed: int, level: str) -> tuple[Led, Told, np.ndarray]:
    """Led partitions, what brokers tell at this level, and what was truly read of each partition.

    Groups read the partitions of a topic alike, give or take a twelfth; how many groups read a topic differs.
    """
    random = Random(seed)
    keys = [(topic, number) for topic in range(TOPICS) for number in range(PARTITIONS)]
    readers = [random.choice((0.5, 1.0, 2.0)) for _ in range(TOPICS)]
    written = np.array([random.uniform(1e3, 1e6) for _ in keys])
    truth = written * np.array([readers[topic] * random.uniform(0.92, 1.08) for topic, _ in keys])
    leaders = np.array([random.randrange(BROKERS) for _ in keys])
    depth = BASES.index(level)
    amounts: dict[tuple[int, int, int], float] = {}
    for broker, (topic, number), read in zip(leaders.tolist(), keys, truth.tolist(), strict=True):
        metric = (broker, topic if depth < 2 else NO_TOPIC, number if depth < 1 else NO_PARTITION)
        amounts[metric] = amounts.get(metric, 0.0) + read
    told, values = np.array(list(amounts)), np.array(list(amounts.values()))
    led = Led(*(np.array([key[place] for key in keys]) for place in (0, 1)), leaders, written)
    return led, Told(told[:, 0], told[:, 1], told[:, 2], values, np.ones(len(values))), truth


def shared(seed: int, level: str) -> tuple[Shares, np.ndarray, Led]:
    led, told, truth = world(seed, level)
    return share_out(led, told), truth, led


@pytest.mark.parametrize("level", BASES)
@pytest.mark.parametrize("seed", range(20))
def test_what_was_shared_out_is_off_by_no_more_than_it_says(seed: int, level: str) -> None:
    found, truth, led = shared(seed, level)
    assert {BASES[one] for one in found.basis.tolist()} == {level}
    off = np.abs(found.rates - truth) / found.rates
    if level == "broker":
        # Readers differ by a factor of up to four: who is read most may be read more than twice what was shared out.
        assert np.mean(off <= found.spread + 1e-9) > 0.8
    else:
        assert (off <= found.spread + 1e-9).all()
    for broker in range(BROKERS):
        theirs = led.leaders == broker
        assert found.rates[theirs].sum() == pytest.approx(truth[theirs].sum())


def test_the_finer_the_metric_the_less_is_off() -> None:
    means = {}
    for level in BASES:
        worlds = [shared(seed, level) for seed in range(20)]
        means[level] = float(np.mean([np.abs(found.rates - truth) / truth for found, truth, _ in worlds]))
    assert means["partition"] == pytest.approx(0, abs=1e-12)
    assert means["topic"] < 0.06 < means["broker"] < 1


def test_bytes_of_unknown_topics_are_not_dealt_out() -> None:
    """Topics 0 and 1 are led by broker 1, which told 90 bytes of topic 7, and 100 in all."""
    led = Led(np.array([0, 1]), np.array([0, 0]), np.array([1, 1]), np.array([30.0, 10.0]))
    told = Told(
        np.array([1, 1, 2]),
        np.array([7, NO_TOPIC, 7]),
        np.full(3, NO_PARTITION),
        np.array([90.0, 100.0, 5.0]),
        np.ones(3),
    )
    found = share_out(led, told)
    assert found.rates.tolist() == pytest.approx([7.5, 2.5])


def test_a_partition_of_unknown_writes_is_read_as_its_peers_are() -> None:
    """Of a topic that broker 1 leads the sizes of one partition's records are unknown."""
    led = Led(np.zeros(3, np.int64), np.arange(3), np.ones(3, np.int64), np.array([30.0, 10.0, np.nan]))
    told = Told(np.array([1]), np.array([0]), np.array([NO_PARTITION]), np.array([120.0]), np.ones(1))
    found = share_out(led, told)
    assert found.rates.tolist() == pytest.approx([60.0, 20.0, 40.0])
    topic, broker = SPREADS[TOPIC], SPREADS[BROKER]
    assert found.spread.tolist() == pytest.approx([topic / 2, topic * 5 / 6, broker * 2 / 3])
    alone = share_out(Led(*(each[2:] for each in (led.topics, led.partitions, led.leaders, led.written))), told)
    assert (alone.rates.tolist(), alone.spread.tolist()) == ([120.0], [0.0])
