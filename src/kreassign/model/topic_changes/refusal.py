"""Why a change is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """One item that will not be done: the code by which Kafka refuses it, and the sentence that says why."""

    code: int
    message: str
