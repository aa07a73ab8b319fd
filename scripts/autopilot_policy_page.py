#!/usr/bin/env python3
"""Write docs/reference/autopilot-policy.md from the schema of policies and the table of a finding's states.

python scripts/autopilot_policy_page.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from kreassign.autopilot.core import STEPS
from kreassign.autopilot.gates import GATES
from kreassign.autopilot.policy import Level, schema

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "autopilot-policy.md"

_HEAD = """\
# The policy of an autopilot

This page is written by `python scripts/autopilot_policy_page.py` from `src/kreassign/autopilot/policy.py` and
`src/kreassign/autopilot/core.py`; change those instead.

A policy is a TOML file for `kreassign autopilot`. Every line has a default, so that the line `[care]` alone is
a policy: it tells, and changes nothing. An empty file, and a table or a key that is not listed here, are refused.
`kreassign autopilot check policy.toml` says in sentences what a policy lets happen.

| Level | What it does |
|---|---|
| `tell` | says what is wrong |
| `propose` | plans the repair, with its cost, and leaves it to people |
| `ask` | plans the repair, and runs it when [enough people approve](../guides/look-after-a-cluster.md#approvals) |
| `act` | repairs by itself, when all gates are open |
"""

_STATES = """\
## States of a finding

What a look shows (evidence) moves a finding. Plans and runs come between: a plan leads from `told` to `proposed`, its
run to `running`, and the end of the run to `settling`.

```mermaid
stateDiagram-v2
"""


def policy_page() -> str:
    """The page in Markdown."""
    assert all(f"`{level}`" in _HEAD for level in Level)
    gates = ", ".join(f"`{name}`" for name in GATES)
    why = "`kreassign autopilot why` says of each what would open it."
    text = f"\n## Gates\n\nA repair begins when all are open: {gates}. {why}\n"
    return "\n".join([_HEAD, *_tables(), _STATES + "\n".join(_arrows()), "```", "", *_steps(), text])


def _tables() -> Iterator[str]:
    for table, about, lines in schema():
        rows = (f"| `{one.key}` | {one.meaning} | {one.form.allowed} | `{json.dumps(one.written)}` |" for one in lines)
        yield f"## `[{table}]`\n\n{about}\n\n| Key | Meaning | Value | Default |\n|---|---|---|---|"
        yield from rows
        yield ""


def _arrows() -> Iterator[str]:
    pairs = {(state.name, step.to.name, evidence) for (state, evidence), step in STEPS.items() if step.to is not state}
    drawn = sorted({(before, after) for before, after, _ in pairs})
    for before, after in drawn:
        shown = ", ".join(sorted(evidence for one, other, evidence in pairs if (one, other) == (before, after)))
        yield f"    {before} --> {after}: {shown}"
    yield from ("    TOLD --> PROPOSED: planned", "    PROPOSED --> RUNNING: begun", "    RUNNING --> SETTLING: ended")
    yield "    SETTLING --> GIVEN_UP: settled, and still there"


def _steps() -> Iterator[str]:
    yield "| In | when a look shows | goes to | and does |\n|---|---|---|---|"
    for (state, evidence), step in STEPS.items():
        does = "" if step.follow is None else step.follow.__doc__
        yield f"| {state} | {evidence} | {step.to} | {does} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(policy_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
