"""Encode and decode messages with headers and frames, for both clients and brokers.

A frame is a message preceded by its length, a big-endian signed 32-bit number.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from traceback import clear_frames
from typing import Any

from kafka.protocol.schemas.fields import BaseField
from kafka.protocol.schemas.fields.codecs import Int32, UnsignedVarInt32

from kreassign.errors import InputError, ProtocolViolation
from kreassign.model.text import MOST_TEXT_BYTES, shortened
from kreassign.wire.api import API_VERSIONS, Api, Message

# Strictness: Kafka's decoder rejects nulls in non-nullable fields and strings of more than 32,767 bytes. Kafka closes
# the connection of a client that sends them, and so must a twin. kafka-python's decoder lets every string and list be
# null and, in flexible versions, of any length, so this is checked afterwards, by the same published message
# definitions.


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    may_be_null: bool
    is_list: bool
    is_text: bool
    fields: tuple[_Field, ...]

    def parts(self, value: Any) -> Iterable[Any]:
        """The items of a list, or the single value."""
        return value if self.is_list else (value,)


def _fault(
    fields: tuple[_Field, ...], holder: Message, longest_list: int | None = None, *, takes_null: bool = False
) -> str | None:
    """Describe the first field of a request that its version forbids; None if it is valid."""
    for field in fields:
        value = getattr(holder, field.name)
        if value is None:
            if not field.may_be_null and not takes_null:
                return f"no {field.name}"
            continue
        if field.is_list and longest_list is not None and len(value) > longest_list:
            return f"a list {field.name} of {len(value):,} elements"
        for part in field.parts(value) if field.fields or field.is_text else ():
            found = (
                _overlong(field, part)
                if field.is_text
                else _fault(field.fields, part, longest_list, takes_null=takes_null)
            )
            if found is not None:
                return found
    return None


def _overlong(field: _Field, value: str | None) -> str | None:
    # Most strings are so short that their bytes need not be counted.
    if value is None or 4 * len(value) <= MOST_TEXT_BYTES:
        return None
    length = len(value.encode(errors="surrogatepass"))
    return f"a {field.name} of {length:,} bytes" if length > MOST_TEXT_BYTES else None


@cache
def _fields(api: Api, version: int) -> tuple[_Field, ...]:
    return _of(api.request.json["fields"], version)


def _of(definitions: list[Mapping[str, Any]], version: int) -> tuple[_Field, ...]:
    """The fields of this version that may be null, or contain such fields: strings, bytes, lists and structures."""
    found = []
    for name, definition in _in_version(definitions, version):
        kind = definition["type"]
        inner = _of(definition.get("fields", []), version)
        is_list = kind.startswith("[]")
        if is_list or inner or kind in {"string", "bytes"}:
            may_be_null = _covers(definition.get("nullableVersions", "none"), version) or "tag" in definition
            is_text = kind.removeprefix("[]") == "string"
            found.append(_Field(name, may_be_null, is_list, is_text, inner))
    return tuple(found)


def _in_version(definitions: list[Mapping[str, Any]], version: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The fields that this version has, by the name of their attribute."""
    return ((_snake(one["name"]), one) for one in definitions if _covers(one["versions"], version))


def _covers(versions: str, version: int) -> bool:
    """True if a range in the notation of the definitions (`3`, `0-5`, `2+`, `none`) includes this version."""
    if versions == "none":
        return False
    low, dash, high = versions.rstrip("+").partition("-")
    last = int(high) if dash else version if versions.endswith("+") else int(low)
    return int(low) <= version <= last


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# Refusals.


def refusing(api: Api, version: int, request: Message, code: int, text: str | None) -> Message:
    """Return the response in which the whole and every item of a request have this error.

    As Kafka builds error responses: lists of the response repeat the lists of the request, item by item. A list goes
    with the list of its name, else with all lists at its place; the first field of an item is its key.
    """
    error = {"error_code": code, "error_message": text, "partition_error_code": code}
    return api.response(
        **_refused(api.response, api.response.json["fields"], (request, api.request.json["fields"]), version, error)
    )


_Sent = tuple[Any, list[Mapping[str, Any]]]
"""A structure or a plain value of a request, and the definitions of its fields."""


def _refused(
    made: Any, definitions: list[Mapping[str, Any]], sent: _Sent, version: int, error: Mapping[str, object]
) -> dict[str, object]:
    """The values of a structure's fields: errors, and lists."""
    values: dict[str, object] = {}
    for name, definition in _in_version(definitions, version):
        kind, inner = definition["type"], definition.get("fields")
        if name in error:
            values[name] = error[name]
        elif inner is not None and kind.startswith("[]"):
            item, named = getattr(made, kind[2:]), _keys(inner, version, error)
            values[name] = [
                item(**_named(named, entry), **_refused(item, inner, entry, version, error))
                for entry in _entries(name, sent, version)
            ]
    return values


def _entries(name: str, sent: _Sent, version: int) -> list[_Sent]:
    """The items of the list of this name in a request; without one, the items of all lists at this place."""
    holder, definitions = sent
    fields = _in_version(definitions, version)
    lists = {each: one.get("fields", []) for each, one in fields if one["type"].startswith("[]")}
    wanted = [name] if name in lists else list(lists)
    return [(entry, lists[each]) for each in wanted for entry in getattr(holder, each) or ()]


def _keys(definitions: list[Mapping[str, Any]], version: int, error: Mapping[str, object]) -> list[str]:
    """The names of the plain fields of an item of a response."""
    fields = _in_version(definitions, version)
    return [name for name, one in fields if not one["type"].startswith("[]") and name not in error]


def _named(keys: list[str], entry: _Sent) -> dict[str, object]:
    """The fields by which an item of a response says which item of the request it answers."""
    item, definitions = entry
    if not definitions:
        return {keys[0]: item} if keys else {}
    shared = {key: getattr(item, key) for key in keys if hasattr(item, key)}
    return shared or ({keys[0]: getattr(item, _snake(definitions[0]["name"]))} if keys else {})


# Requests and responses.

# All that kafka-python's decoder raises on malformed bytes, including assertions. A length that was sent as a huge
# number may also ask for more memory than there is.
SENSELESS = (ValueError, IndexError, KeyError, TypeError, struct.error, AssertionError, OverflowError, MemoryError)
_HEAD = struct.Struct(">hhi")
_NUMBER_BYTES = 4


def encode_request(version: int, request: Message, correlation_id: int, client_id: str) -> bytes:
    """Encode a whole frame: length, header (v2 for flexible versions, else v1) and body of this version.

    Raises InputError, which names the field, for a number that does not fit into it, and for what is no text.
    """
    request.API_VERSION = version
    request.with_header(correlation_id=correlation_id, client_id=client_id)
    try:
        encoded: bytes = request.encode(header=True, framed=True)
    except UnicodeEncodeError as error:
        text = f"{shortened(error.object)!r} is not text in UTF-8"
        raise InputError(f"{type(request).__name__} cannot be sent: {text}") from error
    except (struct.error, OverflowError) as error:
        misfit = _misfit(type(request).json["fields"], request, version) or f"a field does not fit: {error}"
        raise InputError(f"{type(request).__name__} cannot be sent: {misfit}") from error
    return encoded


_WIDTHS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}


def _misfit(definitions: list[Mapping[str, Any]], holder: Message, version: int, path: str = "") -> str | None:
    """Describe the first number that is none, or too wide for its field; None if all fit."""
    for name, definition in _in_version(definitions, version):
        kind, value = definition["type"], getattr(holder, name)
        is_list, kind = kind.startswith("[]"), kind.removeprefix("[]")
        for number, part in enumerate((value or ()) if is_list else (value,)):
            where = f"{path}{name}[{number}]" if is_list else f"{path}{name}"
            if kind in _WIDTHS and (found := _too_wide(part, kind)) is not None:
                return f"{where} is {found}"
            if definition.get("fields") and part is not None:
                found = _misfit(definition["fields"], part, version, f"{where}.")
                if found is not None:
                    return found
    return None


def _too_wide(value: Any, kind: str) -> str | None:
    bits = _WIDTHS[kind]
    least, most = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not isinstance(value, int):
        return f"{shortened(repr(value))}, which is no whole number"
    return None if least <= value <= most else f"{value}, and it must be between {least} and {most}"


def refuse_overlong(api: Api, version: int, request: Message) -> None:
    """Raise InputError for a text at which a broker would close the connection without saying why."""
    if (fault := _fault(_fields(api, version), request, takes_null=True)) is not None:
        raise InputError(f"{api} cannot be sent: it has {fault}, and Kafka takes at most {MOST_TEXT_BYTES:,}")


def decode_response(api: Api, version: int, payload: bytes, correlation_id: int) -> Message:
    """Decode the response in a frame's payload; `ProtocolViolation` if it does not answer `correlation_id`."""
    answered = int.from_bytes(payload[:_NUMBER_BYTES], "big", signed=True)
    # Checked first: the answer to another API would be decoded as garbage, with a misleading error.
    if len(payload) >= _NUMBER_BYTES and answered != correlation_id:
        raise ProtocolViolation(f"expected the answer to request {correlation_id} of {api} but got that to {answered}")
    try:
        return api.response.decode(payload, version=version, header=True)
    except SENSELESS as error:
        misread = _misread(api.response, version, payload, error)
        raise ProtocolViolation(f"cannot read the answer to {api} version {version}: {misread}") from error


def _misread(kind: type[Message], version: int, payload: bytes, error: BaseException) -> str:
    """Describe the first field that cannot be read; the error itself if that is in the header or in tagged fields.

    Reads field by field, slowly, what the compiled decoder could not.
    """
    clear_frames(error.__traceback__)  # they hold what was read so far, which is read once more now
    stream = BytesIO(payload)
    try:
        kind.parse_header(stream, version=version)
        fields = [one for one in kind.fields.values() if one.for_version_q(version) and not one.tagged_field_q(version)]
        return _unreadable(fields, stream, version, "", is_flexible=kind.flexible_version_q(version)) or str(error)
    except SENSELESS:
        return str(error)


def _unreadable(
    fields: Iterable[BaseField], stream: BytesIO, version: int, path: str, *, is_flexible: bool
) -> str | None:
    for field in fields:
        where, start = f"{path}{field.name}", stream.tell()
        try:
            if field.is_array():
                count = UnsignedVarInt32.decode(stream) - 1 if is_flexible else Int32.decode(stream)
                left = len(stream.getbuffer()) - stream.tell()
                if count > left:
                    return f"{where} has {count:,} elements, and {left:,} bytes follow"
            if not field.is_struct_array():
                stream.seek(start)
                field.decode(stream, version=version, compact=is_flexible, tagged=is_flexible)
                continue
        except SENSELESS as error:
            return f"{where} is no {field.type_str}: {error}"
        for number in range(count):
            inner, item = field.untagged_fields(version), f"{where}[{number}]."
            if found := _unreadable(inner, stream, version, item, is_flexible=is_flexible):
                return found
            if is_flexible:
                field.tagged_fields(version).decode(stream, version=version)
    return None


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The first fields of every request, at the same place in every API and version."""

    api_key: int
    version: int
    correlation_id: int


def request_head(payload: bytes) -> RequestHead:
    """Decode the head of a frame's payload; `ProtocolViolation` if it is too short to be a request."""
    if len(payload) < _HEAD.size:
        raise ProtocolViolation(f"a request of {len(payload)} bytes has no header")
    return RequestHead(*_HEAD.unpack_from(payload))


@dataclass(frozen=True, slots=True)
class Received:
    """A request as a broker sees it. `client_id` is None if the client gave none."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    message: Message


def decode_request(api: Api, payload: bytes, longest_list: int | None = None) -> Received:
    """Decode a request of this API, as found by `request_head`; `ProtocolViolation` if it is malformed.

    A list of more than `longest_list` elements is malformed, too; None for any number.
    """
    head = request_head(payload)
    try:
        message = api.request.decode(payload, version=head.version, header=True)
    except SENSELESS as error:
        misread = _misread(api.request, head.version, payload, error)
        raise ProtocolViolation(f"cannot read a request of {api} version {head.version}: {misread}") from error
    if (fault := _fault(_fields(api, head.version), message, longest_list)) is not None:
        raise ProtocolViolation(f"a request of {api} version {head.version} has {fault}")
    return Received(api, head.version, head.correlation_id, message.header.client_id, message)


def encode_response(version: int, response: Message, correlation_id: int) -> bytes:
    """Encode a whole frame: length, header (v1 for flexible versions, else v0) and body of this version.

    `ProtocolViolation` if a field does not fit, such as a message that quotes a name of maximum length.
    """
    response.API_VERSION = version
    response.with_header(correlation_id=correlation_id)
    try:
        encoded: bytes = response.encode(header=True, framed=True)
    except (struct.error, OverflowError) as error:
        raise ProtocolViolation(f"an answer in version {version} cannot be written: {error}") from error
    return encoded


def encode_unsupported_version(correlation_id: int, error_code: int, offered: tuple[int, int]) -> bytes:
    """Encode the answer to an unknown version of ApiVersions: version 0, with this API's range (KIP-511)."""
    known = API_VERSIONS.response.ApiVersion(api_key=API_VERSIONS.key, min_version=offered[0], max_version=offered[1])
    return encode_response(0, API_VERSIONS.response(error_code=error_code, api_keys=[known]), correlation_id)


# Frames.

PREFIX_BYTES = 4
MAX_FRAME_BYTES = 256 * 1024 * 1024
"""Larger answers count as garbage. Metadata of a million replicas is about 60 MB; a TLS alert, which a TLS
listener sends to a client that does not speak TLS, reads as a length of 336 MB."""


# The first bytes by which servers of other protocols answer.
_OTHER_PROTOCOLS = {
    b"HTTP": "it looks like HTTP, so this is a web server or a proxy",
    b"<": "it looks like HTML, so this is a web server or a proxy",
    b"SSH-": "it looks like SSH",
    b"\x15\x03": "it looks like TLS: set security.protocol to SSL or SASL_SSL",
    b"\x16\x03": "it looks like TLS: set security.protocol to SSL or SASL_SSL",
}


def frame_length(prefix: bytes) -> int:
    """Number of bytes after this prefix; `ProtocolViolation` if no Kafka broker would announce so many."""
    length: int = struct.unpack(">i", prefix)[0]
    if 0 <= length <= MAX_FRAME_BYTES:
        return length
    known = next((text for start, text in _OTHER_PROTOCOLS.items() if prefix.startswith(start)), None)
    if known is None and prefix.isascii() and prefix.decode().isprintable():
        server = "a server that answers in text listens there; give the address of a broker"
        known = f"it begins with {prefix.decode()!r}, so {server}"
    if known is not None:
        raise ProtocolViolation(f"the other side sends no Kafka message: {known}")
    raise ProtocolViolation(
        f"the other side announces a length of {length} bytes, which is no Kafka message; "
        "is this a Kafka listener, and does it expect TLS?"
    )


def framed(payload: bytes) -> bytes:
    """Prefix a payload with its length."""
    return struct.pack(">i", len(payload)) + payload
