"""The walk of Kafka's own command line tools."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from testbed.processes import Finished
from testbed.releases import DEFAULT, config_tool
from testbed.tool_host import run_hosted
from tests.clients.python.walk import Walk, once_so, start

TIMEOUT_S = 120.0
TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "acls": f"{TOOLS}.AclCommand",
    "client-metrics": f"{TOOLS}.ClientMetricsCommand",
    "cluster": f"{TOOLS}.ClusterTool",
    "configs": config_tool(DEFAULT),
    "consumer-groups": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
    "delete-records": f"{TOOLS}.DeleteRecordsCommand",
    "features": f"{TOOLS}.FeatureCommand",
    "get-offsets": f"{TOOLS}.GetOffsetShell",
    "groups": f"{TOOLS}.GroupsCommand",
    "log-dirs": f"{TOOLS}.LogDirsCommand",
    "metadata-quorum": f"{TOOLS}.MetadataQuorumCommand",
    "topics": f"{TOOLS}.TopicCommand",
    "transactions": f"{TOOLS}.TransactionsCommand",
}
"""The class of each tool, by its name without `kafka-`."""

# What is not the same on two clusters, nor twice on one: addresses, ids, directories, and how far a log has come.
UNLIKE = (
    (re.compile(r"(127\.0\.0\.1|localhost)([:\s]+)\d+"), r"HOST\2PORT"),
    (re.compile(r"(Cluster ID|TopicId|ClusterId): *\S+"), r"\1: ID"),
    (re.compile(r"Epoch: \d+"), "Epoch: N"),
    (re.compile(r'"logDir":"[^"]*"'), '"logDir":DIR'),
    # What brokers have in their own files, which are not the same.
    (re.compile(r"Configs: .*"), "Configs: THOSE"),
    (re.compile(r"synonyms=\{([^,}]*)[^}]*\}"), r"synonyms={\1}"),
    (re.compile(r"[ \t]+"), " "),
)
# Lines of a log, and of a trace.
OF_JAVA = re.compile(r"\[|\d{4}-\d\d-\d\d|at |\.\.\. \d+ more|Caused by:")


def main() -> None:
    """Walk."""
    walk = start(TimeoutError, lambda _: None)
    of_cluster(walk)
    of_topics(walk)
    of_configs(walk)
    of_groups(walk)
    of_records(walk)
    walk.step("topics --delete", asked(walk, "topics", "--delete", "--topic", walk.topic))
    walk.step("topics --delete again", asked(walk, "topics", "--delete", "--topic", f"{walk.topic}-none"))


def run(walk: Walk, tool: str, *words: str) -> Finished:
    """Run a tool; in what it says the topic of the walk is called TOPIC."""
    options = ("--bootstrap-server", walk.bootstrap)
    # One tool takes its options after its command.
    every = (*words, *options) if tool == "cluster" else (*options, *words)
    done = run_hosted(DEFAULT, CLASSES[tool], *every, timeout_s=TIMEOUT_S)
    return Finished(done.exit_code, *(text.replace(walk.topic, "TOPIC") for text in (done.stdout, done.stderr)))


def alike(text: str) -> list[str]:
    """Its lines, without what cannot be the same on two clusters."""
    for pattern, instead in UNLIKE:
        text = pattern.sub(instead, text)
    return [line for one in text.splitlines() if (line := one.strip()) and not OF_JAVA.match(line)]


def told(finished: Finished) -> object:
    """Output of a tool, and its exit code where it is an error."""
    said = alike(finished.stdout) + alike(finished.stderr)
    return said if finished.exit_code == 0 else {"exit code": finished.exit_code, "said": said}


def asked(walk: Walk, tool: str, *words: str) -> Callable[[], object]:
    """A step that runs a tool."""
    return lambda: told(run(walk, tool, *words))


def of_cluster(walk: Walk) -> None:
    """Brokers, features and the quorum."""

    def status() -> object:
        """The names of the fields, and who leads."""
        lines = alike(run(walk, "metadata-quorum", "describe", "--status").stdout)
        return [line if line.startswith("LeaderId") else line.partition(":")[0] for line in lines]

    def replication() -> object:
        """Followers per part, and True if each was last caught up within this hour."""
        header, *rows = alike(run(walk, "metadata-quorum", "describe", "--replication").stdout)
        column = header.split().index("LastCaughtUpTimestamp")
        now_ms = time.time() * 1000
        found = [row.split() for row in rows]
        return [header, sorted((row[0], row[-1], abs(now_ms - int(row[column])) < 3_600_000) for row in found)]

    walk.step("cluster cluster-id", asked(walk, "cluster", "cluster-id"))
    walk.step("cluster list-endpoints", asked(walk, "cluster", "list-endpoints"))
    walk.step("features describe", asked(walk, "features", "describe"))
    walk.step("metadata-quorum describe --status", status)
    walk.step("metadata-quorum describe --replication", replication)
    walk.step("acls --list", asked(walk, "acls", "--list"))
    # Those of others may be there, too.
    walk.step("transactions list", lambda: alike(run(walk, "transactions", "list").stdout)[:1])
    walk.step("client-metrics --list", asked(walk, "client-metrics", "--list"))


def of_topics(walk: Walk) -> None:
    """A topic, and its logs."""
    topic = ("--topic", walk.topic)
    placed = ("--replica-assignment", "0:1,1:2")

    def describe() -> object:
        return told(run(walk, "topics", "--describe", *topic))

    def has_two() -> bool:
        return len(alike(run(walk, "topics", "--describe", *topic).stdout)) == 3

    walk.step("topics --create", asked(walk, "topics", "--create", *topic, *placed))
    walk.step("topics --create again", asked(walk, "topics", "--create", *topic, *placed))
    walk.step("topics is known", lambda: once_so(has_two, wanted=True))
    walk.step("topics --describe", describe)
    walk.step("topics --list", lambda: "TOPIC" in alike(run(walk, "topics", "--list").stdout))
    walk.step("topics --alter", asked(walk, "topics", "--alter", *topic, "--partitions", "1"))
    walk.step("get-offsets", asked(walk, "get-offsets", *topic))
    walk.step("get-offsets --time earliest", asked(walk, "get-offsets", *topic, "--time", "earliest"))
    walk.step("get-offsets --time", asked(walk, "get-offsets", *topic, "--time", "1700000000000"))
    walk.step("log-dirs --describe", lambda: directories(walk))


def directories(walk: Walk) -> object:
    """The brokers, and which partitions of the topic each has."""
    lines = alike(run(walk, "log-dirs", "--describe", "--topic-list", walk.topic).stdout)
    (line,) = (one for one in lines if one.startswith("{"))
    return sorted(re.findall(r'"partition":"([^"]*)","size":(\d+)', line)), sorted(re.findall(r'"broker":(\d+)', line))


def of_configs(walk: Walk) -> None:
    """Settings."""
    topic = ("--entity-type", "topics", "--entity-name", walk.topic)
    broker = ("--entity-type", "brokers", "--entity-name", "0")
    user = ("--entity-type", "users", "--entity-name", "alice")

    def described(*entity: str) -> Callable[[], object]:
        return lambda: sorted(alike(run(walk, "configs", "--describe", *entity).stdout))

    def set_one(value: str) -> Callable[[], object]:
        return asked(walk, "configs", "--alter", *topic, "--add-config", f"retention.ms={value}")

    walk.step("configs --alter", set_one("5000"))
    walk.step("configs --alter to nonsense", set_one("soon"))
    walk.step(
        "configs is known",
        lambda: once_so(lambda: any("retention.ms=5000" in str(line) for line in described(*topic)()), wanted=True),
    )
    walk.step("configs --describe", described(*topic))
    walk.step("configs --describe of a broker", described(*broker))
    walk.step(
        "configs --describe --all", lambda: len(alike(run(walk, "configs", "--describe", "--all", *topic).stdout))
    )
    walk.step("configs --describe of a user", described(*user))
    walk.step("set a quota", asked(walk, "configs", "--alter", *user, "--add-config", "producer_byte_rate=1000000"))
    run(walk, "configs", "--alter", *user, "--delete-config", "producer_byte_rate")


def of_groups(walk: Walk) -> None:
    """A group that is not there."""
    group = f"{walk.topic}-group"
    walk.step("consumer-groups --describe", asked(walk, "consumer-groups", "--describe", "--group", group))
    walk.step("consumer-groups --delete", asked(walk, "consumer-groups", "--delete", "--group", group))
    walk.step("consumer-groups --list", lambda: "TOPIC-group" in alike(run(walk, "consumer-groups", "--list").stdout))
    walk.step("groups --list", lambda: "TOPIC-group" in " ".join(alike(run(walk, "groups", "--list").stdout)))


def of_records(walk: Walk) -> None:
    """Records are deleted."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        partition = f'{{"topic": "{walk.topic}", "partition": 0, "offset": 0}}'
        Path(file.name).write_text(f'{{"version": 1, "partitions": [{partition}]}}', encoding="utf-8")
        found = run(walk, "delete-records", "--offset-json-file", file.name)
    walk.step("delete records", lambda: told(found))


if __name__ == "__main__":
    main()
