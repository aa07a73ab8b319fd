"""One connection in its own bytes: versions, SASL, and what ends it."""

from __future__ import annotations

import pytest

from kreassign.errors import ProtocolViolation
from kreassign.twin.access import Allow, Listener, Node, Operation, Permissions, Users
from kreassign.twin.api.connection import Connection
from kreassign.twin.cluster import Twin
from kreassign.twin.version import KAFKA_3_7, Endpoint
from kreassign.wire import api
from kreassign.wire.api import Message
from kreassign.wire.codec import PREFIX_BYTES, decode_response, encode_request
from tests.twin.asking import ask, ask_on, twin

LISTENER = Listener("SASL_PLAINTEXT", users=Users({"alice": "secret"}), security_protocol="SASL_PLAINTEXT")


def authenticating(asked: Twin | None = None) -> Connection:
    asked = asked or twin()
    return Connection(asked, asked.response_faults, Node(0, Endpoint.BROKER, LISTENER), "127.0.0.1:1-127.0.0.1:2-0-3")


def handshake(conversation: Connection, version: int = 1, mechanism: str = "PLAIN") -> Message:
    return ask_on(conversation, api.SASL_HANDSHAKE, version, mechanism=mechanism)


def authenticate(conversation: Connection, token: bytes) -> Message:
    return ask_on(conversation, api.SASL_AUTHENTICATE, 2, auth_bytes=token)


# Versions


def test_an_older_release_does_not_know_newer_versions() -> None:
    asked = twin(version=KAFKA_3_7)
    assert ask(asked, api.METADATA, 0, topics=[]).brokers
    with pytest.raises(ProtocolViolation, match="offered in versions 0-12, not in 13"):
        ask(asked, api.METADATA, 13, topics=None)


# SASL


def test_a_client_is_someone_after_it_has_authenticated() -> None:
    allowed = Permissions(frozenset({Allow("User:alice", Operation.DESCRIBE)}))
    conversation = authenticating(twin(permissions=allowed))
    assert ask_on(conversation, api.API_VERSIONS, 0).error_code == 0
    assert (handshake(conversation).error_code, handshake.__name__) == (0, "handshake")
    answer = authenticate(conversation, b"\0alice\0secret")
    assert (answer.error_code, answer.error_message, answer.auth_bytes) == (0, None, b"")
    assert ask_on(conversation, api.LIST_PARTITION_REASSIGNMENTS, 0, topics=None).error_code == 0


def test_tokens_come_bare_after_a_handshake_in_version_0() -> None:
    conversation = authenticating()
    assert handshake(conversation, version=0).error_code == 0
    assert conversation.answer(b"\0alice\0secret").frame == bytes(4)
    assert ask_on(conversation, api.METADATA, 12, topics=None).brokers


def test_a_wrong_bare_token_ends_the_connection() -> None:
    conversation = authenticating()
    handshake(conversation, version=0)
    with pytest.raises(ProtocolViolation, match="Invalid username or password"):
        conversation.answer(b"\0alice\0guess")


def test_a_wrong_password_is_answered_and_ends_the_connection() -> None:
    conversation = authenticating()
    handshake(conversation)
    request = api.SASL_AUTHENTICATE.request(auth_bytes=b"\0alice\0guess")
    reply = conversation.answer(bytes(encode_request(1, request, 7, "tests")[PREFIX_BYTES:]))
    response = decode_response(api.SASL_AUTHENTICATE, 1, bytes(reply.frame[PREFIX_BYTES:]), 7)
    assert (response.error_code, response.error_message) == (58, "Authentication failed: Invalid username or password")
    assert reply.is_last


def test_another_mechanism_is_told_which_there_is_and_ends_the_connection() -> None:
    request = encode_request(1, api.SASL_HANDSHAKE.request(mechanism="SCRAM-SHA-256"), 7, "tests")
    reply = authenticating().answer(bytes(request[PREFIX_BYTES:]))
    response = decode_response(api.SASL_HANDSHAKE, 1, bytes(reply.frame[PREFIX_BYTES:]), 7)
    assert (response.error_code, response.mechanisms, reply.is_last) == (33, ["PLAIN"], True)


def test_nothing_else_is_answered_before_a_client_has_authenticated() -> None:
    with pytest.raises(ProtocolViolation, match=r"Metadata .* before the client was authenticated"):
        ask_on(authenticating(), api.METADATA, 12, topics=None)
    with pytest.raises(ProtocolViolation, match=r"SaslAuthenticate .* before the client was authenticated"):
        authenticate(authenticating(), b"\0alice\0secret")
    started = authenticating()
    handshake(started)
    with pytest.raises(ProtocolViolation, match=r"ApiVersions .* before the client was authenticated"):
        ask_on(started, api.API_VERSIONS, 0)


def test_authenticating_where_nobody_asks_for_it_is_an_illegal_state() -> None:
    plain = twin().connect(0)
    assert handshake(plain).error_code == 34
    assert authenticate(plain, b"\0alice\0secret").error_code == 34


def test_a_denied_client_is_named_in_the_text() -> None:
    conversation = authenticating(twin(permissions=Permissions(frozenset())))
    handshake(conversation)
    authenticate(conversation, b"\0alice\0secret")
    response = ask_on(conversation, api.LIST_PARTITION_REASSIGNMENTS, 0, topics=None)
    assert (response.error_code, response.topics) == (31, [])
    assert response.error_message == (
        "Request Request(processor=0, connectionId=127.0.0.1:1-127.0.0.1:2-0-3, "
        "session=Session(User:alice,/127.0.0.1), listenerName=ListenerName(SASL_PLAINTEXT), "
        "securityProtocol=SASL_PLAINTEXT, buffer=null, envelope=None) needs DESCRIBE permission."
    )
