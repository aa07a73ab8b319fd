"""Every test of this folder needs real brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.run_processes import end_started


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests as they are found, before any are chosen by marker."""
    item.add_marker(pytest.mark.kafka)


@pytest.fixture(autouse=True)
def started_runs() -> Iterator[None]:
    """No run outlives its test."""
    yield
    end_started()
