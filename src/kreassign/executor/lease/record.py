"""What every throttle of the cluster was before anyone's run, as text that fits beside committed offsets. Pure.

A broker keeps up to `offset.metadata.max.bytes` (4,096) characters with each offset that a group commits, so a record
is cut into pieces, one per partition of `__consumer_offsets`, each with its number, the count, and the whole's CRC.
Only settings that were set are in it: what it does not name was not set.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.executor.throttle.ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.model import ConfigResource, ResourceType

PIECE_CHARACTERS = 4_000
"""The most that goes beside one offset, with room for the head of the piece."""

_MARK = "kreassign-1"
_WORDS = 5
"""Mark, number, count, CRC, text."""

NOTHING = ""
"""What a partition holds that has no piece."""


@dataclass(frozen=True, slots=True)
class OriginalValues:
    """The settings that were set when run `run_id` began, at `at_ms`, and no run had changed any."""

    run_id: str
    at_ms: int
    values: tuple[ConfigValue, ...] = ()

    def of(self, key: ConfigKey) -> str | None:
        """What a setting was; None where it was not set."""
        return next((one.value for one in self.values if one.key == key), None)

    def known(self, keys: Iterable[ConfigKey]) -> Mapping[ConfigKey, str | None]:
        """The same for many: a record knows every setting (it is an `OriginalSettings`)."""
        return {key: self.of(key) for key in keys}

    @classmethod
    def present(cls, run_id: str, at_ms: int, values: Iterable[ConfigValue]) -> OriginalValues:
        """A record of what is set now."""
        return cls(run_id, at_ms, tuple(one for one in values if one.value is not None))


def left_settings(record: OriginalValues, present: Iterable[ConfigValue]) -> tuple[ConfigOverride, ...]:
    """Which settings are not as they were when the record was written."""
    return tuple(
        ConfigOverride(one.key, before, one.value) for one in present if one.value != (before := record.of(one.key))
    )


def pieces(record: OriginalValues) -> tuple[str, ...]:
    """A record as texts of at most `PIECE_CHARACTERS`, and a head each."""
    values = [[int(one.key.resource.type), one.key.resource.name, one.key.name, one.value] for one in record.values]
    text = json.dumps([record.run_id, record.at_ms, values], separators=(",", ":"))
    data = zlib.compress(text.encode(), 9)
    packed = base64.b64encode(data).decode()
    cut = [packed[at : at + PIECE_CHARACTERS] for at in range(0, len(packed), PIECE_CHARACTERS)]
    return tuple(f"{_MARK} {number} {len(cut)} {zlib.crc32(data):08x} {one}" for number, one in enumerate(cut))


def joined(found: Mapping[int, str]) -> OriginalValues | None:
    """The record of these texts by partition; None if there is none. Raises ValueError if it is not whole."""
    if not found.get(0):
        return None
    head = found[0].split(" ")
    if head[0] != _MARK or len(head) != _WORDS:
        raise ValueError("it is not in the form that this version of kreassign writes")
    count, crc = int(head[2]), head[3]
    packed = []
    for number in range(count):
        *words, text = found.get(number, NOTHING).split(" ")
        if words != [_MARK, str(number), str(count), crc]:
            raise ValueError(f"piece {number + 1} of {count} is missing")
        packed.append(text)
    return _read(base64.b64decode("".join(packed), validate=True), crc)


def _read(data: bytes, crc: str) -> OriginalValues:
    if f"{zlib.crc32(data):08x}" != crc:
        raise ValueError("its checksum is another one")
    try:
        run_id, at_ms, values = json.loads(zlib.decompress(data))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return OriginalValues(str(run_id), int(at_ms), tuple(_value(*one) for one in values))


def _value(kind: int, resource: str, name: str, value: str) -> ConfigValue:
    return ConfigValue(ConfigKey(ConfigResource(ResourceType(kind), resource), name), value)
