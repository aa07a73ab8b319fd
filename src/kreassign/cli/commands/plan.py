"""`kreassign plan`: from the load model to a plan in Kafka's JSON, with what it costs and what it brings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kreassign.cli.data_dir import optional_data_option
from kreassign.cli.output import console, format_option, print_json
from kreassign.cli.plan_files import write_plan
from kreassign.cli.snapshot_files import read_snapshot
from kreassign.errors import DataError, InputError, InvariantBroken
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_json import format_plan
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.pipeline.rows import read_rows
from kreassign.pipeline.schemas import BROKERS, PLAN_INPUTS, Row
from kreassign.planner import (
    ByteProblem,
    PartitionLoad,
    PlanningBroker,
    least_bytes,
    rebalance,
)
from kreassign.planner.thin_evaluate import BrokerFigures, Evaluation, evaluate
from kreassign.report.text import format_bytes


@click.command()
@optional_data_option
@click.option(
    "--snapshot",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Plan for this snapshot file (`kreassign snapshot --out`), instead of the tables in DIR.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write the plan, in Kafka's reassignment JSON.  [default: print it]",
)
@click.option(
    "--current-out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write the present replicas of the same partitions: for --expect-current, and to go back.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 100, max_open=True),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="How far a broker's bytes may be from the mean.",
)
@click.option("--cluster", metavar="ID", help="Which cluster, if the tables hold several.")
@format_option
def plan(out: Path | None, current_out: Path | None, tolerance: float, output_format: str, **source: Any) -> None:
    """Compute a plan that evens out the bytes and preferred leaders of the brokers.

    Reads the tables plan_inputs and brokers from DIR (made by `kreassign load` and `kreassign snapshot`), or a
    snapshot file. Copies as few bytes as it can, keeps racks apart, and leaves alone what is being moved already.
    """
    problem = Source(**source).problem(tolerance / 100)
    targets = rebalance(problem)
    evaluation = evaluate(problem, targets)
    if evaluation.violations:
        raise InvariantBroken("the planner made an illegal plan:\n" + "\n".join(evaluation.violations))
    wishes = as_plan(targets)
    if out:
        write_plan(out, wishes)
    if current_out:
        write_plan(current_out, as_plan({partition: problem.current[partition] for partition in targets}))
    _show(problem, wishes, evaluation, out, output_format)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the state of the cluster comes from: a snapshot file, or else the tables of a directory."""

    data: Path | None
    snapshot: Path | None
    cluster: str | None

    def problem(self, tolerance: float) -> ByteProblem:
        """What the planner needs. Raises DataError or InputError."""
        if self.snapshot is not None:
            return problem_of(read_snapshot(self.snapshot), tolerance)
        if self.data is None:
            raise click.UsageError("say what to plan for: --data DIR or --snapshot FILE")
        return read_problem(self.data, self.cluster, tolerance)


def problem_of(snapshot: ClusterSnapshot, tolerance: float) -> ByteProblem:
    """What the planner needs, from a snapshot file. What has no known size or is on the move must stay."""
    brokers = (seen.broker for seen in snapshot.brokers)
    partitions = tuple(
        PartitionLoad(
            topic_partition=key,
            replicas=seen.replicas,
            size_bytes=seen.size_bytes or 0,
            may_move=seen.size_bytes is not None and not seen.is_moving,
        )
        for key, seen in snapshot.partitions
    )
    running = tuple(PlanningBroker(broker.id, broker.rack) for broker in brokers if not broker.is_fenced)
    return ByteProblem(running, partitions, tolerance)


def read_problem(data: Path, cluster: str | None, tolerance: float) -> ByteProblem:
    """What the planner needs, from the tables. Raises DataError or InputError."""
    rows = _of_one_cluster(read_rows(data, PLAN_INPUTS), cluster)
    snapshot = {"snapshot_id": rows[0]["snapshot_id"]}
    brokers = tuple(
        PlanningBroker(row["broker"], row["rack"])
        for row in read_rows(data, BROKERS, only=snapshot)
        if not row["is_fenced"]
    )
    return ByteProblem(brokers, partition_loads(rows), tolerance)


def partition_loads(rows: Iterable[Row]) -> tuple[PartitionLoad, ...]:
    """One load per partition from one row per replica. What has no known size or is on the move must stay."""
    replicas: dict[TopicPartition, list[Row]] = {}
    for row in rows:
        replicas.setdefault(TopicPartition(row["topic"], row["partition"]), []).append(row)
    return tuple(
        PartitionLoad(
            topic_partition=partition,
            replicas=tuple(row["broker"] for row in sorted(copies, key=lambda row: int(row["position"]))),
            size_bytes=copies[0]["size_bytes"] or 0,
            may_move=copies[0]["size_bytes"] is not None and not copies[0]["is_reassigning"],
        )
        for partition, copies in replicas.items()
    )


def as_plan(targets: Mapping[TopicPartition, tuple[int, ...]]) -> Plan:
    """Replica lists as a plan."""
    return Plan(tuple(PartitionAssignment(partition, replicas) for partition, replicas in targets.items()))


def _of_one_cluster(rows: list[Row], wanted: str | None) -> list[Row]:
    clusters = sorted({str(row["cluster_id"]) for row in rows})
    if wanted is None and len(clusters) > 1:
        raise InputError(f"the tables hold several clusters; choose with --cluster one of {', '.join(clusters)}")
    chosen = [row for row in rows if wanted in (None, row["cluster_id"])]
    if not chosen:
        raise DataError(f"the tables hold nothing of cluster {wanted}, only of {', '.join(clusters)}")
    return chosen


# --- showing ---------------------------------------------------------------------------------------------------------


def _show(problem: ByteProblem, wishes: Plan, evaluation: Evaluation, out: Path | None, output_format: str) -> None:
    if output_format == "json":
        print_json(document(problem, wishes, evaluation, out))
        return
    if out is None:
        click.echo(format_plan(wishes))
    # With the plan on stdout, the words about it go where they do not get into its way.
    terminal = console(stderr=out is None)
    _print_summary(terminal, problem, wishes, evaluation)
    if out:
        terminal.print(f"plan written to {out}")


def document(problem: ByteProblem, wishes: Plan, evaluation: Evaluation, out: Path | None) -> dict[str, Any]:
    """The summary of a plan for programs; with the plan in it unless it went to a file."""
    bound = least_bytes(problem)
    return {
        "partitions": len(wishes),
        "copied_replicas": evaluation.copied_replica_count,
        "reordered_partitions": evaluation.reordered_partition_count,
        "copied_bytes": evaluation.copied_bytes,
        "least_bytes": bound,
        "gap": _gap(evaluation.copied_bytes, bound),
        "band": asdict(problem.band),
        "out_of_band": evaluation.out_of_band,
        "brokers": [
            {
                "broker": before.broker,
                "bytes_in": evaluation.bytes_in[before.broker],
                "before": _figures(before),
                "after": _figures(after),
            }
            for before, after in zip(evaluation.before, evaluation.after, strict=True)
        ],
        **({"file": str(out)} if out else {"plan": json.loads(format_plan(wishes))}),
    }


def _figures(figures: BrokerFigures) -> dict[str, int]:
    return {name: value for name, value in asdict(figures).items() if name != "broker"}


def _gap(copied: int, bound: int) -> float | None:
    return copied / bound - 1 if bound else None


def _print_summary(terminal: Console, problem: ByteProblem, wishes: Plan, evaluation: Evaluation) -> None:
    bound = least_bytes(problem)
    gap = _gap(evaluation.copied_bytes, bound)
    if not len(wishes):
        terminal.print("nothing to do: every broker is within the band, or no move helps")
    terminal.print(
        f"{len(wishes)} partitions change: {evaluation.copied_replica_count} replicas are copied, "
        f"{format_bytes(evaluation.copied_bytes)}; {evaluation.reordered_partition_count} only change their order"
    )
    terminal.print(
        f"no plan can copy less than {format_bytes(bound)}" + ("" if gap is None else f"; this one is {gap:.1%} above")
    )
    terminal.print(_broker_table(evaluation))
    if evaluation.out_of_band:
        low, high = format_bytes(problem.band.low), format_bytes(problem.band.high)
        names = ", ".join(map(str, evaluation.out_of_band))
        terminal.print(f"still outside the band of {low} to {high}: broker {names}; no single move brings them in")


def _broker_table(evaluation: Evaluation) -> Table:
    table = Table("broker", box=None, pad_edge=False)
    for title in ("bytes before", "after", "received", "replicas before", "after", "leaders before", "after"):
        table.add_column(title, justify="right")
    for before, after in zip(evaluation.before, evaluation.after, strict=True):
        table.add_row(
            str(before.broker),
            format_bytes(before.size_bytes),
            format_bytes(after.size_bytes),
            format_bytes(evaluation.bytes_in[before.broker]),
            *map(str, (before.replica_count, after.replica_count)),
            *map(str, (before.preferred_leader_count, after.preferred_leader_count)),
        )
    return table
