"""The guide's list of tests of other clients: how each ended on real Kafka and on a twin, and what is left out why.

The guide is the record, which `make test-clients` writes; the reasons are in `known.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from tests.clients.known import FAILS_ON_KAFKA_TOO, LEFT_OUT, REFUSED_AT_ONCE, WITHOUT_TESTS
from tests.clients.programs import ROOT

GUIDE = ROOT / "docs" / "guides" / "test-your-tooling-against-the-twin.md"
SECTION = "suites of other clients"
AT_ONCE_S = 15.0
"""How long a test may take on a twin that refuses what the test needs; setting up and taking down included."""
_HEAD = "| Suite | Test | On Kafka | On the twin |\n|---|---|---|---|"
_LEFT_OUT = "left out: "
_ROW = re.compile(rf"(?m)^\| (.+) \| `(\w+)` \| (passed|failed|not run) \| (passed|failed|not run|{_LEFT_OUT}.+) \|$")


class End(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


class Ended(NamedTuple):
    """How a test ended, and after how many seconds."""

    end: End
    seconds: float = 0.0


Results = Mapping[str, Ended]
"""The tests of a suite on one cluster, by name."""
NOT_RUN = Ended(End.NOT_RUN)


class Row(NamedTuple):
    """A test of a suite, on real Kafka and on a twin."""

    suite: str
    test: str
    on_kafka: End
    on_twin: Ended

    @property
    def reason(self) -> str | None:
        """Why the test is left out on a twin; None if it is not."""
        return LEFT_OUT[self.suite].get(self.test)


def side_by_side(suite: str, tests: Iterable[str], on_kafka: Results, on_twin: Results) -> tuple[Row, ...]:
    """Rows of a suite: these tests, and all others that ran or are left out."""
    every = sorted({*tests, *LEFT_OUT[suite], *on_kafka, *on_twin})
    return tuple(Row(suite, test, on_kafka.get(test, NOT_RUN).end, on_twin.get(test, NOT_RUN)) for test in every)


def surprises(row: Row) -> Iterator[str]:
    """Sentences about a test that ended otherwise than `known.py` explains."""
    on_twin, seconds = row.on_twin
    missed = [where for where, end in (("Kafka", row.on_kafka), ("the twin", on_twin)) if end is End.NOT_RUN]
    if missed and row.reason not in FAILS_ON_KAFKA_TOO:
        yield f"{row.test} was not run on {' and on '.join(missed)}"
    elif on_twin is End.PASSED:
        if row.reason:
            yield f"{row.test} passed on the twin, though it is left out: {row.reason}"
    elif row.reason is None:
        if row.on_kafka is not End.FAILED:
            yield f"{row.test}: {row.on_kafka} on Kafka, {on_twin} on the twin, for no reason in known.py"
    elif row.on_kafka is End.PASSED and row.reason in FAILS_ON_KAFKA_TOO:
        yield f"{row.test} passed on Kafka, which does not have what it is left out for: {row.reason}"
    elif row.reason in REFUSED_AT_ONCE and seconds > AT_ONCE_S:
        yield f"{row.test} took {seconds:.0f} s on the twin, which refuses at once: {row.reason}"


def suite_table(rows: Iterable[Row]) -> str:
    """The guide's list."""
    tests = (f"| {row.suite} | `{row.test}` | {row.on_kafka} | {_shown(row)} |" for row in rows)
    others = (f"| {client} | none | not run | not run: {why} |" for client, why in WITHOUT_TESTS.items())
    return "\n".join((_HEAD, *tests, *others))


def _shown(row: Row) -> str:
    is_left_out = row.reason is not None and row.on_twin.end is not End.PASSED
    return f"{_LEFT_OUT}{row.reason}" if is_left_out else row.on_twin.end


def recorded(page: str) -> tuple[Row, ...]:
    """Rows of the guide's list. A test that is left out failed on the twin."""
    return tuple(
        Row(suite, test, End(on_kafka), Ended(End.FAILED if on_twin.startswith(_LEFT_OUT) else End(on_twin)))
        for suite, test, on_kafka, on_twin in _ROW.findall(page)
    )
