"""The APIs whose answers are short: who can be talked to, and in which versions."""

from __future__ import annotations

import struct

import pytest

from kreassign.wire import api
from kreassign.wire.codec import PREFIX_BYTES, encode_request
from tests.twin.asking import ask, twin


def test_features_with_a_lowest_level_of_0_are_kept_from_older_clients() -> None:
    named = {"client_software_name": "tests", "client_software_version": "1.0"}
    asked = twin()
    levels = [
        {
            one.name: (one.min_version, one.max_version)
            for one in ask(asked, api.API_VERSIONS, v, **named).supported_features
        }
        for v in (3, 4)
    ]
    others = ("eligible.leader.replicas", "group", "kraft", "streams")
    assert levels == [
        {"metadata.version": (7, 33)},
        {
            **{f"{name}.version": (0, 1) for name in others},
            "share.version": (0, 2),
            "transaction.version": (0, 2),
            "metadata.version": (7, 33),
        },
    ]
    finalized = ask(asked, api.API_VERSIONS, 4, **named).finalized_features
    assert {one.name: one.max_version_level for one in finalized} == {
        "eligible.leader.replicas.version": 1, "group.version": 1, "metadata.version": 33, "share.version": 2,
        "streams.version": 1, "transaction.version": 2,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["", "two words", "-dash", "dot.", "ünicode"])
def test_a_client_must_be_named_properly(name: str) -> None:
    request = api.API_VERSIONS.request(client_software_name=name, client_software_version="1.0")
    reply = twin().connect(0).answer(bytes(encode_request(3, request, 7, "tests")[PREFIX_BYTES:]))
    # kafka-python takes every error for an answer in version 0, but this one is in the version that was asked for.
    correlation_id, code = struct.unpack_from(">ih", reply.frame, PREFIX_BYTES)
    assert (correlation_id, code) == (7, 42)
