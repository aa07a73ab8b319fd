"""ZooKeeper for the deprecated `--zookeeper` of the drop-in tools: a session, and reassignments without brokers.

Reads and writes the znodes of `kreassign.model.znodes`. Writes that would harm the cluster are refused before they are
sent; a damaged znode is reported with its path (`DamagedZnode`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from random import SystemRandom
from typing import TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry, RetryFailedError

from kreassign import model
from kreassign.admin.settings import Address
from kreassign.clock import Clock
from kreassign.errors import InputError, InvariantBroken
from kreassign.kafka_tools.command_line import TerseError, ToolError
from kreassign.kafka_tools.reassign import actions, messages, tool_client
from kreassign.kafka_tools.reassign.messages import say
from kreassign.kafka_tools.reassign.requests import ExecuteRequest, GenerateRequest, Request, VerifyRequest
from kreassign.kafka_tools.reassign.tool_client import plan_with_dirs
from kreassign.model.plan import Plan, format_plan, partition_order
from kreassign.model.throttle import move_map
from kreassign.model.znodes import contents, paths

CONNECT_TIMEOUT_S = 15.0
_SESSION_TIMEOUT_S = 10.0
OUTAGE_S = 30.0
"""Seconds for which a call outlasts a lost connection: three sessions."""

CREATIONS = 10
"""Attempts at a znode that is there whenever it is created, and gone whenever it is read."""

Answer = TypeVar("Answer")


@contextmanager
def zookeeper(address: str) -> Iterator[ZooKeeper]:
    """Open a session with `host:port[,host:port…][/chroot]`; raises `ToolError` without a server or cluster."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # we report failures ourselves, once
    try:
        Address.parse_list(address.partition("/")[0])
    except InputError as error:
        raise ToolError(f"Invalid ZooKeeper connection string {address}", reason=str(error)) from error
    patience = KazooRetry(max_tries=-1, delay=0.05, max_delay=1.0, deadline=OUTAGE_S)
    client = KazooClient(hosts=address, timeout=_SESSION_TIMEOUT_S, command_retry=patience)
    try:
        client.start(timeout=CONNECT_TIMEOUT_S)
        if client.retry(client.exists, paths.BROKER_IDS) is None:
            raise ToolError(
                f"There is no Kafka cluster in the ZooKeeper at {address}: it has no {paths.BROKER_IDS}",
                reason="a wrong address or chroot, or a cluster in KRaft mode, which needs --bootstrap-server",
            )
        yield ZooKeeper(client)
    except KazooTimeoutError as error:
        raise ToolError(f"No ZooKeeper answered at {address} within {CONNECT_TIMEOUT_S:.0f} s") from error
    except RetryFailedError as error:
        raise ToolError(f"ZooKeeper at {address} did not answer for {OUTAGE_S:.0f} s") from error
    except KazooException as error:
        raise ToolError(f"ZooKeeper at {address} failed: {type(error).__name__} {error}".rstrip()) from error
    finally:
        client.stop()
        client.close()


class ZooKeeper:
    """The reads and writes that the tools need. Every method may raise `DamagedZnode`."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client

    def brokers(self) -> tuple[model.Broker, ...]:
        """The live brokers, ascending."""
        names = self._patiently(self._client.get_children, paths.BROKER_IDS)
        return tuple(sorted(self._broker(contents.parse_broker_id(name)) for name in names))

    def _broker(self, broker_id: int) -> model.Broker:
        found = contents.parse_broker(broker_id, self._get(paths.broker_path(broker_id)))
        return model.Broker(broker_id, found.host, found.port, found.rack)

    def topic_names(self) -> tuple[str, ...]:
        """Every topic, sorted."""
        return tuple(sorted(self._patiently(self._client.get_children, paths.TOPICS)))

    def topic_znodes(self, names: Iterable[str]) -> dict[str, contents.TopicZnode | None]:
        """Znodes of these topics, read in one batch; None for a topic that does not exist."""
        return self._patiently(self._topic_znodes, tuple(dict.fromkeys(names)))

    def _topic_znodes(self, names: tuple[str, ...]) -> dict[str, contents.TopicZnode | None]:
        asked = {name: self._client.get_async(paths.topic_path(name)) for name in names}
        found: dict[str, contents.TopicZnode | None] = {}
        for name, answer in asked.items():
            try:
                found[name] = contents.parse_topic(name, answer.get()[0])
            except NoNodeError:
                found[name] = None
        return found

    def topics(self, names: Iterable[str]) -> dict[str, model.Topic | None]:
        """Topics with replica lists only; None for a topic that does not exist."""
        return {
            name: None if znode is None else _topic(name, znode) for name, znode in self.topic_znodes(names).items()
        }

    def moves(
        self, partitions: Collection[model.TopicPartition]
    ) -> dict[model.TopicPartition, model.OngoingReassignment]:
        """The moves of these partitions that the controller has begun, whoever asked for them."""
        znodes = self.topic_znodes(partition.topic for partition in partitions)
        found = {key: znode.ongoing(key.partition) for key in partitions if (znode := znodes[key.topic]) is not None}
        return {key: move for key, move in found.items() if move is not None}

    def reassignments(self) -> dict[model.TopicPartition, tuple[int, ...]] | None:
        """The pending targets in the reassignment znode; None without the znode."""
        content = self._content(paths.REASSIGN_PARTITIONS)
        return None if content is None else contents.parse_reassignments(content)

    def start_reassignments(self, targets: Mapping[model.TopicPartition, tuple[int, ...]]) -> bool:
        """Create the reassignment znode; False if it exists. Raises `InputError` for harmful targets."""
        content = contents.format_reassignments(targets)

        def is_ours(present: bytes) -> bool:
            """True for what the controller leaves of it once moves are over."""
            left = contents.parse_reassignments(present)
            over = targets.keys() - left.keys()
            topics = self.topics(partition.topic for partition in over)
            now = {one.topic_partition: one.replicas for topic in topics.values() if topic for one in topic.partitions}
            are_made = all(now.get(partition) == targets[partition] for partition in over)
            return bool(left) and left.items() <= targets.items() and are_made

        return self._create(paths.REASSIGN_PARTITIONS, content, is_ours)

    def start_election(self, partitions: Iterable[model.TopicPartition]) -> bool:
        """Create the election znode; False if it exists."""
        content = contents.format_election(partitions)
        return self._create(paths.PREFERRED_REPLICA_ELECTION, content, lambda present: present == content)

    def elections(self) -> tuple[model.TopicPartition, ...]:
        """Partitions with pending elections of preferred leaders."""
        content = self._content(paths.PREFERRED_REPLICA_ELECTION)
        return () if content is None else contents.parse_election(content)

    def _create(self, path: str, content: bytes, is_ours: Callable[[bytes], bool]) -> bool:
        """Create a znode that the controller changes and deletes; False if it is somebody else's.

        Where the answer was lost, what is there may be ours. If it goes meanwhile, ours or theirs is over: then it is
        created once more, and what is done already changes nothing.
        """
        attempts = count()

        def attempt() -> bool:
            is_first = not next(attempts)
            for _ in range(CREATIONS):
                try:
                    self._client.create(path, content, makepath=True)
                except NodeExistsError:
                    if is_first:
                        return False
                    present = self._content(path)
                    if present is not None:
                        return is_ours(present)
                else:
                    return True
            return False

        return self._patiently(attempt)

    def change_configs(self, changes: Mapping[model.ConfigResource, Sequence[model.ConfigChange]]) -> None:
        """Change configurations, each with the notification that brokers need."""
        for resource, steps in changes.items():
            path = paths.config_path(resource)
            present = self._content(path)
            values = {} if present is None else contents.parse_config(resource, present)
            wanted = _changed(values, steps)
            if wanted == values:
                continue
            # Each may be done twice where its answer was lost: brokers then read the same values twice.
            self._patiently(self._client.ensure_path, path)
            self._patiently(self._client.set, path, contents.format_config(wanted))
            news = contents.format_change(resource)
            self._patiently(self._client.create, paths.CONFIG_CHANGE_PREFIX, news, sequence=True, makepath=True)

    def _content(self, path: str) -> bytes | None:
        try:
            return self._get(path)
        except NoNodeError:
            return None

    def _get(self, path: str) -> bytes:
        return bytes(self._patiently(self._client.get, path)[0])

    def _patiently(self, call: Callable[..., Answer], *words: object, **options: object) -> Answer:
        """Call, and after a lost connection call again."""
        answer: Answer = self._client.retry(call, *words, **options)
        return answer


def _topic(name: str, znode: contents.TopicZnode) -> model.Topic:
    partitions = (
        model.Partition(model.TopicPartition(name, number), znode.partitions[number], (), model.NO_LEADER)
        for number in sorted(znode.partitions)
    )
    return model.Topic(name, znode.topic_id, is_internal=False, partitions=tuple(partitions))


def _changed(values: Mapping[str, str], steps: Iterable[model.ConfigChange]) -> dict[str, str]:
    changed = dict(values)
    for step in steps:
        match step.operation:
            case model.ConfigOperation.SET if step.value is not None:
                changed[step.name] = step.value
            case model.ConfigOperation.DELETE:
                changed.pop(step.name, None)
            case _:
                raise InvariantBroken(f"the tools never {step.operation.name} a key through ZooKeeper")
    return changed


# `--zookeeper`: generate, execute and verify without brokers, as the tools up to Kafka 2.8 did (KIP-455).
#
# The controller reads the znode `/admin/reassign_partitions` and sends no answer. So harmful targets are refused
# before anything is written, and afterwards the tool checks whether the controller has read the znode.

READ_TIMEOUT_S = 5.0
"""Time for the controller to react to a new reassignment znode; 0.1 s was observed."""

_POLL_S = 0.1

Targets = Mapping[model.TopicPartition, tuple[int, ...]]


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
    """Print the present assignment and that of the striped placer."""
    topics = actions.known_topics(cluster.topics(request.topics))
    assigned = {partition.topic_partition: partition.replicas for topic in topics for partition in topic.partitions}
    ongoing = cluster.moves(assigned)
    usable = actions.usable_brokers(cluster.brokers(), request.brokers, is_rack_aware=request.is_rack_aware)
    proposed = actions.propose(topics, usable, SystemRandom())
    say(messages.candidate(format_plan(plan_with_dirs(assigned, {})), format_plan(proposed)))
    actions.warn_of_proposal(topics, assigned, ongoing)


def execute(cluster: ZooKeeper, request: ExecuteRequest, clock: Clock) -> None:
    """Check the plan, print the rollback plan, set throttles, create the znode, check that the controller reads it."""
    plan = request.plan
    _refuse_directories(plan)
    current = _current(cluster, plan)
    live = {broker.id for broker in cluster.brokers()}
    if strangers := [broker for broker in plan.brokers if broker not in live]:
        raise ToolError(f"The proposed assignment contains non-existent brokerIDs: {messages.joined(strangers)}")
    _refuse_if_busy(cluster)
    say(messages.rollback(format_plan(plan_with_dirs(current, {}))))
    actions.warn_of_full_lists(current, cluster.moves(current))
    if request.throttle >= 0:
        say(messages.VERIFY_PERIODICALLY)
        tool_client.limit_moves(cluster, move_map({}, plan.replicas, current), request.throttle)
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
    for line in contents.find_poison(waiting):
        print(f"{messages.POISONED} {line}", file=sys.stderr)
    ongoing = {partition: model.OngoingReassignment(target, (), ()) for partition, target in waiting.items()}
    topics = cluster.topics(plan.topics)
    say(actions.partition_states(plan, ongoing, topics))
    if not waiting and not request.preserves_throttles:
        tool_client.clear_throttles(cluster, plan.brokers, plan.topics)


def _refuse_directories(plan: Plan) -> None:
    if plan.log_dirs:
        raise ToolError("bootstrap-server needs to be provided when replica reassignments are present.")


def _current(cluster: ZooKeeper, plan: Plan) -> dict[model.TopicPartition, tuple[int, ...]]:
    znodes = cluster.topic_znodes(plan.topics)
    known = {
        model.TopicPartition(topic, number): replicas
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


def _refuse_if_busy(cluster: ZooKeeper) -> None:
    """Raise an error while a reassignment znode exists, also if it can never complete."""
    waiting = cluster.reassignments()
    if waiting is None:
        return
    if poison := contents.find_poison(waiting):
        raise ToolError(messages.POISONED, reason="; ".join(poison))
    raise TerseError(messages.ALREADY_ASSIGNING)


def _is_read(cluster: ZooKeeper, moving: Targets, clock: Clock) -> bool:
    """True if the controller shows within `READ_TIMEOUT_S` that it read the znode."""
    ends_s = clock.monotonic_s() + READ_TIMEOUT_S
    while not _shows(cluster, moving):
        if clock.monotonic_s() >= ends_s:
            return False
        clock.sleep(_POLL_S)
    return True


def _shows(cluster: ZooKeeper, moving: Targets) -> bool:
    if cluster.reassignments() != moving:  # it removes entries as soon as they are done or impossible
        return True
    znodes = cluster.topic_znodes({partition.topic for partition in moving})
    return any(znode is not None and znode.ongoing(partition.partition) is not None
               for partition in moving if (znode := znodes[partition.topic]) is not None)  # fmt: skip
