"""Running a tool as a shell does, on files of a test and on a served twin."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kreassign.twin.cluster import Twin
from tests.kafka_tools.served_twin import served, twin

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the `TOOL` of the test's module: exit code, what is on stdout, and what is on stderr."""

    def run_with(*words: object) -> tuple[int, str, str]:
        code = request.module.TOOL(list(map(str, words)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_with


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Write a text, or a document as JSON."""

    def write(content: object, name: str = "elections.json") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


@pytest.fixture
def cluster() -> Iterator[tuple[Twin, tuple[str, str]]]:
    """A twin with something to elect, and the option that names it."""
    asked = twin()
    with served(asked) as address:
        yield asked, ("--bootstrap-server", address)


class Unreached(NamedTuple):
    """An address at which nobody listens, and settings of a client that gives up soon."""

    address: str
    config: Path


@pytest.fixture
def unreached(file: Callable[..., Path]) -> Unreached:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = "default.api.timeout.ms=300\nrequest.timeout.ms=200\n"
    return Unreached(f"127.0.0.1:{port}", file(settings, "client.properties"))
