"""Producers and consumers at work on a topic while something else happens to it, and how long records waited."""

from __future__ import annotations

import threading
import time
from functools import partial
from random import Random
from statistics import quantiles
from types import TracebackType
from typing import Any, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

POOL = 64
JOIN_S = 60.0


class LiveTraffic:
    """One producer (acks=all, each record sent at once) and one consumer of all partitions, inside a `with` block.

    After it `waits_s` has, for each record acknowledged, the time from sending to the answer; `read` is how many
    records the consumer got, `failures` how many the producer lost.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int, records_per_s: float, size: int) -> None:
        self.waits_s: list[float] = []
        self.read = 0
        self.failures = 0
        self._topic, self._partitions = topic, partitions
        self._bootstrap_servers = bootstrap_servers
        self._pause_s = 1 / records_per_s
        random = Random(0)
        self._values = [random.randbytes(size) for _ in range(POOL)]
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._produce, self._consume)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(JOIN_S)

    def percentiles_ms(self) -> tuple[float, float]:
        """The 50th and the 99th percentile of the waits."""
        cuts = quantiles(self.waits_s, n=100)
        return cuts[49] * 1000, cuts[98] * 1000

    def _produce(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap_servers, acks="all", linger_ms=0, allow_auto_create_topics=False
        )
        number, due = 0, time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            sent = producer.send(self._topic, self._values[number % POOL], partition=number % self._partitions)
            sent.add_callback(partial(self._answered, time.monotonic())).add_errback(self._failed)
            number, due = number + 1, due + self._pause_s
        producer.flush(timeout=JOIN_S / 2)
        producer.close(timeout=JOIN_S / 4)

    def _answered(self, sent_s: float, answer: Any) -> None:
        del answer
        self.waits_s.append(time.monotonic() - sent_s)

    def _failed(self, error: BaseException) -> None:
        del error
        self.failures += 1

    def _consume(self) -> None:
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap_servers, enable_auto_commit=False)
        consumer.assign([TopicPartition(self._topic, number) for number in range(self._partitions)])
        consumer.seek_to_end()
        while not self._stop.is_set():
            self.read += sum(map(len, consumer.poll(timeout_ms=200).values()))
        consumer.close()
