"""A `kreassign twin start` as a process of its own, timed from the moment it is called until it answers."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.process import KREASSIGN
from kreassign.admin import AdminClient, client_settings


@dataclass(frozen=True, slots=True)
class Served:
    """A twin that answers: how long that took, and where it is."""

    start_s: float
    bootstrap_servers: str
    process_id: int

    @property
    def memory_mib(self) -> float:
        """Resident memory of the process now."""
        return self._status("VmRSS")

    @property
    def peak_mib(self) -> float:
        """The most that it ever held."""
        return self._status("VmHWM")

    @property
    def cpu_s(self) -> float:
        """Processor time that the process has used so far."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def client(self) -> AdminClient:
        """A client of this twin, patient enough for large answers."""
        properties = {"default.api.timeout.ms": "600000", "request.timeout.ms": "600000"}
        return AdminClient.connect(client_settings(properties, bootstrap_servers=self.bootstrap_servers))

    def _status(self, name: str) -> float:
        lines = Path(f"/proc/{self.process_id}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


@contextmanager
def served(*options: str) -> Iterator[Served]:
    """Serve a twin for the length of the block."""
    started = time.perf_counter()
    command = [*KREASSIGN, "twin", "start", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        servers = [process.stdout.readline() for _ in range(2)][-1].partition(": ")[2].strip()
        settings = client_settings(bootstrap_servers=servers)
        with AdminClient.connect(settings) as client:
            client.describe_cluster()
        yield Served(time.perf_counter() - started, servers, process.pid)
    finally:
        process.terminate()
        process.communicate()
