"""The cordon of a broker (KIP-1066): the value of `cordoned.log.dirs` that closes its log directories, and its undoing.

    not set            →  *                 →  not set
    /d1, one of two    →  refused: it could not be put back, for Kafka 4.3.1 takes `*` only by itself
    *, or all of them  →  stays as it is    →  `*` is taken back, other values stay: they were not ours

So nothing but the value itself is needed to undo it, by whomever. `*` also closes directories that are added later.
"""

from __future__ import annotations

from collections.abc import Sequence

from kreassign.model import ConfigChange, LogDir

CORDONED_LOG_DIRS = "cordoned.log.dirs"
ALL = "*"

CORDON = ConfigChange.set(CORDONED_LOG_DIRS, ALL)
UNCORDON = ConfigChange.delete(CORDONED_LOG_DIRS)


def is_ours(value: str | None) -> bool:
    """Whether this value is the one that `CORDON` sets."""
    return value == ALL


def is_closed(value: str | None, log_dirs: Sequence[LogDir]) -> bool:
    """Whether a broker takes no new replicas. A directory that is offline takes none as it is."""
    working = [one for one in log_dirs if one.error is None]
    return is_ours(value) or (bool(working) and all(one.is_cordoned for one in working))
