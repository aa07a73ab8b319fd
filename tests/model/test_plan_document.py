"""Files that are plans, files that look like plans, and files that are half a plan."""

from __future__ import annotations

import re

import pytest

from kreassign.errors import InputError, MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.documents import decoded, read_json
from kreassign.model.plan_document import parse_plan_document

ENTRY = '{"topic":"t","partition":0,"replicas":[2,1]}'
PLAN = f'{{"version":1,"partitions":[{ENTRY}]}}'
OTHER = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
GENERATED = f"Current partition replica assignment\n{OTHER}\n\nProposed partition reassignment configuration\n{PLAN}\n"
T_0 = TopicPartition("t", 0)


@pytest.mark.parametrize(("text", "expected"), [
    (PLAN, {}),
    (f"\n {PLAN}\r\n", {}),
    (f'{{"partitions":[{ENTRY}],"owner":"tool"}}', {}),
    (GENERATED, {T_0: (1, 2)}),
    (GENERATED.replace("\n", "\r\n"), {T_0: (1, 2)}),
    (f"a warning\n{GENERATED}", {T_0: (1, 2)}),
    (f"Proposed partition reassignment configuration\n{PLAN}", {}),
    ('{"proposals":[{"topicPartition":{"topic":"t","partition":0},"oldReplicas":[1,2],"newReplicas":[2,1]}]}',
     {T_0: (1, 2)}),
])  # fmt: skip
def test_a_plan_is_read_with_what_it_was_made_from(text: str, expected: dict[TopicPartition, tuple[int, ...]]) -> None:
    found = parse_plan_document(text)
    assert (found.plan.replicas, found.expected) == ({T_0: (2, 1)}, expected)


def entry(text: str) -> str:
    return f'{{"version":1,\n"partitions":[\n{ENTRY},\n{text}]}}'


@pytest.mark.parametrize(("text", "said"), [
    ("", "this is not JSON: it is empty"),
    (" \n", "this is not JSON: it is empty"),
    ("{}", "no array `partitions` in it, so this is no reassignment JSON of Kafka"),
    ("[]", "this is JSON, but not an object with an array `partitions`"),
    ('{"version":1,"partitions":[]}', "it names no partition"),
    ('{"version":1,"partitions":{}}', "no array `partitions` in it, so this is no reassignment JSON of Kafka"),
    ('{"version":2,"partitions":[]}', "`version` is 2; Kafka knows version 1 only"),
    ('{"version":true,"partitions":[]}', "`version` is true; Kafka knows version 1 only"),
    (f"{PLAN}\n{OTHER}", "this is not JSON: a second document begins in line 2; a file holds one document"),
    (f"{PLAN}\nSave this", ("this is not JSON: more follows after the document in line 2; a file holds one "
                           "document")),
    (f"{PLAN}\n<<<<<<< HEAD\n", ("this is not JSON: line 2 is a conflict marker of Git; resolve the "
                                "conflict first")),
    (f"{{\n=======\n{PLAN}", ("this is not JSON: line 2 is a conflict marker of Git; resolve the conflict "
                             "first")),
    ('{"version":1,\n"partitions":[',
     "this is not JSON: it ends in line 2 before the document is complete; it was cut off"),
    (f'{{"version":1,\n"partitions":[{ENTRY}],\n"partitions":[]}}',
     "this is not JSON: the key 'partitions' is in one object twice, in line 3 again"),
    (entry('{"topic":"t","partition":1,"replicas":[1],"replicas":[2]}'),
     "this is not JSON: the key 'replicas' is in one object twice, in line 4 again"),
    (entry(ENTRY), "line 4: t-0 is named more than once"),
    (entry("7"), "line 4: 7 is no partition; it must be an object"),
    (entry('{"partition":0,"replicas":[1]}'), "line 4: `topic` is missing; it must be the name of a topic"),
    (entry('{"topic":"","partition":0,"replicas":[1]}'), "line 4: `topic` is ''; it must be the name of a topic"),
    (entry('{"topic":"t","partition":-1,"replicas":[1]}'),
     "line 4: `partition` is -1; it must be the number of a partition"),
    (entry('{"topic":"t","partition":true,"replicas":[1]}'),
     "line 4: `partition` is true; it must be the number of a partition"),
    (entry('{"topic":"t","partition":1}'),
     "line 4: t-1 has no `replicas`; a list of partitions is for kafka-leader-election"),
    (entry('{"topic":"t","partition":1,"replicas":["1"]}'),
     "line 4: `replicas` is ['1']; it must be a list of broker ids"),
    (entry('{"topic":"t","partition":1,"replicas":[1],"log_dirs":["any","any"]}'),
     "line 4: t-1 has 1 replica, but 2 `log_dirs`"),
    (entry('{"topic":"t","partition":1,"replicas":[1],"log_dirs":[7]}'),
     "line 4: `log_dirs` is [7]; it must be a list of directories, or of `any`"),
    (GENERATED + "more", "this is not JSON: more follows after the document in line 6; a file holds one document"),
    (GENERATED.replace(PLAN, ""), "this is not JSON: it is empty"),
    (f"{GENERATED}\n{GENERATED}",
     f"`{GENERATED.splitlines()[0]}` stands there twice, in line 7 again; keep the output that is meant"),
    (f"{GENERATED}{GENERATED.splitlines()[3]}\n{OTHER}",
     f"`{GENERATED.splitlines()[3]}` stands there twice, in line 6 again; keep the output that is meant"),
    (entry('{"topic":"t ","partition":1,"replicas":[1]}'), "line 4: `topic` is 't '; it must be the name of a topic"),
    (entry('{"topic":"..","partition":1,"replicas":[1]}'), "line 4: `topic` is '..'; it must be the name of a topic"),
    ('{"proposals":[],"goalSummary":[]}', "it names no partition: Cruise Control proposes no change"),
    (f"<<<<<<< HEAD\n{GENERATED}", "line 1 is a conflict marker of Git; resolve the conflict first"),
    (f"a warning\n{OTHER}\n{GENERATED}",
     "a document begins in line 2, before an output of --generate; a file holds one plan"),
])  # fmt: skip
def test_half_a_plan_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(MalformedPlan) as refused:
        parse_plan_document(text)
    assert str(refused.value) == said


@pytest.mark.parametrize(("text", "words"), [
    (f'{{"version":1,"plan_id":"p","input_hash":"h","partitions":[{ENTRY}]}}', "this is the facts file of a plan"),
    ('{"plan_id":"p","approved_by":"ann"}', "this is the approval of a plan"),
    ('{"kreassign_approval_request":1}', "this asks for the approval of a plan"),
    ('{"format":"kreassign-snapshot","version":1,"cluster_id":"c","brokers":[]}', "this is a snapshot of a cluster"),
    (f'{{"plan":{PLAN},"task":"rebalance"}}', "the plan is in its field `plan`"),
    ('{"version":1,"topics":[{"topic":"t"}]}', "no array `partitions` in it: these are the topics for"),
    ('{"version":1,"partitions":[{"topic":"t","partition":0}]}', "is for kafka-leader-election"),
    ('{"progress":[],"version":1}', "Cruise Control was still computing"),
    ("Optimization has 1 inter-broker replica moves", "this is what Cruise Control answers to people"),
    (f"Current partition replica assignment\n\n{PLAN}\n\nSave this to use as", "a plan back to it"),
])  # fmt: skip
def test_a_file_beside_plans_is_recognised(text: str, words: str) -> None:
    with pytest.raises(MalformedPlan, match=words):
        parse_plan_document(text)


@pytest.mark.parametrize(("content", "said"), [
    (PLAN.encode("utf-16"), "not a text in UTF-8: it is UTF-16, as `>` writes it in Windows PowerShell"),
    (PLAN.encode("utf-16-le"), "not a text in UTF-8: it is UTF-16"),
    (PLAN.encode("utf-16-be"), "not a text in UTF-8: it is UTF-16"),
    (PLAN.encode("utf-32"), "not a text in UTF-8: it is UTF-32"),
    (b"\x1f\x8b\x08\x00", "not a text in UTF-8: it is a compressed file (gzip), such as a snapshot; unpack any other"),
    (b"PAR1....", "not a text in UTF-8: it is a Parquet file"),
    (b"SQLite format 3\0", "not a text in UTF-8: it is a database of SQLite, such as the journal of a run"),
    (b"a\nb\n\xfc", "not a text in UTF-8: line 3 has the byte 0xfc"),
])  # fmt: skip
def test_another_encoding_is_named(content: bytes, said: str) -> None:
    with pytest.raises(InputError) as refused:
        decoded(content)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("content", [b"", b"a", b"\0", b"\0\0\0\0", PLAN.encode(), "größer".encode()])
def test_utf_8_is_decoded_without_a_mark(content: bytes) -> None:
    assert decoded(content) == decoded(b"\xef\xbb\xbf" + content) == content.decode()


@pytest.mark.parametrize(("text", "said"), [
    ('{"a":1,}', "line 1, column 8: a name in double quotes is missing"),
    ('{\n"a" 1}', "line 2, column 5: a colon is missing"),
    ('{"a":1 "b":2}', "line 1, column 8: a comma or the closing bracket is missing"),
    ('{"a":x}', "line 1, column 6: a value is missing, or is not JSON"),
    ('{"a":"x}', "line 1, column 6: a text has no closing quote"),
    ('{"a":"\t"}', "line 1, column 7: a text has an unescaped control character"),
    (r'{"a":"\q"}', "line 1, column 7: a backslash escapes nothing"),
    (r'{"a":{"b":1},"c":[{},[],{"b":1,"\u0062":2}]}', "the key 'b' is in one object twice, in line 1 again"),
    ("\ufeff[1]", "line 1, column 1: a byte order mark stands there, a second one"),
    ("[1] ]", "more follows after the document in line 1; a file holds one document"),
    ("[1]\n\f\n", "more follows after the document in line 2; a file holds one document"),
    ("[1]\u00a0", "more follows after the document in line 1; a file holds one document"),
])  # fmt: skip
def test_an_error_in_json_is_said_in_plain_words(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        read_json(text)
