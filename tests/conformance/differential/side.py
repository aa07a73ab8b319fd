"""One of the two clusters: executes steps, and returns its answers and its state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from kreassign.executor.brokers import CORDONED_LOG_DIRS
from kreassign.model import TopicPartition
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE, TOPIC_THROTTLES
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.conformance.clusters import CONTROLLER, Cluster
from tests.conformance.differential.steps import (
    Alter,
    Answer,
    Configure,
    Cordon,
    Create,
    Delete,
    Elect,
    Grow,
    Partition,
    Place,
    Shown,
    Start,
    Step,
    Stop,
    Throttle,
    Uncordon,
)

TIMEOUT_MS = 30_000
BIG_BYTES = 600_000
TOPIC, BROKER, SET, DELETE = 2, 4, 0, 1


class Side:
    """A cluster as one side of a comparison."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.up = set(cluster.brokers)

    def prepare(self) -> None:
        """Set the rates to next to nothing; they hold only for topics that list their replicas."""
        rates = [(SET, LEADER_THROTTLED_RATE, "1"), (SET, FOLLOWER_THROTTLED_RATE, "1")]
        self._configure(*((BROKER, str(broker), rates) for broker in self.cluster.brokers))

    # --- reading ----------------------------------------------------------------------------------------------

    def state(self) -> Shown:
        """Every partition, the brokers that are not fenced, and what is cordoned."""
        request = api.DESCRIBE_TOPIC_PARTITIONS
        described = self._ask(request, topics=[], response_partition_limit=2_000, cursor=None)
        moves = self._moves()
        state = {
            (topic.name, one.partition_index): _partition(one, *moves.get((topic.name, one.partition_index), ((), ())))
            for topic in described.topics
            for one in topic.partitions
            if not topic.is_internal
        }
        described = self._ask(api.DESCRIBE_CLUSTER, 2, include_fenced_brokers=True)
        live = frozenset(one.broker_id for one in described.brokers if not one.is_fenced)
        return Shown(state, live, frozenset(self._cordoned()), self._placement())

    def _cordoned(self) -> Iterator[tuple[int, int]]:
        for broker in sorted(self.up):
            paths = self.cluster.backend.log_dirs(broker)
            described = self.cluster.ask(api.DESCRIBE_LOG_DIRS, node=broker, topics=[])
            yield from ((broker, paths.index(one.log_dir)) for one in described.results if one.is_cordoned)

    def _placement(self) -> str | None:
        counts = {"num_partitions": 1, "replication_factor": len(self.cluster.brokers) + 1}
        topic = {"name": "wider", **counts, "assignments": [], "configs": []}
        (one,) = self._ask(api.CREATE_TOPICS, 7, topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=True).topics
        text: str | None = one.error_message
        return text

    def _moves(self) -> dict[Place, tuple[tuple[int, ...], tuple[int, ...]]]:
        listed = self._ask(api.LIST_PARTITION_REASSIGNMENTS, topics=None, timeout_ms=TIMEOUT_MS)
        return {
            (topic.name, one.partition_index): (tuple(one.adding_replicas), tuple(one.removing_replicas))
            for topic in listed.topics
            for one in topic.partitions
        }

    def _ask(self, asked: api.Api, version: int | None = None, **fields: object) -> Message:
        return self.cluster.ask(asked, version, node=min(self.up), **fields)

    # --- doing ------------------------------------------------------------------------------------------------

    def execute(self, step: Step) -> Answer:
        """Do it, and return the answer in a form that can be compared."""
        match step:
            case Create() | Delete() | Grow():
                return self._change_topic(step)
            case Alter():
                return self._alter(step)
            case Elect():
                return self._elect(step)
            case Configure() | Throttle() | Cordon() | Uncordon():
                return self._change_settings(step)
            case Stop() | Start():
                self._change_broker(step)
                return ()
            case _:
                assert_never(step)

    def _change_broker(self, step: Stop | Start) -> None:
        backend = self.cluster.backend
        if isinstance(step, Start):
            backend.start(step.broker)
            self.up.add(step.broker)
            return
        self.up.discard(step.broker)
        (backend.stop if step.is_clean else backend.kill)(step.broker)

    def _change_topic(self, step: Create | Delete | Grow) -> Answer:
        match step:
            case Create():
                return self._create(step)
            case Grow():
                return self._grow(step)
            case Delete(topic):
                answer = self._ask(api.DELETE_TOPICS, 5, topic_names=[topic], timeout_ms=TIMEOUT_MS)
                return tuple((one.name, one.error_code, one.error_message) for one in answer.responses)

    def _create(self, step: Create) -> Answer:
        lists = [{"partition_index": place, "broker_ids": list(brokers)} for place, brokers in enumerate(step.replicas)]
        counts = {"num_partitions": -1, "replication_factor": -1}
        topic = {"name": step.topic, **counts, "assignments": lists, "configs": []}
        answer = self._ask(api.CREATE_TOPICS, 7, topics=[topic], timeout_ms=TIMEOUT_MS)
        if step.is_big and not any(one.error_code for one in answer.topics):
            self.cluster.until(lambda: self._is_led_everywhere(step), f"{step.topic} with leaders")
            for number in range(len(step.replicas)):
                self.cluster.backend.write(TopicPartition(step.topic, number), BIG_BYTES)
        return tuple((one.name, one.error_code, one.error_message) for one in answer.topics)

    def _is_led_everywhere(self, step: Create) -> bool:
        places = [TopicPartition(step.topic, number) for number in range(len(step.replicas))]
        views = [self.cluster.shown(place, broker) for place in places for broker in self.up]
        return all(view is not None and view.leader >= 0 for view in views)

    def _grow(self, step: Grow) -> Answer:
        lists = [{"broker_ids": list(brokers)} for brokers in step.replicas]
        topic = {"name": step.topic, "count": step.count, "assignments": lists or None}
        answer = self._ask(api.CREATE_PARTITIONS, 3, topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=False)
        return tuple((one.name, one.error_code, one.error_message) for one in answer.results)

    def _alter(self, step: Alter) -> Answer:
        topics = [
            {"name": topic, "partitions": [{"partition_index": number, "replicas": target}]}
            for (topic, number), target in step.targets
        ]
        answer = self._ask(
            api.ALTER_PARTITION_REASSIGNMENTS,
            topics=topics,
            timeout_ms=TIMEOUT_MS,
            allow_replication_factor_change=step.may_change_factor,
        )
        outcomes = (
            (topic.name, one.partition_index, one.error_code, one.error_message)
            for topic in answer.responses
            for one in topic.partitions
        )
        return (answer.error_code, answer.error_message, answer.allow_replication_factor_change, *outcomes)

    def _elect(self, step: Elect) -> Answer:
        asked = (
            None if step.places is None else [{"topic": name, "partitions": [number]} for name, number in step.places]
        )
        answer = self._ask(
            api.ELECT_LEADERS, election_type=int(step.is_unclean), topic_partitions=asked, timeout_ms=TIMEOUT_MS
        )
        outcomes = [
            (topic.topic, [(one.partition_id, one.error_code, one.error_message) for one in topic.partition_result])
            for topic in answer.replica_election_results
        ]
        if step.places is None:  # All partitions are answered in no order.
            outcomes = sorted((topic, sorted(results)) for topic, results in outcomes)
        return (answer.error_code, *outcomes)

    def _change_settings(self, step: Configure | Throttle | Cordon | Uncordon) -> Answer:
        match step:
            case Configure(topic, key, value):
                return self._configure((TOPIC, topic, [(DELETE if value is None else SET, key, value)]))
            case Throttle():
                return self._throttle(step)
            case Cordon(broker, places, asks_controller):
                paths = self.cluster.backend.log_dirs(broker)
                value = "*" if places is None else ",".join(paths[place] for place in places)
                return self._configure(
                    (BROKER, str(broker), [(SET, CORDONED_LOG_DIRS, value)]),
                    node=CONTROLLER if asks_controller else broker,
                )
            case Uncordon(broker):
                return self._configure(
                    (BROKER, str(broker), [(DELETE, CORDONED_LOG_DIRS, None)]),
                    node=broker if broker in self.up else CONTROLLER,
                )

    def _throttle(self, step: Throttle) -> Answer:
        value = "*" if step.is_on else None
        answer = self._configure(
            (TOPIC, step.topic, [(SET if step.is_on else DELETE, key, value) for key in TOPIC_THROTTLES])
        )
        self.cluster.until(lambda: all(self._throttle_at(broker, step) for broker in self.up), f"{step} known")
        return answer

    def _throttle_at(self, broker: int, step: Throttle) -> bool:
        entry = {"resource_type": TOPIC, "resource_name": step.topic, "configuration_keys": list(TOPIC_THROTTLES)}
        (described,) = self.cluster.ask(api.DESCRIBE_CONFIGS, 4, node=broker, resources=[entry]).results
        return {one.value for one in described.configs} == {"*" if step.is_on else ""}

    def _configure(
        self, *resources: tuple[int, str, list[tuple[int, str, str | None]]], node: int = CONTROLLER
    ) -> Answer:
        entries = [
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [
                    {"config_operation": operation, "name": key, "value": value} for operation, key, value in changes
                ],
            }
            for kind, name, changes in resources
        ]
        answer = self.cluster.ask(api.INCREMENTAL_ALTER_CONFIGS, node=node, resources=entries)
        return tuple(sorted((one.resource_name, one.error_code, one.error_message or "") for one in answer.responses))


def _partition(described: Message, adding: tuple[int, ...], removing: tuple[int, ...]) -> Partition:
    return Partition(
        tuple(described.replica_nodes),
        tuple(sorted(described.isr_nodes)),
        described.leader_id,
        described.leader_epoch,
        # Who has left the partition may be named for a while, depending on when brokers report their directories.
        tuple(sorted({*(described.eligible_leader_replicas or ())} & {*described.replica_nodes})),
        tuple(sorted(described.last_known_elr or ())),
        tuple(sorted(described.offline_replicas)),
        adding,
        removing,
    )
