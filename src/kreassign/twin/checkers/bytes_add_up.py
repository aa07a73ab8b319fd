"""Bytes on disk add up: what every directory is said to hold is the sum of the copies in it.

Replication keeps sums that it changes with every copy, so that idle ones cost nothing; here they are added up again.
"""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.twin.core import Step, TwinCore

# Sums of millions of numbers up to 10^13 may differ by rounding.
_ROUNDING = 1e-9
_LEAST = 1.0


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Directories of which this is not so."""
    del step
    for usage in twin.replication.readings.usages():
        allowed = max(_LEAST, _ROUNDING * usage.added_up_bytes)
        where = f"{usage.path} of broker {usage.broker}"
        if abs(usage.counted_bytes - usage.added_up_bytes) > allowed:
            yield f"{where} is said to hold {usage.counted_bytes} bytes, and its copies have {usage.added_up_bytes}"
        if usage.to_be_deleted_bytes < -allowed:
            yield f"{where} waits for the deletion of {usage.to_be_deleted_bytes} bytes"
        if usage.counted_logs != usage.present_logs:
            yield f"{where} is said to hold {usage.counted_logs} logs, and has {usage.present_logs}"
