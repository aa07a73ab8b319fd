import json
import math
from dataclasses import replace

import pytest

from kreassign.errors import MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.load_basis import DoubtfulLoad, DoubtfulShare, ForecastBasis, LoadBasis
from kreassign.model.plan_facts import (
    GoalMean,
    LeaderRacks,
    Limit,
    PlanFacts,
    PlannedBroker,
    PlannedPartition,
    Prediction,
    RackBytes,
    Reason,
    TopicLeaders,
    Totals,
    UnevenTopic,
    WorstLoss,
)
from kreassign.model.plan_facts_json import format_facts, parse_facts

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
FACTS = PlanFacts(
    plan_id="0123456789abcdef",
    input_hash="fe",
    task="drain broker 3",
    totals=Totals(moved_bytes=300, moves=2, leader_changes=1, least_bytes=200),
    cluster_id="c",
    snapshot_id="s",
    partitions=(
        PlannedPartition(
            TopicPartition("ä", 1), (3, 2), 150, log_dirs=("/a", "any"), reasons=(Reason("drain", 3, 1, 150.0, "B"),)
        ),
    ),
    brokers=(PlannedBroker(1, {"disk": 0.0}, {"disk": 300.5}, bytes_in=300, peak_bytes=300),),
    prediction=Prediction(rate_bytes_per_s=10.0, seconds=30.0, longest_move_s=math.inf),
    remaining=("broker 3 still holds 1 replica",),
    loads=LOADS,
)


def test_facts_that_were_written_are_read_back():
    assert parse_facts(format_facts(FACTS)) == FACTS


def test_the_text_is_json_with_the_gap_and_without_infinity():
    document = json.loads(format_facts(FACTS), parse_constant=pytest.fail)
    assert document["totals"]["gap"] == 0.5
    assert document["prediction"]["longest_move_s"] is None
    assert document["partitions"][0]["topic"] == "ä"


def test_facts_without_anything_optional_are_read_back_too():
    bare = PlanFacts("id", "hash", "rebalance", Totals(0, 0, 0))
    assert parse_facts(format_facts(bare)) == bare


def test_facts_of_an_older_kreassign_say_nothing_of_loads():
    assert parse_facts(without("loads")) == replace(FACTS, loads=None)


def test_a_forecast_without_a_backtest_is_read_back_too():
    bare = replace(FACTS, loads=replace(LOADS, last_hour_ms=None, forecast=ForecastBasis(30.0)))
    assert parse_facts(format_facts(bare)) == bare


def without(name):
    return json.dumps({key: value for key, value in json.loads(format_facts(FACTS)).items() if key != name})


@pytest.mark.parametrize(("text", "words"), [
    ("", "not the facts file"),
    ("[]", "not the facts file"),
    ('{"version": 2}', "version 2; this kreassign reads 1"),
    (without("plan_id"), "it has no 'plan_id'"),
    (format_facts(FACTS).replace("150.0", "NaN"), "NaN is not a number in JSON"),
    (format_facts(FACTS).replace("150.0", "1e999"), "1e999 is not a finite number"),
    (without("partitions"), "it has no 'partitions'"),
    (format_facts(FACTS).replace('"amount"', '"amonut"'), "amonut"),
    (format_facts(FACTS).replace('"short": 1', '"short": "many"'), "reasons is"),
    (format_facts(FACTS).replace('"write_share"', '"wirte_share"'), "wirte_share"),
    (format_facts(FACTS).replace('"prior": "topic", ', ""), "it has no 'prior'"),
])  # fmt: skip
def test_what_is_no_facts_file_is_refused(text, words):
    with pytest.raises(MalformedPlan, match=words):
        parse_facts(text)


FULL = replace(
    FACTS,
    leader_racks=LeaderRacks(9, 3, 5),
    topic_leaders=TopicLeaders(4, 3, 1, 7, 2),
    losses=(WorstLoss("after", "disk", "rack a", 2, 9.5, 8.0, "B", 1),),
    limits=(Limit("disk", "B", "goals file", 3, 10.0, 20.0),),
    unknown_goals=("cpu",),
    uneven_topics=(UnevenTopic("t-1", 100, 10, 6),),
    racks=(RackBytes("a", None, 300, 0.5), RackBytes("a", "b", 1)),
    means=(GoalMean("disk", "B", 5.0, 6.0),),
    topic_ids={"ä": "id"},
    loads=replace(LOADS, priors={"cluster": 2}),
)


def test_facts_with_everything_optional_are_read_back_too():
    assert parse_facts(format_facts(FULL)) == FULL


@pytest.mark.parametrize("name", [
    "plan_id", "input_hash", "task", "cluster_id", "snapshot_id", "remaining", "unknown_goals", "topic", "partition",
    "replicas", "log_dirs", "size_bytes", "reason", "prior", "write_bytes_per_s", "uneven_before", "least", "lost",
])  # fmt: skip
def test_a_field_of_another_kind_is_told_by_its_name(name):
    text = format_facts(replace(FULL, uneven_topics=(), racks=()))  # they have a size, too
    document = json.loads(text, object_hook=lambda found: found | ({name: True} if name in found else {}))
    with pytest.raises(MalformedPlan, match=f": {name} is True"):
        parse_facts(json.dumps(document))
