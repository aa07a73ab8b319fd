#!/usr/bin/env python3
"""Write src/kreassign/twin/controller/config_data.py: every configuration key of a real broker, and what it says of it.

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
MODULE = Path(__file__).resolve().parent.parent / "src" / "kreassign" / "twin" / "controller" / "config_data.py"
_CORRELATION, _TIMEOUT_S = 7, 30.0
_TOPIC = "described"

_HEAD = '''\
"""Every configuration key of Kafka {release}: name, type, default, whether it is read-only, and its documentation.

Written by `python scripts/broker_config_data.py` from the answers of a real broker; change that instead. A type is
Kafka's number of it (`config_keys.ValueType`); a default of None is none, or one that is kept secret.
"""

from __future__ import annotations

from typing import NamedTuple


class DocumentedKey(NamedTuple):
    """A key as a broker documents it."""

    name: str
    type: int
    default: str | None
    is_read_only: bool
    documentation: str


# fmt: off
'''


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


def table(name: str, about: str, configs: Iterable[Message]) -> str:
    """The lines of one table."""
    rows = [(one.name, one.config_type, default(one), one.read_only, one.documentation or "") for one in configs]
    lines = "\n".join(f"    DocumentedKey({', '.join(map(_literal, row))})," for row in rows)
    return f'{name} = (\n{lines}\n)\n"""{about}"""\n'


def module(cluster: KafkaCluster) -> str:
    """The text of the module."""
    brokers = described(cluster, ResourceType.BROKER, "0")
    topics = described(cluster, ResourceType.TOPIC, _TOPIC)
    return (
        "\n".join(
            (
                _HEAD.format(release=cluster.version).rstrip(),
                table("DOCUMENTED_BROKER_KEYS", "Those of brokers, by name.", brokers),
                table("DOCUMENTED_TOPIC_KEYS", "Those of topics, by name.", topics),
            )
        ).rstrip()
        + "\n"
    )


def _literal(value: object) -> str:
    # In double quotes, and with what JSON has to escape escaped as Python does.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def main() -> None:
    """Write the module."""
    with KafkaCluster.start(ClusterSpec(version=RELEASE, brokers=1)) as cluster:
        cluster.create_topic(_TOPIC, [[0]])
        MODULE.write_text(module(cluster), encoding="utf-8")


if __name__ == "__main__":
    main()
