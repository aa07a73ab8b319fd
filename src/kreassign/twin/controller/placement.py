"""Where new partitions go: the checks of lists given by hand, and the striped placer for the rest."""

from __future__ import annotations

from random import Random

from kreassign.errors import Infeasible
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.error_codes import INVALID_REPLICA_ASSIGNMENT
from kreassign.model.striped import UsableBroker, place
from kreassign.model.topic_changes import unfit_assignment
from kreassign.twin.controller.context import ControllerContext, default_directory
from kreassign.twin.controller.decision import DONE, Outcome
from kreassign.twin.metadata.records import PartitionCreated
from kreassign.twin.metadata.state import BrokerState

CORDONED_LOG_DIRS = "cordoned.log.dirs"


def check_assignment(
    context: ControllerContext, replicas: tuple[int, ...], required_count: int | None = None
) -> Outcome:
    """Judge a replica list given by hand. Fenced brokers are fine; brokers that are not registered are not."""
    unfit = unfit_assignment(replicas, context.metadata.brokers)
    if unfit is not None:
        return Outcome(INVALID_REPLICA_ASSIGNMENT, unfit)
    if required_count not in (None, len(replicas)):
        text = (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {required_count} replica(s)."
        )
        return Outcome(INVALID_REPLICA_ASSIGNMENT, text)
    return DONE


def check_activity(context: ControllerContext, partition: int, replicas: tuple[int, ...]) -> Outcome:
    """Refuse a list given by hand for a new partition if nobody on it could lead."""
    if any(map(context.metadata.is_active, replicas)):
        return DONE
    return Outcome(
        INVALID_REPLICA_ASSIGNMENT,
        f"All brokers specified in the manual partition assignment for partition {partition} "
        "are fenced or in controlled shutdown.",
    )


def place_automatically(
    context: ControllerContext, partition_count: int, replication_factor: int, random: Random
) -> tuple[tuple[int, ...], ...]:
    """Replica lists from the striped placer; `Infeasible` in Kafka's words where it cannot be done."""
    try:
        return place(usable_brokers(context), partition_count, replication_factor, random)
    except Infeasible as reason:
        raise Infeasible(_in_words_of_release(context, str(reason))) from None


def usable_brokers(context: ControllerContext) -> tuple[UsableBroker, ...]:
    """The brokers that the placer may choose from: not shutting down, and with a directory that is not cordoned."""
    return tuple(
        UsableBroker(broker.broker_id, broker.rack, broker.fenced)
        for broker in context.metadata.brokers.values()
        if not broker.shutting_down
        and not _is_cordoned(context, broker)
        and (context.rules.places_on_absent or not broker.fenced)
    )


def created(context: ControllerContext, topic_partition: TopicPartition, replicas: tuple[int, ...]) -> PartitionCreated:
    """The record of a new partition: active replicas are in sync, and the first of them leads."""
    isr = tuple(filter(context.metadata.is_active, replicas))
    directories = tuple(default_directory(context.metadata, broker_id) for broker_id in replicas)
    return PartitionCreated(topic_partition, replicas, isr, isr[0], 0, 0, directories)


def cordoned_paths(value: str | None) -> frozenset[str]:
    """The directories in a value of `cordoned.log.dirs`; `*` stands for all of them."""
    return frozenset(path.strip() for path in (value or "").split(",") if path.strip())


def _is_cordoned(context: ControllerContext, broker: BrokerState) -> bool:
    if not context.rules.has_cordoning:
        return False
    cordoned = cordoned_paths(context.metadata.config(ConfigResource.broker(broker.broker_id), CORDONED_LOG_DIRS))
    return "*" in cordoned or (bool(cordoned) and cordoned.issuperset(log_dir.path for log_dir in broker.log_dirs))


def _in_words_of_release(context: ControllerContext, text: str) -> str:
    if context.rules.has_cordoning:
        return text
    for addition in (
        ", or have all their log directories cordoned",
        " or some brokers have all their log directories cordoned",
    ):
        text = text.replace(addition, "")
    return text
