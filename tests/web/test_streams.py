"""Many listeners of one run: all are sent the same, and nobody holds up another. Many more of them: `make soak`."""

from __future__ import annotations

import socket
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import anyio
import pytest

from kreassign.errors import InputError
from kreassign.model.run import RunHistory
from kreassign.operations.run_journals import RunFollower
from kreassign.web.guard import LARGEST_BODY
from kreassign.web.operations import MOST_STREAMS, Followed, Look, Streams
from kreassign.web.server import MOST_CONNECTIONS
from testbed.waiting import wait_until
from tests.web.runs import hostile_journal, live_run
from tests.web.site import Site, serving_page, with_control

LISTENERS, SILENT, LEAVING = 60, 3, 5
EVENTS = 6


def _stream(site: Site, path: str, buffer_bytes: int = 0) -> socket.socket:
    """A stream that was asked for; with little room for what is not read, if so wished."""
    connection = socket.socket()
    if buffer_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", site.port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {site.host}\r\nConnection: close\r\n\r\n".encode())
    return connection


def _events(connection: socket.socket) -> list[str]:
    """Events of a stream, until its end."""
    content = b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()
    return [line for line in content.splitlines() if line.startswith(("data: ", "event: end"))]


def _state(live: RunHistory) -> str:
    return live.state


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.thorough
def test_many_listeners_get_the_same_beside_slow_and_gone_ones(tmp_path: Path) -> None:
    with live_run(tmp_path) as run, serving_page(with_control(tmp_path)) as site, ExitStack() as stack:
        path = f"/api/v1/runs/{run.run_id}/stream"
        assert site.ask(path.removesuffix("/stream")).status == 200
        before = _open_descriptors()
        for _ in range(SILENT):
            stack.enter_context(_stream(site, path, buffer_bytes=2_048))
        leaving = [_stream(site, path) for _ in range(LEAVING)]
        listeners = [stack.enter_context(_stream(site, path)) for _ in range(LISTENERS)]
        everybody = SILENT + LEAVING + LISTENERS
        wait_until(lambda: site.streams.count == everybody, what="all streams")
        for one in leaving:
            one.close()
        wait_until(lambda: site.streams.count == everybody - LEAVING, what="those who leave to be gone")
        with closing(_stream(site, path)) as counted:
            content = b""
            while content.count(b"event: run") < EVENTS:
                content += counted.recv(1 << 16)
        assert site.ask(f"/runs/{run.run_id}").status == 200
        assert site.post(f"/runs/{run.run_id}/cancel").status == 200
        assert run.wait_for_end().state == "cancelled"
        lists = [_events(one) for one in listeners]
        longest = max(lists, key=len)
        assert len(longest) > EVENTS
        assert longest[-2:] == ["event: end", "data: {}"]
        assert all(each and longest[-len(each) :] == each for each in lists)
        stack.close()
        wait_until(lambda: site.streams.count == 0, what="no streams")
        wait_until(lambda: _open_descriptors() <= before, what=f"no more than {before} descriptors")


@pytest.mark.parametrize(("every_s", "second"), [(3600.0, "look 1"), (0.0, "look 2")], ids=["soon", "late"])
def test_a_listener_gets_the_last_reading_only_if_it_is_recent(
    every_s: float, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kreassign.web.operations.LOOK_EVERY_S", every_s)
    looks = count(1)
    path = hostile_journal(tmp_path)
    followed = Followed(lambda: RunFollower(path), lambda _: f"look {next(looks)}")

    async def follow() -> list[Look]:
        await followed.begin()
        return [await followed.after(0) for _ in range(2)]

    assert [look.text for look in anyio.run(follow)] == ["look 1", second]


def test_a_newcomer_waits_for_a_reading_and_a_missing_run_is_forgotten(tmp_path: Path) -> None:
    """Each reading of a long journal takes a second: for hundreds at once they would take minutes."""
    journal = hostile_journal(tmp_path)
    read: list[str] = []

    def follower(run_id: str) -> RunFollower:
        read.append(run_id)
        return RunFollower(journal.with_stem(run_id))

    streams = Streams()

    async def come() -> None:
        async with anyio.create_task_group() as all_at_once:
            for _ in range(LISTENERS):
                all_at_once.start_soon(streams.answer, journal.stem, follower, _state)
        with pytest.raises(InputError, match="no journal"):
            await streams.answer("gone", follower, _state)

    anyio.run(come)
    assert read == [journal.stem, "gone"]
    assert not streams._followed


def test_the_page_about_security_says_how_many_there_may_be() -> None:
    page = (Path(__file__).parents[2] / "SECURITY.md").read_text()
    assert (
        f"| {LARGEST_BODY // 1024} KiB each, {MOST_CONNECTIONS} connections, {MOST_STREAMS} streams of events |" in page
    )
