"""The guide names every series that is read, every rule and every column: whoever adds one adds it there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.pipeline.ingest.exporters import (
    FACTS_OF_PARTITIONS,
    METRICS_OF_BROKERS,
    METRICS_OF_CLUSTERS,
    SIGNS_OF_REMOTE_STORAGE,
)
from kreassign.pipeline.ingest.metric_records import IMPORT_RULES
from kreassign.pipeline.load.rules import Rule
from kreassign.pipeline.tables.schemas import METRICS, SAMPLES

PAGE = (Path(__file__).resolve().parents[3] / "docs/guides/where-the-measures-come-from.md").read_text(encoding="utf-8")
READ = [*METRICS_OF_BROKERS, *METRICS_OF_CLUSTERS, *FACTS_OF_PARTITIONS, *sorted(SIGNS_OF_REMOTE_STORAGE)]
TOLD_BY_ANOTHER = ("persec_", "_oneminuterate", "idlepercent", "_count")


@pytest.mark.parametrize("series", [name for name in READ if not any(part in name for part in TOLD_BY_ANOTHER)])
def test_every_series_that_is_read_is_on_the_page(series: str) -> None:
    assert f"`{series}`" in PAGE


def test_every_name_of_table_metrics_is_on_the_page_or_its_counter_is() -> None:
    names = {metric.name for metric in (*METRICS_OF_BROKERS.values(), *METRICS_OF_CLUSTERS.values())}
    missing = {name for name in names if f"`{name}`" not in PAGE}
    assert {name.replace("_per_s", "_total") for name in missing} <= names - missing


@pytest.mark.parametrize("rule", IMPORT_RULES[METRICS], ids=lambda rule: rule.reason)
def test_every_rule_is_on_the_page(rule: Rule) -> None:
    of_samples = {each.reason for each in IMPORT_RULES[SAMPLES]}
    whose = "metrics, samples" if rule.reason in of_samples else "metrics"
    assert f"| {rule.reason} | {whose} | {rule.why} |" in PAGE


def test_every_column_of_samples_is_on_the_page() -> None:
    assert [name for name in SAMPLES.column_names if f"\n| `{name}` |" not in PAGE] == []
