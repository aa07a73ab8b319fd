"""Handlers of every API that the twin answers. Each module registers its own at its end.

The versions that a node offers depend on the release (`twin/version.py`).
"""

from __future__ import annotations

from kreassign.twin.api import (
    cluster,
    configs,
    group_membership,
    group_offsets,
    groups,
    kip_179,
    metadata,
    produce_and_fetch,
    reassignments,
    security,
    topics,
)
from kreassign.twin.api.refusals import REFUSING
from kreassign.twin.api.request import Handler

_ROOMS = (
    cluster,
    configs,
    group_membership,
    group_offsets,
    groups,
    kip_179,
    metadata,
    produce_and_fetch,
    reassignments,
    security,
    topics,
)

HANDLERS: tuple[Handler, ...] = tuple(handler for room in _ROOMS for handler in room.HANDLERS)
"""One handler per API."""

HANDLERS_BY_KEY = {handler.api.key: handler for handler in (*HANDLERS, *REFUSING)}
"""The handlers by API key, with those that refuse."""
