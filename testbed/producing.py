"""Producing in the background while something else happens to the cluster."""

from __future__ import annotations

import threading
import time
from random import Random
from types import TracebackType
from typing import Self

from testbed.records import Ledger, Writer

_END_TIMEOUT_S = 180.0


class Producing:
    """Keeps writing records at a steady rate, from entering the `with` block until leaving it.

    `records_per_s` records of `value_bytes` bytes are spread over `partitions` partitions in turn. After the block
    `ledger` has what was acknowledged, `failures` what was refused; an error of the thread itself is raised on leaving.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        *,
        partitions: int,
        records_per_s: float = 50.0,
        value_bytes: int = 10_000,
        seed: int = 1,
    ) -> None:
        self._writer = Writer(bootstrap_servers, topic)
        self._partitions = partitions
        self._pause_s = 1.0 / records_per_s
        self._value_bytes = value_bytes
        self._random = Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"producing-{topic}", daemon=True)
        self._error: BaseException | None = None
        self._sent = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(_END_TIMEOUT_S)
        if kind is None and self._error is not None:
            raise self._error
        if kind is None and self._thread.is_alive():
            raise TimeoutError(f"{self._thread.name}: records still unanswered after {_END_TIMEOUT_S:g} s")

    @property
    def sent(self) -> int:
        """Number of records sent so far, answered or not."""
        return self._sent

    @property
    def ledger(self) -> Ledger:
        """Acknowledged records; complete after the `with` block."""
        return self._writer.ledger()

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence per record that was refused."""
        return tuple(self._writer.failures)

    def _run(self) -> None:
        try:
            self._send_until_stopped()
        except BaseException as error:  # noqa: BLE001 - raised again by __exit__
            self._error = error
        finally:
            self._writer.close()

    def _send_until_stopped(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            key, value = self._random.randbytes(8).hex().encode(), self._random.randbytes(self._value_bytes)
            self._writer.send(self._sent % self._partitions, key, value)
            self._sent += 1
            due += self._pause_s
