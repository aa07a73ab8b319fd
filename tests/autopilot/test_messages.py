"""Messages of an autopilot: a document for each receiver, once for each change, and never in the way of a look."""

from __future__ import annotations

import io
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kreassign.autopilot.events import Name
from kreassign.autopilot.memory import Memory
from kreassign.autopilot.messages import Message, digest_is_due
from kreassign.autopilot.policy import Kind, Policy, parse_policy
from kreassign.cli.commands.autopilot import printing
from kreassign.clock import SystemClock
from kreassign.errors import InputError
from kreassign.monitoring.notices import RECEIVERS
from kreassign.monitoring.webhooks import WAITING, signature
from kreassign.operations.autopilot_messages import messaging, receivers
from testbed.waiting import wait_until
from tests.autopilot.values import DAY, HOUR, MINUTE, Watched, cluster
from tests.monitoring.receiver import Receiver, receiving

LISTS = [(one % 9, (one + 1) % 9, (one + 2) % 9) for one in range(18)]
GONE = Name(Kind.BROKER_GONE, "broker 3")
KEY = "0123456789abcdef0123"
TOLD = Message(GONE, "broker-gone broker 3: down <for> 2m", "it is only told", ("kreassign doctor",))
OVER = Message(GONE, "broker-gone broker 3: it is over", "down for 2m", is_over=True)
DIGEST = Message(None, "digest: 1 open finding", "broker-gone broker 3")
SOON = (0.01, 0.02)


def sent(folder: Path, name: str, receiver: Receiver, *messages: Message) -> tuple[list[Any], list[str]]:
    """Send messages to one receiver: the documents that arrived, and what was warned of."""
    file = folder / "receiver"
    file.write_text(f"{receiver.url}\n{KEY if RECEIVERS[name].second_line else ''}\n")
    policy = parse_policy(f"[messages]\n{name} = '{file}'", "policy.toml")
    warnings: list[str] = []
    with messaging(policy.messages, "c-1", SystemClock(), warnings.append, retries_s=SOON) as tell:
        for one in messages:
            tell(one)
    return [json.loads(body) for _, body in receiver.got], warnings


def test_slack_gets_a_text_without_markup_of_its_own(tmp_path: Path) -> None:
    with receiving() as receiver:
        (told, _, digest), _ = sent(tmp_path, "slack", receiver, TOLD, OVER, DIGEST)
    assert told == {
        "text": "*broker-gone broker 3: down &lt;for&gt; 2m*\nit is only told\n```kreassign doctor```"
    }  # fmt: skip
    assert digest["text"].startswith("*digest: 1 open finding*")


def test_teams_gets_an_adaptive_card(tmp_path: Path) -> None:
    with receiving() as receiver:
        ((told,), _) = sent(tmp_path, "teams", receiver, TOLD)
    (card,) = told["attachments"]
    assert card["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert [line["text"] for line in card["content"]["body"]] == [TOLD.what, TOLD.why, *TOLD.commands]


def test_pagerduty_opens_and_resolves_one_incident(tmp_path: Path) -> None:
    with receiving() as receiver:
        ((told, over), _) = sent(tmp_path, "pagerduty", receiver, TOLD, OVER, DIGEST)
    assert (told["routing_key"], told["event_action"], over["event_action"]) == (KEY, "trigger", "resolve")
    assert told["dedup_key"] == over["dedup_key"] == "kreassign c-1 broker-gone broker 3"
    assert (told["payload"]["severity"], told["payload"]["summary"]) == ("error", TOLD.what)


def test_alertmanager_gets_an_alert_and_its_end(tmp_path: Path) -> None:
    with receiving() as receiver:
        ([[told], [over]], _) = sent(tmp_path, "alertmanager", receiver, TOLD, OVER, DIGEST)
    assert told["labels"] == over["labels"]
    assert told["labels"]["alertname"] == "KreassignFinding"
    assert over["endsAt"] < told["endsAt"]


def test_any_webhook_gets_all_fields_signed(tmp_path: Path) -> None:
    with receiving() as receiver:
        ((told, digest), _) = sent(tmp_path, "webhook", receiver, TOLD, DIGEST)
    assert {name: told[name] for name in ("event", "key", "kind", "severity", "cluster_id", "commands")} == {
        "event": "finding", "key": str(GONE), "kind": "broker-gone", "severity": "error", "cluster_id": "c-1",
        "commands": ["kreassign doctor"],
    }  # fmt: skip
    assert digest["event"] == "digest"
    headers, body = receiver.got[0]
    assert headers["Kreassign-Signature"] == f"v1={signature(KEY.encode(), int(headers['Kreassign-Timestamp']), body)}"


@pytest.mark.parametrize("name", RECEIVERS)
def test_a_loss_is_told_and_no_secret_with_it(tmp_path: Path, name: str) -> None:
    with receiving([403]) as receiver:
        _, warnings = sent(tmp_path, name, receiver, TOLD)
    (warning,) = warnings
    host = receiver.url.partition("/hook")[0]
    assert warning == f"a message to {name} was not delivered (finding: {host} answered 403)"


def test_the_latest_message_of_a_finding_is_sent_until_it_arrives(tmp_path: Path) -> None:
    """Three attempts at each message find the receiver down; the first one after it is not wanted any more."""
    policy = parse_policy(f"[messages]\nslack = '{tmp_path / 'slack'}'", "policy.toml")
    warnings: list[str] = []
    with receiving([503] * 9) as receiver:
        (tmp_path / "slack").write_text(receiver.url)
        with messaging(policy.messages, "c-1", SystemClock(), warnings.append, retries_s=SOON, again_s=0.05) as tell:
            tell(TOLD)
            tell(OVER)
            wait_until(lambda: len(receiver.got) == 10, what="the message that arrives")
        arrived = [json.loads(body)["text"] for _, body in receiver.got[6:]]
    assert [OVER.what in one for one in arrived] == [True] * 4
    assert len(warnings) == 2, "each is told once"


def test_a_message_that_cannot_be_printed_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    messages, closed = list[Message](), io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    tell = printing(messages.append)
    tell(TOLD)
    tell(OVER)
    assert messages == [TOLD, OVER]


def test_a_receiver_that_hangs_delays_nothing_and_its_losses_are_told(tmp_path: Path) -> None:
    policy = parse_policy(f"[messages]\nslack = '{tmp_path / 'slack'}'", "policy.toml")
    clock, warnings = SystemClock(), list[str]()
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving(keeps_silent=True))
        (tmp_path / "slack").write_text(receiver.url)
        with messaging(policy.messages, "c-1", clock, warnings.append, last_s=0.2) as tell:
            begun_s = clock.monotonic_s()
            for _ in range(WAITING + 10):
                tell(TOLD)
            assert clock.monotonic_s() - begun_s < 5
    assert 9 <= len(warnings) <= 11
    assert f"{WAITING} others wait already" in warnings[0]
    assert "hook" not in " ".join(warnings)


@pytest.mark.parametrize(("name", "text", "said"), [
    ("slack", "", "it has 0 lines; write the address for slack"),
    ("slack", "http://hooks.example/SECRET", "its first line is no address for slack that begins with https://"),
    ("slack", "https://SECRET\nmore", "it has 2 lines"),
    ("pagerduty", "https://events.pagerduty.example", "and below it the routing key"),
    ("webhook", "https://h.example\nshort", "the secret of the webhook has 5 bytes"),
    ("alertmanager", "ftp://SECRET", "begins with http:// or https://"),
])  # fmt: skip
def test_a_wrong_file_is_named_and_not_repeated(tmp_path: Path, name: str, text: str, said: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        receivers(parse_policy(f"[messages]\n{name} = '{file}'", "policy.toml").messages)
    assert str(refused.value).startswith(f"{file}: ")
    assert said in str(refused.value)
    assert "SECRET" not in str(refused.value)


def test_a_missing_file_of_a_receiver_is_named(tmp_path: Path) -> None:
    policy = parse_policy(f"[messages]\nteams = '{tmp_path}/none'", "policy.toml")
    with pytest.raises(InputError, match=r"none, which \[messages\] names for teams: No such file"):
        receivers(policy.messages)


def test_alertmanager_may_be_reached_without_tls(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("http://alertmanager.monitoring:9093/api/v2/alerts\n")
    policy = parse_policy(f"[messages]\nalertmanager = '{tmp_path}/file'", "policy.toml")
    assert str(receivers(policy.messages)["alertmanager"]) == "http://alertmanager.monitoring:9093"


def test_each_change_of_state_is_told_once() -> None:
    watched = Watched(
        "[messages]\ndigest-at = ''",
        lambda now_s: cluster(0, LISTS, down=[3] if 600 <= now_s < 5 * HOUR else []),
    )
    watched.watch(6 * HOUR)
    assert [one.is_over for one in watched.messages if one.name == GONE] == [False, True]


def test_a_digest_is_told_once_a_day_at_its_time() -> None:
    policy = "[messages]\nslack = '/s'\ndigest-at = '06:30'\n[runs]\ntime-zone = 'Europe/Berlin'"
    watched = Watched(policy, lambda _: cluster(0, LISTS, down=[3]))
    watched.watch(3 * DAY, every_s=5 * MINUTE)
    digests = [one for one in watched.messages if one.name is None]
    assert len(digests) == 3
    assert digests[0].what == "digest: 1 open finding, 0 repairs in 24 h, 0 B"
    assert "broker-gone broker 3 (told): " in digests[0].why


@pytest.mark.parametrize(("last_hour", "hour", "is_due"), [(7.9, 8.0, True), (8.0, 8.1, False), (8.0, 31.9, False),
                                                          (8.0, 32.0, True), (None, 8.0, False)])  # fmt: skip
def test_a_digest_is_due_when_its_time_has_come(last_hour: float | None, hour: float, is_due: bool) -> None:
    memory = Memory("c", looked_ms=None if last_hour is None else round(last_hour * HOUR * 1000))
    policy = parse_policy("[messages]\nteams = '/t'", "policy.toml")
    assert digest_is_due(memory, round(hour * HOUR * 1000), policy) is is_due
    assert not digest_is_due(memory, round(hour * HOUR * 1000), Policy())
