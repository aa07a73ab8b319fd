"""Notes of plans about their loads, and refusals: from the command line and from Python."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kreassign
from kreassign.cli.main import kreassign as command
from kreassign.cli.plan_text import load_lines
from kreassign.errors import InputError
from kreassign.model import Broker, TopicPartition
from kreassign.model.load import DoubtfulLoad, DoubtfulShare, ForecastBasis, LoadBasis
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.plan import PlanRequest
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.pipeline.tables.schemas import FORECAST, LOAD_HOURS, PLAN_INPUTS
from tests.approved import DAYS, approve
from tests.pipeline.clusters import UNKNOWN_LOADS
from tests.pipeline.finished_load import write_rows
from tests.pipeline.load_tables import row, write_brokers

pytestmark = pytest.mark.thorough

HOUR_MS = 3_600_000
TAKEN_MS = 1_767_225_600_000  # 2026-01-01
MEGABYTE = 1_000_000
REQUIRED = PlanRequest(require_load=True)
ENOUGH = ("enough", 1.0 * MEGABYTE)
Loads = dict[str, list[tuple[str, float | None]]]


def tables(data: Path, topics: Loads, cluster: str = "c", **known: float) -> Path:
    """Brokers 0 to 2, and partitions of 10 MB on brokers 0 and 1 by topic, each with a verdict and a rate.

    Of all partitions this is `known`, too.
    """
    snapshot = {"snapshot_id": f"s-{cluster}", "cluster_id": cluster}
    rows = [
        {**snapshot, **UNKNOWN_LOADS, "topic": topic, "partition": number, "broker": broker, "position": position,
         "is_leader": position == 0, "is_reassigning": False, "size_bytes": 10 * MEGABYTE, "write_bytes_per_s": rate,
         "coverage": "no samples" if rate is None else "measured", "verdict": verdict, **known}
        for topic, loads in topics.items()
        for number, (verdict, rate) in enumerate(loads)
        for position, broker in enumerate((number % 2, 1 - number % 2))
    ]  # fmt: skip
    hour = row(LOAD_HOURS, cluster_id=cluster, topic="t", partition=0, hour_ms=TAKEN_MS - 2 * HOUR_MS)
    write_brokers(data, 3, cluster, **snapshot, taken_ms=TAKEN_MS)
    write_rows(data, PLAN_INPUTS, rows, file_stem=cluster)
    write_rows(data, LOAD_HOURS, [hour], file_stem=cluster)
    return data


DIRTY: Loads = {
    "orders": [ENOUGH] * 6 + [("short", 1.91e14), ("unknown", None)],
    "audit": [("short", 1.91e14)],
    "audit-old": [("gaps", 0.5 * MEGABYTE)],
}


def snapshot(*rates: float | None, cluster: str = "c") -> ClusterSnapshot:
    partitions = tuple(
        SnapshotPartition((1, 2), (1, 2), 1, 1, ("/d",) * 2, (10 * MEGABYTE,) * 2, write_bytes_per_s=rate)
        for rate in rates
    )
    hosts = tuple(SnapshotBroker(Broker(number, "h", 9092), (SnapshotLogDir("/d"),)) for number in range(1, 4))
    return ClusterSnapshot(TAKEN_MS, cluster, hosts, (SnapshotTopic("t", partitions),))


def plan(*arguments: str | Path, max_age: str = "none") -> Result:
    """A plan from loads of a day that is long gone, which is all right unless a test says otherwise."""
    then = ("--as-of", "last") if "--data" in arguments else ()
    return CliRunner().invoke(command, ["plan", *map(str, arguments), *then, "--max-load-age", max_age])


def loads_of(outcome: Any) -> LoadBasis:
    found: LoadBasis | None = outcome.facts.loads
    assert found is not None
    return found


def test_a_few_absurd_loads_are_named_and_move_nothing_by_themselves(tmp_path: Path) -> None:
    found = kreassign.plan(tables(tmp_path, DIRTY), as_of="last")
    loads = loads_of(found)
    assert (loads.partitions, loads.doubtful_count) == (10, 4)
    assert loads.reasons == {"gaps": 1, "short": 2, "unknown": 1}
    assert loads.priors == {"topic": 2, "measured": 1, "size": 1}
    assert {str(one.topic_partition): (one.prior, one.write_bytes_per_s) for one in loads.doubtful} == {
        "orders-6": ("topic", MEGABYTE),
        "orders-7": ("topic", MEGABYTE),
        "audit-0": ("size", MEGABYTE),
        "audit-old-0": ("measured", 0.5 * MEGABYTE),
    }
    assert {one.broker: one.replicas for one in loads.brokers} == {0: 4, 1: 4}
    assert all(one.write_share == 3.5 / 9.5 and one.size_share == 0.4 for one in loads.brokers)
    assert max(broker.before["net-in"] for broker in found.facts.brokers) == 9.5 * MEGABYTE


IMPOSSIBLE: dict[str, tuple[dict[str, float], str]] = {
    "more than a network": ({"write_bytes_per_s": 2.51e20}, "the write rate of t-0 (mean) is 251 EB/s"),
    "endless reads": ({"read_bytes_per_s": math.inf}, "the read rate of t-0 (mean) is inf EB/s"),
    "negative reads": ({"read_bytes_per_s": -1.0}, "the read rate of t-0 (mean) is -1 B/s"),
    "negative CPU": ({"cpu_share": -0.5}, "the CPU as leader of t-0 (mean) is -0.5 cores"),
    "endless CPU": ({"follower_cpu_share": math.inf}, "the CPU as follower of t-0 (mean) is inf cores"),
    "a negative size": ({"size_bytes": -5}, "the size of t-0 (mean) is -5 B"),
    "a size of no disk": ({"size_bytes": 2**49}, "the size of t-0 (mean) is 563 TB"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_load_that_no_broker_has_is_refused_with_its_partition(name: str, tmp_path: Path) -> None:
    known, words = IMPOSSIBLE[name]
    refused = plan("--data", tables(tmp_path, {"t": [ENOUGH]}, **known), "--out", tmp_path / "plan.json")
    assert refused.exit_code == 2
    assert words in refused.stderr
    assert "and no broker has less than 0 or more than" in refused.stderr
    assert not (tmp_path / "plan.json").exists()


def test_forecasts_and_snapshots_with_impossible_loads_are_refused(tmp_path: Path) -> None:
    data = tables(tmp_path, {"t": [ENOUGH]})
    write_rows(data, FORECAST, [ahead(0, 0.5e6, 1e6, 1e12)], file_stem="a")
    refused = plan("--data", data, "--by", "forecast-high", "--out", tmp_path / "plan.json")
    assert "the write rate of t-0 (forecast-high) is 1 TB/s" in refused.stderr
    with pytest.raises(InputError, match=r"the write rate of t-1 \(snapshot\) is 1 TB/s"):
        kreassign.plan(snapshot(1.0, 1e12))


def test_doubtful_loads_are_shown_first_and_fit_80_columns(tmp_path: Path) -> None:
    lines = plan("--data", tables(tmp_path, DIRTY), "--out", tmp_path / "plan.json").stdout.splitlines()
    approve(lines[:8], "doubtful-loads", DAYS=DAYS)
    assert max(map(len, lines[:8])) < 80


def test_the_facts_beside_the_plan_say_the_same_as_the_json_and_as_python(tmp_path: Path) -> None:
    data, out = tables(tmp_path, DIRTY), tmp_path / "plan.json"
    told = json.loads(plan("--data", data, "--out", out, "--format", "json").stdout)["loads"]
    facts = read_plan_file(out).facts
    assert facts is not None
    assert facts.loads is not None
    assert (told["priors"], told["reasons"]) == (facts.loads.priors, facts.loads.reasons)
    assert (facts.loads.last_hour_ms, facts.loads.taken_ms) == (TAKEN_MS - 2 * HOUR_MS, TAKEN_MS)
    python = loads_of(kreassign.plan(data, as_of="last"))
    assert (python.doubtful, python.reasons) == (facts.loads.doubtful, facts.loads.reasons)


@pytest.mark.parametrize("task", [(), ("pareto",), ("brokers-needed", "--goals-file")])
def test_whoever_requires_load_gets_no_plan_from_doubtful_ones(tmp_path: Path, task: tuple[str, ...]) -> None:
    data = tables(tmp_path, DIRTY)
    goals = tmp_path / "goals.toml"
    goals.write_text('[capacity]\ndisk = "1GB"\n')
    arguments = (*task, goals) if "--goals-file" in task else task
    assert plan(*arguments, "--data", data, "--goals-file", goals).exit_code == 0
    written = () if task else ("--out", tmp_path / "plan.json")
    refused = plan(*arguments, "--data", data, "--require-load", *written)
    assert refused.exit_code == 2
    assert "4 of 10 partitions are doubtful: audit-0 (short), orders-6 (short), orders-7 (unknown)" in refused.stderr
    assert "and 1 more; collect samples for a whole day without gaps, run `kreassign load`" in refused.stderr
    assert not (tmp_path / "plan.json").exists()


CPU_GOALS = """
[[goals]]
name = "cpu"
[capacity]
cpu = 0.5
cores = 4
[broker-capacity.2]
cores = 16
"""


def test_a_cpu_limit_needs_a_measured_broker_and_counts_cores(tmp_path: Path) -> None:
    goals, topics = tmp_path / "goals.toml", {"t": [ENOUGH] * 20}
    goals.write_text(CPU_GOALS)
    plain = tables(tmp_path / "plain", topics)
    for task in ((), ("brokers-needed",), ("pareto",)):
        refused = plan(*task, "--data", plain, "--goals-file", goals)
        assert refused.exit_code == 2
        assert "a limit for cpu needs what brokers measured of theirs, and none did: import cpu_share" in refused.stderr
    measured = tables(tmp_path / "measured", topics, cpu_share=0.02, follower_cpu_share=0.005)
    told = json.loads(plan("--data", measured, "--goals-file", goals, "--format", "json").stdout)
    (limit,) = [one for one in told["limits"] if one["goal"] == "cpu"]
    assert (limit["unit"], limit["least"], limit["most"]) == ("cores", 2.0, 8.0)
    before, after = ({one["broker"]: one[when]["cpu"] for one in told["brokers"]} for when in ("before", "after"))
    # Ten leaders and ten followers each, of 0.08 and 0.02 cores.
    assert before == {0: pytest.approx(1.0), 1: pytest.approx(1.0), 2: 0.0}
    assert after[2] == pytest.approx(2.0 * 8 / 12, rel=0.1)
    assert after[0] == pytest.approx(2.0 * 2 / 12, rel=0.1)


def test_reads_of_consumers_are_assumed_only_where_none_were_measured(
    tmp_path: Path,
) -> None:
    topics, goals = {"t": [ENOUGH] * 6}, tmp_path / "goals.toml"
    goals.write_text("reads-per-write = 3\n")
    measured = tables(tmp_path / "measured", topics, read_bytes_per_s=5.0 * MEGABYTE)
    unknown = tables(tmp_path / "unknown", topics)

    def net_out(data: Path) -> tuple[list[float], dict[str, Any], str]:
        told = json.loads(plan("--data", data, "--goals-file", goals, "--format", "json").stdout)
        said = plan("--data", data, "--goals-file", goals, "--out", tmp_path / "plan.json").stdout
        return [one["before"]["net-out"] for one in told["brokers"]], told["loads"], said

    # Three leaders on two of the brokers; each sends what is written to one follower, and to consumers.
    loads, basis, said = net_out(measured)
    assert loads == [18.0 * MEGABYTE, 18.0 * MEGABYTE, 0.0]
    assert (basis["assumed_reads"], "assumed net-out" in said) == (0, False)
    loads, basis, said = net_out(unknown)
    assert loads == [12.0 * MEGABYTE, 12.0 * MEGABYTE, 0.0]
    assert (basis["assumed_reads"], basis["reads_per_write"]) == (6, 3.0)
    lines = said.splitlines()
    approve(lines[:8], "assumed-reads", DAYS=DAYS)
    assert max(map(len, lines[:8])) < 80
    facts = read_plan_file(tmp_path / "plan.json").facts
    assert facts is not None
    assert (loads_of(kreassign.plan(unknown, as_of="last")).assumed_reads, facts.loads) == (
        6,
        LoadBasis(**LOADS_OF_UNKNOWN),
    )


LOADS_OF_UNKNOWN: dict[str, Any] = {
    "source": "mean", "taken_ms": TAKEN_MS, "partitions": 6, "last_hour_ms": TAKEN_MS - 2 * HOUR_MS,
    "assumed_reads": 6, "reads_per_write": 3.0,
}  # fmt: skip


def test_measured_cpu_shows_its_unit_and_estimates_show_the_mean(tmp_path: Path) -> None:
    topics = {"t": [ENOUGH] * 20}
    plain = tables(tmp_path / "plain", topics)
    measured = tables(tmp_path / "measured", topics, cpu_share=0.02, follower_cpu_share=0.005)
    goals = tmp_path / "goals.toml"
    goals.write_text('[[goals]]\nname = "cpu"\n[[goals]]\nname = "net-out"\n')
    arguments = ("--goals-file", goals, "--out", tmp_path / "plan.json", "--wide")
    said = plan("--data", measured, *arguments).stdout
    assert "0.25 of a CPU" in said
    assert "20 MB/s" in said
    # Nobody has cores: three brokers, two of which had all of it.
    said = plan("--data", plain, *arguments).stdout
    assert "150% of the mean" in said
    told = json.loads(plan("--data", plain, *arguments[:2], "--format", "json").stdout)
    assert {one["goal"]: one["unit"] for one in told["means"]} == {"cpu": "estimated", "net-out": "B/s"}


def test_answers_of_several_plans_say_what_they_rest_on_too(tmp_path: Path) -> None:
    data, goals = tables(tmp_path, DIRTY), tmp_path / "goals.toml"
    goals.write_text('[capacity]\ndisk = "1GB"\n')
    for task in ("pareto", "brokers-needed"):
        lines = plan(task, "--data", data, "--goals-file", goals).stdout.splitlines()
        assert "doubtful loads: 4 of 10 partitions: 1 gaps, 2 short, 1 unknown" in lines[:4]
    for task in ("pareto", "brokers-needed"):
        told = json.loads(plan(task, "--data", data, "--goals-file", goals, "--format", "json").stdout)
        assert told["loads"]["reasons"] == {"gaps": 1, "short": 2, "unknown": 1}
    choice = kreassign.pareto(data, as_of="last")
    assert loads_of(choice.outcome(choice.choices[0])).doubtful_count == 4


def test_old_loads_are_called_stale_and_refused_if_required(
    tmp_path: Path,
) -> None:
    data, out = tables(tmp_path, {"t": [ENOUGH] * 6}), tmp_path / "plan.json"
    lines = plan("--data", data, "--out", out, max_age="24h").stdout.splitlines()
    assert re.fullmatch("stale loads: last measured [0-9]+ days ago; renew them with `kreassign load`", lines[1])
    assert lines[3].startswith("loads: mean, samples until 2025-12-31 22-")
    assert not [line for line in lines if len(line) > 80 and str(tmp_path) not in line]
    refused = plan("--data", data, "--require-load", max_age="24h")
    assert refused.exit_code == 2
    assert re.search(
        r"the loads are [\d,]+ hours old; collect samples .* or allow it with --max-load-age", refused.stderr
    )
    one = LoadBasis("mean", TAKEN_MS, 6)
    assert [one.is_stale(TAKEN_MS + 60_000, age_s) for age_s in (60, 59, None)] == [False, True, False]


def test_whoever_requires_load_gets_no_plan_from_sizes_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="the sizes of 2 of 6 partitions are unknown; measure for longer"):
        LoadBasis("cluster", TAKEN_MS, 6, unsized=2).require(TAKEN_MS)


def test_whoever_requires_load_gets_no_plan_from_seconds_of_measuring() -> None:
    with pytest.raises(InputError, match="the loads were measured for 59 s only; measure for longer"):
        LoadBasis("cluster", TAKEN_MS, 6, measured_for_s=59).require(TAKEN_MS)
    LoadBasis("cluster", TAKEN_MS, 6, measured_for_s=60).require(TAKEN_MS)


def test_from_python_too_the_refusal_is_an_input_error(tmp_path: Path) -> None:
    data = tables(tmp_path, DIRTY)
    for ask in (kreassign.plan, kreassign.pareto, kreassign.brokers_needed):
        with pytest.raises(InputError, match="4 of 10 partitions are doubtful: audit-0"):
            ask(data, request=REQUIRED, as_of="last")


def test_enough_loads_take_one_line_and_nothing_is_refused(tmp_path: Path) -> None:
    data = tables(tmp_path, {"orders": [ENOUGH] * 6})
    found = plan("--data", data, "--require-load", "--out", tmp_path / "plan.json")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[1].startswith("placement: that of the load, 2026-01-01 00:00 UTC (")
    assert lines[2].startswith("loads: mean, samples until 2025-12-31 22-")
    assert lines[2].endswith("; none doubtful")
    assert not any("doubtful loads" in line for line in lines)


def test_where_everything_is_unknown_it_is_said_and_the_sizes_alone_decide(tmp_path: Path) -> None:
    found = kreassign.plan(tables(tmp_path, {"t": [("unknown", None)] * 6}), as_of="last")
    loads = loads_of(found)
    assert (loads.reasons, loads.priors) == ({"unknown": 6}, {"unknown": 6})
    assert all((one.write_share, one.size_share) == (0.0, 1.0) for one in loads.brokers)
    assert found.facts.totals.moved_bytes > 0


def test_an_hour_of_samples_is_doubtful_but_better_than_nothing(tmp_path: Path) -> None:
    rates = [float(number) * MEGABYTE for number in range(1, 7)]
    found = kreassign.plan(tables(tmp_path, {"t": [("short", rate) for rate in rates]}), as_of="last")
    assert loads_of(found).priors == {"measured": 6}
    assert found.problem.partitions.write_bytes_per_s.tolist() == rates


def test_doubtful_loads_of_one_cluster_do_not_block_the_fleet(tmp_path: Path) -> None:
    tables(tmp_path, DIRTY, "dirty")
    tables(tmp_path, {"t": [ENOUGH] * 6}, "clean")
    found = plan("fleet", "--data", tmp_path, "--require-load")
    assert found.exit_code == 1
    assert "dirty: no plan: the loads of 4 of 10 partitions are doubtful" in found.stdout
    rows = {
        row["cluster"]: row for row in json.loads(plan("fleet", "--data", tmp_path, "--format", "json").stdout)["plans"]
    }
    assert {name: row["doubtful_loads"] for name, row in rows.items()} == {"clean": 0, "dirty": 4}


def test_rates_that_a_snapshot_lacks_are_doubtful_and_the_others_tell_them() -> None:
    found = kreassign.plan(snapshot(2.0, None, 4.0, 3.0, None, 0.0))
    loads = loads_of(found)
    assert (loads.source, loads.reasons, loads.priors) == ("snapshot", {"no rate": 2}, {"topic": 2})
    assert found.problem.partitions.write_bytes_per_s.tolist() == [2.0, 2.5, 4.0, 3.0, 2.5, 0.0]


def test_a_snapshot_without_rates_is_no_basis_for_who_requires_load(tmp_path: Path) -> None:
    bare, measured = tmp_path / "bare.json", tmp_path / "measured.json"
    write_snapshot(bare, snapshot(None, None))
    write_snapshot(measured, snapshot(1.0, 2.0))
    text = plan("--snapshot", bare).stderr
    assert "\nloads: those of the snapshot, 2026-01-01 00:00 UTC (" in text
    assert "\ndoubtful loads: 2 of 2 partitions: 2 no rate\n  planned with: 2 as 0, unknown\n" in text
    refused = plan("--snapshot", bare, "--require-load")
    assert refused.exit_code == 2
    assert "take the snapshot again with `--measure-for 60`" in refused.stderr
    assert plan("--snapshot", measured, "--require-load").exit_code == 0


@pytest.mark.parametrize("name", ["cluster.json", "cluster.parquet"])
def test_a_snapshot_carries_for_how_long_it_was_measured(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    write_snapshot(file, replace(snapshot(1.0, 2.0), measured_for_s=5.0))
    assert "\n  measured for 5 s only; other hours of the day are unknown\n" in plan("--snapshot", file).stderr
    refused = plan("--snapshot", file, "--require-load")
    assert refused.exit_code == 2
    assert "the loads were measured for 5 s only; take the snapshot again with `--measure-for 60`" in refused.stderr
    write_snapshot(file, replace(snapshot(1.0, 2.0), measured_for_s=60.0))
    assert plan("--snapshot", file, "--require-load").exit_code == 0


def ahead(number: int, low: float, middle: float, high: float) -> dict[str, Any]:
    figures = dict.fromkeys(column.name for column in FORECAST.columns)
    key = {"cluster_id": "c", "snapshot_id": "s-c", "topic": "t", "partition": number, "horizon_days": 30.0}
    rates = {"low_write_bytes_per_s": low, "write_bytes_per_s": middle, "high_write_bytes_per_s": high}
    return {**figures, **key, **rates, "high_size_bytes": 20.0 * MEGABYTE, "basis": "flat"}


def test_a_plan_by_forecast_shows_the_interval_it_rests_on(tmp_path: Path) -> None:
    data = tables(tmp_path, {"t": [ENOUGH] * 6})
    write_rows(data, FORECAST, [ahead(number, 0.5e6, 1e6, 3e6) for number in range(6)], file_stem="a")
    out = tmp_path / "plan.json"
    lines = plan("--data", data, "--by", "forecast-high", "--out", out).stdout.splitlines()
    approve(lines[:8], "loads-by-forecast", DAYS=DAYS)
    facts = read_plan_file(out).facts
    assert facts is not None
    assert facts.loads is not None
    assert (facts.loads.forecast, facts.loads.doubtful_count) == (ForecastBasis(30.0, 0.5, 3.0), 0)
    assert facts.brokers[0].before["net-in"] == 18 * MEGABYTE
    assert facts.brokers[0].before["disk"] == 120 * MEGABYTE


WIDE = LoadBasis(
    "forecast-high",
    TAKEN_MS,
    1_000_000,
    TAKEN_MS,
    reasons={"gaps": 100_000, "no forecast-high": 10, "short": 800_000, "unknown": 12_345},
    priors={"measured": 400_000, "size": 100_000, "topic": 400_000, "unknown": 12_355},
    unsized=12_345,
    doubtful=tuple(DoubtfulLoad(TopicPartition("t" * 249, number), "short", "topic", 1.0) for number in range(100)),
    brokers=tuple(DoubtfulShare(number, 9, 1 / (number + 1), 0.5) for number in range(2_000)),
    forecast=ForecastBasis(30.0, 0.01, 123.45, 1_000_000, 0.06, 0.95),
)


def test_however_large_the_cluster_the_lines_fit_80_columns() -> None:
    lines = list(load_lines(WIDE, TAKEN_MS + 40 * 24 * HOUR_MS))
    assert max(map(len, lines)) < 80, lines
    approve(lines, "loads-of-a-large-cluster")


@pytest.mark.parametrize(("age_ms", "words"), [
    (0, "0 seconds ago"),
    (119_000, "119 seconds ago"),
    (120_000, "2 minutes ago"),
    (2 * HOUR_MS, "2 hours ago"),
    (72 * HOUR_MS, "3 days ago"),
    (-1, "ahead of this clock"),
])  # fmt: skip
def test_the_age_is_told_in_the_unit_that_people_would_use(age_ms: int, words: str) -> None:
    assert next(load_lines(WIDE, TAKEN_MS + age_ms)).endswith(f"({words})")


def test_a_time_that_no_calendar_has_is_told_as_it_is() -> None:
    basis = replace(WIDE, source="snapshot", last_hour_ms=None, taken_ms=2**63 - 1)
    assert next(load_lines(basis, TAKEN_MS)) == f"loads: those of the snapshot, {2**63 - 1} ms (ahead of this clock)"
