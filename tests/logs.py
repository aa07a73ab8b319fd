"""Log of the product while a test runs.

In place of pytest's plugin of logs, which sets up three handlers for each phase of each of ten thousand quick tests: a
fifth of their time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


class Logged(logging.Handler):
    """The records of all loggers, of every level."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append(record)

    @property
    def messages(self) -> list[str]:
        """Messages of warnings and worse, as a user sees them."""
        return [record.getMessage() for record in self.warnings]

    @property
    def warnings(self) -> list[logging.LogRecord]:
        """The records that a user sees."""
        return [record for record in self.records if record.levelno >= logging.WARNING]

    @property
    def text(self) -> str:
        """All of it, with what was raised."""
        return "\n".join(map(self.format, self.records))


@pytest.fixture
def logged() -> Iterator[Logged]:
    """Capture the log from here to the end of the test."""
    root, found = logging.getLogger(), Logged()
    disabled = [name for name in ("kreassign.admin.session", "uvicorn.error") if logging.getLogger(name).disabled]
    assert not disabled, f"a test of this process has disabled the loggers {', '.join(disabled)}"
    level = root.level
    root.addHandler(found)
    root.setLevel(logging.DEBUG)
    yield found
    root.setLevel(level)
    root.removeHandler(found)
