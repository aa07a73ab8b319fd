"""Kafka's reassignment and topics JSON."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.errors import InputError, MalformedPlan
from kreassign.model.cluster import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, format_plan, parse_plan, parse_topics

FOO_0 = TopicPartition("foo", 0)
SOURCE = "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: {}, column: {}]"


def entry(**changes: object) -> str:
    fields = {"topic": "foo", "partition": 0, "replicas": [1, 2]} | changes
    return json.dumps({"partitions": [{key: value for key, value in fields.items() if value is not ...}]})


def test_a_file_as_kafka_writes_it() -> None:
    text = (
        '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2,3],"log_dirs":["any","/d1","any"]}]}'
    )
    plan = parse_plan(text)
    assert plan == Plan((PartitionAssignment(FOO_0, (1, 2, 3), ("any", "/d1", "any")),))
    assert format_plan(plan) == text


def test_names_are_written_as_they_are_in_kafkas_order() -> None:
    last, first = "\N{REPLACEMENT CHARACTER}", "\N{GRINNING FACE}"
    plan = Plan(tuple(PartitionAssignment(TopicPartition(topic, 0), (1,), ("/ü",)) for topic in (last, first)))
    entries = (f'{{"topic":"{topic}","partition":0,"replicas":[1],"log_dirs":["/ü"]}}' for topic in (first, last))
    assert format_plan(plan) == f'{{"version":1,"partitions":[{",".join(entries)}]}}'
    assert format_plan(Plan()) == '{"version":1,"partitions":[]}'


@pytest.mark.parametrize("text", [
    '{"partitions":[]}',
    "{}",
    ' \r\n\t{"version":1}',
    '{"partitions":[]} trailing words',
    '{"unknown":{"partitions":[1]},"partitions":[]}',
    '{"version":2,"version":1}',
])  # fmt: skip
def test_what_is_not_there_or_not_known_does_not_matter(text: str) -> None:
    assert parse_plan(text) == Plan()


def test_order_and_duplicates_are_kept() -> None:
    rows = [
        {"topic": topic, "partition": number, "replicas": [1, 1], "extra": None}
        for topic, number in [("foo", 1), ("bar", 0), ("foo", 1)]
    ]
    plan = parse_plan(json.dumps({"partitions": rows}))
    assert [str(assignment) for assignment in plan.assignments] == ["foo-1: 1,1", "bar-0: 1,1", "foo-1: 1,1"]


def test_empty_replica_lists_are_read() -> None:
    assert parse_plan(entry(replicas=[], log_dirs=[])) == Plan((PartitionAssignment(FOO_0, ()),))


@pytest.mark.parametrize(("text", "message"), [
    ("", "The input string shouldn't be empty\n at [Source: UNKNOWN; byte offset: #UNKNOWN]"),
    (" \n", "Expected JSON object, received "),
    ("[]", "Expected JSON object, received []"),
    ("7", "Expected JSON object, received 7"),
    ('"x" y', 'Expected JSON object, received "x"'),
    ('{"version":2}', "Not supported version field value 2"),
    ('{"version":"1"}', 'Expected `Integer` value, received "1"'),
    ('{"version":1.0}', "Expected `Integer` value, received 1.0"),
    ('{"version":null}', "Expected `Integer` value, received null"),
    ('{"version":true}', "Expected `Integer` value, received true"),
    ('{"version":2147483648}', "Expected `Integer` value, received 2147483648"),
    ('{"version":-2147483649}', "Expected `Integer` value, received -2147483649"),
    ('{"version":1e10}', "Expected `Integer` value, received 1.0E10"),
    ('{"version":1.5e-7}', "Expected `Integer` value, received 1.5E-7"),
    ('{"version":-123456789.5}', "Expected `Integer` value, received -1.234567895E8"),
    ('{"version":1e400}', 'Expected `Integer` value, received "Infinity"'),
    ('{"partitions":{"a":[1,{}]}}', 'Expected JSON array, received {"a":[1,{}]}'),
    ('{"partitions":[1]}', "Expected JSON object, received 1"),
    (entry(topic=...), "No such field exists: `topic`"),
    (entry(partition=...), "No such field exists: `partition`"),
    (entry(replicas=...), "No such field exists: `replicas`"),
    (entry(topic=5), "Expected `String` value, received 5"),
    (entry(partition="0"), 'Expected `Integer` value, received "0"'),
    (entry(replicas=5), "Expected `JSON array` value, received 5"),
    (entry(replicas=[1, "2"]), 'Expected `Integer` value, received "2"'),
    (entry(log_dirs=None), "Expected `JSON array` value, received null"),
    (entry(log_dirs=["/a", 1]), "Expected `String` value, received 1"),
    (entry(log_dirs=[]), "Size of replicas list [1, 2] is different from size of log dirs list [] for partition foo-0"),
    (entry(log_dirs=["/a"]),
     "Size of replicas list [1, 2] is different from size of log dirs list [/a] for partition foo-0"),
])  # fmt: skip
def test_json_of_another_shape_is_refused_in_kafkas_words(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_plan(text)
    assert str(caught.value) == message


# The faults that Jackson finds, with its words for each, are in test_jackson.py.
VALUES = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
NAME = "was expecting double-quote to start field name"
VALUE = f"expected a valid value {VALUES}"
COMMENTS = "not recognized as one since Feature 'ALLOW_COMMENTS' not enabled for parser"


@pytest.mark.parametrize(("text", "message", "line", "column"), [
    ("{invalid_json", f"Unexpected character ('i' (code 105)): {NAME}", 1, 2),
    ("[1 2]\n\n", "Unexpected character ('2' (code 50)): was expecting comma to separate Array entries", 1, 4),
    ("[NaN]", f"Unrecognized token 'NaN': was expecting {VALUES}", 1, 2),
    # The parser takes these; only the scan for Jackson's words refuses them.
    ("1x", "Unexpected character ('x' (code 120)): Expected space separating root-level values", 1, 2),
    ("nullx", f"Unrecognized token 'nullx': was expecting {VALUES}", 1, 1),
    ("\ufeff{}", f"Unexpected character ('\ufeff' (code 65279 / 0xfeff)): {VALUE}", 1, 1),
    (' \r\n\r\n\n {"a":\r\n x}', f"Unrecognized token 'x': was expecting {VALUES}", 5, 2),
    ("// c", f"Unexpected character ('/' (code 47)): maybe a (non-standard) comment? ({COMMENTS})", 1, 1),
])  # fmt: skip
def test_malformed_json_is_refused_in_the_parsers_words_and_place(
    text: str, message: str, line: int, column: int
) -> None:
    with pytest.raises(MalformedPlan) as caught:
        parse_plan(text)
    assert str(caught.value) == f"{message}\n at {SOURCE.format(line, column)}"


@pytest.mark.parametrize(("text", "begins"), [
    ("[" * 1001, "Document nesting depth (1001) exceeds the maximum allowed (1000, "),
    ("9" * 1001, "Number value length (1001) exceeds the maximum allowed (1000, "),
], ids=["nesting", "number"])  # fmt: skip
def test_what_is_too_deep_or_too_long_is_refused_without_a_place(text: str, begins: str) -> None:
    with pytest.raises(MalformedPlan) as caught:
        parse_plan(text)
    assert str(caught.value).startswith(begins)


TOPIC_NAMES = st.text(st.characters(codec="utf-8"), max_size=8)


@given(st.lists(st.tuples(TOPIC_NAMES, st.integers(0, 2**31 - 1), st.lists(st.integers(0, 9), max_size=4))))
def test_what_is_written_reads_back_sorted(rows: list[tuple[str, int, list[int]]]) -> None:
    assignments = [PartitionAssignment(TopicPartition(topic, number), tuple(ids)) for topic, number, ids in rows]
    read = parse_plan(format_plan(Plan(tuple(assignments)))).assignments
    assert sorted(read, key=repr) == sorted(assignments, key=repr)
    keys = [
        (assignment.topic_partition.topic.encode("utf-16-be"), assignment.topic_partition.partition)
        for assignment in read
    ]
    assert keys == sorted(keys)


@given(st.text(alphabet='{}[]":,\\u0123456789.eE+-truefalsn \n\x01é', max_size=40))
def test_every_text_is_either_a_plan_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        parse_plan(text)


def test_topics_keep_order_and_duplicates() -> None:
    assert parse_topics('{"topics":[{"topic":"foo"},{"topic":"bar","x":1},{"topic":"foo"}]}') == ("foo", "bar", "foo")


def test_a_topics_file_without_topics_names_none() -> None:
    assert parse_topics('{"version":1}') == ()


@pytest.mark.parametrize(("text", "message"), [
    ("", "The input string is not a valid JSON"),
    ("{bad", "The input string is not a valid JSON"),
    ("[]", "Expected JSON object, received []"),
    ('{"version":2,"topics":[]}', "Not supported version field value 2"),
    ('{"topics":{}}', "Expected JSON array, received {}"),
    ('{"topics":["foo"]}', 'Expected JSON object, received "foo"'),
    ('{"topics":[{}]}', "No such field exists: `topic`"),
    ('{"topics":[{"topic":1}]}', "Expected `String` value, received 1"),
])  # fmt: skip
def test_a_wrong_topics_file_is_refused_in_kafkas_words(text: str, message: str) -> None:
    with pytest.raises(MalformedPlan) as caught:
        parse_topics(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("changes", [{"topic": "a\ud800"}, {"log_dirs": ["any", "/\udfff"]}])
def test_half_of_a_surrogate_pair_is_refused_by_name(changes: dict[str, object]) -> None:
    with pytest.raises(
        MalformedPlan, match=r"\\ud[8f]..' has half of a surrogate pair, which no name or path can have"
    ):
        parse_plan(entry(**changes))


@pytest.mark.parametrize("escape", [r"\u00e9", r"\u00E9", r"\"\\\/\b\f\n\r\t"])
def test_escapes_before_what_is_malformed_are_no_fault(escape: str) -> None:
    text = f'{{"a":"{escape}" x'
    with pytest.raises(MalformedPlan) as caught:
        parse_plan(text)
    comma = "was expecting comma to separate Object entries"
    assert str(caught.value) == f"Unexpected character ('x' (code 120)): {comma}\n at {SOURCE.format(1, len(text))}"
