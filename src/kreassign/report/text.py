"""PURE. Amounts, times and lists as text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from kreassign.model.amount import format_amount


def format_bytes(count: float | None) -> str:
    """A count of bytes in decimal units with three digits: `1.23 GB`, `45.6 MB`, `789 B`; `-` when it is not known."""
    return "-" if count is None else format_amount(float(count), "B")


def format_signed_bytes(count: float) -> str:
    """A change of a count of bytes: `+1.23 GB`, `-45.6 MB`, `0 B`."""
    return f"{'+' if count > 0 else ''}{format_bytes(count)}"


def format_rate(bytes_per_s: float | None) -> str:
    """A rate, or `-` when it is not known."""
    return "-" if bytes_per_s is None else f"{format_bytes(bytes_per_s)}/s"


def format_duration(seconds: float | None) -> str:
    """A duration as `0:42`, `12:03` or `3:04:05`, or `-` when it is not known."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_time(time_ms: int | None) -> str:
    """A point in time as `2026-11-04 10:15:00 UTC`, or `-` when it is not known."""
    return "-" if time_ms is None else f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_count(count: int | None) -> str:
    """A count with groups of three digits: `1,200`; `-` when it is not known."""
    return "-" if count is None else f"{count:,}"


def format_change(now: float | None, before: float | None, text: Callable[[float | None], str]) -> str:
    """How much an amount has changed: `+1.2 GB (+0.5%)`; `-` when one of them is not known."""
    if now is None or before is None:
        return "-"
    change = now - before
    share = f" ({change / before:+.1%})" if before else ""
    return f"{'-' if change < 0 else '+'}{text(abs(change))}{share}"


def format_replicas(brokers: tuple[int, ...]) -> str:
    """A replica list as Kafka's tools print it: `1,2,3`."""
    return ",".join(map(str, brokers))
