"""Kafka's own kafka-reassign-partitions and ours on one cluster, each from the same state, with comparable outcomes.

Each tool gets topics and files of its own, which show in its outcome under the same names. Left out of the outcome is
only what cannot be the same: times, the Java stack trace (ours says `Caused by:`), log lines of the Java client,
connection ids, our line about a missing permission, the placement of `--generate` (checked instead), and the order of
names where Kafka's tool prints them in the order of a hash table.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kreassign.admin import AdminClient, client_settings
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.cluster import ConfigChange, ConfigSource
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES, clear_broker_changes, rate_changes
from testbed import Finished, KafkaCluster, probe
from testbed.records import load_topic
from testbed.releases import DEFAULT
from testbed.waiting import wait_until

KAFKA, OURS = "kafka", "ours"

_LOG_LINE = re.compile(r"(\S+ )?\[[^\]]+\] (DEBUG|INFO|WARN|ERROR) |SLF4J")
_TRACE_LINE = re.compile(r"\tat |Caused by: |\t\.\.\. \d+ more|\s+Suppressed: ")
_TRACE_HEAD = re.compile(r"[\w.$]+(Exception|Error)(: |$)")
_CONNECTION = re.compile(r"Request Request\(.*?\) needs")
_OURS_ONLY = (
    "all|by-broker|cancel-first|dry-run|expect-current|follow|force|format|incremental|interval-ms|output|progress|"
    "reassignment-batch-size|reassignment-poll-interval-ms|reassignment-require-isr|reassignment-wait-timeout-ms|"
    "reassignment-warn-others|zookeeper"
)
_OUR_ROWS = re.compile(rf"^--({_OURS_ONLY}) .*\n(?:^ .*\n)*", re.MULTILINE)
# Kafka's own tool overrides and prints lists of moves without a word; ours says the risk, as its page lists.
_OUR_WARNING = re.compile(
    r"^Warning: (\S+ is being reassigned \(.*\), and (the plan overrides that with|its list printed above has)"
    r"|the proposal gives each partition of \S+ \d+ replicas) .*\n",
    re.MULTILINE,
)
# A missing permission is named below Kafka's words.
_OUR_PERMISSION = re.compile(r"^permission is missing: .*\n", re.MULTILINE)
_UNORDERED = re.compile(
    r"(Clearing \S+ throttles on \S+ |Unable to find partition: "
    r"|Successfully completed .*leader election .*for partitions |(?:Valid|Preferred) replica already elected for "
    r"partitions )(.*)"
)
_FAILED_ELECTIONS = re.compile(r"(?:^Error completing .*leader election .*\n?){2,}", re.MULTILINE)
_PROPOSED = "Proposed partition reassignment configuration\n"


@dataclass(frozen=True)
class Programs:
    """Two programs that must do the same: a class of the jars of a Kafka release, and a module of ours."""

    java_class: str
    module: str
    java_version: str = DEFAULT


REASSIGN = Programs(
    "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "kreassign.kafka_tools.reassign_partitions"
)

Scenario = Callable[["Tool"], None]
InTwoParts = Callable[["Tool"], Iterator[None]]


class Tool:
    """One of the two tools in one scenario: runs it, and writes down what it did."""

    def __init__(
        self, cluster: KafkaCluster, who: str, scenario: str, folder: Path, programs: Programs = REASSIGN
    ) -> None:
        self.cluster = cluster
        self._programs = programs
        self.who = who
        self._prefix = f"{scenario}.{who}."
        self._folder = folder / who
        self._folder.mkdir(exist_ok=True)
        self._topics: list[str] = []
        self._places: dict[str, str] = {}
        self._transcript: list[str] = []
        self._is_clean = False
        settings = client_settings(bootstrap_servers=cluster.bootstrap_servers)
        self.admin = AdminClient.connect(settings)

    # --- what a scenario starts from ----------------------------------------------------------------------------

    def real_name(self, topic: str) -> str:
        """The name that a topic of this tool has in the cluster."""
        return self._prefix + topic

    def topic(self, name: str, *replicas: Sequence[int], megabytes: int = 0) -> None:
        """Create a topic with these replica lists, and so much data in each partition."""
        real = self.real_name(name)
        self._topics.append(real)
        self.cluster.create_topic(real, replicas)
        if megabytes:
            sizes = dict.fromkeys(range(len(replicas)), megabytes * 1_000_000)
            load_topic(self.cluster.bootstrap_servers, real, sizes, value_bytes=(20_000, 20_000))

    def plan(
        self,
        requested: Mapping[str, Sequence[int]] | Sequence[tuple[str, Sequence[int]]],
        log_dirs: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """A reassignment file for partitions like `foo-0`, as pairs if one comes twice; returns its path."""
        entries = []
        for name, replicas in requested.items() if isinstance(requested, Mapping) else requested:
            topic, _, number = name.rpartition("-")
            if topic.endswith("-"):  # foo--1: a negative number
                topic, number = topic[:-1], f"-{number}"
            entry = {"topic": self._prefix + topic, "partition": int(number), "replicas": list(replicas)}
            entries.append(entry | ({"log_dirs": log_dirs[name]} if log_dirs and name in log_dirs else {}))
        return self.file(json.dumps({"version": 1, "partitions": entries}))

    def topics_file(self, *names: str) -> str:
        """A topics file; returns its path."""
        return self.file(json.dumps({"version": 1, "topics": [{"topic": self._prefix + name} for name in names]}))

    def file(self, content: str, name: str = "input") -> str:
        """A file with this content; returns its path."""
        path = self._folder / f"{name}-{len(list(self._folder.iterdir()))}"
        path.write_text(content, encoding="utf-8")
        return str(path)

    def properties(self, values: Mapping[str, str]) -> str:
        """A client properties file; returns its path."""
        return self.file("".join(f"{key}={value}\n" for key, value in values.items()), "properties")

    def dir_of(self, name: str, broker: int) -> str:
        """The log directory where a broker keeps a partition."""
        return self._directories(name, broker)[0]

    def other_dir(self, name: str, broker: int) -> str:
        """A log directory of a broker where a partition is not."""
        return self._directories(name, broker)[1]

    def _directories(self, name: str, broker: int) -> list[str]:
        """The log directories of a broker; the one with the partition first."""
        directories = sorted(self.cluster.brokers[broker].log_dirs, key=lambda path: not self._holds(path, name))
        assert self._holds(directories[0], name)
        for directory, alias in zip(directories, ("its", "another"), strict=True):
            self._places[str(directory)] = f"<{alias} dir of {name} on {broker}>"
        return list(map(str, directories))

    def _holds(self, directory: Path, name: str) -> bool:
        return (directory / (self._prefix + name)).is_dir()

    # --- running ------------------------------------------------------------------------------------------------

    def __call__(self, *words: str, via: str | None = "--bootstrap-server") -> None:
        """Run the tool; with `via` it is told where the cluster is by that option."""
        bootstrap: tuple[str, ...] = ()
        if via is not None:
            addresses = {
                "--bootstrap-server": self.cluster.bootstrap_servers,
                "--bootstrap-controller": self.cluster.bootstrap_controllers,
                "--zookeeper": self.cluster.zookeeper_connect,
            }
            bootstrap = (via, addresses[via])
        current = self._current_places()
        finished = self._run((*bootstrap, *words))
        current = self._current_places() | current  # A copy that has begun before may get its directory meanwhile.
        shown = " ".join(map(self._shown, words))
        self._transcript += [
            f"$ {shown}",
            f"exit code {finished.exit_code}",
            self._shown(_comparable(_with_places(finished.stdout, current), words)),
            f"standard error: {self._shown(_comparable_error(finished.stderr))}",
        ]

    def _run(self, words: tuple[str, ...]) -> Finished:
        """Each in a process of its own: one that starts at once outruns what brokers hear of the change before."""
        if self.who == KAFKA:
            programs = self._programs
            return self.cluster.java_tool(programs.java_class, *words, version=programs.java_version, in_own_java=True)
        command = [sys.executable, "-m", self._programs.module, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return Finished(done.returncode, done.stdout, done.stderr)

    def _shown(self, text: str) -> str:
        for path, alias in self._places.items():
            text = text.replace(path, alias)
        text = text.replace(str(self._folder), "<folder>").replace(self._prefix, "")
        return text.replace(str(self.cluster.folder), "<cluster>")

    def _current_places(self) -> dict[tuple[str, int, int], str]:
        """Directories of all replicas of our topics now: (topic, partition, broker) → directory."""
        found = {}
        for broker, node in self.cluster.brokers.items():
            for directory in node.log_dirs:
                for path in directory.glob(f"{self._prefix}*-*[0-9]"):
                    topic, _, number = path.name.rpartition("-")
                    if number.isdigit():
                        found[topic, int(number), broker] = str(directory)
        return found

    # --- what became of it --------------------------------------------------------------------------------------

    def settle(self, replicas: Mapping[str, Sequence[int]] = MappingProxyType({})) -> None:
        """Wait until nothing is being reassigned, no directory is being filled, and the brokers know that.

        Where a replica is on a broker that is down, a view of a move looks like one of a partition at rest: such
        partitions, like `foo-0`, need to be named with the replicas that they have then.
        """
        wait_until(lambda: not self.admin.list_partition_reassignments(), what="no reassignment")
        wait_until(lambda: not self._futures(), what="no move between directories")
        wait_until(self._brokers_know, what="brokers that know what the controller knows")
        wait_until(lambda: self._brokers_show(replicas), what=f"brokers that show {dict(replicas)}")

    def _brokers_show(self, replicas: Mapping[str, Sequence[int]]) -> bool:
        ports = [node.place.ports["PLAINTEXT"] for node in self.cluster.brokers.values() if node.is_running]
        found = [probe.metadata(port, sorted(self._topics)).topics for port in ports]
        return all(
            topics[self.real_name(topic)][int(number)].replicas == tuple(listed)
            for topics in found
            for (topic, _, number), listed in ((name.rpartition("-"), each) for name, each in replicas.items())
        )

    def _brokers_know(self) -> bool:
        """True if every running broker shows partitions at rest: a view of a move has a replica out of sync."""
        running = {node.id: node for node in self.cluster.brokers.values() if node.is_running}
        return not any(
            set(partition.replicas) <= running.keys() and set(partition.isr) != set(partition.replicas)
            for node in running.values()
            for partitions in probe.metadata(node.place.ports["PLAINTEXT"], sorted(self._topics)).topics.values()
            for partition in partitions
        )

    def throttle(self, name: str, bytes_per_s: int) -> None:
        """Throttle a topic on all brokers, and wait until they know it.

        In ZooKeeper mode a broker hears of settings and of reassignments on different ways, so that what the tool under
        test starts could be copied before the throttle that the tool has set. It hears of settings in their order:
        whoever shows its rate, which comes last, knows the lists too.
        """
        lists = [ConfigChange.set(key, "*") for key in TOPIC_THROTTLES]
        self.admin.incremental_alter_configs({ConfigResource.topic(self.real_name(name)): lists}).raise_if_any()
        rates = rate_changes(self._live_brokers(), bytes_per_s)
        self.admin.incremental_alter_configs(rates).raise_if_any()

        def are_known() -> bool:
            described = self.admin.describe_configs(list(rates), names=BROKER_THROTTLES).raise_if_any()
            known = {(broker, key): entry.value for broker, found in described.items() for key, entry in found.items()}
            return all(known.get((broker, one.name)) == one.value for broker in rates for one in rates[broker])

        wait_until(are_known, what="brokers that know their throttle")

    def wait_for(self, name: str) -> None:
        """Wait until one partition is no longer being reassigned."""
        key = TopicPartition.parse(self.real_name(name))
        wait_until(lambda: not self.admin.list_partition_reassignments([key]), what=f"{name} at rest")

    def _futures(self) -> list[str]:
        nodes = [node for node in self.cluster.brokers.values() if node.is_running]
        return [
            str(path)
            for node in nodes
            for directory in node.log_dirs
            for path in directory.glob(f"{self._prefix}*-future")
        ]

    def note_dir(self, name: str, broker: int) -> None:
        """Write down in which directory a partition is now, under the names used before."""
        (directory,) = [path for path in self.cluster.brokers[broker].log_dirs if self._holds(path, name)]
        self._transcript.append(f"{name} on {broker} is in {self._shown(str(directory))}")

    def note_leaders(self) -> None:
        """Write down who leads the partitions of our topics.

        A broker hears of it a moment after the tool was answered. It hears of changes in their order, so one that
        knows a topic that was created later knows the leaders.
        """
        first = min(node.id for node in self.cluster.brokers.values() if node.is_running)
        self.cluster.create_topic(self.real_name(f"later-{len(self._transcript)}"), [[first]])
        topics = self.admin.describe_topics(self._topics).raise_if_any()
        partitions = sorted(
            (each.topic_partition, each.leader) for topic in topics.values() for each in topic.partitions
        )
        self._transcript += [f"{self._shown(str(key))} is led by {leader}" for key, leader in partitions]

    def transcript(self) -> str:
        """Output of the tool."""
        return "\n".join(self._transcript)

    def outcome(self) -> str:
        """Output of the tool, and the state of the cluster afterwards."""
        return "\n".join([*self._transcript, *self._state()])

    def _state(self) -> list[str]:
        # Brokers learn of changes in their order: those who know the newest topic know all that was before.
        self.cluster.create_topic(f"{self._prefix}marker", [[0]])
        if self.cluster.zookeeper:
            self._wait_for_settings()
        ongoing = self.admin.list_partition_reassignments()
        lines = [f"{self._shown(str(partition))}: {list(ids)}" for partition, ids in sorted(self._assigned().items())]
        lines += [f"moving {self._shown(str(key))}: {ongoing[key]}" for key in sorted(ongoing)]
        live = [ConfigResource.broker(broker) for broker in self._live_brokers()]
        for resource, keys in [
            *((ConfigResource.topic(topic), TOPIC_THROTTLES) for topic in sorted(self._topics)),
            *((resource, BROKER_THROTTLES) for resource in live),
        ]:
            described = self.admin.describe_configs([resource], names=keys)[resource]
            own = {name: entry.value for name, entry in described.items() if entry.source < ConfigSource.STATIC_BROKER}
            lines += [f"{self._shown(str(resource))}: {name} = {value!r}" for name, value in sorted(own.items())]
        return lines

    def _wait_for_settings(self) -> None:
        """With ZooKeeper brokers hear of settings in an order of their own: whoever shows the last knows all before."""
        name, value = "log.flush.interval.messages", str(time.time_ns())  # never the one before
        live = [ConfigResource.broker(broker) for broker in self._live_brokers()]

        def are_known() -> bool:
            described = self.admin.describe_configs(live, names=[name]).raise_if_any()
            return all(described[broker][name].value == value for broker in live)

        self.admin.incremental_alter_configs({key: [ConfigChange.set(name, value)] for key in live}).raise_if_any()
        wait_until(are_known, what="brokers that know their settings")
        self.admin.incremental_alter_configs({key: [ConfigChange.delete(name)] for key in live}).raise_if_any()

    def _live_brokers(self) -> list[int]:
        return sorted(broker for broker, node in self.cluster.brokers.items() if node.is_running)

    def _assigned(self) -> dict[TopicPartition, tuple[int, ...]]:
        topics = self.admin.describe_topics(self._topics).raise_if_any()
        return {one.topic_partition: one.replicas for topic in topics.values() for one in topic.partitions}

    def clean_up(self) -> None:
        """Leave nothing behind: no topics, no moves, no throttles. A second time does nothing."""
        if self._is_clean:
            return
        self._is_clean = True
        with self.admin:
            if self.cluster.zookeeper_connect:
                # Else what is left of a deleted topic could stay in the znode of reassignments.
                self.admin.alter_partition_reassignments(dict.fromkeys(self.admin.list_partition_reassignments()))
            for topic in self.admin.list_topics():
                if topic.startswith(self._prefix):
                    self.cluster.delete_topic(topic)
            self.admin.incremental_alter_configs(clear_broker_changes(self._live_brokers())).raise_if_any()
            wait_until(lambda: not self.admin.list_partition_reassignments(), what="an idle cluster")


def outcomes(
    cluster: KafkaCluster, name: str, scenario: Scenario, folder: Path, programs: Programs = REASSIGN
) -> tuple[str, str]:
    """Outcomes of a scenario with Kafka's tool and with ours."""
    results = []
    for who in (KAFKA, OURS):
        tool = Tool(cluster, who, name.replace("_", "-"), folder, programs)
        try:
            scenario(tool)
            results.append(tool.outcome())
        finally:
            tool.clean_up()
    return results[0], results[1]


def outcomes_with_a_stopped_broker(
    cluster: KafkaCluster, broker: int, scenarios: Mapping[str, InTwoParts], folder: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Outcomes of scenarios whose second parts happen while a broker is down, with both tools."""
    prepared: list[tuple[str, Tool, Iterator[None]]] = []
    results: dict[str, dict[str, str]] = {KAFKA: {}, OURS: {}}
    try:
        for name, scenario in scenarios.items():
            for who in (KAFKA, OURS):
                tool = Tool(cluster, who, name.replace("_", "-"), folder)
                prepared.append((name, tool, scenario(tool)))
                next(prepared[-1][2])
        cluster.brokers[broker].stop()
        wait_until(lambda: broker not in cluster.seen().brokers, what="a cluster that misses the broker")
        for name, tool, rest in prepared:
            next(rest, None)
            results[tool.who][name] = tool.outcome()
            tool.clean_up()
    finally:
        for _name, tool, _rest in prepared:
            tool.clean_up()
    return results[KAFKA], results[OURS]


def answers(cluster: KafkaCluster, scenario: Scenario, folder: Path) -> tuple[str, str]:
    """Output of both tools in a scenario that changes nothing in the cluster, so that they can run side by side."""

    def answer(who: str) -> str:
        tool = Tool(cluster, who, "same", folder)
        scenario(tool)
        return tool.transcript()

    with ThreadPoolExecutor(2) as threads:
        theirs, ours = threads.map(answer, (KAFKA, OURS))
    return theirs, ours


def _comparable(stdout: str, words: Sequence[str]) -> str:
    text = _without_trace(stdout)
    if _PROPOSED in text:
        before, _, proposed = text.partition(_PROPOSED)
        text = before + _PROPOSED + _summary(proposed, words[words.index("--broker-list") + 1])
    lines = (_UNORDERED.sub(_sorted_names, line) for line in text.split("\n"))
    text = _FAILED_ELECTIONS.sub(_sorted_lines, "\n".join(lines))
    return _CONNECTION.sub("Request Request(...) needs", text)


def _comparable_error(stderr: str) -> str:
    noise = (_LOG_LINE, _TRACE_LINE, _TRACE_HEAD)
    everything = stderr.split("\n")
    lines = [line for line in everything if not any(pattern.match(line) for pattern in noise)]
    text = _OUR_PERMISSION.sub("", _OUR_WARNING.sub("", _OUR_ROWS.sub("", "\n".join(lines))))
    if len(lines) == len(everything):
        return text
    kept = text.rstrip("\n")
    return f"{kept}\n" if kept else ""


def _without_trace(stdout: str) -> str:
    """The output up to what follows the message of a failure: a Java stack trace, or our reason."""
    lines = stdout.split("\n")
    errors = [number for number, line in enumerate(lines) if line.startswith("Error: ")]
    if not errors:
        return stdout
    end = next(
        (
            number
            for number in range(errors[-1] + 1, len(lines))
            if _TRACE_HEAD.match(lines[number]) or _TRACE_LINE.match(lines[number])
        ),
        len(lines),
    )
    return "\n".join(lines[:end]).rstrip("\n")


def _with_places(stdout: str, places: Mapping[tuple[str, int, int], str]) -> str:
    """The output with the directory of every replica in a printed assignment shown as right or left as it is."""
    return "\n".join(
        _assignment_with_places(line, places) if line.startswith('{"version":1,"partitions":') else line
        for line in stdout.split("\n")
    )


def _assignment_with_places(line: str, places: Mapping[tuple[str, int, int], str]) -> str:
    document = json.loads(line)
    for entry in document["partitions"]:
        entry["log_dirs"] = [
            "<its dir>" if places.get((entry["topic"], entry["partition"], broker)) == path else path
            for broker, path in zip(entry["replicas"], entry["log_dirs"], strict=True)
        ]
    return json.dumps(document, separators=(",", ":"))


def _summary(proposed: str, broker_list: str) -> str:
    """Common part of two random proposals: partitions, replica counts, brokers from the list."""
    line, _, rest = proposed.partition("\n")
    allowed = set(map(int, broker_list.split(",")))
    rows = []
    for entry in json.loads(line)["partitions"]:
        replicas = entry["replicas"]
        assert len(set(replicas)) == len(replicas), line
        assert set(replicas) <= allowed, line
        rows.append(f"{entry['topic']}-{entry['partition']}: {len(replicas)} replicas {entry['log_dirs']}")
    return "\n".join([*rows, rest])


def _sorted_lines(match: re.Match[str]) -> str:
    end = "\n" if match[0].endswith("\n") else ""
    return "\n".join(sorted(match[0].rstrip("\n").split("\n"))) + end


def _sorted_names(match: re.Match[str]) -> str:
    separator = ", " if ", " in match[2] else ","
    return match[1] + separator.join(sorted(match[2].split(separator)))
