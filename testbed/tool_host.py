"""Kafka's command-line tools in one Java that stays, which spares each of them the start of a Java.

What a tool does, prints and returns is the same as in a process of its own: it is the same main method of the same
jars, with the same flags. Only its process is spared, which Kafka's tools end through `Exit` (see `ToolHost.java`).
"""

from __future__ import annotations

import atexit
import os
import selectors
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from testbed.java import tool_command
from testbed.processes import Finished, ProcessGroup

_PROGRAM = Path(__file__).with_name("ToolHost.java")
# Those that end through Kafka's own `Exit`. ZooKeeper's shell ends Java itself.
_TOOLS = ("org.apache.kafka.tools.", "kafka.admin.")
_NUMBER = struct.Struct(">i")


class ToolHost:
    """One Java with the jars of one release, which runs one tool at a time. It ends with this process at the latest."""

    def __init__(self, version: str) -> None:
        self._group = ProcessGroup()
        self._process = self._group.converse(tool_command(version, str(_PROGRAM)))
        assert self._process.stdout is not None
        self._answers = self._process.stdout.fileno()

    def run(self, words: tuple[str, ...], *, timeout_s: float) -> Finished:
        """Run a tool: its class and its arguments. EOFError when Java has ended; TimeoutError is its end, too."""
        request = b"".join(self._encoded(words))
        assert self._process.stdin is not None
        self._process.stdin.write(request)
        self._process.stdin.flush()
        deadline_s = time.monotonic() + timeout_s
        try:
            (code,) = _NUMBER.unpack(self._read(_NUMBER.size, deadline_s))
            stdout, stderr = (self._read_text(deadline_s) for _ in range(2))
        except TimeoutError:
            raise TimeoutError(f"{' '.join(words[-4:])}: killed after {timeout_s:g} s") from None
        return Finished(code, stdout, stderr)

    def close(self) -> None:
        """End Java."""
        self._group.close()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait()

    @staticmethod
    def _encoded(words: tuple[str, ...]) -> Iterator[bytes]:
        yield _NUMBER.pack(len(words))
        for word in words:
            content = os.fsencode(word)
            yield _NUMBER.pack(len(content)) + content

    def _read_text(self, deadline_s: float) -> str:
        (length,) = _NUMBER.unpack(self._read(_NUMBER.size, deadline_s))
        return self._read(length, deadline_s).decode()

    def _read(self, length: int, deadline_s: float) -> bytes:
        found = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while len(found) < length:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not selector.select(left_s):
                    raise TimeoutError
                some = os.read(self._answers, length - len(found))
                if not some:
                    raise EOFError("the Java that runs Kafka's tools has ended")
                found += some
        return found


_hosts: dict[str, ToolHost] = {}
_turn = threading.Lock()


def is_hosted(main_class: str) -> bool:
    """True if a program may run in the Java that stays."""
    return main_class.startswith(_TOOLS)


def run_hosted(version: str, main_class: str, *arguments: str, timeout_s: float) -> Finished:
    """Run one of Kafka's tools; TimeoutError when it takes longer than `timeout_s` seconds. Threads take turns."""
    with _turn:
        if version not in _hosts:
            _hosts[version] = ToolHost(version)
        try:
            return _hosts[version].run((main_class, *arguments), timeout_s=timeout_s)
        except (OSError, EOFError):  # among them TimeoutError: the next tool begins with a new Java
            _hosts.pop(version).close()
            raise


@atexit.register
def _close() -> None:
    while _hosts:
        _hosts.popitem()[1].close()
