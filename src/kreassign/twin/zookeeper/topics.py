"""Topics that tools create, extend and delete by writing znodes, as `kafka-topics --zookeeper` of Kafka 2.8 does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kreassign.errors import DamagedZnode
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.znodes import paths
from kreassign.twin.controller.decision import Decision
from kreassign.twin.controller.placement import created
from kreassign.twin.core import TwinCore
from kreassign.twin.metadata.records import ConfigChanged, PartitionCreated, TopicDeleted
from kreassign.twin.zookeeper.log import ZooKeeperLog
from kreassign.twin.zookeeper.tree import Delete


class TopicWatcher:
    """`/brokers/topics` and `/admin/delete_topics`. `notes` collects what cannot be read."""

    def __init__(self, core: TwinCore, log: ZooKeeperLog, notes: list[str]) -> None:
        self._core = core
        self._log = log
        self._notes = notes

    def process_changes(self) -> None:
        """Act on what was written there since."""
        self._delete_as_wanted()
        self._follow_names()
        self._create_what_is_new()

    def _delete_as_wanted(self) -> None:
        """Delete topics that are named; unknown names are just removed."""
        znodes = self._log.znodes
        if not znodes.watch(paths.DELETE_TOPICS):
            return
        for name in znodes.children(paths.DELETE_TOPICS):
            if name in self._core.metadata.topics:
                self._core.commit(Decision((TopicDeleted(name),), None))
            self._log.write((Delete(f"{paths.DELETE_TOPICS}/{name}"),))

    def _follow_names(self) -> None:
        """Read what is new or was changed, and forget topics whose znode was deleted by hand."""
        znodes, cache = self._log.znodes, self._log.cache
        if znodes.watch(paths.TOPICS):
            names = znodes.children(paths.TOPICS)
            for gone in sorted(cache.topics.keys() - set(names)):
                cache.forget_topic(gone)
                if gone in self._core.metadata.topics:
                    self._core.apply((TopicDeleted(gone),))
            self._read(name for name in names if name not in cache.topics)
        self._read(name for name in sorted(cache.topics) if znodes.watch(paths.topic_path(name)))

    def _read(self, names: Iterable[str]) -> None:
        for name in list(names):
            try:
                self._log.cache.read_topic(self._log.znodes, name)
            except DamagedZnode as error:
                self._notes.append(str(error))

    def _create_what_is_new(self) -> None:
        """Give leaders to new partitions with a replica on an active broker."""
        for name, znode in sorted(self._log.cache.topics.items()):
            known = self._core.metadata.topics.get(name)
            if known is None or len(known.partitions) < len(znode.partitions):
                self._create(name)

    def _create(self, name: str) -> None:
        metadata, cache = self._core.metadata, self._log.cache
        keys = [TopicPartition(name, number) for number in sorted(cache.topics[name].partitions)]
        records = tuple(self._created(key) for key in keys if metadata.partition(key) is None and self._is_led(key))
        if name not in metadata.topics:
            self._core.commit(Decision((cache.topic_created(name), *records), None))
            resource = ConfigResource.topic(name)
            values = cache.configs.get(resource, {}).items()
            self._core.apply(tuple(ConfigChanged(resource, key, value) for key, value in values))
        elif records:
            self._core.commit(Decision(records, None))

    def _is_led(self, key: TopicPartition) -> bool:
        return any(map(self._core.metadata.is_active, self._log.cache.lists(key).replicas))

    def _created(self, key: TopicPartition) -> PartitionCreated:
        lists = self._log.cache.lists(key)
        record = created(self._core.context, key, lists.replicas)
        return replace(record, adding=lists.adding, removing=lists.removing)
