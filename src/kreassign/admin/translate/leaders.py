"""KIP-183 and KIP-460: ElectLeaders."""

from __future__ import annotations

from collections.abc import Iterable

from kreassign.admin.call import Call, raise_if_failed
from kreassign.admin.translate.grouping import by_topic
from kreassign.admin.translate.outcomes import NOT_NAMED, outcomes
from kreassign.errors import Unsupported
from kreassign.model import Batch, ElectionType, TopicPartition
from kreassign.model.error_codes import ELECTION_NOT_NEEDED, has_code
from kreassign.wire import api
from kreassign.wire.api import Message

_ELECTION_TYPE_VERSION = 1


def elect_leaders(
    partitions: Iterable[TopicPartition] | None, election_type: ElectionType
) -> Call[Batch[TopicPartition, None]]:
    """Elect leaders of these partitions or (None) of all; for all, partitions that needed none are left out."""
    wanted = None if partitions is None else by_topic(partitions)

    def build(version: int, timeout_ms: int) -> Message:
        if election_type is not ElectionType.PREFERRED and version < _ELECTION_TYPE_VERSION:
            raise Unsupported("this broker can only elect preferred leaders (ElectLeaders version 1, Kafka 2.4)")
        entry = api.ELECT_LEADERS.request.TopicPartitions
        return api.ELECT_LEADERS.request(
            election_type=int(election_type),
            topic_partitions=None
            if wanted is None
            else [entry(topic=topic, partitions=numbers) for topic, numbers in wanted.items()],
            timeout_ms=timeout_ms,
        )

    def read(response: Message) -> Batch[TopicPartition, None]:
        raise_if_failed(api.ELECT_LEADERS, response.error_code or 0)
        asked = NOT_NAMED if wanted is None else [TopicPartition(topic, n) for topic, ns in wanted.items() for n in ns]
        return outcomes(api.ELECT_LEADERS, _answered(response), asked)

    return Call(api.ELECT_LEADERS, build, read, is_write=True, routing_codes=_codes)


def already_led(elections: Batch[TopicPartition, None]) -> Batch[TopicPartition, None]:
    """The same outcomes, but that a partition which needed no election is well."""
    well = {key for key, error in elections.failed.items() if has_code(error, ELECTION_NOT_NEEDED)}
    failed = {key: error for key, error in elections.failed.items() if key not in well}
    return Batch({**elections.ok, **dict.fromkeys(sorted(well))}, failed)


def _answered(response: Message) -> Iterable[tuple[TopicPartition, int, str | None]]:
    for topic in response.replica_election_results:
        for result in topic.partition_result:
            yield TopicPartition(topic.topic, result.partition_id), result.error_code, result.error_message


def _codes(response: Message) -> list[int]:
    # ZooKeeper-mode brokers say NOT_CONTROLLER per partition, with a top level of 0.
    return [response.error_code or 0, *(code for _, code, _ in _answered(response))]
