"""Many clients at once: all are answered, and nothing of them is left. How many, and how soon: `make soak`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kreassign.twin.server import ServerThread, serving
from kreassign.wire import api
from testbed.waiting import wait_until
from tests.twin.asking import twin
from tests.twin.network.test_server import connect

IDLE, BUSY, ROUNDS = 50, 20, 10
MORE_THAN_USUALLY_WAIT = 300


def _open() -> tuple[int, int]:
    """Descriptors and threads of this process."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def test_busy_connections_among_idle_ones_are_answered_rightly() -> None:
    with serving(twin({"orders": [[0, 1], [1, 2]]})) as server:
        before = _open()
        with ExitStack() as stack:
            idle = [stack.enter_context(connect(server)) for _ in range(IDLE)]
            busy = [stack.enter_context(connect(server, number % 3)) for number in range(BUSY)]
            for turn in range(ROUNDS):
                for number, client in enumerate(busy):
                    client.send(api.METADATA, 12, turn * BUSY + number, topics=None)
                with connect(server) as newcomer:
                    newcomer.send(api.API_VERSIONS, 0)
                    assert newcomer.receive(api.API_VERSIONS, 0).error_code == 0
                for number, client in enumerate(busy):
                    answer = client.receive(api.METADATA, 12, turn * BUSY + number)
                    assert [len(topic.partitions) for topic in answer.topics] == [2]
            wait_until(
                lambda: server.do(lambda _: server.server.connection_count) == IDLE + BUSY,
                what="the idle and the busy ones alone",
            )
            for client in idle:
                client.send(api.API_VERSIONS, 0)
                assert client.receive(api.API_VERSIONS, 0).error_code == 0
        wait_until(
            lambda: all(now <= then for now, then in zip(_open(), before, strict=True)),
            what=f"no more than {before} descriptors and threads",
        )
        assert not server.server.failures


def test_clients_that_come_while_the_twin_is_at_work_are_all_taken_in() -> None:
    """More than a queue usually has room for: what finds it full is only heard when it is sent again, seconds later."""
    with serving(twin({"orders": [[0, 1], [1, 2]]})) as server, ExitStack() as stack:
        with _at_work(server):
            clients = [stack.enter_context(connect(server)) for _ in range(MORE_THAN_USUALLY_WAIT)]
            for client in clients:
                client.send(api.API_VERSIONS, 0)
        assert all(client.receive(api.API_VERSIONS, 0).error_code == 0 for client in clients)


@contextmanager
def _at_work(server: ServerThread) -> Iterator[None]:
    """The twin does something that lasts as long as the block."""
    is_over = threading.Event()
    worker = threading.Thread(target=server.do, args=(lambda _: is_over.wait(60),))
    worker.start()
    try:
        yield
    finally:
        is_over.set()
        worker.join()
