"""Notices of an autopilot for people: one document for each receiver, delivered by `webhooks.Sender`. Pure.

    receiver       form of its document                       what its file has
    slack          text of an incoming webhook                the address, which is a secret
    teams          adaptive card of a workflow                the address, which is a secret
    pagerduty      event of version 2, resolved at the end    the address, and the routing key
    alertmanager   alert, ended at the end                    the address
    webhook        JSON with all fields, signed               the address, and the secret that signs

A digest goes to those that people read: neither PagerDuty nor Alertmanager.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from kreassign.errors import InputError
from kreassign.model.text import counted, printable
from kreassign.monitoring.webhooks import Message, Webhook, checked_secret, checked_url

DIGEST = "digest"
ALERT_DAYS = 7
"""An alert ends by itself after so long, should the autopilot be gone."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Finding (`key`) or digest: its subject and cost, why, and what to do. `is_over` ends a finding."""

    cluster_id: str
    key: str
    kind: str
    severity: str
    at_ms: int
    what: str
    why: str
    commands: tuple[str, ...] = ()
    is_over: bool = False

    @property
    def news(self) -> str:
        """Kind of the notice, for receivers and for reports of a loss."""
        return DIGEST if self.kind == DIGEST else "over" if self.is_over else "finding"


class Letter(NamedTuple):
    """A document without signature, as `webhooks.Sender` delivers it."""

    news: str
    body: bytes

    def headers(self, secret: bytes, at_s: int) -> dict[str, str]:
        """Headers of an attempt."""
        del secret, at_s
        return {"Content-Type": "application/json"}


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


def _slack(notice: Notice, _: Webhook) -> Letter:
    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    commands = f"\n```{escaped(chr(10).join(notice.commands))}```" if notice.commands else ""
    return Letter(notice.news, _json({"text": f"*{escaped(notice.what)}*\n{escaped(notice.why)}{commands}"}))


def _teams(notice: Notice, _: Webhook) -> Letter:
    lines = (
        {"type": "TextBlock", "wrap": True, "weight": "Bolder", "text": notice.what},
        {"type": "TextBlock", "wrap": True, "text": notice.why},
        *({"type": "TextBlock", "wrap": True, "fontType": "Monospace", "text": one} for one in notice.commands),
    )
    card = {"type": "AdaptiveCard", "version": "1.4", "body": [line for line in lines if line["text"]]}
    kind = "application/vnd.microsoft.card.adaptive"
    return Letter(notice.news, _json({"type": "message", "attachments": [{"contentType": kind, "content": card}]}))


def _pagerduty(notice: Notice, to: Webhook) -> Letter:
    event = {
        "routing_key": to.secret.decode(),
        "event_action": "resolve" if notice.is_over else "trigger",
        "dedup_key": f"kreassign {notice.cluster_id} {notice.key}",
        "payload": {
            "summary": notice.what[:1024],
            "source": notice.cluster_id,
            "severity": notice.severity,
            "class": notice.kind,
            "custom_details": {"why": notice.why, "commands": list(notice.commands)},
        },
    }
    return Letter(notice.news, _json(event))


def _alertmanager(notice: Notice, _: Webhook) -> Letter:
    ends_ms = notice.at_ms if notice.is_over else notice.at_ms + ALERT_DAYS * 86_400_000
    alert = {
        "labels": {
            "alertname": "KreassignFinding",
            "cluster_id": notice.cluster_id,
            "finding": notice.key,
            "kind": notice.kind,
            "severity": notice.severity,
        },
        "annotations": {"summary": notice.what, "description": "\n".join((notice.why, *notice.commands))},
        "endsAt": datetime.fromtimestamp(ends_ms / 1000, tz=UTC).isoformat(),
    }
    return Letter(notice.news, _json([alert]))


def _webhook(notice: Notice, _: Webhook) -> Message:
    delivery = f"{notice.cluster_id}-{notice.key}-{notice.at_ms}-{notice.news}"
    return Message(notice.news, delivery, _json({"event": notice.news, "delivery": delivery} | asdict(notice)))


@dataclass(frozen=True, slots=True)
class Receiver:
    """A row: the form of its documents, whether it takes a digest, and what the second line of its file is."""

    form: Callable[[Notice, Webhook], Letter | Message]
    takes_digest: bool = True
    second_line: str = ""
    may_be_plain: bool = field(default=False, kw_only=True)

    def documents(self, notice: Notice, to: Webhook) -> tuple[Letter | Message, ...]:
        """The document for a notice, if it takes such."""
        return (self.form(notice, to),) if self.takes_digest or notice.kind != DIGEST else ()


RECEIVERS: Mapping[str, Receiver] = MappingProxyType({
    "slack": Receiver(_slack),
    "teams": Receiver(_teams),
    "pagerduty": Receiver(_pagerduty, takes_digest=False, second_line="the routing key"),
    "alertmanager": Receiver(_alertmanager, takes_digest=False, may_be_plain=True),
    "webhook": Receiver(_webhook, second_line="the secret that signs"),
})  # fmt: skip


def receiver_of(name: str, text: str) -> Webhook:
    """Parse the file of a receiver. Raises InputError, which repeats nothing of it: addresses are secrets, too."""
    row = RECEIVERS[name]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wanted = 2 if row.second_line else 1
    if len(lines) != wanted:
        second = f", and below it {row.second_line}" if row.second_line else ""
        raise InputError(f"it has {counted(len(lines), 'line')}; write the address for {name}{second}")
    try:
        url = checked_url(lines[0], may_be_plain=row.may_be_plain)
    except InputError:
        scheme = "http:// or https://" if row.may_be_plain else "https://"
        raise InputError(f"its first line is no address for {name} that begins with {scheme}") from None
    return Webhook(url, checked_secret(lines[1]) if row.second_line else b"")


def printable_notice(notice: Notice) -> Notice:
    """The notice with names and sentences of the cluster made printable."""
    texts = {name: printable(getattr(notice, name)) for name in ("cluster_id", "key", "what", "why")}
    fields = {**asdict(notice), **texts, "commands": tuple(map(printable, notice.commands))}
    return Notice(**fields)
