"""Samples of one's own: a bad row costs itself, and a file that is no table of samples says so."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from io import BytesIO

import pytest

from kreassign.errors import InputError
from kreassign.pipeline.ingest.exporters import BadRow
from kreassign.pipeline.ingest.imported_samples import LARGEST_LINE, Judge, sample_row, text_rows
from kreassign.pipeline.tables.schemas import SAMPLES, Row

MS = 1_750_000_000_000
HEADER = "taken_ms,topic,partition,start_offset,end_offset,size_bytes,leader,remark"
GOOD: Row = {"taken_ms": MS, "topic": "orders", "partition": 0, "start_offset": 10, "end_offset": 100}
WHOLE_32, WHOLE_64 = (f"a whole number from 0 to 2^{bits}-1 without separators" for bits in (31, 63))
WHOLE = GOOD | {"cluster_id": "c", "topic_id": None, "leader": -1, "size_bytes": None}


def rows(text: str | bytes, cluster: str | None = "c") -> tuple[list[Row], list[str]]:
    """The good rows, and what is wrong with the others."""
    content = text if isinstance(text, bytes) else text.encode()
    found = [row for _, row in text_rows(BytesIO(content), cluster)]
    good = [row for row in found if not isinstance(row, BadRow)]
    return good, [str(row) for row in found if isinstance(row, BadRow)]


def test_csv_has_its_columns_in_any_order_and_unknown_ones_are_passed_over() -> None:
    good, bad = rows(f"{HEADER}\n{MS},orders,0,10,100,5000,3,x\n\n{MS},orders,1,0,7.0,nan,,\n")
    assert good == [
        WHOLE | {"size_bytes": 5000, "leader": 3},
        WHOLE | {"partition": 1, "start_offset": 0, "end_offset": 7},
    ]
    assert not bad
    for other in (";", "\t"):
        assert rows(f"{HEADER}\n{MS},orders,0,10,100,5000,3,x\n".replace(",", other))[0] == good[:1]


def test_spaces_around_fields_are_no_part_of_a_name() -> None:
    text = f'taken_ms, topic, partition, start_offset, end_offset\n{MS}, "orders" , 0, 10, 100\n'
    assert rows(text) == ([WHOLE], [])
    assert rows(text.replace('"', ""))[0] == [WHOLE]


def test_a_refused_row_begins_with_what_is_refused() -> None:
    bad = sample_row(GOOD | {"end_offset": "1.000"}, "row 1", "c")
    assert isinstance(bad, BadRow)
    assert bad.text.startswith('{"end_offset": "1.000", "taken_ms": ')


INEXACT = "is a float of 2^53 or more, which skips whole numbers; write it as an integer"


@pytest.mark.parametrize("value", [float(2**53), float(2**53 + 1), f"{2**53 + 1}.0", float(2**62)])
@pytest.mark.parametrize("name", ["end_offset", "size_bytes"])
def test_a_float_that_may_be_another_number_is_refused_by_name(name: str, value: float | str) -> None:
    assert str(sample_row(GOOD | {name: value}, "row 1", "c")) == f"row 1 {name} {INEXACT}"


def test_whole_numbers_are_kept_to_the_last_digit() -> None:
    for value in (2**53 + 1, str(2**53 + 1), Decimal(2**53 + 1), Decimal(f"{2**53 + 1}.00"), 2**63 - 1):
        row = sample_row(GOOD | {"end_offset": value}, "row 1", "c")
        assert not isinstance(row, BadRow)
        assert row["end_offset"] == int(value)
    row = sample_row(GOOD | {"end_offset": float(2**53 - 1), "size_bytes": Decimal(5)}, "row 1", "c")
    assert not isinstance(row, BadRow)
    assert (row["end_offset"], row["size_bytes"]) == (2**53 - 1, 5)
    for odd in (Decimal("1.5"), Decimal("NaN"), Decimal("Infinity")):
        assert str(sample_row(GOOD | {"end_offset": odd}, "row 1", "c")) == f"row 1 end_offset is not {WHOLE_64}"


@pytest.mark.parametrize("topic", ["or/ders", "größe", " orders", "..", "x" * 250])
def test_no_sample_has_a_topic_that_kafka_cannot_have(topic: str) -> None:
    judge = Judge(SAMPLES, MS)
    assert judge.why_not(WHOLE) is None
    assert judge.why_not(WHOLE | {"topic": topic}) == "topic is not a name that Kafka allows"


def test_json_lines_may_name_their_cluster() -> None:
    lines = (json.dumps(GOOD), json.dumps(GOOD | {"cluster_id": "d", "topic_id": "t", "size_bytes": 5000.0}))
    assert rows("\n".join(lines)) == ([WHOLE, WHOLE | {"cluster_id": "d", "topic_id": "t", "size_bytes": 5000}], [])


@pytest.mark.parametrize(("line", "reason"), [
    (f"{MS},orders,0,10", "has 4 fields in place of 8"),
    (f'{MS},"orders,0,10,100,5000,3,x', "has 2 fields in place of 8"),
    (f"{MS},,0,10,100,5000,3,x", "topic is missing"),
    (f"{MS},orders,0,10,,5000,3,x", "end_offset is missing"),
    (f"{MS},orders", "has 2 fields in place of 8"),
    (f"{MS},ord\rers,0,10,100,5000,3,x", "has a line end in a field"),
    (f"{MS},{'x' * 140_000},0,10,100,5000,3,x", "has a field of more than 131,072 characters"),
    (HEADER, "taken_ms is not milliseconds since the epoch, " + WHOLE_64),
    (f"{MS},orders,0,10,many,5000,3,x", "end_offset is not " + WHOLE_64),
    *((f"{MS},orders,0,10,{odd},5000,3,x", "end_offset is not " + WHOLE_64)
      for odd in ("1.000", "100.000", "1.0000", "120.", "1.5", "1 000", "1'000", "0x10", "1_000", "+5.0", "true",
                  "+5", "10GB", "10 GiB", "\u0665", "\uff15", "\u00a05", "5\0", "inf", "=5", "'5")),
    (f"{MS},orders,0,10,1e3,5000,3,x", "end_offset is not " + WHOLE_64),
    (f"{MS},orders,0,10,{2**63},5000,3,x", "end_offset is not " + WHOLE_64),
    (f"{MS},orders,{2**31},10,100,5000,3,x", "partition is not " + WHOLE_32),
    (f"{MS},orders,0,10,100,5000.5,3,x", "size_bytes is not " + WHOLE_64),
    (f"{MS},orders,0,10,100,5000,-2,x", "leader is not a whole number from -1 to 2^31-1 without separators"),
    (f"{MS},orders,0,10,NaN,5000,3,x", "end_offset is NaN, not a number"),
    (f"{MS},orders,0,10,100,-1,3,x", "size_bytes is not " + WHOLE_64),
    (f"{MS},orders,0,-1,100,5000,3,x", "start_offset is not " + WHOLE_64),
    (f"{MS},orders,-1,10,100,5000,3,x", "partition is not " + WHOLE_32),
    ("2025-06-15T15:06:40Z,orders,0,10,100,5000,3,x", "taken_ms is not milliseconds since the epoch, " + WHOLE_64),
])  # fmt: skip
def test_a_bad_line_is_named_and_the_others_are_good(line: str, reason: str) -> None:
    good, bad = rows(f"{HEADER}\n{MS},before,0,10,100,5000,3,x\n{line}\n{MS},after,0,10,100,5000,3,x\n")
    assert [row["topic"] for row in good] == ["before", "after"]
    assert bad == [f"line 3 {reason}"]


@pytest.mark.parametrize(("line", "reason"), [
    (b"{", "is not JSON"),
    (b"7", "is no object"),
    (b'{"topic": "gr\xfc"}', "is not a text in UTF-8"),
    (json.dumps(GOOD | {"topic": 5}).encode(), "topic is not a text"),
    (json.dumps(GOOD | {"partition": True}).encode(), "partition is not " + WHOLE_32),
    (json.dumps(GOOD).replace("100", "NaN").encode(), "is not JSON"),
])  # fmt: skip
def test_a_bad_object_is_named_and_the_others_are_good(line: bytes, reason: str) -> None:
    one = json.dumps(GOOD).encode()
    assert rows(b"\n".join([one, line, one])) == ([WHOLE, WHOLE], [f"line 2 {reason}"])


def test_a_text_that_is_not_utf_8_costs_its_line() -> None:
    latin = f"{HEADER}\n{MS},größe,0,10,100,5000,3,x\n{MS},orders,0,10,100,5000,3,x\n".encode("latin-1")
    good, bad = rows(latin)
    assert [row["topic"] for row in good] == ["orders"]
    assert bad == ["line 2 topic is not a text in UTF-8"]


@pytest.mark.parametrize(("text", "cluster", "said"), [
    ("", "c", "it is empty"),
    ("[]", "c", "jq -c"),
    ("time,topic\n", "c", "it lacks the columns taken_ms, partition, start_offset, end_offset of table samples"),
    (HEADER.upper(), "c", "start_offset, end_offset of table samples; it has TAKEN_MS, TOPIC, PARTITION, START_OFFSET"),
    (gzip.compress(HEADER.encode(), mtime=0), "c", r"a compressed file \(gzip\).*; unpack any other \(`gunzip -k`\)"),
    (HEADER.encode("utf-16"), "c", "not a text in UTF-8: it is UTF-16, as"),
    (b"\x04\x22\x4d\x18" + bytes(40), "c", r"a compressed file; unpack it \(`unlz4`\)"),
    (b"x" * (LARGEST_LINE + 1), "c", f"line 1 has more than {LARGEST_LINE} bytes"),
    (f"{HEADER},end_offset,topic", "c", "it has the columns topic, end_offset more than once"),
    (HEADER, None, "it lacks the columns cluster_id of table samples; specify --cluster, or add the column"),
])  # fmt: skip
def test_a_file_that_is_no_table_of_samples_says_why(text: str | bytes, cluster: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        rows(text, cluster)


def test_a_row_without_a_cluster_is_bad_unless_the_file_has_one() -> None:
    assert str(sample_row(GOOD, "row 1", None)) == "row 1 cluster_id is missing"
