"""Planning commands with several answers: `pareto`, `brokers-needed` and `fleet`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from kreassign.cli.next_command import CLUSTER, next_command, print_next
from kreassign.cli.options.plan import PlanOptions, comparing_options, growth_options, refuse_ignored
from kreassign.cli.options.values import DIRECTORY, INPUT_FILE, FiniteRange
from kreassign.cli.output import console, examples, figures, names, print_json, text_table
from kreassign.cli.plan_text import limit_lines, print_loads, shown_gap
from kreassign.cli.profiles import typed_words
from kreassign.cli.streams import working
from kreassign.errors import InputError
from kreassign.model.plan_facts import Totals
from kreassign.model.plan_facts_json import load_fields
from kreassign.model.text import agreeing, counted, format_amount, shortened
from kreassign.operations import plan as operation
from kreassign.operations.plan import ClusterPlan, make_plans
from kreassign.operations.plan_files import BESIDE, keep_approved, write_plan
from kreassign.operations.plan_inputs import Inputs, inputs_of_snapshot_file
from kreassign.operations.plan_tasks import WhatIf, described
from kreassign.planner.problem.goals_file import PERCENT
from kreassign.planner.results import Outcome
from kreassign.planner.tasks.what_if import Choice, RightSize
from kreassign.report.text import format_bytes, format_duration


@examples("kreassign plan pareto --snapshot cluster.json.gz --rate 50MB/s --out-dir plans")
@click.command()
@click.option("--out-dir", type=DIRECTORY, metavar="DIR", help="Write every plan to DIR, as ID.json with its facts.  "
              "[default: not written]")  # fmt: skip
@comparing_options
def pareto(options: PlanOptions, out_dir: Path | None) -> None:
    """Compute several plans of which none beats another in bytes, balance, time and leader changes."""
    refuse_ignored("pareto")
    inputs = options.inputs()
    with working("searching plans to choose from"):
        found = operation.pareto(inputs, options.request)
    _write(out_dir, {choice.id: found.outcome(choice) for choice in found.choices} if out_dir else {})
    is_timed = options.rate is not None
    if options.output_format == "json":
        choices = [_choice_fields(choice, is_timed=is_timed) for choice in found.choices]
        print_json({"choices": choices, "loads": load_fields(inputs.loads)})
    else:
        terminal = console()
        print_loads(terminal, inputs.loads, options.max_load_age_s)
        terminal.print(_choices(found.choices, is_timed=is_timed))
        _print_next(out_dir, [choice.id for choice in found.choices])


@examples(
    "kreassign plan brokers-needed --snapshot cluster.json.gz",
    "kreassign plan brokers-needed --data ./data --as-of last --traffic 2 --at-most 60",
)
@click.command("brokers-needed")
@click.option("--at-most", type=FiniteRange(0, 100, min_open=True), default=70.0, show_default=True,
              metavar="PERCENT", help="How much of its limits a broker may use.")  # fmt: skip
@growth_options
@comparing_options
def brokers_needed(options: PlanOptions, at_most: float, what_if: WhatIf) -> None:
    """Compute how many brokers like these the load needs, now or under other circumstances."""
    refuse_ignored("brokers-needed")
    inputs = options.inputs()
    with working("computing how many brokers carry the load"):
        found = operation.brokers_needed(inputs, what_if, at_most / PERCENT, options.request)
    if options.output_format == "json":
        limits = [asdict(limit) for limit in inputs.limits]
        print_json({**_size_document(found), "limits": limits, "loads": load_fields(inputs.loads)})
        return
    terminal = console()
    circumstances = described(what_if.circumstances(inputs))
    terminal.print(
        f"{circumstances}: {counted(found.brokers, 'broker')} {agreeing(found.brokers, 'carry')} this load "
        f"at {found.at_most:.0%} of their limits; "
        f"there are {found.present}"
    )
    print_loads(terminal, inputs.loads, options.max_load_age_s)
    for need in found.needs:
        total, limit = format_amount(need.total, need.unit), format_amount(need.limit, need.unit)
        terminal.print(f"{need.goal} alone needs {need.brokers}: {total} at {limit} each")
    for line in limit_lines(inputs.limits):
        terminal.print(line)
    for sentence in _uncounted(found):
        terminal.print(sentence)


@examples("kreassign plan fleet eu.json.gz us.json.gz --out-dir plans")
@click.command()
@click.argument("snapshots", nargs=-1, type=INPUT_FILE)
@click.option("--out-dir", type=DIRECTORY, metavar="DIR",
              help="Write the plan of each cluster to DIR, as CLUSTER.json with its facts.  "
              "[default: not written]")  # fmt: skip
@comparing_options
def fleet(options: PlanOptions, snapshots: tuple[Path, ...], out_dir: Path | None) -> None:
    """Rebalance many clusters at once: those of the SNAPSHOTS files, or all in the tables.

    Exit code 1 if a cluster has no plan that keeps the rules; the others get theirs.
    """
    refuse_ignored("fleet")
    if snapshots:
        refuse_ignored("fleet of snapshots")
    clusters = list(_fleet(options, snapshots))
    _check_names([inputs.cluster_id for inputs in clusters], is_written=out_dir is not None)
    with working(f"searching {len(clusters)} plans"):
        replies = make_plans(clusters, options.request)
    _write(out_dir, {one.cluster_id: one.outcome for one in replies if one.outcome is not None})
    _show(replies, options.output_format)
    if options.output_format == "text":
        _print_next(out_dir, [reply.cluster_id for reply in replies if reply.outcome is not None])
    raise click.exceptions.Exit(1 if any(reply.outcome is None for reply in replies) else 0)


def _check_names(clusters: Sequence[str], *, is_written: bool) -> None:
    """Raise InputError for a cluster that is given twice, and for an id that is to name a plan file and cannot."""
    for cluster, count in Counter(clusters).items():
        if count > 1:
            raise InputError(
                f"cluster {cluster} is given {counted(count, 'time')}; leave out all but one of its snapshots"
            )
        file = f"{cluster}.json"
        if is_written and (Path(file).name != file or "\\" in cluster or file.endswith(BESIDE)):
            raise InputError(f"the id of cluster {shortened(cluster)!r} is no name of a plan file; leave out --out-dir")


def _fleet(options: PlanOptions, snapshots: tuple[Path, ...]) -> Iterator[Inputs]:
    if snapshots:
        yield from (inputs_of_snapshot_file(path, options.policy()) for path in snapshots)
    elif options.data is None or options.as_of is None:
        raise click.UsageError(
            "specify snapshot files, or --data DIR and --as-of last, for the placements in the tables"
        )
    else:
        from kreassign.operations.table_inputs import clusters_of_tables

        for cluster in clusters_of_tables(options.data, options.as_of):
            yield replace(options, cluster=cluster).inputs()


def _print_next(out_dir: Path | None, plans: list[str]) -> None:
    """Suggest how to execute one of these plans, or how to write them first."""
    if out_dir is None:
        print_next(next_command(*typed_words(), "--out-dir", "plans"))
    elif plans:
        print_next(next_command("run", out_dir / f"{plans[0]}.json", "--dry-run", takes=CLUSTER))


def _write(out_dir: Path | None, plans: Mapping[str, Outcome]) -> None:
    """Write all of these plans, or none if one would replace another that was approved."""
    if out_dir is None:
        return
    files = {out_dir / f"{name}.json": outcome for name, outcome in plans.items()}
    for path, outcome in files.items():
        keep_approved(path, outcome.plan)
    out_dir.mkdir(parents=True, exist_ok=True)
    for path, outcome in files.items():
        write_plan(path, outcome.plan, outcome.facts)


def _choice_fields(choice: Choice, *, is_timed: bool) -> dict[str, Any]:
    return {
        "id": choice.id,
        "asked_for": choice.asked_for,
        "moved_bytes": choice.moved_bytes,
        "imbalance": round(choice.imbalance, 9),
        "seconds": choice.seconds if is_timed else None,
        "leader_changes": choice.leader_changes,
    }


def _choices(choices: tuple[Choice, ...], *, is_timed: bool) -> Table:
    rows = (
        (
            choice.id, choice.asked_for, format_bytes(choice.moved_bytes), f"{choice.imbalance:.1%}",
            format_duration(choice.seconds) if is_timed else "-", str(choice.leader_changes),
        )
        for choice in choices
    )  # fmt: skip
    return text_table([*names("plan", "goal"), *figures("copied", "widest miss", "time", "leaders")], rows)


def _uncounted(found: RightSize) -> Iterator[str]:
    """Costs outside the answer, and its lower bound."""
    yield f"never fewer than {found.factor}: the largest replication factor"
    if found.unlimited:
        yield f"not counted, no limit of every broker is known: {', '.join(found.unlimited)}"
    if found.unknown:
        yield f"not counted, no load is known: {', '.join(found.unknown)}"


def _size_document(found: RightSize) -> dict[str, Any]:
    return {
        "brokers": found.brokers,
        "present": found.present,
        "at_most": found.at_most,
        "least_by_factor": found.factor,
        "needs": [asdict(need) for need in found.needs],
        "no_limit": list(found.unlimited),
        "no_load": list(found.unknown),
    }


def _show(replies: list[ClusterPlan], output_format: str) -> None:
    if output_format == "json":
        print_json({"plans": [_reply_fields(reply) for reply in replies]})
        return
    titles = ("cluster", "partitions", "copied", "above the bound", "leaders", "brokers off target", "doubtful loads")
    console().print(text_table(names(*titles), ((reply.cluster_id, *_cells(reply)) for reply in replies)))
    for reply in replies:
        if reply.refusal is not None:
            click.echo(f"{reply.cluster_id}: no plan: {reply.refusal}")


def _cells(reply: ClusterPlan) -> tuple[str, ...]:
    if reply.outcome is None:
        return ("no plan",)
    totals, missed = reply.outcome.facts.totals, len(reply.outcome.evaluation.misses())
    gap = "-" if totals.gap is None else shown_gap(totals.gap)
    return (
        str(len(reply.outcome.plan)), format_bytes(totals.moved_bytes), gap, str(totals.leader_changes), str(missed),
        _doubtful(reply.outcome),
    )  # fmt: skip


def _doubtful(outcome: Outcome) -> str:
    loads = outcome.facts.loads
    return "-" if loads is None else f"{loads.doubtful_count} of {loads.partitions}"


def _reply_fields(reply: ClusterPlan) -> dict[str, Any]:
    if reply.outcome is None:
        return {"cluster": reply.cluster_id, "refusal": reply.refusal}
    totals: Totals = reply.outcome.facts.totals
    loads = reply.outcome.facts.loads
    return {
        "cluster": reply.cluster_id,
        "plan_id": reply.outcome.facts.plan_id,
        "partitions": len(reply.outcome.plan),
        "moved_bytes": totals.moved_bytes,
        "least_bytes": totals.least_bytes,
        "leader_changes": totals.leader_changes,
        "missed": [str(miss) for miss in reply.outcome.evaluation.misses()],
        "doubtful_loads": 0 if loads is None else loads.doubtful_count,
    }
