"""Facts files: what is written is read back, and what is none is refused by the name of its field."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from kreassign.errors import MalformedPlan
from kreassign.model import TopicPartition, plan_facts
from kreassign.model.load import DoubtfulLoad, DoubtfulShare, ForecastBasis, LoadBasis
from kreassign.model.plan_facts_json import format_facts, parse_facts
from tests.approved import approve

Path = tuple[str | int, ...]
"""Where a value is in a document."""

LOADS = LoadBasis(
    "forecast",
    taken_ms=5,
    partitions=9,
    last_hour_ms=3_600_000,
    reasons={"short": 1, "unknown": 1},
    priors={"topic": 2},
    unsized=1,
    doubtful=(DoubtfulLoad(TopicPartition("ä", 1), "short", "topic", 1.5),),
    brokers=(DoubtfulShare(1, 2, 0.25, 0.5),),
    forecast=ForecastBasis(30.0, 0.7, 1.4, 8, 0.06, 0.95),
)
FACTS = plan_facts.PlanFacts(
    plan_id="0123456789abcdef",
    input_hash="fe",
    task="drain broker 3",
    totals=plan_facts.Totals(moved_bytes=300, moves=2, leader_changes=1, least_bytes=200),
    cluster_id="c",
    snapshot_id="s",
    partitions=(
        plan_facts.PlannedPartition(
            TopicPartition("ä", 1),
            (3, 2),
            150,
            log_dirs=("/a", "any"),
            reasons=(plan_facts.Reason("drain", 3, 1, 150.0, "B"),),
        ),
    ),
    brokers=(plan_facts.PlannedBroker(1, {"disk": 0.0}, {"disk": 300.5}, bytes_in=300, peak_bytes=300),),
    prediction=plan_facts.Prediction(rate_bytes_per_s=10.0, seconds=30.0, longest_move_s=math.inf),
    remaining=("broker 3 still holds 1 replica",),
    loads=LOADS,
)


FULL = replace(
    FACTS,
    leader_racks=plan_facts.LeaderRacks(9, 3, 5),
    topic_leaders=plan_facts.TopicLeaders(4, 3, 1, 7, 2),
    losses=(plan_facts.WorstLoss("after", "disk", "rack a", 2, 9.5, 8.0, "B", 1),),
    limits=(plan_facts.GoalLimit("disk", "B", "goals file", 3, 10.0, 20.0),),
    unknown_goals=("cpu",),
    uneven_topics=(plan_facts.UnevenTopic("t-1", 100, 10, 6),),
    racks=(plan_facts.RackBytes("a", None, 300, 0.5), plan_facts.RackBytes("a", "b", 1)),
    means=(plan_facts.GoalMean("disk", "B", 5.0, 6.0),),
    topic_ids={"ä": "id"},
    loads=replace(LOADS, priors={"cluster": 2}),
)


SHORT = plan_facts.PlanFacts("id", "hash", "rebalance", plan_facts.Totals(9, 1, 2))
ENDLESS = plan_facts.Prediction(math.inf, math.inf, math.inf, math.inf)


@pytest.mark.parametrize(("facts", "file"), [(FULL, "plan"), (SHORT, "short")])
def test_every_known_field_of_facts_has_its_place_in_the_text(facts: plan_facts.PlanFacts, file: str) -> None:
    approve(format_facts(facts), f"{file}.facts.json")


@pytest.mark.parametrize("facts", [
    FACTS,
    FULL,
    SHORT,
    replace(FACTS, loads=replace(LOADS, last_hour_ms=None, forecast=ForecastBasis(30.0))),
    replace(FACTS, partitions=(replace(FACTS.partitions[0], log_dirs=()),)),
    replace(FULL, prediction=ENDLESS, losses=(plan_facts.WorstLoss("after", "disk", "rack a", 2, 9.5, math.inf),)),
], ids=["common", "full", "short", "no backtest", "no directories", "infinite"])  # fmt: skip
def test_facts_that_were_written_are_read_back(facts: plan_facts.PlanFacts) -> None:
    assert parse_facts(format_facts(facts)) == facts


@pytest.mark.parametrize(("old", "new", "words"), [
    ("150.0", "NaN", "NaN is not a number in JSON"),
    ("150.0", "1e999", "1e999 is not a finite number"),
    ('"prior": "topic", ', "", "it has no 'prior'"),
])  # fmt: skip
def test_what_is_no_facts_file_is_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(MalformedPlan, match=words):
        parse_facts(format_facts(FACTS).replace(old, new))


def test_the_same_facts_have_the_same_text_in_whichever_order_they_are() -> None:
    first, second, other = (
        plan_facts.PlannedPartition(TopicPartition(topic, number), (1,), 5)
        for topic, number in (("a", 2), ("a", 10), ("b", 0))
    )
    one = replace(FACTS, partitions=(first, second, other), topic_ids={"a": "x", "b": "y"})
    same = replace(FACTS, partitions=(other, second, first), topic_ids={"b": "y", "a": "x"})
    assert format_facts(one) == format_facts(same)
    assert parse_facts(format_facts(same)).partitions == (first, second, other)


def test_topics_sort_by_code_units_in_the_text_of_facts() -> None:
    last, first = (
        plan_facts.PlannedPartition(TopicPartition(topic, 0), (1,), 5)
        for topic in ("\N{REPLACEMENT CHARACTER}", "\N{GRINNING FACE}")
    )
    assert parse_facts(format_facts(replace(FACTS, partitions=(last, first)))).partitions == (first, last)


@pytest.mark.parametrize(("value", "written"), [
    (0.1 + 0.2, 0.3), (1234567890123.4, 1234567890120.0), (1 / 3, 0.333333333333), (math.inf, None), (-math.inf, None),
])  # fmt: skip
def test_floats_are_written_with_twelve_digits_and_infinity_as_null(value: float, written: float | None) -> None:
    facts = replace(
        FULL, prediction=plan_facts.Prediction(1.0, value, 1.0),
        brokers=(plan_facts.PlannedBroker(1, {"disk": value}, {}),),
        loads=replace(LOADS, doubtful=(DoubtfulLoad(TopicPartition("a", 0), "short", "topic", value),)),
    )  # fmt: skip
    document = json.loads(format_facts(facts))
    assert document["prediction"]["seconds"] == written
    assert document["brokers"][0]["before"] == {"disk": written}
    assert document["loads"]["doubtful"][0]["write_bytes_per_s"] == written


def test_no_facts_are_written_with_a_number_that_is_none() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        format_facts(replace(FACTS, prediction=plan_facts.Prediction(1.0, math.nan, 1.0)))


OPTIONAL: dict[str, Any] = {
    "leader_racks": None, "topic_leaders": None, "losses": (), "limits": (), "unknown_goals": (), "uneven_topics": (),
    "racks": (), "means": (),
}  # fmt: skip


@pytest.mark.parametrize("name", json.loads(format_facts(FULL)))
def test_facts_without_a_field_that_is_always_written_are_refused(name: str) -> None:
    document = json.loads(format_facts(FULL))
    del document[name]
    if name in OPTIONAL:
        assert parse_facts(json.dumps(document)) == replace(FULL, **{name: OPTIONAL[name]})
    else:
        with pytest.raises(MalformedPlan) as refused:
            parse_facts(json.dumps(document))
        assert str(refused.value) == f"not the facts file of a plan: it has no '{name}'"


@pytest.mark.parametrize("name", ["cluster_id", "snapshot_id", "prediction", "loads", "leader_racks", "topic_leaders"])
def test_a_field_of_which_nothing_is_known_may_be_null(name: str) -> None:
    document = json.loads(format_facts(FULL)) | {name: None}
    unknown: dict[str, Any] = {name: None}
    assert parse_facts(json.dumps(document)) == replace(FULL, **unknown)


def test_fields_of_a_later_kreassign_and_the_gap_are_ignored() -> None:
    document = json.loads(format_facts(FULL)) | {"weather": "fine"}
    document["totals"]["gap"] = "wide"
    assert parse_facts(json.dumps(document)) == FULL


def places(value: Any, path: Path = ()) -> list[Path]:
    """Places of scalar values in a document."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [place for key, one in items for place in places(one, (*path, key))]
    return [path]


def put(value: Any, path: Path, new: object) -> Any:
    """The document with another value in one place."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


FULL_DOCUMENT = json.loads(format_facts(FULL))
READ = [place for place in places(FULL_DOCUMENT) if place[-1] not in ("gap", "version")]
MAPS = {"reasons", "priors", "before", "after", "topic_ids"}


@pytest.mark.parametrize("place", READ, ids=[".".join(map(str, place)) for place in READ])
def test_a_value_of_a_kind_that_no_field_has_is_told_by_its_field(place: Path) -> None:
    names = [name for name in place if isinstance(name, str)]
    named = names[-2] if len(names) > 1 and names[-2] in MAPS and "partitions" not in names else names[-1]
    with pytest.raises(MalformedPlan, match=rf"^not the facts file of a plan: {named} is "):
        parse_facts(json.dumps(put(FULL_DOCUMENT, place, ["a list"])))


@pytest.mark.parametrize(("place", "value", "kind"), [
    (("plan_id",), None, "string"),
    (("cluster_id",), 5, "string"),
    (("totals", "moves"), 2.0, "integer"),
    (("totals", "moves"), True, "integer"),
    (("totals", "moves"), 2**63, "integer"),
    (("totals", "moves"), -(2**63), "integer"),
    (("totals", "binding"), None, "string"),
    (("prediction", "seconds"), 2**63, "number"),
    (("prediction", "seconds"), False, "number"),
    (("racks", 0, "cost"), "5", "number"),
    (("racks", 0, "source"), 5, "string"),
    (("loads", "last_hour_ms"), 5.0, "integer"),
    (("loads", "reasons"), [], "object"),
    (("loads", "reasons", "short"), 1.0, "integer"),
    (("loads", "doubtful", 0), 5, "object"),
    (("brokers", 0, "before"), 5, "object"),
    (("brokers", 0, "before", "disk"), "x", "number"),
    (("topic_ids", "ä"), 5, "string"),
    (("topic_ids", "ä"), None, "string"),
    (("partitions", 0, "reasons", 0, "leading"), 0, "boolean"),
    (("partitions", 0, "replicas"), "12", "array"),
    (("partitions", 0, "replicas"), 5, "array"),
    (("remaining",), None, "array"),
    (("unknown_goals",), {}, "array"),
])  # fmt: skip
def test_a_field_of_another_kind_is_told_with_the_kind_that_it_has(place: Path, value: object, kind: str) -> None:
    with pytest.raises(MalformedPlan) as refused:
        parse_facts(json.dumps(put(FULL_DOCUMENT, place, value)))
    field = [name for name in place if isinstance(name, str) and name not in ("short", "disk", "ä")][-1]
    shown = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    assert str(refused.value) == f"not the facts file of a plan: {field} is {shown}, which is no {kind}"


@pytest.mark.parametrize("value", [2**63 - 1, 1 - 2**63, 0])
def test_numbers_are_read_as_far_as_kafka_has_them(value: int) -> None:
    read = parse_facts(json.dumps(put(FULL_DOCUMENT, ("totals", "moves"), value)))
    assert read == replace(FULL, totals=replace(FULL.totals, moves=value))


@pytest.mark.parametrize(("place", "name"), [
    (("totals",), "moevs"), (("prediction",), "secnods"), (("loads",), "taken"), (("leader_racks",), "racks"),
    (("topic_leaders",), "topcis"), (("losses", 0), "los"), (("limits", 0), "lest"), (("racks", 0), "sorce"),
    (("uneven_topics", 0), "sizes"), (("means", 0), "gaol"), (("brokers", 0), "beforr"),
    (("loads", "brokers", 0), "brokre"), (("loads", "forecast"), "ratio"), (("loads", "doubtful", 0), "why"),
    (("partitions", 0), "replics"), (("partitions", 0, "reasons", 0), "gaol"),
])  # fmt: skip
def test_a_field_that_nobody_knows_is_told_by_its_name(place: Path, name: str) -> None:
    with pytest.raises(MalformedPlan) as refused:
        parse_facts(json.dumps(added(FULL_DOCUMENT, place, name)))
    assert str(refused.value) == f"not the facts file of a plan: there is no field '{name}'"


def added(value: Any, path: Path, name: str) -> Any:
    """The document with one more field in an object."""
    if not path:
        return value | {name: 5}
    copy = value.copy()
    copy[path[0]] = added(value[path[0]], path[1:], name)
    return copy


@pytest.mark.parametrize("text", ["[]", "5", "null", '"x"', "{", "", '{"version": 1}'])
def test_what_is_no_object_with_these_fields_is_no_facts_file(text: str) -> None:
    with pytest.raises(MalformedPlan, match=r"^not the facts file of a plan: "):
        parse_facts(text)


def test_another_version_is_told_without_looking_further() -> None:
    with pytest.raises(MalformedPlan) as refused:
        parse_facts('{"version": 2}')
    assert str(refused.value) == "a facts file of version 2; this kreassign reads 1"
