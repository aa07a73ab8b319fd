"""The result of a command: records to write to the metadata log, and the response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from kreassign.model.error_codes import NONE, POLICY_VIOLATION, REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR, error_code
from kreassign.twin.metadata.records import Record

Answer = TypeVar("Answer")

MAX_RECORDS = 10_000
"""The most records that one request of a client may write."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item of a request: Kafka's error code, and the message (None is null on the wire)."""

    code: int = NONE
    message: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether the item was refused."""
        return self.code != NONE

    def __str__(self) -> str:
        return f"{error_code(self.code)}: {self.message}" if self.is_failure else "done"


DONE = Outcome()
TIMED_OUT = Outcome(REQUEST_TIMED_OUT)
FAILED = Outcome(UNKNOWN_SERVER_ERROR)
"""An error inside the controller; it never has a message."""
TOO_LARGE = Outcome(POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
"""What a request gets that would write more than `MAX_RECORDS` and cannot be cut short."""


def with_default_text(code: int) -> Outcome:
    """A refusal that carries the text that Kafka keeps for its code."""
    return Outcome(code, error_code(code).text)


def has_expired(timeout_ms: int) -> bool:
    """Whether a request's time is up before anything is looked at: the wait for its turn counts, too."""
    return timeout_ms <= 0


@dataclass(frozen=True, slots=True)
class Decision(Generic[Answer]):
    """Records in the order in which they are to be applied, all of them or none; and the answer."""

    records: tuple[Record, ...]
    answer: Answer
