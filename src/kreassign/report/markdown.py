"""PURE. A plan, or how a cluster drifts from its placement, as Markdown: the comment of a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kreassign.model.amount import format_load
from kreassign.model.placement import Drift
from kreassign.model.plan_facts import PlanFacts, PlannedPartition, Totals
from kreassign.report.broker_loads import BrokerLoad, Resource, hottest
from kreassign.report.plan_page import Targets, copies, plan_view
from kreassign.report.text import format_bytes, format_replicas

MOST_CHARACTERS = 60_000
"""A comment on GitHub holds 65,536."""

MOST_BROKERS = 60
_ACTIVE = re.compile(r"([\\`*_{}\[\]<>|~#!&])")
_UNSEEN = "…"


def plan_markdown(facts: PlanFacts, targets: Targets) -> str:
    """What a plan costs and brings, its brokers, and its partitions with their reasons; the largest come first."""
    resources = tuple(Resource(one.goal, one.unit, one.before, one.after) for one in facts.means)
    loads = tuple(BrokerLoad(one.broker, one.before, one.after) for one in facts.brokers)
    view = plan_view(facts, targets, hottest(resources, loads))
    head = [f"### Plan: {escaped(facts.task)}", ""]
    if not view.change_count:
        return "\n".join([*head, "Nothing to do.", *_remaining(facts)])
    head.append(f"**{_counted(view.change_count, 'partition')} to change**: {_cost(facts.totals)}.")
    head += ["", f"- Bytes: {escaped(view.bound)}", f"- Time: {escaped(view.time)}"]
    head += [f"- Hottest broker by {escaped(one.resource)}: {one} the mean" for one in view.hottest[:3]]
    if facts.loads is not None and facts.loads.doubtful_count:
        head.append(f"- Doubtful loads: {facts.loads.doubtful_count} of {facts.loads.partitions} partitions")
    head += _remaining(facts)
    head += ["", *_brokers(facts)]
    rows = [_partition(one, targets) for one in _ranked(facts.partitions, targets)]
    columns = ("partition", "from", "to", "copied", "why")
    return _folded("\n".join(head), _counted(len(rows), "partition"), columns, rows)


def drift_markdown(found: Sequence[Drift], declared_count: int) -> str:
    """Every partition that is not as declared."""
    if not found:
        return f"### Placement\n\nAll {_counted(declared_count, 'declared partition')} are as declared."
    head = f"### Placement\n\n**{_counted(len(found), 'partition')} not as declared**, of {declared_count:,}.\n"
    rows = [
        (escaped(str(one.topic_partition)), _list(one.declared), _list(one.found), escaped(one.how)) for one in found
    ]
    return _table(head, ("partition", "declared", "in the cluster", "how"), rows)


def escaped(text: str) -> str:
    """A text that means nothing to Markdown, on one line: it draws nothing, links nowhere, and calls nobody."""
    return _ACTIVE.sub(r"\\\1", " ".join(text.split())).replace("@", "@\u200b")


def _cost(totals: Totals) -> str:
    copied = f"{_counted(totals.moves, 'replica')} to copy, {format_bytes(totals.moved_bytes)}"
    if totals.log_dir_moves:
        copied += f"; {totals.log_dir_moves} to another disk, {format_bytes(totals.log_dir_bytes)}"
    return f"{copied}; {_counted(totals.leader_changes, 'leader')} to change"


def _remaining(facts: PlanFacts) -> list[str]:
    return [f"- Remains: {escaped(one)}" for one in facts.remaining[:10]] + (
        [f"- Remains: {len(facts.remaining) - 10} more"] if len(facts.remaining) > 10 else []
    )


def _ranked(partitions: Sequence[PlannedPartition], targets: Targets) -> list[PlannedPartition]:
    return sorted(partitions, key=lambda one: (-one.size_bytes * len(copies(one, targets)), one.topic_partition))


def _partition(one: PlannedPartition, targets: Targets) -> tuple[str, ...]:
    after = targets.get(one.topic_partition, one.replicas)
    copied = one.size_bytes * len(copies(one, targets))
    why = "; ".join(str(reason) for reason in one.reasons)
    return (
        escaped(str(one.topic_partition)),
        format_replicas(one.replicas),
        format_replicas(after),
        format_bytes(copied) if copied else "–",
        escaped(why),
    )


def _brokers(facts: PlanFacts) -> Iterator[str]:
    """One row a broker: its first goal before and after, and what it copies; those that change nothing are left out."""
    busy = [one for one in facts.brokers if one.bytes_in or one.bytes_out or one.before != one.after]
    if not busy:
        return
    first = facts.means[0] if facts.means else None
    titles = ("broker", *((f"{first.goal} before", "after") if first else ()), "receives", "sends")
    yield from _lines(titles)
    for one in busy[:MOST_BROKERS]:
        sides = (one.before, one.after) if first else ()
        loads = (format_load(side.get(first.goal, 0.0), first.unit, first.before) for side in sides if first)
        yield _row((str(one.broker), *loads, format_bytes(one.bytes_in), format_bytes(one.bytes_out)))
    if len(busy) > MOST_BROKERS:
        yield _row((f"{len(busy) - MOST_BROKERS} more", *[""] * (len(titles) - 1)))
    yield ""


def _folded(head: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The head, and a table that opens when its title is clicked."""
    begin = f"{head}\n<details><summary>{title}</summary>\n"
    return _table(begin, columns, rows) + "\n\n</details>"


def _table(begin: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A text and a table of as many rows as a comment holds, and how many more there are."""
    lines = [begin, *_lines(columns)]
    room = MOST_CHARACTERS - sum(map(len, lines))
    for number, row in enumerate(rows):
        line = _row(row)
        room -= len(line) + 1
        if room < 0:
            lines.append(_row((f"{_UNSEEN} {len(rows) - number:,} more", *[""] * (len(columns) - 1))))
            break
        lines.append(line)
    return "\n".join(lines)


def _lines(columns: Sequence[str]) -> Iterator[str]:
    yield _row(columns)
    yield _row(["---"] * len(columns))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(brokers: tuple[int, ...] | None) -> str:
    return "–" if brokers is None else format_replicas(brokers)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
