#!/usr/bin/env python3
"""Write what a release of Kafka says of itself into the product, for the release that the testbed runs.

documented_configs.json of the twin has every configuration key of a real broker, error_codes.json of the model every
error code. `make kafka-next` compares two releases by the same facts.

python scripts/release_data.py
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kreassign.admin import Address, TcpTransport, client_settings
from kreassign.model.cluster import ConfigSource, ResourceType
from kreassign.twin.controller.config_keys import ValueType
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from kreassign.wire.codec import decode_response, encode_request
from testbed import ClusterSpec, KafkaCluster
from testbed.java import tool_command
from testbed.releases import DEFAULT, config_tool

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "src/kreassign/twin/controller/documented_configs.json"
ERRORS = ROOT / "src/kreassign/model/error_codes.json"
WORDS = ROOT / "testbed/ReleaseWords.java"
_CORRELATION, _TIMEOUT_S = 7, 30.0
_TOPIC = "described"
_PACKAGE = "org.apache.kafka.tools"
_REASSIGN, _ELECT, _TOPICS = "reassign.ReassignPartitionsCommand", "LeaderElectionCommand", "TopicCommand"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """An error code as Kafka's class `Errors` has it."""

    code: int
    name: str
    java_exception: str
    text: str
    retriable: bool


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """Facts of a release: versions by API and kind of node, features, keys, error codes, help of tools."""

    apis: Mapping[str, str]
    features: Mapping[str, str]
    brokers: Mapping[str, Message]
    topics: Mapping[str, Message]
    errors: tuple[ErrorCode, ...]
    help: Mapping[str, str]


def read_facts(release: str) -> ReleaseFacts:
    """Start a cluster of one broker and ask it; JarsMissing if the jars of the release are not there."""
    names, errors = words(release)
    with KafkaCluster.start(ClusterSpec(version=release, brokers=1)) as cluster:
        cluster.create_topic(_TOPIC, [[0]])
        nodes = {"broker": cluster.brokers[0].address(), "controller": cluster.bootstrap_controllers}
        apis = {
            f"{names.get(row.api_key, row.api_key)} ({kind})": f"{row.min_version}-{row.max_version}"
            for kind, address in nodes.items()
            for row in ask(address, api.API_VERSIONS, 0).api_keys
        }
        offered = ask(nodes["broker"], api.API_VERSIONS, 3, client_software_name="a", client_software_version="1")
        features = {row.name: f"{row.min_version}-{row.max_version}" for row in offered.supported_features}
        return ReleaseFacts(
            apis,
            features,
            described(cluster, ResourceType.BROKER, "0"),
            described(cluster, ResourceType.TOPIC, _TOPIC),
            errors,
            {
                main_class.rpartition(".")[2]: help_text(cluster, main_class)
                for main_class in (
                    *(f"{_PACKAGE}.{name}" for name in (_REASSIGN, _ELECT, _TOPICS)),
                    config_tool(release),
                )
            },
        )


def words(release: str) -> tuple[dict[int, str], tuple[ErrorCode, ...]]:
    """The names of a release's APIs by key, and its error codes."""
    command = tool_command(release, str(WORDS))
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout
    rows = [line.split("\t") for line in output.splitlines()]
    names = {int(row[1]): row[2] for row in rows if row[0] == "api"}
    errors = (row[1:] for row in rows if row[0] == "error")
    return names, tuple(
        ErrorCode(int(code), name, exception, text, retriable == "true")
        for code, name, exception, retriable, text in errors
    )


def help_text(cluster: KafkaCluster, main_class: str) -> str:
    """The help of one of Kafka's tools, or that it is not there."""
    finished = cluster.java_tool(main_class, "--help")
    return finished.stdout + finished.stderr


def described(cluster: KafkaCluster, kind: ResourceType, name: str) -> dict[str, Message]:
    """All keys of a resource by name, with synonyms and documentation."""
    entry = api.DESCRIBE_CONFIGS.request.DescribeConfigsResource
    answer = ask(
        cluster.brokers[0].address(),
        api.DESCRIBE_CONFIGS,
        api.DESCRIBE_CONFIGS.max_version,
        resources=[entry(resource_type=int(kind), resource_name=name, configuration_keys=None)],
        include_synonyms=True,
        include_documentation=True,
    )
    (result,) = answer.results
    return {str(config.name): config for config in sorted(result.configs, key=lambda config: str(config.name))}


def ask(address: str, asked: Api, version: int, **fields: object) -> Message:
    """Send one request to one node."""
    transport = TcpTransport(client_settings(bootstrap_servers=address))
    connection = transport.connect(Address.parse(address), _TIMEOUT_S)
    try:
        frame = encode_request(version, asked.request(**fields), _CORRELATION, "kreassign")
        return decode_response(asked, version, connection.exchange(frame, _TIMEOUT_S), _CORRELATION)
    finally:
        connection.close()


def default(config: Message) -> str | None:
    """The value that holds where nobody sets any, under the key's own name."""
    if config.config_source == ConfigSource.DEFAULT:
        return None if config.value is None else str(config.value)
    own = (one.value for one in config.synonyms if (one.source, one.name) == (ConfigSource.DEFAULT, config.name))
    found = next(own, None)
    return None if found is None else str(found)


def type_name(config: Message) -> str:
    """The type of a key's values, in lower case."""
    return ValueType(config.config_type).name.lower()


def table(configs: Mapping[str, Message]) -> str:
    """An object of JSON with a line for each key."""
    rows = {
        name: {
            "type": config.config_type,
            "default": default(config),
            "is_read_only": config.read_only,
            "documentation": config.documentation or "",
        }
        for name, config in configs.items()
    }
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in rows.items())
    return f"{{\n{lines}\n}}"


def error_list(errors: Iterable[ErrorCode]) -> str:
    """A list of JSON with a line for each error code."""
    rows = (
        {key: getattr(error, key) for key in ("code", "name", "java_exception", "text", "retriable")}
        for error in sorted(errors, key=lambda error: error.code)
    )
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"


def main() -> None:
    """Write the files."""
    facts = read_facts(DEFAULT)
    CONFIGS.write_text(
        f'{{\n"brokers": {table(facts.brokers)},\n"topics": {table(facts.topics)}\n}}\n', encoding="utf-8"
    )
    ERRORS.write_text(error_list(facts.errors), encoding="utf-8")


if __name__ == "__main__":
    main()
