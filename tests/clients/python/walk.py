"""Prints what a client found, step by step, as lines of JSON that `tests.clients` compares."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from testbed.waiting import wait_until

PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Walk:
    """One walk of one client over one cluster.

    `failure` is what the client raises, `code_of` finds Kafka's error code in it.
    """

    bootstrap: str
    topic: str
    failure: type[Exception]
    code_of: Callable[[Exception], int | None]

    def step(self, name: str, find: Callable[[], object]) -> None:
        """Print what was found: a value, Kafka's error code, or the client's own error."""
        try:
            found = find()
        except self.failure as error:
            code = self.code_of(error)
            found = {"error": f"{type(error).__name__}: {error}"} if code is None else {"code": code}
        sys.stdout.write(json.dumps({"step": name, "found": found}) + "\n")
        sys.stdout.flush()


def start(failure: type[Exception], code_of: Callable[[Exception], int | None]) -> Walk:
    """The walk that the arguments of a program ask for."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} HOST:PORT[,HOST:PORT...] TOPIC")
    return Walk(sys.argv[1], sys.argv[2], failure, code_of)


def once_so(find: Callable[[], object], wanted: object) -> object:
    """Poll until the value is as wanted, which brokers learn one after the other; any value after the deadline."""
    found: list[object] = []

    def is_so() -> bool:
        found.append(find())
        return found[-1] == wanted

    with suppress(TimeoutError):
        wait_until(is_so, what="as wanted")
    return found[-1]
