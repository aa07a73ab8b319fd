"""Memory of a twin whose topics come and go: rounds that create, configure and delete topics under ever new names."""

from __future__ import annotations

from bench.served import Served, served
from kreassign.admin import AdminClient
from kreassign.model import ConfigChange, ConfigResource, NewTopic

BROKERS = 5
TOPICS = 50
SPEED = "60"
"""So that files that brokers keep for a minute after their topic is deleted are gone in a second."""
SHOWN_AFTER = (0, 60, 360)
CHANGES = (
    ConfigChange.set("retention.ms", "5000"),
    ConfigChange.set("retention.bytes", "999"),
    ConfigChange.set("leader.replication.throttled.replicas", "*"),
)


def measure() -> None:
    """Print the table."""
    print(f"{BROKERS} brokers; in each round {TOPICS} topics are created, get {len(CHANGES)} settings each, and go\n")
    print("| rounds | MiB | server's CPU s |")
    print("|---|---|---|")
    with served("--brokers", str(BROKERS), "--speed", SPEED) as twin, twin.client() as client:
        for number in range(SHOWN_AFTER[-1] + 1):
            if number in SHOWN_AFTER:
                _row(number, twin)
            _come_and_go(client, number)


def _come_and_go(client: AdminClient, number: int) -> None:
    names = [f"topic-{number}-{each}" for each in range(TOPICS)]
    client.create_topics([NewTopic(name, assignments=((0, 1), (1, 2))) for name in names]).raise_if_any()
    client.incremental_alter_configs({ConfigResource.topic(name): CHANGES for name in names}).raise_if_any()
    client.delete_topics(names).raise_if_any()


def _row(number: int, twin: Served) -> None:
    print(f"| {number} | {twin.memory_mib:.1f} | {twin.cpu_s:.1f} |", flush=True)
