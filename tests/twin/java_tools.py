"""Kafka's own command-line tools, pointed at a twin."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from kreassign.twin.server import ServerThread
from kreassign.twin.version import Endpoint
from testbed import JarsMissing, JavaMissing
from testbed.processes import Finished
from testbed.releases import DEFAULT
from testbed.tool_host import run_hosted

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
TIMEOUT_S = 120
REQUIRE_VARIABLE = "KREASSIGN_REQUIRE_KAFKA"

Replicas = Mapping[str, list[int]]
"""Partitions as `topic-partition`, with their replicas."""


class JavaTools:
    """Runs tools of one release against a served twin. Files are written to a folder of the test."""

    def __init__(self, server: ServerThread, folder: Path, version: str = DEFAULT) -> None:
        self.server = server
        self._folder = folder
        self._version = version

    @property
    def bootstrap(self) -> dict[Endpoint, str]:
        """Addresses of the brokers and of the controller."""
        twin, addresses = self.server.server.twin, self.server.server.addresses()
        return {
            kind: ",".join(f"{host}:{port}" for node, (host, port) in addresses.items() if twin.endpoint(node) is kind)
            for kind in Endpoint
        }

    def run(self, main_class: str, *arguments: str, via: Endpoint = Endpoint.BROKER) -> Finished:
        """Run a tool to its end, told where brokers or controllers are."""
        option = "--bootstrap-server" if via is Endpoint.BROKER else "--bootstrap-controller"
        try:
            return run_hosted(self._version, main_class, option, self.bootstrap[via], *arguments, timeout_s=TIMEOUT_S)
        except (JarsMissing, JavaMissing) as missing:
            if os.environ.get(REQUIRE_VARIABLE):
                raise
            pytest.skip(str(missing))

    def reassign(self, action: str, plan: Replicas | None = None, *options: str, **where: Endpoint) -> Finished:
        """Run the reassignment tool with a plan."""
        given = [] if plan is None else ["--reassignment-json-file", self.plan(plan)]
        return self.run(REASSIGN, action, *given, *options, **where)

    def plan(self, replicas: Replicas, log_dirs: Mapping[str, list[str]] | None = None) -> str:
        """A reassignment file; returns its path."""
        entries = []
        for name, brokers in replicas.items():
            topic, _, number = name.rpartition("-")
            entry: dict[str, object] = {"topic": topic, "partition": int(number), "replicas": brokers}
            if log_dirs and name in log_dirs:
                entry["log_dirs"] = log_dirs[name]
            entries.append(entry)
        return self.file({"version": 1, "partitions": entries})

    def file(self, content: object) -> str:
        """A JSON file; returns its path."""
        path = self._folder / f"{len(list(self._folder.iterdir()))}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)


def failure(finished: Finished) -> str:
    """The message of a failed run: everything up to the trace."""
    assert finished.exit_code == 1, finished
    lines = finished.stdout.splitlines()
    end = next(
        (number for number, line in enumerate(lines) if re.match(r"\s+at |org\.apache|java\.", line)), len(lines)
    )
    return "\n".join(lines[:end]).strip()


def success(finished: Finished) -> str:
    """The output of a run that went well."""
    assert finished.exit_code == 0, finished
    return finished.stdout.strip()
