from __future__ import annotations

from kreassign.pipeline.load.rates import SERIES_RULES
from kreassign.pipeline.load.rules import RULES, Rule, Treatment
from kreassign.pipeline.tables.schemas import SAMPLES
from scripts.load_rules_page import PAGE, load_rules_page


def test_a_rule_is_a_row_with_its_reason_condition_treatment_and_why() -> None:
    rule = Rule(SAMPLES, "it is odd", "end_offset > 5", "five is the most", Treatment.LATE)
    page = load_rules_page((rule,), ())
    assert "## samples\n" in page
    assert page.endswith("| it is odd | `end_offset > 5` | late | five is the most |\n")


def test_a_rule_about_neighbours_is_a_row_with_its_condition() -> None:
    page = load_rules_page((), SERIES_RULES)
    behind = "clean.end_offset < clean.end_before"
    assert f"| `({behind}) & (clean.end_before <= clean.end_after)` | quarantined | read from a leader" in page


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == load_rules_page(), "run `python scripts/load_rules_page.py`"


def test_every_reason_is_of_one_rule() -> None:
    reasons = [(rule.table.name, rule.reason) for rule in RULES] + [
        (SAMPLES.name, rule.reason) for rule in SERIES_RULES
    ]
    assert len(reasons) == len(set(reasons))
