"""Kafka's own tools in the hands of a second operator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from kreassign.model import TopicPartition
from testbed.processes import Finished
from tests.torture.scene import Scene

REASSIGN_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOPICS_TOOL = "org.apache.kafka.tools.TopicCommand"
CONFIGS_TOOL = "kafka.admin.ConfigCommand"


def reassign(scene: Scene, targets: Mapping[TopicPartition, Sequence[int]], *words: str) -> Finished:
    """`kafka-reassign-partitions` with a plan."""
    entries = [
        {"topic": one.topic, "partition": one.partition, "replicas": list(replicas)}
        for one, replicas in targets.items()
    ]
    path = scene.folder / "by-others.json"
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return scene.tool(REASSIGN_TOOL, "--reassignment-json-file", path, *words)


def topics(scene: Scene, *words: object) -> Finished:
    """`kafka-topics`."""
    return scene.tool(TOPICS_TOOL, *words)


def delete_configs(scene: Scene, kind: str, name: object, keys: Sequence[str]) -> bool:
    """`kafka-configs --delete-config` of what is set of these keys; whether something was."""
    left = scene.throttles()
    keys = [key for key in keys if f"{kind} {name} {key}" in left]
    return bool(keys) and _alter(scene, kind, name, "--delete-config", ",".join(keys))


def set_configs(scene: Scene, kind: str, name: object, values: Mapping[str, str]) -> bool:
    """`kafka-configs --add-config`."""
    return _alter(scene, kind, name, "--add-config", ",".join(f"{key}={value}" for key, value in values.items()))


def _alter(scene: Scene, kind: str, name: object, *change: str) -> bool:
    of = ("--entity-type", f"{kind}s", "--entity-name", name)
    return scene.tool(CONFIGS_TOOL, "--alter", *of, *change).exit_code == 0
