"""A real standalone Spark cluster on this machine: a master and workers, each a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.ports import HOST, ReservedPorts
from testbed.processes import Finished, ProcessGroup
from testbed.waiting import wait_until

_CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class StandaloneSpark:
    """Use as a context: the cluster is up inside it, and gone after it, whatever happens. Logs are in `folder`."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self._workers = workers
        self._home = _pyspark_home()
        self._ports = ReservedPorts()
        self._group = ProcessGroup()
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._web_port = self._ports.take()
        self.master = f"spark://{HOST}:{self._ports.take()}"

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes, executors too."""
        self._group.close()
        for daemon in self._daemons:
            daemon.wait()
        self._ports.release()

    def submit(
        self, program: Path, *arguments: str, py_files: Path, conf: Sequence[str] = (), timeout_s: float = 600
    ) -> Finished:
        """Run a Python program with spark-submit; of our own code it has only what is in `py_files`."""
        settings = [word for setting in conf for word in ("--conf", setting)]
        command = [str(self._home / "bin" / "spark-submit"), "--master", self.master, "--py-files", str(py_files)]
        return self._group.run(
            [*self._environment(), *command, *settings, str(program), *arguments], timeout_s=timeout_s
        )

    def run_here(self, command: Sequence[str], *, timeout_s: float = 600) -> Finished:
        """Run a program beside the cluster, which ends with it at the latest."""
        return self._group.run(command, timeout_s=timeout_s)

    def spawn_here(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start one; the caller waits for its end."""
        return self._group.spawn(command, log=self.folder / "programs.log")

    def kill_executor(self) -> int:
        """Kill an executor of any application; its process id."""
        group = os.getpgid(self._daemons[0].pid)
        listed = subprocess.run(
            ["pgrep", "-g", str(group), "-f", _EXECUTOR], capture_output=True, text=True, check=True
        )
        executor = min(map(int, listed.stdout.split()))
        os.kill(executor, signal.SIGKILL)
        return executor

    @contextmanager
    def connect_server(self, conf: Sequence[str] = ()) -> Iterator[str]:
        """A server of Spark Connect, which is an application of the cluster while it runs; its address."""
        port = self._ports.take()
        own = (f"spark.connect.grpc.binding.port={port}", f"spark.connect.grpc.binding.address={HOST}")
        settings = [word for setting in (*own, *conf) for word in ("--conf", setting)]
        command = [str(self._home / "bin" / "spark-submit"), "--master", self.master, "--class", _CONNECT_SERVER]
        log = self.folder / "connect.log"
        server = self._group.spawn([*self._environment(), *command, *settings, "spark-internal"], log=log)
        self._daemons.append(server)
        try:
            wait_until(lambda: _answers(port), what=f"the server of Spark Connect (log in {log})")
            yield f"sc://{HOST}:{port}"
        finally:
            server.terminate()
            server.wait()

    def _start(self) -> None:
        port = self.master.rpartition(":")[2]
        self._daemon("master.Master", "--port", port, "--webui-port", str(self._web_port))
        wait_until(self._is_up, what=f"the master of Spark (log in {self.folder})")
        for number in range(self._workers):
            work_dir = str(self.folder / f"work-{number}")
            resources = ("--cores", "1", "--memory", "2g", "--webui-port", "0", "--work-dir", work_dir)
            self._daemon("worker.Worker", *resources, self.master)
        wait_until(lambda: self._live_workers() == self._workers, what=f"workers (log in {self.folder})")

    def _daemon(self, name: str, *arguments: str) -> None:
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", HOST]
        started = self._group.spawn([*self._environment(), *command, *arguments], log=self.folder / f"{name}.log")
        self._daemons.append(started)

    def _environment(self) -> list[str]:
        """A prefix of a command line: Spark here, Python as this one, and nothing of ours on its path."""
        names = {"SPARK_HOME": str(self._home), "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable}
        forgotten = [word for name in ("PYTHONPATH", "SPARK_SUBMIT_OPTS") for word in ("-u", name)]
        return ["env", *forgotten, *(f"{name}={value}" for name, value in names.items())]

    def _is_up(self) -> bool:
        return self._live_workers() is not None

    def _live_workers(self) -> int | None:
        """Workers that the master knows to be alive; None while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._web_port}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, ValueError):
            return None


def _answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=5).close()
    except OSError:
        return False
    return True


def _pyspark_home() -> Path:
    """Folder of PySpark's own copy of Spark: programs and jars."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise FileNotFoundError("PySpark is not installed: pip install 'kreassign[spark]'")
    return Path(os.path.realpath(found.origin)).parent
