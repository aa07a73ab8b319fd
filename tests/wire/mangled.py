"""Messages of Kafka with fields that nobody would send, chosen by their schema: what comes is still a whole frame."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

from kreassign.errors import InputError, ProtocolViolation
from kreassign.wire import api
from kreassign.wire.api import Message
from kreassign.wire.codec import PREFIX_BYTES, decode_response, encode_request, encode_response, request_head
from tests.wire.peer import APIS

_WHOLE = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "int64": 63}
ODD_TEXTS = (
    None, "", "\x1b[2J\x1b]0;owned\x07", "\u202eexe.txt", "\x00", "t" * 300, "x" * 32_767, "../../etc/passwd", "-1",
    "<script>alert(1)</script>", "a,b:c=d", "é" * 100, "\n\r",
)  # fmt: skip
ODD_BYTES = (None, b"", b"\x00", b"\xff" * 100)
LONG_LIST = 3_000
_KNOWN = {**APIS, **{known.key: known for known in api.KIP_179_APIS}}


class Place(NamedTuple):
    """A field of a message, or of a part of it, with its type as the schema names it; a list ends with []."""

    owner: Any
    name: str
    kind: str


def places(message: Any) -> Iterator[Place]:
    """Every field that is set, parts included."""
    for field in message._struct._fields:
        value = getattr(message, field.name, None)
        kind = field.type_str
        yield Place(message, field.name, kind)
        for part in value if isinstance(value, list | tuple) else (value,):
            if hasattr(part, "_struct"):
                yield from places(part)


def _odd_number(bits: int, chance: random.Random) -> int:
    least = -(2**bits) if bits != 16 else 0
    return chance.choice((-1, 0, 1, 2, 3, 7, 100_000, 2**bits - 1, least, chance.randrange(2**bits)))


def _odd_list(value: Any, kind: str, chance: random.Random) -> Any:
    items = list(value or ())
    if not items and kind[2:] in _WHOLE:
        return [_odd_number(_WHOLE[kind[2:]], chance) for _ in range(chance.choice((1, 3, LONG_LIST)))]
    if not items and kind[2:] == "string":
        return [chance.choice(ODD_TEXTS[1:])]
    choices: tuple[Callable[[], Any], ...] = (
        lambda: None, list, lambda: items[:-1], lambda: [*items, *deepcopy(items)],
        lambda: items * (LONG_LIST // max(1, len(items))), lambda: chance.sample(items, len(items)),
    )  # fmt: skip
    return chance.choice(choices)()


def _odd(place: Place, chance: random.Random) -> Any:
    value, kind = getattr(place.owner, place.name, None), place.kind
    if kind.startswith("[]"):
        return _odd_list(value, kind, chance)
    if kind in _WHOLE:
        return _odd_number(_WHOLE[kind], chance)
    others: dict[str, Callable[[], Any]] = {
        "bool": lambda: not value,
        "string": lambda: chance.choice(ODD_TEXTS),
        "bytes": lambda: chance.choice(ODD_BYTES),
        "records": lambda: chance.choice(ODD_BYTES),
        "float64": lambda: chance.choice((float("nan"), float("inf"), -1.0)),
    }
    return others.get(kind, lambda: None)()


def mangle(message: Message, chance: random.Random, times: int = 1) -> None:
    """Change so many fields of a message, or fewer."""
    for _ in range(times):
        found = list(places(message))
        if found:
            place = chance.choice(found)
            setattr(place.owner, place.name, _odd(place, chance))


def mangled_request(key: int, version: int, request: Message, chance: random.Random) -> bytes | None:
    """The payload of such a request; None where its fields cannot be written."""
    changed = deepcopy(request)
    mangle(changed, chance, chance.randint(1, 3))
    try:
        return bytes(encode_request(version, changed, 7, "tests")[PREFIX_BYTES:])
    except (InputError, TypeError, ValueError, AttributeError, OverflowError, struct.error, UnicodeError):
        return None


def mangled_response(request: bytes, payload: bytes, chance: random.Random) -> bytes:
    """An answer with odd fields in place of the one that was given to a request, or the same if none can be made."""
    head = request_head(request)
    if chance.random() < 0.1:
        return _with_odd_bytes(payload, chance)
    try:
        message = decode_response(_KNOWN[head.api_key], head.version, payload, head.correlation_id)
        mangle(message, chance, chance.randint(1, 2))
        message._header = None
        return bytes(encode_response(head.version, message, head.correlation_id)[PREFIX_BYTES:])
    except (ProtocolViolation, TypeError, ValueError, AttributeError, OverflowError, struct.error, UnicodeError):
        return payload


def _with_odd_bytes(payload: bytes, chance: random.Random) -> bytes:
    """Some bytes are others, or the end is missing; the number of the request stays."""
    content = bytearray(payload)
    for _ in range(chance.randint(1, 4)):
        content[chance.randrange(4, max(5, len(content))) % len(content)] = chance.randrange(256)
    return bytes(content if chance.random() < 0.5 else content[: chance.randint(4, len(content))])


class MangledTransport:
    """Connections whose answers are mangled now and then, as from a broker that lies or has lost its mind.

    `rate` is the part of the answers that are; ApiVersions, by which a client learns how to speak at all, among them.
    """

    def __init__(self, transport: Any, chance: random.Random, rate: float) -> None:
        self._transport = transport
        self.takes_turns = transport.takes_turns
        self._chance = chance
        self.rate = rate
        self.mangled = 0

    def connect(self, address: Any, timeout_s: float) -> MangledConnection:
        """Open a connection."""
        return MangledConnection(self._transport.connect(address, timeout_s), self)

    def answer(self, request: bytes, payload: bytes) -> bytes:
        """Bytes that arrive of an answer."""
        if self._chance.random() >= self.rate:
            return payload
        self.mangled += 1
        return mangled_response(request, payload, self._chance)


class MangledConnection:
    """One of its connections."""

    def __init__(self, connection: Any, transport: MangledTransport) -> None:
        self._connection = connection
        self._transport = transport

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame; the answer, or what is made of it."""
        payload = self._connection.exchange(frame, timeout_s)
        return self._transport.answer(bytes(frame[PREFIX_BYTES:]), payload)

    def is_usable(self) -> bool:
        """True while the connection is usable."""
        return bool(self._connection.is_usable())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
