"""Every test of this folder needs real brokers."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests as they are found, before any are chosen by marker."""
    item.add_marker(pytest.mark.kafka)
