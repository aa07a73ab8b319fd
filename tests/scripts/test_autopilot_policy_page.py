from __future__ import annotations

from kreassign.autopilot.core import STEPS, Evidence
from kreassign.autopilot.events import OPEN, State
from kreassign.autopilot.policy import schema
from scripts.autopilot_policy_page import PAGE, policy_page


def test_the_page_is_what_the_script_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert policy_page() == page
    assert all(f"| `{line.key}` | {line.meaning} |" in page for _, _, lines in schema() for line in lines)


def test_every_evidence_in_every_state_is_a_row() -> None:
    assert STEPS.keys() == {(state, evidence) for state in State for evidence in Evidence}
    assert all(STEPS[state, Evidence.UNKNOWN].to is state for state in State)
    assert all(STEPS[state, Evidence.GONE].to not in OPEN - {State.RUNNING} for state in State)
