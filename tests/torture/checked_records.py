"""Producers, and a reader of what they had acknowledged: each record is there, once, in the order of its producer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kafka.errors import KafkaError

from testbed.producing import Producing
from testbed.records import Ledger, Record, read_all
from testbed.waiting import wait_until

PRODUCERS = 3
RECORDS_PER_S, RECORD_BYTES = 8.0, 600
READABLE_S = 60.0


class CheckedRecords:
    """Producers of one topic, each with `acks=all`, which produce within `producing`.

    `written` is what had been acknowledged before. `broken` has what did not last, in sentences.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int, written: Ledger) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._written = written
        self._producers = [
            Producing(
                bootstrap_servers, topic, partitions=partitions, records_per_s=RECORDS_PER_S,
                value_bytes=RECORD_BYTES, seed=seed,
            )
            for seed in range(1, PRODUCERS + 1)
        ]  # fmt: skip
        self._read: dict[int, list[Record]] = {}
        self._named: set[str] = set()
        self.broken: list[str] = []

    @contextmanager
    def producing(self) -> Iterator[None]:
        with ExitStack() as stack:
            for producer in self._producers:
                stack.enter_context(producer)
            try:
                yield
            finally:
                try:
                    stack.close()
                except (KafkaError, TimeoutError) as failure:
                    self.broken.append(f"a producer did not last: {failure!r}")

    @property
    def count(self) -> int:
        return sum(ledger.count for ledger in self._ledgers())

    @property
    def refused(self) -> int:
        return sum(len(producer.failures) for producer in self._producers)

    def newly_missing(self) -> list[str]:
        """Sentence for each partition, once, if a record of it is not there as it was sent."""
        ledgers = self._ledgers()
        missing: list[str] = []

        def are_there() -> bool:
            self._read_on()
            missing[:] = self._missing(ledgers)
            return not missing

        try:
            # A new leader shows the last records only once its followers have fetched them.
            wait_until(are_there, timeout_s=READABLE_S, what="all acknowledged records readable", every_s=1)
        except (KafkaError, TimeoutError) as error:
            if not missing:
                return [f"records not to be read: {error!r}"]
        new = [each for each in missing if each.partition(":")[0] not in self._named]
        self._named.update(each.partition(":")[0] for each in new)
        return new

    def all_missing(self) -> list[str]:
        """Sentences about all records, read again from the first."""
        self._read = {}
        self._read_on()
        return self._missing(self._ledgers())

    def _ledgers(self) -> Sequence[Ledger]:
        return [self._written, *(producer.ledger for producer in self._producers)]

    def _missing(self, ledgers: Sequence[Ledger]) -> list[str]:
        read = Ledger(self._topic, {index: tuple(records) for index, records in self._read.items()})
        return [f"records of {problem}" for ledger in ledgers for problem in ledger.missing_from(read)]

    def _read_on(self) -> None:
        begin = {index: records[-1].offset + 1 for index, records in self._read.items() if records}
        for index, records in read_all(self._servers, self._topic, begin=begin).partitions.items():
            self._read.setdefault(index, []).extend(records)
