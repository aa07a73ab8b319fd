"""Producers, and a reader of what they had acknowledged: each record is there, once, in the order of its producer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from kafka.errors import KafkaError

from testbed.producing import Producing
from testbed.records import Ledger, Record, read_all
from testbed.waiting import wait_until

PRODUCERS = 3
RECORDS_PER_S, RECORD_BYTES = 8.0, 600
READABLE_S = 60.0
MISSING, UNREADABLE = "records of", "records not to be read"
"""How sentences begin that tell of records."""


class CheckedRecords:
    """Producers of one topic, each with `acks=all`, from entering the `with` block until leaving it.

    `written` is what had been acknowledged before. `broken` has what did not last, in sentences.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int, written: Ledger) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._written = written
        self._producers = [
            Producing(
                bootstrap_servers,
                topic,
                partitions=partitions,
                records_per_s=RECORDS_PER_S,
                value_bytes=RECORD_BYTES,
                seed=seed,
            )
            for seed in range(1, PRODUCERS + 1)
        ]
        self._stack = ExitStack()
        self._read: dict[int, list[Record]] = {}
        self._told: set[str] = set()
        self.broken: list[str] = []

    def __enter__(self) -> Self:
        for producer in self._producers:
            self._stack.enter_context(producer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._stack.__exit__(kind, error, traceback)
        except (KafkaError, TimeoutError) as failure:
            self.broken.append(f"a producer did not last: {failure!r}")

    @property
    def count(self) -> int:
        """How many records have been acknowledged, and noted as such."""
        return sum(ledger.count for ledger in self._ledgers())

    @property
    def refused(self) -> int:
        """How many were refused."""
        return sum(len(producer.failures) for producer in self._producers)

    def newly_missing(self) -> list[str]:
        """Of each partition once: a sentence if a record of it is not there as it was sent."""
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
                return [f"{UNREADABLE}: {error!r}"]
        new = [each for each in missing if each.partition(":")[0] not in self._told]
        self._told.update(each.partition(":")[0] for each in new)
        return new

    def all_missing(self) -> list[str]:
        """The same of all records, read again from the first."""
        self._read = {}
        self._read_on()
        return self._missing(self._ledgers())

    def _ledgers(self) -> Sequence[Ledger]:
        return [self._written, *(producer.ledger for producer in self._producers)]

    def _missing(self, ledgers: Sequence[Ledger]) -> list[str]:
        read = Ledger(self._topic, {index: tuple(records) for index, records in self._read.items()})
        return [f"{MISSING} {problem}" for ledger in ledgers for problem in ledger.missing_from(read)]

    def _read_on(self) -> None:
        begin = {index: records[-1].offset + 1 for index, records in self._read.items() if records}
        for index, records in read_all(self._servers, self._topic, begin=begin).partitions.items():
            self._read.setdefault(index, []).extend(records)
