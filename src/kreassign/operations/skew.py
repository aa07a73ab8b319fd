"""Show how unevenly the brokers of a cluster are loaded, and which topics make it so, before anything is planned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.executor.cluster.permissions import explained
from kreassign.model import LogDir, Topic
from kreassign.operations.connect import Warn, warn_program
from kreassign.operations.plan_inputs import inputs_of_columns
from kreassign.operations.snapshot import observe, whole_columns_of
from kreassign.planner import Assignment, PlanPolicy, evaluate

COUNTED = ("disk", "replicas", "leaders")
"""Goals whose loads are known without measuring rates."""


@dataclass(frozen=True, slots=True)
class GoalLoad:
    """Load of a live broker for one goal: amount, and its multiple of the mean of all brokers, None without any load.

    `band` is within, above or below: where the load is, as seen from the band of the goal.
    """

    goal: str
    amount: float
    unit: str
    share: float | None
    band: str


@dataclass(frozen=True, slots=True)
class BrokerSkew:
    """A broker with its loads; none are known of a broker that is down, or did not tell its directories."""

    broker: int
    rack: str | None
    is_live: bool
    loads: tuple[GoalLoad, ...]


@dataclass(frozen=True, slots=True)
class TopicSpread:
    """A topic with all its copies, and the broker that holds most of it.

    `uncounted` is the number of copies that no broker reported: brokers or directories are down, or did not answer.
    `size_bytes` and `fullest_bytes` are of the others. `share` is what the fullest broker holds, as a multiple of an
    even share: of the bytes of all copies, divided by the brokers that could hold one. It is 0 for an empty topic,
    None while copies are uncounted.
    """

    topic: str
    partitions: int
    copies: int
    uncounted: int
    size_bytes: int
    fullest_broker: int | None
    fullest_bytes: int
    share: float | None


@dataclass(frozen=True, slots=True)
class ClusterSkew:
    """Brokers and topics of a cluster, those topics first that put most above an even share on one broker.

    `misses` has a sentence per broker outside a band, none where the loads of a broker are not known: others look as if
    they had too much.
    """

    cluster_id: str
    taken_ms: int
    brokers: tuple[BrokerSkew, ...]
    topics: tuple[TopicSpread, ...]
    misses: tuple[str, ...]


def read_skew(client: AdminClient, *, clock: Clock = SYSTEM_CLOCK, warn: Warn = warn_program) -> ClusterSkew:
    """Read brokers and topics with their sizes; measures no rates and changes nothing. Raises ClusterError."""
    with explained(client):
        seen = observe(client, clock.now_ms(), warn)
    columns = whole_columns_of(client, seen, clock, 0.0, warn)
    problem = inputs_of_columns(columns, PlanPolicy(), seen.snapshot_id).problem
    found = evaluate(problem, Assignment.current(problem.partitions))
    shown = [number for number, goal in enumerate(found.goals) if goal in COUNTED]
    loads: dict[int, tuple[GoalLoad, ...]] = {}
    bands = {(miss.broker, miss.goal): "above" if miss.amount > 0 else "below" for miss in found.misses(before=True)}
    for place, broker in enumerate(found.broker_ids):
        of_broker = ((goal, float(found.before[place, goal]), found.mean(goal, before=True)) for goal in shown)
        loads[broker] = tuple(
            GoalLoad(
                found.goals[goal],
                amount,
                found.units[goal],
                amount / mean if mean else None,
                bands.get((broker, found.goals[goal]), "within"),
            )
            for goal, amount, mean in of_broker
        )
    live = {broker.id for broker in seen.cluster.brokers if not broker.is_fenced}
    for broker in (*seen.log_dirs.failed, *(loads.keys() - live)):
        loads.pop(broker, None)
    return ClusterSkew(
        seen.cluster.cluster_id,
        seen.taken_ms,
        tuple(
            BrokerSkew(one.id, one.rack, not one.is_fenced, loads.get(one.id, ()))
            for one in sorted(seen.cluster.brokers, key=lambda one: one.id)
        ),
        tuple(topics_of(seen.topics, seen.log_dirs.ok, len(live))),
        () if seen.log_dirs.failed else tuple(str(one) for one in found.misses(before=True) if one.goal in COUNTED),
    )


def topics_of(topics: Iterable[Topic], log_dirs: Mapping[int, Iterable[LogDir]], live: int) -> list[TopicSpread]:
    """Topics with their fullest broker, those first that put most above an even share there."""
    held, reported = (defaultdict[str, Counter[int]](Counter) for _ in range(2))
    for broker, dirs in log_dirs.items():
        for copy in (copy for one in dirs for copy in one.replicas if not copy.is_future):
            held[copy.topic_partition.topic][broker] += copy.size_bytes
            reported[copy.topic_partition.topic][broker] += 1
    found: list[tuple[float, TopicSpread]] = []
    for topic in topics:
        by_broker = held[topic.name]
        listed = Counter(broker for one in topic.partitions for broker in one.replicas)
        whole, uncounted = by_broker.total(), (listed - reported[topic.name]).total()
        even = whole / max(1, min(live, listed.total()))
        fullest, most = max(by_broker.items(), key=lambda one: (one[1], -one[0]), default=(None, 0))
        skew = TopicSpread(
            topic=topic.name,
            partitions=len(topic.partitions),
            copies=listed.total(),
            uncounted=uncounted,
            size_bytes=whole,
            fullest_broker=fullest,
            fullest_bytes=most,
            share=None if uncounted else most / even if even else 0.0,
        )
        found.append((even - most, skew))
    return [skew for _, skew in sorted(found, key=lambda one: (one[0], one[1].topic))]
