import re
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kreassign.errors import InputError, ProtocolViolation
from kreassign.wire import api, codec
from kreassign.wire.api import Api
from tests.wire.peer import APIS, EVERY_VERSION, Asked, read_request, write_response

CORRELATION_IDS = st.integers(0, 2**31 - 1)


def listing(correlation_id: int) -> Asked:
    """A request whose answers the tests below bend."""
    return Asked(api.LIST_PARTITION_REASSIGNMENTS, 0, correlation_id, "us", None)


def answer(asked: Asked) -> bytes:
    topic = asked.api.response.OngoingTopicReassignment
    partition = topic.OngoingPartitionReassignment(
        partition_index=3, replicas=[2, 1], adding_replicas=[2], removing_replicas=[]
    )
    response = asked.api.response(topics=[topic(name="orders", partitions=[partition])])
    return write_response(asked, response)[codec.PREFIX_BYTES :]


@pytest.mark.parametrize(("asked", "version"), EVERY_VERSION, ids=lambda value: getattr(value, "name", value))
def test_a_broker_reads_the_headers_that_we_write(asked: Api, version: int) -> None:
    frame = codec.encode_request(version, asked.request(), 7, "us")
    seen = read_request(frame[codec.PREFIX_BYTES :])
    assert codec.frame_length(frame[: codec.PREFIX_BYTES]) == len(frame) - codec.PREFIX_BYTES
    assert (seen.api, seen.version, seen.correlation_id, seen.client_id) == (asked, version, 7, "us")


@pytest.mark.parametrize(("asked", "version"), EVERY_VERSION, ids=lambda value: getattr(value, "name", value))
def test_we_read_the_headers_that_a_broker_writes(asked: Api, version: int) -> None:
    frame = write_response(Asked(asked, version, 7, "us", None), asked.response())
    assert codec.decode_response(asked, version, frame[codec.PREFIX_BYTES :], 7).header.correlation_id == 7


@given(CORRELATION_IDS, st.text(max_size=20))
def test_correlation_and_client_ids_survive_the_way(correlation_id: int, client_id: str) -> None:
    frame = codec.encode_request(12, api.METADATA.request(topics=[]), correlation_id, client_id)
    seen = read_request(frame[codec.PREFIX_BYTES :])
    assert (seen.correlation_id, seen.client_id) == (correlation_id, client_id)


def test_an_answer_of_another_api_is_told_from_nonsense_by_its_number() -> None:
    with pytest.raises(ProtocolViolation, match=r"expected the answer to request 8 .* got that to 7"):
        codec.decode_response(api.ALTER_PARTITION_REASSIGNMENTS, 1, answer(listing(7)), 8)
    with pytest.raises(ProtocolViolation, match="cannot read the answer"):
        codec.decode_response(api.ALTER_PARTITION_REASSIGNMENTS, 1, answer(listing(8)), 8)


@given(CORRELATION_IDS, CORRELATION_IDS)
def test_an_answer_to_another_request_is_a_violation(asked: int, answered: int) -> None:
    payload = answer(listing(answered))
    if asked == answered:
        assert codec.decode_response(api.LIST_PARTITION_REASSIGNMENTS, 0, payload, asked).topics[0].name == "orders"
    else:
        with pytest.raises(
            ProtocolViolation, match=f"expected the answer to request {asked} .* got that to {answered}"
        ):
            codec.decode_response(api.LIST_PARTITION_REASSIGNMENTS, 0, payload, asked)


@given(st.integers(0, 50))
def test_an_answer_that_is_cut_short_is_a_violation(missing: int) -> None:
    payload = answer(listing(7))
    cut = payload[: max(0, len(payload) - 1 - missing)]
    with pytest.raises(ProtocolViolation, match="ListPartitionReassignments"):
        codec.decode_response(api.LIST_PARTITION_REASSIGNMENTS, 0, cut, 7)


@given(st.sampled_from(EVERY_VERSION), st.binary(max_size=120))
@example((api.LIST_PARTITION_REASSIGNMENTS, 0), b"\x00" + 5 * b"\xff")  # a number longer than any of its kind
@example((api.API_VERSIONS, 3), bytes.fromhex("000001000303430202000200ffff02033c"))  # tagged fields out of order
def test_garbage_is_a_violation_or_an_answer_but_never_another_error(asked: tuple[Api, int], body: bytes) -> None:
    with suppress(ProtocolViolation):
        codec.decode_response(*asked, struct.pack(">i", 7) + body, 7)


def test_a_newer_broker_answers_unknown_api_versions_in_version_0() -> None:
    response = api.API_VERSIONS.response
    known = response.ApiVersion(api_key=18, min_version=0, max_version=4)
    frame = write_response(Asked(api.API_VERSIONS, 3, 7, "us", None), response(error_code=35, api_keys=[known]))
    decoded = codec.decode_response(api.API_VERSIONS, 3, frame[codec.PREFIX_BYTES :], 7)
    assert decoded.error_code == 35
    assert [(offer.api_key, offer.min_version, offer.max_version) for offer in decoded.api_keys] == [(18, 0, 4)]


# The broker's side


@pytest.mark.parametrize(("asked", "version"), EVERY_VERSION, ids=lambda value: getattr(value, "name", value))
def test_requests_and_responses_of_every_version_go_both_ways(asked: Api, version: int) -> None:
    payload = codec.encode_request(version, asked.request(), 7, "us")[codec.PREFIX_BYTES :]
    assert codec.request_head(payload) == codec.RequestHead(asked.key, version, 7)
    received = codec.decode_request(asked, payload)
    assert (received.api, received.version, received.correlation_id, received.client_id) == (asked, version, 7, "us")
    frame = codec.encode_response(version, asked.response(), received.correlation_id)
    assert codec.decode_response(asked, version, bytes(frame[codec.PREFIX_BYTES :]), 7).header.correlation_id == 7


def test_a_client_without_a_name_is_read() -> None:
    payload = struct.pack(">hhih", 18, 0, 7, -1)
    assert codec.decode_request(api.API_VERSIONS, payload).client_id is None


@pytest.mark.parametrize("length", range(8))
def test_what_is_shorter_than_a_header_is_a_violation(length: int) -> None:
    with pytest.raises(ProtocolViolation, match=f"a request of {length} bytes has no header"):
        codec.request_head(bytes(length))


@given(st.sampled_from(EVERY_VERSION), st.binary(max_size=120))
@example((api.CREATE_PARTITIONS, 0), bytes.fromhex("ffff7fffffff"))  # more topics than there are bytes
def test_a_senseless_request_is_a_violation_but_never_another_error(asked: tuple[Api, int], body: bytes) -> None:
    with suppress(ProtocolViolation):
        codec.decode_request(asked[0], struct.pack(">hhi", asked[0].key, asked[1], 7) + body)


@pytest.mark.parametrize(
    ("asked", "version", "body", "missing"),
    [
        (api.CREATE_PARTITIONS, 0, struct.pack(">iiB", -1, 1, 0), "topics"),
        (api.ALTER_PARTITION_REASSIGNMENTS, 0, b"\x00" + struct.pack(">iBB", 1, 0, 0), "topics"),
        (api.LIST_PARTITION_REASSIGNMENTS, 0, b"\x00" + struct.pack(">iBBBBB", 1, 2, 0, 1, 0, 0), "name"),
        (api.METADATA, 0, struct.pack(">i", -1), "topics"),
    ],
    ids=["list", "compact list", "string inside a list", "list that may be null in later versions"],
)
def test_null_where_kafka_forbids_it_is_a_violation(asked: Api, version: int, body: bytes, missing: str) -> None:
    payload = struct.pack(">hhih", asked.key, version, 7, -1) + body
    with pytest.raises(ProtocolViolation, match=f"has no {missing}"):
        codec.decode_request(asked, payload)


@pytest.mark.parametrize("text", ["x" * 32_768, "ü" * 16_384])
def test_a_string_of_more_than_32767_bytes_is_a_violation(text: str) -> None:
    topic = api.METADATA.request.MetadataRequestTopic(name=text)
    payload = codec.encode_request(9, api.METADATA.request(topics=[topic]), 7, "us")[codec.PREFIX_BYTES :]
    with pytest.raises(ProtocolViolation, match="has a name of 32,768 bytes"):
        codec.decode_request(api.METADATA, payload)


def test_no_text_that_a_broker_refuses_is_sent() -> None:
    """A field of a setting's value, whose closed connection says nothing."""
    request = api.INCREMENTAL_ALTER_CONFIGS.request
    resource = request.AlterConfigsResource
    change = resource.AlterableConfig(name="k", config_operation=0, value="x" * 32_768)
    asked = request(resources=[resource(resource_type=2, resource_name="t", configs=[change])])
    with pytest.raises(InputError, match="it has a value of 32,768 bytes, and Kafka takes at most 32,767"):
        codec.refuse_overlong(api.INCREMENTAL_ALTER_CONFIGS, 1, asked)
    change.value = None
    codec.refuse_overlong(api.INCREMENTAL_ALTER_CONFIGS, 1, asked)


@pytest.mark.parametrize("text", ["x" * 32_767, "ü" * 16_383])
def test_a_string_of_32767_bytes_is_read(text: str) -> None:
    topic = api.METADATA.request.MetadataRequestTopic(name=text)
    payload = codec.encode_request(9, api.METADATA.request(topics=[topic]), 7, "us")[codec.PREFIX_BYTES :]
    assert codec.decode_request(api.METADATA, payload).message.topics[0].name == text


def test_null_where_kafka_allows_it_is_read() -> None:
    request = api.ALTER_PARTITION_REASSIGNMENTS.request
    partition = request.ReassignableTopic.ReassignablePartition(partition_index=0, replicas=None)
    cancel = request(topics=[request.ReassignableTopic(name="orders", partitions=[partition])])
    payload = codec.encode_request(1, cancel, 7, "us")[codec.PREFIX_BYTES :]
    (topic,) = codec.decode_request(api.ALTER_PARTITION_REASSIGNMENTS, payload).message.topics
    assert topic.partitions[0].replicas is None


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    payload = codec.encode_unsupported_version(7, 35, (0, 4))[codec.PREFIX_BYTES :]
    decoded = codec.decode_response(api.API_VERSIONS, 3, payload, 7)
    assert decoded.error_code == 35
    assert [(offer.api_key, offer.min_version, offer.max_version) for offer in decoded.api_keys] == [(18, 0, 4)]


@given(st.binary(max_size=50))
def test_a_framed_payload_has_its_length_before_it(payload: bytes) -> None:
    frame = codec.framed(payload)
    assert codec.frame_length(frame[: codec.PREFIX_BYTES]) == len(payload)
    assert frame[codec.PREFIX_BYTES :] == payload


# Numbers too wide for their field


FACTORS = api.ALTER_REPLICATION_FACTORS.request


def reassignment(index: object, replicas: list[object]) -> object:
    request = api.ALTER_PARTITION_REASSIGNMENTS.request
    part = request.ReassignableTopic.ReassignablePartition(partition_index=index, replicas=replicas)
    return request(topics=[request.ReassignableTopic(name="t", partitions=[part])])


@pytest.mark.parametrize(
    ("version", "request_", "words"),
    [
        (1, reassignment(2**31, [1]), "topics[0].partitions[0].partition_index is 2147483648, and it must be between"),
        (0, reassignment(0, [1, -(2**31) - 1]), "topics[0].partitions[0].replicas[1] is -2147483649, and it must be"),
        (0, reassignment(0, ["x"]), "topics[0].partitions[0].replicas[0] is 'x', which is no whole number"),
        (7, api.CREATE_TOPICS.request(timeout_ms=2**31), "timeout_ms is 2147483648"),
        (
            0,
            api.ALTER_REPLICATION_FACTORS.request(
                topics=[
                    api.ALTER_REPLICATION_FACTORS.request.TopicReplicationFactor(name="t", replication_factor=40_000)
                ]
            ),
            "topics[0].replication_factor is 40000, and it must be between -32768 and 32767",
        ),
    ],
)
def test_a_number_too_wide_for_its_field_is_named(version: int, request_: object, words: str) -> None:
    with pytest.raises(InputError) as wrong:
        codec.encode_request(version, request_, 7, "us")
    assert f"cannot be sent: {words}" in str(wrong.value)


@pytest.mark.parametrize(("asked", "version"), EVERY_VERSION, ids=lambda value: getattr(value, "name", value))
def test_each_number_of_a_request_is_named_when_too_wide(asked: Api, version: int) -> None:
    for definition in asked.request.json["fields"]:
        if definition["type"] in {"int8", "int16", "int32", "int64"} and definition["versions"] == "0+":
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", definition["name"]).lower()
            with pytest.raises(InputError, match=f"{name} is 9223372036854775808, and it must be between"):
                codec.encode_request(version, asked.request(**{name: 2**63}), 7, "us")


# --- lists ----------------------------------------------------------------------------------------------------------

LONG = 1_000_001
HUGE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07")
"""The largest length of a list, and of a compact one."""
MOST_BYTES_PER_BYTE = 100
"""Memory that decoding takes for each byte of a frame, at most."""


@pytest.mark.parametrize("version", [0, 1])
def test_a_list_of_more_than_a_million_is_read_in_answers(version: int) -> None:
    """Kafka's own client of 4.4 refuses it; nothing else keeps a cluster from being so large."""
    answered = api.DESCRIBE_LOG_DIRS.response
    topic = answered.DescribeLogDirsResult.DescribeLogDirsTopic
    partition = topic.DescribeLogDirsPartition(partition_index=1, partition_size=2, offset_lag=0, is_future_key=False)
    directory = answered.DescribeLogDirsResult(log_dir="/d", topics=[topic(name="t", partitions=[partition] * LONG)])
    frame = codec.encode_response(version, answered(results=[directory]), 7)
    message = codec.decode_response(api.DESCRIBE_LOG_DIRS, version, frame[codec.PREFIX_BYTES :], 7)
    assert len(message.results[0].topics[0].partitions) == LONG


def test_a_list_of_more_elements_than_a_broker_takes_is_named() -> None:
    topic = api.METADATA.request.MetadataRequestTopic(name="t")
    payload = codec.encode_request(9, api.METADATA.request(topics=[topic] * 4), 7, "us")[codec.PREFIX_BYTES :]
    assert len(codec.decode_request(api.METADATA, payload, longest_list=4).message.topics) == 4
    with pytest.raises(ProtocolViolation, match="version 9 has a list topics of 4 elements"):
        codec.decode_request(api.METADATA, payload, longest_list=3)


@pytest.mark.parametrize(("version", "whole", "mangled", "words"), [
    (5, "00000001 00000009", "7fffffff 00000009", "topics[0].partitions[0].isr_nodes has 2,147,483,647 elements"),
    (12, "02 00000009", "7f 00000009", "topics[0].partitions[0].isr_nodes has 126 elements, and 12 bytes follow"),
    (5, "0003 616263", "0003 ff6263", "topics[0].name is no string: 'utf-8' codec can't decode byte 0xff"),
    (12, "04 616263", "7f 616263", "topics[0].name is no string: "),
])  # fmt: skip
def test_what_is_mangled_is_named(version: int, whole: str, mangled: str, words: str) -> None:
    answered = api.METADATA.response.MetadataResponseTopic
    numbers = {"partition_index": 0, "leader_id": 9, "leader_epoch": 0, "error_code": 0}
    copies = {"replica_nodes": [7, 8], "isr_nodes": [9], "offline_replicas": []}
    partition = answered.MetadataResponsePartition(**numbers, **copies)
    topic = answered(error_code=0, name="abc", is_internal=False, partitions=[partition])
    payload = codec.encode_response(version, api.METADATA.response(brokers=[], topics=[topic]), 7)[codec.PREFIX_BYTES :]
    damaged = payload.replace(bytes.fromhex(whole), bytes.fromhex(mangled))
    with pytest.raises(ProtocolViolation) as wrong:
        codec.decode_response(api.METADATA, version, damaged, 7)
    assert f"cannot read the answer to Metadata (API 3) version {version}: {words}" in str(wrong.value)


@pytest.mark.parametrize("asked", APIS.values(), ids=lambda asked: asked.name)
def test_a_mangled_length_takes_no_more_memory_than_a_whole_list(asked: Api) -> None:
    """Wherever a length stands, in a request as in an answer: each element reads a byte at least, or is a violation."""
    version = asked.max_version
    request = codec.encode_request(version, asked.request(), 7, "us")[codec.PREFIX_BYTES :]
    response = codec.encode_response(version, asked.response(), 7)[codec.PREFIX_BYTES :]
    bytes_per_byte = max(
        *(used_by(lambda one: codec.decode_request(asked, one), payload) for payload in mangled_lengths(request, 8)),
        *(
            used_by(lambda one: codec.decode_response(asked, version, one, 7), payload)
            for payload in mangled_lengths(response, 4)
        ),
    )
    assert bytes_per_byte < MOST_BYTES_PER_BYTE


def mangled_lengths(payload: bytes, start: int) -> Iterator[bytes]:
    """The payload with a huge length at every place after `start`, and zeros behind."""
    content = payload + bytes(4_096)
    for at in range(start, len(payload)):
        yield from (content[:at] + huge + content[at + len(huge) :] for huge in HUGE)


def used_by(decode: Callable[[bytes], object], payload: bytes) -> float:
    """Bytes of memory that decoding took at its peak, for each byte of the payload."""
    with suppress(ProtocolViolation):
        decode(payload)  # the first one compiles the decoder
    tracemalloc.start()
    with suppress(ProtocolViolation):
        decode(payload)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / len(payload)
