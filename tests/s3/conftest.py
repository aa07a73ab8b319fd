"""An S3 server on this machine, and what a process must know to use it and nothing else. Run by `make test-s3`."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.jars import jars_folder
from testbed.ports import HOST, ReservedPorts
from testbed.waiting import wait_until
from tests.checks.source import ROOT

# Other targets of make have neither the server nor the jars.
collect_ignore_glob = [] if "KREASSIGN_TEST_S3" in os.environ else ["test_*.py"]

_SERVER = ROOT / "build" / "moto" / "bin" / "python"
_COMMAND_S = 280
BUCKET = "bucket"


def jars(*, of_s3: bool) -> list[Path]:
    """The jars of Spark's file system for S3, or those of delta-spark."""
    found = sorted((jars_folder() / "spark-s3").glob("*.jar"))
    assert found, "no jars of Spark for S3; run: make test-s3"
    return [jar for jar in found if jar.name.startswith("delta-") != of_s3]


@dataclass(frozen=True, slots=True)
class Store:
    """An S3 server, with the environment by which it is found."""

    endpoint: str
    environment: Mapping[str, str]

    def run(self, *words: str, **changed: str | None) -> subprocess.CompletedProcess[str]:
        """Run `kreassign` with this environment, or a changed one; whatever its exit code."""
        return self.python("-m", "kreassign", *words, **changed)

    def python(self, *words: str, **changed: str | None) -> subprocess.CompletedProcess[str]:
        """Run Python likewise."""
        given = {**os.environ, **self.environment, **changed}
        environment = {name: value for name, value in given.items() if value is not None}
        command = [sys.executable, *words]
        return subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=_COMMAND_S, check=False
        )


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The server, with an empty bucket; this process finds it, too."""
    ports = ReservedPorts()
    closed = f"http://{HOST}:{ports.take()}"
    holder = ReservedPorts()
    port = holder.take()
    holder.release()
    folder = tmp_path_factory.mktemp("s3")
    found = Store(f"http://{HOST}:{port}", _environment(f"http://{HOST}:{port}", closed, folder))
    words: Sequence[str] = [str(_SERVER), "-m", "moto.server", "-H", HOST, "-p", str(port)]
    with (folder / "server.log").open("wb") as log, pytest.MonkeyPatch.context() as environment:
        server = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: _answers(server, found.endpoint), what="an answer of the S3 server")
            with urllib.request.urlopen(urllib.request.Request(f"{found.endpoint}/{BUCKET}", method="PUT")):
                pass
            for name, value in found.environment.items():
                environment.setenv(name, value)
            yield found
        finally:
            server.terminate()
            server.wait(60)
            ports.release()


def _environment(endpoint: str, closed: str, home: Path) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        # Nothing may be asked of the outside, and nothing taken from a file of this user's.
        "AWS_METADATA_ENDPOINT": closed,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(home / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "credentials"),
        "NO_PROXY": HOST,
        "no_proxy": HOST,
        "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jars(of_s3=True)))} pyspark-shell",
    }


def _answers(server: subprocess.Popen[bytes], endpoint: str) -> bool:
    assert server.poll() is None, "the S3 server did not start"
    try:
        with urllib.request.urlopen(endpoint, timeout=5):
            return True
    except urllib.error.URLError:
        return False
