"""`--zookeeper`: generate, execute and verify without brokers, as the tools up to Kafka 2.8 did (KIP-455).

The controller reads the znode `/admin/reassign_partitions` and answers nothing. So what would break it is refused
before anything is written, and afterwards we check whether the controller has read the znode.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from random import SystemRandom

from kreassign.clock import Clock
from kreassign.errors import InvariantBroken
from kreassign.kafka_tools.failures import TerseError, ToolError
from kreassign.kafka_tools.reassign import messages, throttles
from kreassign.kafka_tools.reassign.generate import known_topics, propose, usable_brokers
from kreassign.kafka_tools.reassign.log_dirs import plan_with_dirs
from kreassign.kafka_tools.reassign.messages import say
from kreassign.kafka_tools.reassign.requests import ExecuteRequest, GenerateRequest, Request, VerifyRequest
from kreassign.kafka_tools.reassign.verify import partition_states
from kreassign.kafka_tools.zookeeper import ZooKeeper, zookeeper
from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.model.plan import Plan, partition_order
from kreassign.model.plan_json import format_plan
from kreassign.model.throttle import move_map
from kreassign.model.znodes import find_poison

READ_TIMEOUT_S = 5.0
"""How long the controller may take to show that it has seen a new reassignment znode; it was seen to take 0.1 s."""

_POLL_S = 0.1

Targets = Mapping[TopicPartition, tuple[int, ...]]


def perform(address: str, request: Request, clock: Clock) -> None:
    """Execute a request in the cluster whose ZooKeeper is at `host:port[,…][/chroot]`."""
    with zookeeper(address) as cluster:
        match request:
            case GenerateRequest():
                generate(cluster, request)
            case ExecuteRequest():
                execute(cluster, request, clock)
            case VerifyRequest():
                verify(cluster, request)
            case _:
                raise InvariantBroken(f"{request} is not possible through ZooKeeper")


def generate(cluster: ZooKeeper, request: GenerateRequest) -> None:
    """Print where the topics are now and where the striped placer would put them."""
    topics = known_topics(cluster.topics(request.topics))
    assigned = {partition.topic_partition: partition.replicas for topic in topics for partition in topic.partitions}
    usable = usable_brokers(cluster.brokers(), request.brokers, is_rack_aware=request.is_rack_aware)
    proposed = propose(topics, usable, SystemRandom())
    say(messages.candidate(format_plan(plan_with_dirs(assigned, {})), format_plan(proposed)))


def execute(cluster: ZooKeeper, request: ExecuteRequest, clock: Clock) -> None:
    """Check the plan, print the rollback plan, set throttles, create the znode, check that it is read."""
    plan = request.plan
    _refuse_directories(plan)
    current = _current(cluster, plan)
    _check_brokers(plan, {broker.id for broker in cluster.brokers()})
    _refuse_if_busy(cluster)
    say(messages.rollback(format_plan(plan_with_dirs(current, {}))))
    if request.throttle >= 0:
        say(messages.VERIFY_PERIODICALLY)
        throttles.limit_moves(cluster, move_map({}, plan.replicas, current), request.throttle)
    if not cluster.start_reassignments(plan.replicas):
        raise TerseError(messages.ALREADY_ASSIGNING)
    say(messages.started(plan.replicas))
    moving = {partition: target for partition, target in plan.replicas.items() if target != current[partition]}
    if moving and not _is_read(cluster, moving, clock):
        print(messages.NOT_READ, file=sys.stderr)


def verify(cluster: ZooKeeper, request: VerifyRequest) -> None:
    """Print the state of every partition of the plan, then clear throttles if the reassignment znode is gone."""
    plan = request.plan
    _refuse_directories(plan)
    say(messages.INCOMPLETE_RESULTS)
    waiting = cluster.reassignments() or {}
    for line in find_poison(waiting):
        print(f"{messages.POISONED} {line}", file=sys.stderr)
    ongoing = {partition: OngoingReassignment(target, (), ()) for partition, target in waiting.items()}
    topics = cluster.topics(plan.topics)
    say(partition_states(plan, ongoing, topics))
    if not waiting and not request.preserves_throttles:
        throttles.clear(cluster, plan.brokers, plan.topics)


def _refuse_directories(plan: Plan) -> None:
    if plan.log_dirs:
        raise ToolError("bootstrap-server needs to be provided when replica reassignments are present.")


def _current(cluster: ZooKeeper, plan: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    znodes = cluster.topic_znodes(plan.topics)
    known = {
        TopicPartition(topic, number): replicas
        for topic, znode in znodes.items()
        if znode is not None
        for number, replicas in znode.partitions.items()
    }
    missing = [partition for partition in plan.replicas if partition not in known]
    if missing:
        raise ToolError(
            f"The proposed assignment contains non-existent partitions: List({', '.join(map(str, missing))})"
        )
    return {partition: known[partition] for partition in sorted(plan.replicas, key=partition_order)}


def _check_brokers(plan: Plan, live: set[int]) -> None:
    if strangers := [broker for broker in plan.brokers if broker not in live]:
        raise ToolError(f"The proposed assignment contains non-existent brokerIDs: {messages.joined(strangers)}")


def _refuse_if_busy(cluster: ZooKeeper) -> None:
    """Say why nothing can be started while a reassignment znode is there, also if it will be there for ever."""
    waiting = cluster.reassignments()
    if waiting is None:
        return
    if poison := find_poison(waiting):
        raise ToolError(messages.POISONED, reason="; ".join(poison))
    raise TerseError(messages.ALREADY_ASSIGNING)


def _is_read(cluster: ZooKeeper, moving: Targets, clock: Clock) -> bool:
    """Whether the controller shows within `READ_TIMEOUT_S` that it read the znode."""
    ends_s = clock.monotonic_s() + READ_TIMEOUT_S
    while not _shows(cluster, moving):
        if clock.monotonic_s() >= ends_s:
            return False
        clock.sleep(_POLL_S)
    return True


def _shows(cluster: ZooKeeper, moving: Targets) -> bool:
    if cluster.reassignments() != moving:  # it takes entries away as soon as they are done or cannot be
        return True
    znodes = cluster.topic_znodes({partition.topic for partition in moving})
    return any(znode is not None and znode.ongoing(partition.partition) is not None
               for partition in moving if (znode := znodes[partition.topic]) is not None)  # fmt: skip
