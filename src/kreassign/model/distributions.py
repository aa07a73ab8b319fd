"""Distributions of Kafka, and services that speak its protocol: how each is recognised, and what it does otherwise.

A cluster does not tell its distribution. It is recognised by what only one of them shows: the shape of the cluster id,
host names, log directories. Names of topics are a hint, no proof, for topics are mirrored between clusters. Without a
sign, or with signs of several, it is unknown: then nothing is assumed but what the cluster answers.

docs/reference/distributions.md has the same facts with their sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from kreassign.model.cluster import Cluster


class Sign(Enum):
    """Sign by which a distribution is recognised; all but a topic are proof."""

    CLUSTER_ID = "cluster id"
    HOST = "host"
    LOG_DIR = "log directory"
    TOPIC = "topic"


class AskedChange(Enum):
    """A change that a run asks for, and that a distribution may refuse."""

    MOVES = "reassignments"
    THROTTLE = "replication throttles"
    ELECTIONS = "elections of leaders"


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution. `signs` are patterns of whole texts; `differs` says in a sentence what a run must know.

    `instead` says what to do where it refuses a change; `balancer` names what moves partitions there by itself, or may.
    """

    name: str
    signs: Mapping[Sign, str]
    differs: str
    instead: Mapping[AskedChange, str] = field(default_factory=dict)
    balancer: str = ""
    always_balances: bool = False


REDPANDA = Distribution(
    "Redpanda",
    {Sign.CLUSTER_ID: r"redpanda\..+", Sign.LOG_DIR: r"/var/lib/redpanda/data(/.*)?"},
    "it has no replication throttles, no elections by request and no factors changed by reassignment, and its own "
    "balancer moves partitions",
    {
        AskedChange.THROTTLE: "run without --throttle, and limit copies with Redpanda's raft_learner_recovery_rate "
        "(`rpk cluster config set`)",
        AskedChange.MOVES: "look at kafka_enable_partition_reassignment (`rpk cluster config get`)",
        AskedChange.ELECTIONS: "take leading off a broker with `rpk cluster maintenance enable`",
    },
    balancer="Redpanda's partition balancer",
    always_balances=True,
)
STRIMZI = Distribution(
    "Strimzi",
    {
        Sign.HOST: r".+-[0-9]+\..+-kafka-brokers(\..+)?",
        Sign.LOG_DIR: r"/var/lib/kafka/data(-[0-9]+)?/kafka-log[0-9]+",
        Sign.TOPIC: r"__strimzi.+",
    },
    "its Topic Operator deletes the lists of throttled replicas of the topics that it manages, so that copies go on "
    "without a throttle: pause the reconciliation of these KafkaTopics for the time of a run, and do not run beside a "
    "KafkaRebalance",
    balancer="a KafkaRebalance of Strimzi",
)
MSK = Distribution(
    "Amazon MSK",
    {Sign.HOST: r".+\.kafka(-serverless)?\.[a-z0-9-]+\.amazonaws\.com(\.cn)?", Sign.TOPIC: r"__amazon_msk_.+"},
    "leave its topics __amazon_msk_canary… where they are (`plan --exclude-topics`, `decommission --may-stay`); "
    "Express brokers whose intelligent rebalancing is on take no reassignments of others",
    {AskedChange.MOVES: "on Express brokers, pause intelligent rebalancing first (`aws kafka update-rebalancing`)"},
    balancer="MSK's intelligent rebalancing",
)
CONFLUENT_CLOUD = Distribution(
    "Confluent Cloud",
    {Sign.CLUSTER_ID: r"lkc-[a-z0-9]+", Sign.HOST: r".+\.confluent\.cloud"},
    "Confluent places partitions there, and clients may not read log directories, move partitions or throttle brokers: "
    "nothing of a run is possible",
    {
        AskedChange.MOVES: "Confluent balances this cluster by itself; resize it instead",
        AskedChange.THROTTLE: "Confluent balances this cluster by itself; resize it instead",
    },
    balancer="Confluent Cloud",
    always_balances=True,
)
CONFLUENT_PLATFORM = Distribution(
    "Confluent Platform",
    {Sign.TOPIC: r"_confluent-(metrics|telemetry-metrics|command|balancer.*)"},
    "if Self-Balancing is on (confluent.balancer.enable), it moves partitions back: turn it off, or let it balance",
    balancer="Confluent's Self-Balancing",
)
DISTRIBUTIONS = (REDPANDA, STRIMZI, MSK, CONFLUENT_CLOUD, CONFLUENT_PLATFORM)
"""The known distributions. Apache Kafka itself is not among them: nothing that it shows is its own."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """The distribution of a cluster, None if unknown, and how that is known: `sign` and the text that shows it.

    `others` are further ones of which there are equal signs.
    """

    distribution: Distribution | None = None
    sign: Sign | None = None
    text: str = ""
    others: tuple[Distribution, ...] = ()

    def __str__(self) -> str:
        if self.distribution is not None and self.sign is not None:
            return f"{self.name}, by its {self.sign.value} {self.text}: {self.distribution.differs}"
        if self.others:
            return f"unknown: it shows signs of {' and of '.join(one.name for one in self.others)}"
        return "Apache Kafka (no sign of another)"

    @property
    def name(self) -> str:
        """The name of the distribution, with "perhaps" where a hint alone shows it; "" if unknown."""
        if self.distribution is None:
            return ""
        return f"perhaps {self.distribution.name}" if self.sign is Sign.TOPIC else self.distribution.name

    def instead(self, change: AskedChange) -> str:
        """Advice where the cluster refuses a change; "" if there is none."""
        return "" if self.distribution is None else self.distribution.instead.get(change, "")


UNKNOWN = Recognised()


def recognise(cluster: Cluster, log_dirs: Iterable[str] = (), topics: Iterable[str] = ()) -> Recognised:
    """The distribution of a cluster, from what was read of it: proof counts first, then hints."""
    shown = (
        (Sign.CLUSTER_ID, (cluster.cluster_id,)),
        (Sign.HOST, tuple(broker.host for broker in cluster.brokers)),
        (Sign.LOG_DIR, tuple(log_dirs)),
    )
    proofs = [one for sign, texts in shown for one in _matching(sign, texts)]
    found = proofs or list(_matching(Sign.TOPIC, topics))
    named = tuple(one for one in DISTRIBUTIONS if any(match.distribution is one for match in found))
    return found[0] if len(named) == 1 else Recognised(others=named)


def _matching(sign: Sign, texts: Iterable[str]) -> Iterator[Recognised]:
    """Each distribution with this sign in the texts."""
    known = tuple(texts)
    for one in DISTRIBUTIONS:
        pattern = one.signs.get(sign)
        text = None if pattern is None else next((text for text in known if re.fullmatch(pattern, text)), None)
        if text is not None:
            yield Recognised(one, sign, text)


CRUISE_CONTROL = re.compile(r"__CruiseControlMetrics|__KafkaCruiseControl\w+|strimzi\.cruisecontrol\.\w+")
"""Topics of Cruise Control, by its default names and by those of Strimzi."""


def cruise_control_topic(topics: Iterable[str]) -> str | None:
    """A topic that only Cruise Control has; it runs, or did, and may move partitions by itself."""
    return min(filter(CRUISE_CONTROL.fullmatch, topics), default=None)


def sure_balancer(found: Recognised) -> str:
    """Name of what balances a cluster by itself, with the proof of it; "" where nothing does for sure."""
    one = found.distribution
    return f"{one.balancer}, by {found.text}" if one and one.always_balances and found.sign is not Sign.TOPIC else ""


def balancers(found: Recognised, topics: Iterable[str]) -> tuple[str, ...]:
    """Names of what may move partitions of a cluster by itself, each with the sign of it."""
    own = "" if found.distribution is None else found.distribution.balancer
    topic = cruise_control_topic(topics)
    return (
        *((f"{own}, by {found.text}",) if own else ()),
        *((f"Cruise Control, by its topic {topic}",) if topic is not None else ()),
    )
