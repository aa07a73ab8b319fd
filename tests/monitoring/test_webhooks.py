"""Messages to a webhook: signed, sent again but not for ever, and never in the way of a run."""

from __future__ import annotations

import hmac
import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from kreassign.clock import SystemClock
from kreassign.errors import InputError
from kreassign.model.run import RunHistory
from kreassign.monitoring.webhooks import (
    Message,
    News,
    Sender,
    Webhook,
    checked_secret,
    checked_url,
    message,
    sending,
    signature,
)
from tests.executor.run_events import WHOLE, measured
from tests.monitoring.receiver import Receiver, receiving

SECRET = b"0123456789abcdef0123"
SOON = (0.01, 0.02)
LATEST_S = 60.0


@pytest.fixture
def whole() -> RunHistory:
    return measured(WHOLE)


def sent(receiver: Receiver, *messages: Message, retries_s: tuple[float, ...] = SOON) -> list[str]:
    """Send messages, and wait until each was delivered or given up: those, with the reason."""
    sender = Sender(Webhook(receiver.url, SECRET), SystemClock(), retries_s)
    sender.start()
    for one in messages:
        sender.send(one)
    sender.close(LATEST_S)
    return sender.undelivered


def test_a_receiver_can_tell_who_sent_a_message_and_when(whole: RunHistory) -> None:
    told = message(News.DONE, whole)
    with receiving() as receiver:
        assert sent(receiver, told) == []
    ((headers, body),) = receiver.got
    # As a receiver checks it, with nothing of ours.
    at_s = headers["Kreassign-Timestamp"]
    expected = "v1=" + hmac.new(SECRET, at_s.encode() + b"." + body, sha256).hexdigest()
    assert hmac.compare_digest(expected, headers["Kreassign-Signature"])
    assert abs(int(at_s) - SystemClock().now_ms() // 1000) < 3_600
    assert (headers["Content-Type"], headers["Kreassign-Event"]) == ("application/json", "done")
    document = json.loads(body)
    assert (document["event"], document["run_id"], document["cluster_id"]) == ("done", "run-1", "cluster-1")
    assert document["moves"]["complete"] == 2
    assert document["delivery"] == headers["Kreassign-Delivery"]


def test_a_signature_is_of_secret_time_and_body_together() -> None:
    one = signature(SECRET, 1, b"body")
    others = {signature(SECRET + b"x", 1, b"body"), signature(SECRET, 2, b"body"), signature(SECRET, 1, b"bodyx")}
    assert one not in others
    assert len(others) == 3
    # The vector of the documentation.
    assert signature(b"it's a secret of ours", 1_700_000_000, b"{}") == (
        hmac.new(b"it's a secret of ours", b"1700000000.{}", "sha256").hexdigest()
    )


def test_what_may_pass_is_sent_again_as_the_same_delivery(whole: RunHistory) -> None:
    with receiving([503, 429]) as receiver:
        assert sent(receiver, message(News.HELD, whole)) == []
    assert len(receiver.got) == 3
    assert len({headers["Kreassign-Delivery"] for headers, _ in receiver.got}) == 1
    assert len({body for _, body in receiver.got}) == 1


def test_a_message_is_given_up_and_the_next_one_is_sent(whole: RunHistory) -> None:
    with receiving([500, 500, 500]) as receiver:
        undelivered = sent(receiver, message(News.HELD, whole), message(News.DONE, whole))
    assert undelivered == [f"held: {receiver.url.partition('/hook')[0]} answered 500"]
    assert [headers["Kreassign-Event"] for headers, _ in receiver.got] == ["held", "held", "held", "done"]


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 404, 410])
def test_no_refusal_is_tried_again_and_no_redirection_followed(whole: RunHistory, status: int) -> None:
    with receiving([status]) as receiver:
        (problem,) = sent(receiver, message(News.DONE, whole))
    assert problem.endswith(f"answered {status}")
    assert len(receiver.got) == 1


def test_nobody_there_is_told_once_at_the_end_and_without_the_path(whole: RunHistory) -> None:
    with receiving() as receiver:
        pass
    warnings: list[str] = []
    with sending(Webhook(receiver.url, SECRET), SystemClock(), warnings.append, last_s=0.2) as send:
        send(message(News.DONE, whole))
    (warning,) = warnings
    assert warning.startswith("messages of the run that were not delivered: 1; the first: ")
    assert "hook" not in warning


def test_who_never_answers_keeps_neither_the_run_nor_its_end_waiting(whole: RunHistory) -> None:
    warnings: list[str] = []
    clock = SystemClock()
    with (
        receiving(keeps_silent=True) as receiver,
        sending(Webhook(receiver.url, SECRET), clock, warnings.append, last_s=0.1) as send,
    ):
        for _ in range(500):  # more than wait at most; each call returns at once
            send(message(News.HELD, whole))
        assert receiver.arrived.wait(LATEST_S)
    assert len(receiver.got) == 1
    (warning,) = warnings
    assert "others wait already" in warning


def test_names_and_sentences_of_a_cluster_are_printable_in_a_message(whole: RunHistory) -> None:
    odd = replace(whole, cluster_id="\x1b[2J\udc80", problems=("\u202eevil", "<script>"), verdicts=("disk: full",))
    document = json.loads(message(News.FAILED, odd).body)
    assert document["cluster_id"] == "\\u001b[2J\\udc80"
    assert document["problems"] == ["disk: full", "\\u202eevil", "<script>"]


def test_a_message_is_not_larger_than_its_reader_wants(whole: RunHistory) -> None:
    many = replace(whole, problems=tuple(f"problem {number}" for number in range(10_000)))
    document = json.loads(message(News.FAILED, many).body)
    assert (len(document["problems"]), document["problem_count"]) == (20, 10_000)


# What is refused beforehand


@pytest.mark.parametrize("url", [
    "https://hooks.example/run", "https://hooks.example:8443/a?b=c", "http://127.0.0.1:9000/", "http://localhost/x",
    "http://[::1]:8080/",
])  # fmt: skip
def test_an_address_with_tls_or_of_this_machine_is_taken(url: str) -> None:
    assert checked_url(url) == url


@pytest.mark.parametrize(("url", "why"), [
    ("http://hooks.example/run", "is not encrypted"),
    ("http://127.0.0.1.evil.example/", "is not encrypted"),
    ("https://user:secret@hooks.example/", "takes no user and password"),
    ("ftp://hooks.example/", "no address of a webhook"),
    ("hooks.example/run", "no address of a webhook"),
    ("https:///run", "no address of a webhook"),
    ("https://hooks.example:http/", "no address of a webhook"),
    ("https://hooks.example/a b", "no address of a webhook"),
    ("https://hooks.example/\r\nHost: evil", "no address of a webhook"),
    ("https://[::1/", "no address of a webhook"),
])  # fmt: skip
def test_another_address_is_refused_and_no_password_repeated(url: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as refused:
        checked_url(url)
    assert "secret" not in str(refused.value)


def test_a_secret_that_could_be_guessed_is_refused_and_none_is_shown() -> None:
    assert checked_secret("0123456789abcdef\n") == b"0123456789abcdef"
    with pytest.raises(InputError, match="has 6 bytes; use at least 16") as refused:
        checked_secret("hunter")
    assert "hunter" not in str(refused.value)
    assert "0123" not in repr(Webhook("https://hooks.example/", SECRET)) + str(Webhook("https://h.example/x", SECRET))


def test_no_secret_is_read_from_the_command_line() -> None:
    """An option that took one would leave it in the list of processes, and in the journal."""
    options = (Path(__file__).parents[2] / "src/kreassign/cli/options/run.py").read_text()
    assert '"--webhook-secret"' not in options
