"""PURE. Values of Cruise Control's metrics topic → rows of table `metrics`.

A record's value, big-endian, as the metrics reporter's `toBuffer` comments describe it:

    byte    class: 0 broker, 1 topic, 2 partition
    byte    version: 0
    byte    metric, a number for each name
    long    time in milliseconds
    int     broker
    int     length of the topic's name, then the name in UTF-8      (classes 1 and 2)
    int     partition                                               (class 2)
    double  value

Rates are per second over the reporter's interval, sizes in bytes, cpu is a share of all cores.
"""

from __future__ import annotations

import struct

from kreassign.errors import InputError
from kreassign.pipeline.tables.schemas import Row

BROKER, TOPIC, PARTITION = range(3)
_HEAD = struct.Struct(">BBBqi")
_LENGTH = struct.Struct(">i")
_VALUE = struct.Struct(">d")
# Only metrics of use here; the numbers of the others (times of requests, queues) are known to nobody below.
_NAMES = {
    0: "bytes_in_per_s",
    1: "bytes_out_per_s",
    2: "bytes_in_per_s",
    3: "bytes_out_per_s",
    4: "size_bytes",
    5: "cpu_share",
    6: "replication_bytes_in_per_s",
    7: "replication_bytes_out_per_s",
    10: "messages_in_per_s",
    11: "replication_bytes_in_per_s",
    12: "replication_bytes_out_per_s",
    15: "messages_in_per_s",
    19: "request_handler_idle_share",
}


def decode(value: bytes, cluster_id: str) -> Row | None:
    """The row of a record's value; None for a metric of no use here. Raises InputError, which says what is wrong."""
    try:
        return _decode(value, cluster_id)
    except (struct.error, UnicodeDecodeError) as error:
        raise InputError(f"a metric of {len(value)} bytes is cut off or damaged: {error}") from error


def _decode(value: bytes, cluster_id: str) -> Row | None:
    kind, version, metric, taken_ms, broker = _HEAD.unpack_from(value)
    if kind > PARTITION or version > 0:
        raise InputError(f"class {kind} and version {version} of a metric are not known: only 0 to 2, in version 0")
    place, topic, partition = _HEAD.size, None, None
    if kind != BROKER:
        (length,) = _LENGTH.unpack_from(value, place)
        place += _LENGTH.size
        if not 0 <= length <= len(value) - place:
            raise InputError(f"a metric of {len(value)} bytes claims a topic's name of {length}")
        topic = value[place : place + length].decode()
        place += length
    if kind == PARTITION:
        (partition,) = _LENGTH.unpack_from(value, place)
        place += _LENGTH.size
    (number,) = _VALUE.unpack_from(value, place)
    name = _NAMES.get(metric)
    key = {"cluster_id": cluster_id, "taken_ms": taken_ms, "broker": broker, "topic": topic, "partition": partition}
    return None if name is None else key | {"name": name, "value": number}
