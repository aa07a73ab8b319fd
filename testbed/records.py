"""Real records: written with a seed, noted when acknowledged, and read back to prove that none was lost."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Any, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from testbed.errors import RecordsLost
from testbed.waiting import PATIENCE_S

BATCH_BYTES = 900_000

_CHECKSUM_BYTES = 8
_MOST_UNSETTLED_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is in the log: its offset, its size (key and value) and a checksum over both."""

    offset: int
    size_bytes: int
    checksum: int

    @classmethod
    def of(cls, offset: int, key: bytes, value: bytes) -> Self:
        """The record with that content."""
        checksum = blake2b(key + value, digest_size=_CHECKSUM_BYTES).digest()
        return cls(offset, len(key) + len(value), int.from_bytes(checksum, "big"))


@dataclass(frozen=True, slots=True)
class Ledger:
    """Records of a topic by partition.

    Either those that one producer had acknowledged, in the order in which it sent them, or those that were read, in
    the order of the log.
    """

    topic: str
    partitions: Mapping[int, tuple[Record, ...]]

    @property
    def count(self) -> int:
        """Number of records."""
        return sum(map(len, self.partitions.values()))

    @property
    def size_bytes(self) -> int:
        """The bytes of keys and values."""
        return sum(record.size_bytes for records in self.partitions.values() for record in records)

    def missing_from(self, read: Ledger) -> tuple[str, ...]:
        """A sentence per partition that does not hold all of these records, once, unchanged and as they were sent."""
        return tuple(
            problem
            for index, records in sorted(self.partitions.items())
            for problem in _problems(f"{self.topic}-{index}", records, read.partitions.get(index, ()))
        )


def _problems(name: str, acknowledged: tuple[Record, ...], read: tuple[Record, ...]) -> Iterator[str]:
    found = set(read)
    lost = [record.offset for record in acknowledged if record not in found]
    if lost:
        yield f"{name}: {len(lost)} of {len(acknowledged)} acknowledged records lost or changed, first at {lost[0]}"
    times = Counter((record.size_bytes, record.checksum) for record in read)
    repeated = [one.offset for one in acknowledged if times[one.size_bytes, one.checksum] > 1]
    if repeated:
        yield f"{name}: {len(repeated)} acknowledged records are there more than once, first at {repeated[0]}"
    offsets = [record.offset for record in acknowledged]
    if offsets != sorted(set(offsets)):
        yield f"{name}: offsets were not given in the order of sending"


class Writer:
    """Sends records to one topic (acks=all, idempotent) and notes what was acknowledged. Used by one thread.

    Records are sent in batches of at most `batch_bytes`, or alone where they are bigger.
    """

    def __init__(self, bootstrap_servers: str, topic: str, batch_bytes: int = BATCH_BYTES) -> None:
        self._topic = topic
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            acks="all",
            batch_size=batch_bytes,
            linger_ms=5,
            max_request_size=8_000_000,
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )
        self._unsettled: deque[tuple[Any, int, bytes, bytes]] = deque()
        self._unsettled_bytes = 0
        self._records: dict[int, list[Record]] = {}
        self.failures: list[str] = []

    def send(self, partition: int, key: bytes, value: bytes) -> None:
        """Send a record; waits for older ones when too many are unanswered."""
        future = self._producer.send(self._topic, value, key=key, partition=partition)
        self._unsettled.append((future, partition, key, value))
        self._unsettled_bytes += len(value)
        self.settle(_MOST_UNSETTLED_BYTES)

    def settle(self, most_bytes: int = 0) -> None:
        """Note the answers that are there to the oldest records; wait until at most so many bytes are unanswered."""
        while self._unsettled and (self._unsettled_bytes > most_bytes or self._unsettled[0][0].is_done):
            future, partition, key, value = self._unsettled.popleft()
            self._unsettled_bytes -= len(value)
            try:
                answer = future.get(timeout=PATIENCE_S)
            except KafkaError as error:
                self.failures.append(f"{self._topic}-{partition}: {error!r}")
            else:
                self._records.setdefault(partition, []).append(Record.of(answer.offset, key, value))

    def ledger(self) -> Ledger:
        """Records noted as acknowledged so far."""
        return Ledger(self._topic, {index: tuple(records) for index, records in self._records.items()})

    def close(self) -> None:
        """Wait for all answers and let go of the connections."""
        try:
            self.settle()
        finally:
            self._producer.close(timeout=10)


def load_topic(
    bootstrap_servers: str,
    topic: str,
    bytes_per_partition: Mapping[int, int],
    *,
    value_bytes: tuple[int, int] = (10_000, 100_000),
    batch_bytes: int = BATCH_BYTES,
    seed: int = 0,
) -> Ledger:
    """Write records until every partition has about so many bytes; return what was acknowledged.

    Keys, values and sizes (within `value_bytes`) depend on the seed alone. Values cannot be compressed. RecordsLost
    if a record was refused.
    """
    writer = Writer(bootstrap_servers, topic, batch_bytes)
    try:
        for partition, key, value in _seeded(bytes_per_partition, value_bytes, seed):
            writer.send(partition, key, value)
    finally:
        writer.close()
    if writer.failures:
        raise RecordsLost(f"{topic}: {len(writer.failures)} records not acknowledged, first {writer.failures[0]}")
    return writer.ledger()


def _seeded(
    bytes_per_partition: Mapping[int, int], value_bytes: tuple[int, int], seed: int
) -> Iterator[tuple[int, bytes, bytes]]:
    random = Random(seed)
    left = dict(sorted(bytes_per_partition.items()))
    # Round robin, so that all brokers work at the same time.
    while left:
        for partition in tuple(left):
            size = max(1, min(left[partition], random.randint(*value_bytes)))
            yield partition, random.randbytes(8).hex().encode(), random.randbytes(size)
            left[partition] -= size
            if left[partition] <= 0:
                del left[partition]


def read_all(
    bootstrap_servers: str, topic: str, *, begin: Mapping[int, int] | None = None, timeout_s: float = PATIENCE_S
) -> Ledger:
    """Read every record of a topic to the end as it is now; TimeoutError if that takes too long.

    From the first of each partition, or from the offset in `begin`.
    """
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=8_000_000,
        allow_auto_create_topics=False,
        metrics_enabled=False,
    )
    try:
        return _read(consumer, topic, begin or {}, time.monotonic() + timeout_s)
    finally:
        consumer.close()


def _read(consumer: Any, topic: str, begin: Mapping[int, int], deadline: float) -> Ledger:
    partitions = [TopicPartition(topic, index) for index in consumer.partitions_for_topic(topic) or ()]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    for partition in partitions:
        if partition.partition in begin:
            consumer.seek(partition, begin[partition.partition])
    ends = consumer.end_offsets(partitions)
    records: dict[int, list[Record]] = {partition.partition: [] for partition in partitions}
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic}: not read to its end in time")
        for partition, batch in consumer.poll(timeout_ms=500).items():
            records[partition.partition] += [
                Record.of(each.offset, each.key or b"", each.value or b"") for each in batch
            ]
    return Ledger(topic, {index: tuple(found) for index, found in records.items()})


def verify_readable(bootstrap_servers: str, *ledgers: Ledger) -> None:
    """Read the topics of these ledgers again; RecordsLost, naming the partitions, if an acknowledged record is gone."""
    read = {topic: read_all(bootstrap_servers, topic) for topic in sorted({ledger.topic for ledger in ledgers})}
    problems = [problem for ledger in ledgers for problem in ledger.missing_from(read[ledger.topic])]
    if problems:
        raise RecordsLost("\n".join(problems))
