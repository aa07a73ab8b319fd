"""What the demo says about copies is true, or it does not say it; and what is missing is told, not stumbled upon."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.clock import SystemClock
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.operations.snapshot import observe, whole_snapshot
from kreassign.twin import Twin
from kreassign.twin.scenario import parse_scenario
from kreassign.twin.server import ServerThread, serving
from testbed.demo import check_copies, missing_for_spark
from testbed.errors import CopiesIncomplete

SCENARIO = """
    [[brokers]]
    count = 3
    [[topics]]
    name = "t"
    partitions = 4
    replication_factor = 2
    size = "10 MB"
"""


def seen_of(server: ServerThread) -> tuple[str, ClusterSnapshot]:
    address = server.bootstrap_servers
    with AdminClient.connect(client_settings(bootstrap_servers=address)) as client:
        return address, whole_snapshot(client, observe(client, 0), SystemClock(), 0)


def test_complete_copies_are_said_to_be() -> None:
    with serving(Twin(parse_scenario(SCENARIO, "small").blueprint)) as server:
        assert check_copies(*seen_of(server)).startswith("all 8 copies of 4 partitions have everything")


def test_a_copy_that_lacks_records_is_named() -> None:
    with serving(Twin(parse_scenario(SCENARIO, "small").blueprint)) as server:
        address, seen = seen_of(server)
        (topic,) = seen.topics
        longer = replace(topic.partitions[2], end_offset=topic.partitions[2].end_offset + 1)
        partitions = (*topic.partitions[:2], longer, topic.partitions[3])
        with pytest.raises(CopiesIncomplete, match=r"records of t-2$"):
            check_copies(address, replace(seen, topics=(replace(topic, partitions=partitions),)))


def java_of_version(folder: Path, version: str) -> Path:
    """A home of a Java that says this of itself."""
    java = folder / version / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return java.parent.parent


def test_a_java_that_is_missing_or_too_old_is_named_with_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for home in (tmp_path / "nowhere", java_of_version(tmp_path, "11.0.2")):
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert missing_for_spark().startswith("missing: Java 17 or newer")
        assert "install it" in missing_for_spark()
    monkeypatch.setenv("JAVA_HOME", str(java_of_version(tmp_path, "17.0.1")))
    assert missing_for_spark() == ""
