"""Client signals from Prometheus and commands; a failure is unknown, and named."""

from __future__ import annotations

import os
import select
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from kreassign.clock import SystemClock, VirtualClock
from kreassign.errors import InputError
from kreassign.executor.client_guard import ClientAnswer, ClientGuard, ClientQuery, Feeling
from kreassign.monitoring import client_signals
from kreassign.operations.text_files import read_text
from tests.monitoring.prometheus import BAD_QUERY, FakePrometheus, prometheus, success, vector

P99 = ClientQuery.parse("max(p99) < 0.2")
CLOCK = SystemClock()


def read_file(name: str) -> str:
    return read_text(Path(name))


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with prometheus() as found:
        yield found


def ask(server: FakePrometheus, **options: str) -> ClientAnswer:
    return client_signals.ask_prometheus(ClientGuard((P99,), server.url, **options), P99, read_file, CLOCK)


# What Prometheus answers.


@pytest.mark.parametrize(("status", "answer", "feeling", "seen"), [
    (200, vector("0.1"), Feeling.GOOD, "max(p99) is 0.1"),
    (200, vector("0.41"), Feeling.BAD, "max(p99) is 0.41, and is to be < 0.2"),
    (200, success("scalar", [1700000000, "0.1"]), Feeling.GOOD, "is 0.1"),
    (200, vector("+Inf"), Feeling.BAD, "is inf"),
    (200, vector("NaN"), Feeling.UNKNOWN, "its value is nan"),
    (200, vector("-Inf"), Feeling.UNKNOWN, "its value is -inf"),
    (200, vector(), Feeling.UNKNOWN, "yields no series"),
    (200, vector("0.1", "0.1"), Feeling.UNKNOWN, "yields 2 series, not one"),
    (200, success("matrix", []), Feeling.UNKNOWN, "yields a matrix"),
    (200, success("string", [1, "0.1"]), Feeling.UNKNOWN, "yields a string"),
    (200, vector("0.1", warnings=["store is away"]), Feeling.UNKNOWN, "data may be missing: ['store is away']"),
    (200, vector("0.4", warnings=["store is away"]), Feeling.BAD, "is 0.4"),
    (200, vector("0.1", infos=["metric might not be a counter"]), Feeling.GOOD, "is 0.1"),
    (400, BAD_QUERY, Feeling.UNKNOWN, "refuses the query: 1:4: parse error"),
    (401, "Unauthorized", Feeling.UNKNOWN, "answered 401: the login is refused"),
    (403, "<html>", Feeling.UNKNOWN, "answered 403: the login may not query"),
    (404, "404 page not found", Feeling.UNKNOWN, "answered 404: that address has no query API"),
    (302, "", Feeling.UNKNOWN, "answered 302"),
    (503, "", Feeling.UNKNOWN, "answered 503"),
    (200, "<html>", Feeling.UNKNOWN, "answered 200: that is no answer of Prometheus"),
    (200, "{}", Feeling.UNKNOWN, "that is no answer of Prometheus"),
    (200, "[1]", Feeling.UNKNOWN, "that is no answer of Prometheus"),
    (200, success("vector", [{"metric": {}, "value": [1]}]), Feeling.UNKNOWN, "no answer of Prometheus"),
    (200, success("vector", [{"metric": {}, "value": [1, "many"]}]), Feeling.UNKNOWN, "no answer of Prometheus"),
    (200, success("vector", 7), Feeling.UNKNOWN, "no answer of Prometheus"),
])  # fmt: skip
def test_an_answer_is_good_only_with_one_finite_value(status: int, answer: str, feeling: Feeling, seen: str) -> None:
    reading = client_signals.read_answer(P99, status, answer.encode())
    assert reading.feeling is feeling
    assert seen in reading.seen


def test_an_expression_is_asked_without_its_comparison(server: FakePrometheus) -> None:
    assert ask(server).feeling is Feeling.GOOD
    (asked,) = server.asked
    assert (asked.path, asked.query, asked.authorization) == ("/api/v1/query", "max(p99)", None)


def test_a_path_of_the_address_is_kept(server: FakePrometheus) -> None:
    guard = ClientGuard((P99,), f"{server.url}/prometheus/")
    assert client_signals.ask_prometheus(guard, P99, read_file, CLOCK).feeling is Feeling.GOOD
    assert server.asked[0].path == "/prometheus/api/v1/query"


@pytest.mark.parametrize(("login", "header"), [
    ("basic ops:pass word\n", "Basic b3BzOnBhc3Mgd29yZA=="),
    ("Basic ops:", "Basic b3BzOg=="),
    ("bearer abc.def\n", "Bearer abc.def"),
])  # fmt: skip
def test_a_login_is_sent_and_read_again_each_time(
    server: FakePrometheus, tmp_path: Path, login: str, header: str
) -> None:
    file = tmp_path / "login"
    file.write_text("bearer of-yesterday", encoding="utf-8")
    server.authorization = header
    assert "the login is refused" in ask(server, login_file=str(file)).seen
    file.write_text(login, encoding="utf-8")
    assert ask(server, login_file=str(file)).feeling is Feeling.GOOD


@pytest.mark.parametrize("text", ["", "basic", "bearer", "basic ops", "secret", "bearer a\nb", "token abc", "bearer ä"])
def test_a_login_that_is_none_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(InputError) as caught:
        client_signals.login_header(text)
    assert str(caught.value) == "the login file has one line, `basic USER:PASSWORD` or `bearer TOKEN`"


def test_a_login_file_that_is_gone_is_unknown(server: FakePrometheus, tmp_path: Path) -> None:
    reading = ask(server, login_file=str(tmp_path / "gone"))
    assert (reading.feeling, server.asked) == (Feeling.UNKNOWN, [])
    assert "could not be asked: no such file" in reading.seen


def test_a_certificate_is_checked_by_the_file_that_is_given(tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    with prometheus(context) as server:
        assert ask(server, ca_file=str(ca_file)).feeling is Feeling.GOOD
        assert "could not be asked: unable to get local issuer certificate" in ask(server).seen
        assert "could not be asked" in ask(server, ca_file=str(tmp_path / "gone")).seen
        (tmp_path / "empty").write_text("", encoding="utf-8")
        assert ask(server, ca_file=str(tmp_path / "empty")).feeling is Feeling.UNKNOWN
    assert len(server.asked) == 1


def test_a_prometheus_that_is_away_is_unknown() -> None:
    with prometheus() as server:
        pass
    reading = ask(server)
    assert (reading.feeling, reading.seen) == (Feeling.UNKNOWN, "Prometheus could not be asked: connection refused")


def test_an_answer_that_has_no_end_is_given_up(server: FakePrometheus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_signals, "TIMEOUT_S", 0.1)
    server.drips = True
    reading = ask(server)
    assert reading.feeling is Feeling.UNKNOWN
    assert "had not answered after 0.2 s" in reading.seen


# Commands.


def command(tmp_path: Path, *lines: str) -> client_signals.Command:
    script = tmp_path / "check"
    script.write_text("\n".join(("#!/bin/sh", *lines)), encoding="utf-8")
    script.chmod(0o755)
    return client_signals.Command((str(script), "-w", "0.2"), CLOCK)


@pytest.mark.parametrize(("lines", "feeling", "seen"), [
    (("echo p99 0.1 s", "exit 0"), Feeling.GOOD, "exited with 0: p99 0.1 s"),
    (("echo p99 0.4 s >&2", "exit 1"), Feeling.BAD, "exited with 1: p99 0.4 s"),
    (("exit 2",), Feeling.BAD, "exited with 2"),
    (("exit 3",), Feeling.UNKNOWN, "exited with 3"),
    (("exit 42",), Feeling.UNKNOWN, "exited with 42"),
    (("no-such-program",), Feeling.UNKNOWN, "exited with 127"),
    (("kill -9 $$",), Feeling.UNKNOWN, "was ended by signal 9"),
    (('test "$1 $2" = "-w 0.2" && ! test -t 0 && ! read line',), Feeling.GOOD, "exited with 0"),
    (("head -c 300000 /dev/zero", "exit 0"), Feeling.GOOD, "exited with 0"),
])  # fmt: skip
def test_a_command_says_by_its_exit_code(tmp_path: Path, lines: tuple[str, ...], feeling: Feeling, seen: str) -> None:
    reading = command(tmp_path, *lines).ask()
    assert reading.feeling is feeling
    assert seen in reading.seen


def test_a_command_that_cannot_be_started_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("", encoding="utf-8")
    for words in (("/no/such/command",), (str(tmp_path / "text"),), ("a\0b",)):
        reading = client_signals.Command(words, CLOCK).ask()
        assert reading.feeling is Feeling.UNKNOWN
        assert "could not be started" in reading.seen


@pytest.mark.parametrize("lines", [("sleep 100",), ("sleep 100 &", "exit 0"), ("exec >&-", "sleep 100")])
def test_a_command_without_an_end_is_killed_with_its_children(tmp_path: Path, lines: tuple[str, ...]) -> None:
    # All of them write to this pipe, whose reader is told when the last one has gone.
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    asked = command(tmp_path, f"exec 3> {tmp_path}/pipe", "echo begun >&3", *lines)
    asked.limit_s = 0.5
    reading = asked.ask()
    assert (reading.feeling, reading.seen) == (Feeling.UNKNOWN, "it had not ended after 0.5 s, and was killed")
    assert os.read(reader, 100) == b"begun\n"
    hung_up = select.poll()
    hung_up.register(reader, 0)
    assert hung_up.poll(10_000) == [(reader, select.POLLHUP)]
    os.close(reader)


# Rounds.


def test_readings_are_there_when_the_block_begins(server: FakePrometheus, tmp_path: Path) -> None:
    guard = ClientGuard((P99,), server.url, command=command(tmp_path, "exit 1").words)
    with client_signals.asking(guard, read_file) as read:
        assert [reading.feeling for reading in read()] == [Feeling.GOOD, Feeling.BAD]
    assert [reading.source for reading in read()] == list(guard.sources)


def test_old_readings_are_unknown(server: FakePrometheus) -> None:
    clock = VirtualClock()
    signals = client_signals.ClientSignals(ClientGuard((P99,), server.url), read_file, clock)
    assert [reading.seen for reading in signals.read()] == ["it has not answered yet"]
    signals.start()
    clock.sleep(client_signals.STALE_S)
    assert [reading.feeling for reading in signals.read()] == [Feeling.GOOD]
    clock.sleep(1)
    assert [(reading.feeling, reading.seen) for reading in signals.read()] == [
        (Feeling.UNKNOWN, "it has not answered for 60 s")
    ]
    signals.close()


def test_the_end_does_not_wait_for_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_signals, "FIRST_S", 0.2)
    guard = ClientGuard(command=(sys.executable, "-c", "import time; time.sleep(100)"))
    with client_signals.asking(guard, read_file) as read:
        assert [reading.seen for reading in read()] == ["it has not answered yet"]
    for thread in [one for one in threading.enumerate() if one.name == "clients"]:
        thread.join(10)
        assert not thread.is_alive()
