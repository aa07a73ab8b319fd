#!/usr/bin/env python3
"""Write docs/reference/python-api.md from the signatures and docstrings of what `import kreassign` offers.

python scripts/python_api_page.py
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import kreassign

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python-api.md"

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Connect": ("connect", "connect_controllers"),
    "Measure": (
        "snapshot", "store_snapshot", "SnapshotOutputs", "collect", "import_metrics", "import_samples",
        "stream_metrics", "MetricStream", "SparkOptions", "load", "show_load", "LoadNumber",
    ),
    "Plan": ("plan", "pareto", "brokers_needed", "place_topic", "place_partitions", "ExpectedRates", "write_plan"),
    "Tasks": (
        "Rebalance", "TopicChoice", "AddBrokers", "DrainBrokers", "ReplaceBrokers", "DrainLogDirs",
        "ChangeReplicationFactor", "Repair", "BalanceLeaders", "DemoteBrokers", "BalanceLogDirs", "Restore", "Import",
        "WhatIf",
    ),
    "Placements in files": (
        "read_assignments", "read_placement", "placement_of_cluster", "placement_of_snapshot", "check_placement",
        "write_placement",
    ),
    "Rehearse and run": ("rehearse", "run", "resume", "rollback"),
    "Steer": ("status", "watch", "pause", "release", "cancel", "set_throttle", "change_pace"),
    "Check": ("verify", "doctor", "audit", "read_records", "ReadingRequest", "compare_readings"),
    "Go on without a journal": ("forget_brokers", "forget_journal"),
    "Pages": ("plan_page", "report_page", "load_page"),
    "Tables": ("compact_tables", "define_tables", "DefinitionForm"),
    "The twin": ("serve_twin",),
}  # fmt: skip
"""Every name that is offered, once."""

EXAMPLE = """\
import tempfile
from pathlib import Path

import kreassign

with (
    tempfile.TemporaryDirectory() as folder,
    kreassign.serve_twin("skewed", speed=60.0) as twin,
    kreassign.connect(twin.bootstrap_servers) as cluster,
):
    placement, journals = Path(folder, "placement.json"), Path(folder, "journals")
    kreassign.write_placement(placement, kreassign.placement_of_cluster(cluster), ["payments"])

    snapshot = kreassign.snapshot(cluster, measure_for_s=0)
    plan = kreassign.plan(snapshot, kreassign.ChangeReplicationFactor(3, kreassign.TopicChoice(("payments",))))
    print(f"{len(plan.plan)} partitions, {plan.facts.totals.moves} copies")

    done = kreassign.run(cluster, plan, measure_for_s=0, poll_s=0.2, state_dir=journals)
    print("run:", done.state, "and verified:", kreassign.verify(cluster, plan).is_ok)

    declared = kreassign.read_placement([placement]).plan
    for drift in kreassign.check_placement(declared, kreassign.placement_of_cluster(cluster), ["payments"]).drifts[:2]:
        print(drift)

    back = kreassign.rollback(cluster, done.run_id, poll_s=0.2, state_dir=journals)
    is_as_declared = kreassign.check_placement(declared, kreassign.placement_of_cluster(cluster), ["payments"]).is_ok
    print("rolled back:", back.run.state, "and as declared:", is_as_declared)
"""

_HEAD = f"""\
# Python API

What `import kreassign` offers, by what it is for. Nothing is loaded before it is used.
[The guide](../guides/use-from-python.md) has a program for a real cluster, and the function of every command;
[AdminClient](admin-client.md) is what `connect` returns.

This program needs nothing but kreassign: its cluster is a [twin](../concepts/twin.md) of the scenario
[`skewed`](scenarios.md). It writes down where partitions are, gives a topic one more replica, sees the drift, and
goes back:

```python
{EXAMPLE}```

All names are those of `kreassign`; arguments after `*` are given by name, and `…` stands for a default that the
docstring explains. Errors are [those of the command line](errors-and-exit-codes.md).

This page is written by `python scripts/python_api_page.py` from signatures and docstrings; change those instead.
"""


def python_api_page(groups: Mapping[str, Collection[str]] = GROUPS, module: Any = kreassign) -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *(line for title, names in groups.items() for line in _group(title, names, module))])


def main() -> None:
    """Write the page."""
    PAGE.write_text(python_api_page(), encoding="utf-8")


def _group(title: str, names: Collection[str], module: Any) -> Iterator[str]:
    yield f"## {title}\n"
    for name in names:
        value = getattr(module, name)
        yield f"### {name}\n\n```python\n{_signature(name, value)}\n```\n\n{inspect.getdoc(value)}\n"


def _signature(name: str, value: Any) -> str:
    if inspect.isclass(value) and issubclass(value, Enum):
        return f"{name}: {', '.join(choice.name for choice in value)}"
    signature = inspect.signature(value)
    shown = [one for key, one in signature.parameters.items() if key != "self"]
    parameters = list(map(_parameter, shown))
    keywords = [one.kind is one.KEYWORD_ONLY for one in shown]
    if any(keywords):
        parameters.insert(keywords.index(True), "*")
    closing = ")" if inspect.isclass(value) else f") -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(parameters)}{closing}"
    if len(line) <= 110:
        return line
    return "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), closing])


def _parameter(parameter: inspect.Parameter) -> str:
    annotated = f"{parameter.name}: {_type(parameter.annotation)}"
    return annotated if parameter.default is parameter.empty else f"{annotated} = {_default(parameter.default)}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _default(default: Any) -> str:
    """A value that reads as it is written; others are for the docstring to explain."""
    if isinstance(default, Enum):
        return f"{type(default).__name__}.{default.name}"
    is_plain = default is None or isinstance(default, bool | int | float | str) or default in ((), [], {})
    return repr(default) if is_plain and not dataclasses.is_dataclass(default) else "…"


if __name__ == "__main__":
    main()
