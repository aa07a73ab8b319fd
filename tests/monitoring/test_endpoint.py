"""`/metrics` on a port of this machine: who gets an answer, and that nobody keeps others from theirs."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from kreassign.errors import InputError
from kreassign.model.run import RunHistory
from kreassign.monitoring.metrics import serving_metrics
from testbed.waiting import PATIENCE_S
from tests.executor.run_events import WHOLE, measured
from tests.monitoring.pages import Page

FORWARDED_BY = ("Forwarded", "X-Forwarded-For", "x-forwarded-host", "Via", "X-Real-IP", "CF-Connecting-IP")


@pytest.fixture
def runs() -> list[RunHistory]:
    return []


@pytest.fixture
def port(runs: list[RunHistory]) -> Iterator[int]:
    with serving_metrics(0, lambda: tuple(runs)) as address:
        found = urlsplit(address)
        assert (found.hostname, found.path) == ("127.0.0.1", "/metrics")
        assert found.port is not None
        yield found.port


def ask(port: int, path: str = "/metrics", method: str = "GET", host: str | None = None) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, headers={} if host is None else {"Host": host})
        with connection.getresponse() as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


def test_the_page_is_that_of_the_run_once_it_has_begun(port: int, runs: list[RunHistory]) -> None:
    status, kind, before = ask(port)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert not Page(before).samples
    runs.append(measured(WHOLE))
    assert Page(ask(port)[2]).value("run_phase", phase="done") == 1


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_browser_that_was_led_here_by_another_name_gets_nothing(port: int, host: str, runs: list[RunHistory]) -> None:
    runs.append(measured(WHOLE))
    status, _, body = ask(port, host=host)
    assert status == 421
    assert "run-1" not in body
    assert ask(port, host="localhost:1")[0] == 200


@pytest.mark.parametrize("name", FORWARDED_BY)
def test_what_a_proxy_forwards_is_refused(port: int, name: str, runs: list[RunHistory]) -> None:
    runs.append(measured(WHOLE))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/metrics", headers={name: "192.0.2.7"})
        with connection.getresponse() as answer:
            assert (answer.status, b"by way of a proxy" in answer.read()) == (403, True)
    finally:
        connection.close()


def test_what_comes_in_an_old_version_of_http_is_refused(port: int, runs: list[RunHistory]) -> None:
    """So nginx forwards, with no header of its own and the name of this machine, unless it is told otherwise."""
    runs.append(measured(WHOLE))
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as asked, asked.makefile("rb") as answer:
        asked.sendall(b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1:8085\r\nConnection: close\r\n\r\n")
        assert b" 403 " in answer.readline()
        assert b"run-1" not in answer.read()


def test_nothing_but_the_page_is_there_and_it_can_only_be_read(port: int) -> None:
    assert [ask(port, path)[0] for path in ("/", "/metrics/", "/metrics/../etc/passwd")] == [404] * 3
    assert [ask(port, method=method)[0] for method in ("POST", "PUT", "DELETE", "OPTIONS")] == [405] * 4


def test_who_says_nothing_keeps_nobody_from_the_page_nor_the_end_waiting(runs: list[RunHistory]) -> None:
    with serving_metrics(0, lambda: tuple(runs)) as address:
        port = urlsplit(address).port or 0
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S):
            assert ask(port)[0] == 200
            assert ask(port, "/nothing")[0] == 404


def test_a_port_that_is_taken_is_told_before_anything_is_done(port: int) -> None:
    refusal = f"127.0.0.1:{port}: address already in use. Specify another --metrics-port"
    with pytest.raises(InputError, match=refusal), serving_metrics(port, tuple):
        pytest.fail("two servers on one port")
