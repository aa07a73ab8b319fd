#!/usr/bin/env python3
"""Write documented_configs.json of the twin: every configuration key of a real broker, and what it says of it.

python scripts/broker_config_data.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from kreassign.admin import Address, TcpTransport, client_settings
from kreassign.model.cluster import ConfigSource, ResourceType
from kreassign.wire import api
from kreassign.wire.api import Message
from kreassign.wire.codec import decode_response, encode_request
from testbed import ClusterSpec, KafkaCluster

RELEASE = "4.3.1"
DATA = Path(__file__).resolve().parent.parent / "src/kreassign/twin/controller/documented_configs.json"
_CORRELATION, _TIMEOUT_S = 7, 30.0
_TOPIC = "described"


def described(cluster: KafkaCluster, kind: ResourceType, name: str) -> list[Message]:
    """All keys of a resource, with synonyms and documentation."""
    entry = api.DESCRIBE_CONFIGS.request.DescribeConfigsResource
    asked = api.DESCRIBE_CONFIGS.request(
        resources=[entry(resource_type=int(kind), resource_name=name, configuration_keys=None)],
        include_synonyms=True,
        include_documentation=True,
    )
    transport = TcpTransport(client_settings(bootstrap_servers=cluster.bootstrap_servers))
    connection = transport.connect(Address.parse(cluster.brokers[0].address()), _TIMEOUT_S)
    try:
        version = api.DESCRIBE_CONFIGS.max_version
        frame = encode_request(version, asked, _CORRELATION, "kreassign")
        payload = connection.exchange(frame, _TIMEOUT_S)
        answer = decode_response(api.DESCRIBE_CONFIGS, version, payload, _CORRELATION)
    finally:
        connection.close()
    (result,) = answer.results
    return sorted(result.configs, key=lambda config: str(config.name))


def default(config: Message) -> str | None:
    """The value that holds where nobody sets any, under the key's own name."""
    if config.config_source == ConfigSource.DEFAULT:
        return None if config.value is None else str(config.value)
    own = (one.value for one in config.synonyms if (one.source, one.name) == (ConfigSource.DEFAULT, config.name))
    found = next(own, None)
    return None if found is None else str(found)


def table(configs: Iterable[Message]) -> str:
    """An object of JSON with a line for each key."""
    rows = {
        str(one.name): {
            "type": one.config_type,
            "default": default(one),
            "is_read_only": one.read_only,
            "documentation": one.documentation or "",
        }
        for one in configs
    }
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in rows.items())
    return f"{{\n{lines}\n}}"


def main() -> None:
    """Write the file."""
    with KafkaCluster.start(ClusterSpec(version=RELEASE, brokers=1)) as cluster:
        cluster.create_topic(_TOPIC, [[0]])
        brokers = table(described(cluster, ResourceType.BROKER, "0"))
        topics = table(described(cluster, ResourceType.TOPIC, _TOPIC))
        DATA.write_text(f'{{\n"brokers": {brokers},\n"topics": {topics}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
