"""What a webhook is told of a run, and how it knows that the run said so. Pure.

A message is sent when a run is held, and when it comes to rest: done, failed, cancelled or paused. It is a JSON
document, signed as Stripe and others do: `HMAC-SHA256(secret, "<timestamp>.<body>")`, in hexadecimal digits. The
timestamp is of the attempt, so that a receiver can refuse what somebody sends once more later.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType

from kreassign.errors import InputError
from kreassign.executor.state import Phase
from kreassign.model.printable import printable
from kreassign.monitoring.run_metrics import RunMetrics

SHOWN = 20
"""So many verdicts and problems are told; the rest is counted."""

SHORTEST_SECRET = 16
SIGNATURE = "Kreassign-Signature"
TIMESTAMP = "Kreassign-Timestamp"
EVENT = "Kreassign-Event"
DELIVERY = "Kreassign-Delivery"


class News(StrEnum):
    """What is told."""

    HELD = "held"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


NEWS_OF_PHASE: Mapping[Phase, News] = MappingProxyType({
    Phase.PAUSED: News.PAUSED,
    Phase.DONE: News.DONE,
    Phase.CANCELLED: News.CANCELLED,
    Phase.FAILED: News.FAILED,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `delivery` is the same whenever it is sent again, so that a receiver can tell."""

    news: News
    delivery: str
    body: bytes

    def headers(self, secret: bytes, at_s: int) -> dict[str, str]:
        """The headers of an attempt at this time, in seconds since the epoch."""
        return {
            "Content-Type": "application/json",
            EVENT: self.news.value,
            DELIVERY: self.delivery,
            TIMESTAMP: str(at_s),
            SIGNATURE: f"v1={signature(secret, at_s, self.body)}",
        }


def message(news: News, run: RunMetrics) -> Message:
    """What is told of a run. Names and sentences of a cluster are printable, whatever it called them."""
    delivery = f"{printable(run.run_id)}-{run.at_ms}-{news}"
    problems = (*run.verdicts, *run.problems)
    end = None if run.end is None else asdict(run.end)
    document = {
        "event": news.value,
        "delivery": delivery,
        "run_id": printable(run.run_id),
        "cluster_id": printable(run.cluster_id),
        "plan_id": run.plan_id,
        "phase": run.phase.value,
        "at_ms": run.at_ms,
        "started_ms": run.started_ms,
        "ended_ms": run.ended_ms,
        "moves": {status.value: count for status, count in run.moves.items()},
        "copied_bytes": run.copied_bytes,
        "left_bytes": run.left_bytes,
        "eta": end,
        "why_held": None if run.why_held is None else printable(run.why_held),
        "problems": [printable(problem) for problem in problems[:SHOWN]],
        "problem_count": len(problems),
        "open_settings": run.open_settings,
    }
    return Message(news, delivery, json.dumps(document).encode())


def signature(secret: bytes, at_s: int, body: bytes) -> str:
    """What a receiver compares with the header, in constant time."""
    return hmac.new(secret, f"{at_s}.".encode() + body, sha256).hexdigest()


def checked_secret(text: str) -> bytes:
    """A secret without the line end of its file. Raises InputError for one that could be guessed."""
    secret = text.strip().encode()
    if len(secret) < SHORTEST_SECRET:
        raise InputError(
            f"the secret of the webhook has {len(secret)} bytes; use at least {SHORTEST_SECRET}, for example from "
            "`openssl rand -hex 32`"
        )
    return secret
