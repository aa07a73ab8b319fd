"""One broker, controller or ZooKeeper server: a process that can be ended, frozen and started again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from testbed.errors import NodeFailed
from testbed.processes import ProcessGroup, is_stopped
from testbed.properties import Place
from testbed.waiting import PATIENCE_S, wait_until

_LOG_TAIL = 2000


class Node:
    """A node of a cluster, running or not. Made by KafkaCluster; not safe to be used by two threads at a time."""

    def __init__(
        self,
        place: Place,
        version: str,
        command: Callable[[str], tuple[str, ...]],
        group: ProcessGroup,
        is_ready: Callable[[Place], bool],
        before_start: Callable[[Place], None],
    ) -> None:
        self._place = place
        self.version = version
        self._command = command
        self._group = group
        self._is_ready = is_ready
        self._before_start = before_start
        self._process: subprocess.Popen[bytes] | None = None
        self._frozen = False

    def __repr__(self) -> str:
        return f"<Node {self._place.folder.name} {'running' if self.is_running else 'down'}>"

    @property
    def id(self) -> int:
        """The broker or controller id."""
        return self._place.node_id

    @property
    def place(self) -> Place:
        """The node's folder and ports."""
        return self._place

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """A broker's log dirs, as it names them in DescribeLogDirs; empty for others."""
        return tuple(sorted(self._place.folder.glob("data-*")))

    @property
    def log_file(self) -> Path:
        """Standard output and error of the process, over all its starts."""
        return self._place.folder / "node.log"

    @property
    def is_running(self) -> bool:
        """True if the process exists; a frozen one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_frozen(self) -> bool:
        """True if the process has been stopped in its tracks."""
        return self._frozen and self.is_running

    @property
    def pid(self) -> int | None:
        """The id of the process, None if it does not run."""
        return self._process.pid if self._process is not None and self.is_running else None

    def address(self, listener: str = "PLAINTEXT") -> str:
        """`host:port` at which clients find one of the node's listeners."""
        return self._place.addresses[listener]

    def spawn(self) -> None:
        """Start the process and do not wait until it is ready; nothing happens if it runs."""
        if not self.is_running:
            self._frozen = False
            self._before_start(self._place)
            self._process = self._group.spawn(self._command(self.version), log=self.log_file)

    def wait_ready(self) -> None:
        """Wait until the node takes its part in the cluster; NodeFailed, with the end of its log, if it does not."""
        try:
            wait_until(self._ready_or_dead, what=f"{self!r} ready")
        except TimeoutError as error:
            raise NodeFailed(f"{error}; the end of {self.log_file}:\n{self.log_tail()}") from None

    def start(self) -> None:
        """Start the process and wait until the node takes its part in the cluster."""
        self.spawn()
        self.wait_ready()

    def stop(self) -> None:
        """End the process with SIGTERM: a broker hands its leaderships over first. A frozen one is thawed."""
        self.thaw()
        self._signal(signal.SIGTERM)
        self._wait_end()

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self._signal(signal.SIGKILL)
        self._wait_end()

    def freeze(self) -> None:
        """Stop the process in its tracks (SIGSTOP): its connections stay open and nothing answers."""
        pid = self.pid
        if pid is None:
            return
        self._signal(signal.SIGSTOP)
        # The signal wakes one thread, and that one stops the others: on a busy machine they answer for a while yet.
        wait_until(lambda: is_stopped(pid) or not self.is_running, what=f"{self!r} to be frozen")
        self._frozen = self.is_running

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self._signal(signal.SIGCONT)
        self._frozen = False

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def upgrade(self, version: str) -> None:
        """Stop, if it runs, and start with the jars of another version of Kafka, on the same files."""
        self.stop()
        self.version = version
        self.start()

    def log_tail(self) -> str:
        """The last lines that the process wrote."""
        if not self.log_file.exists():
            return ""
        return self.log_file.read_bytes()[-_LOG_TAIL:].decode(errors="replace")

    def _ready_or_dead(self) -> bool:
        if not self.is_running:
            code = self._process.returncode if self._process else None
            raise NodeFailed(f"{self!r} ended with {code}; the end of {self.log_file}:\n{self.log_tail()}")
        return self._is_ready(self._place)

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid is not None:
            os.kill(pid, number)

    def _wait_end(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise NodeFailed(f"{self!r} did not end within {PATIENCE_S:g} s; see {self.log_file}") from None
