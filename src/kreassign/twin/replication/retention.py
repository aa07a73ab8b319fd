"""How much of its log a topic keeps: on its brokers, and where it is tiered (KIP-405) in all. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RETENTION_BYTES = "retention.bytes"
LOCAL_RETENTION_BYTES = "local.retention.bytes"
REMOTE_STORAGE = "remote.storage.enable"
SEGMENT_BYTES = "segment.bytes"
LOG_SETTINGS = frozenset({RETENTION_BYTES, LOCAL_RETENTION_BYTES, REMOTE_STORAGE, SEGMENT_BYTES})
"""The settings of topics that decide it."""

_AS_IN_ALL = -2


@dataclass(frozen=True, slots=True)
class Tiering:
    """What lies in remote storage: up to `total_bytes` of the log (None: all), in segments of `segment_bytes`.

    A segment is there once it is full.
    """

    total_bytes: int | None = None
    segment_bytes: int = 1 << 30


def tiering_of(settings: Mapping[str, str]) -> Tiering | None:
    """How a topic with these settings is tiered; None if it is not."""
    if settings.get(REMOTE_STORAGE, "").strip().lower() != "true":
        return None
    return Tiering(_bytes(settings.get(RETENTION_BYTES)), int(settings.get(SEGMENT_BYTES, Tiering().segment_bytes)))


def kept_bytes(settings: Mapping[str, str]) -> int | None:
    """Bytes of the log that each broker keeps itself; None for all of them.

    Of a tiered topic that is a segment at least: only what is in remote storage is deleted here.
    """
    tiering, local = tiering_of(settings), settings.get(LOCAL_RETENTION_BYTES)
    if tiering is None or local is None or int(local) == _AS_IN_ALL:
        return _bytes(settings.get(RETENTION_BYTES))
    kept = _bytes(local)
    if kept is None:
        return None
    least = max(kept, tiering.segment_bytes)
    return least if tiering.total_bytes is None else min(least, tiering.total_bytes)


def _bytes(text: str | None) -> int | None:
    return None if text is None or int(text) < 0 else max(1, int(text))
