"""The page of guarantees names campaigns that there are, and none of what they strike is aimed at nothing."""

from __future__ import annotations

import re
from collections import defaultdict

from kreassign.twin.faults.kinds import KINDS
from tests.checks.source import ROOT
from tests.fuzz.targets import TARGETS
from tests.simulation import watch
from tests.simulation.trial import Deed, Request
from tests.torture.faults import FAULTS

PAGE = ROOT / "docs" / "concepts" / "guarantees.md"
SOAKS = {"connections", "page", "virtual", "hour"}


def aimed() -> dict[str, set[str]]:
    """Tests named in the last column of the page, by campaign."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in PAGE.read_text(encoding="utf-8").splitlines():
        if row.startswith("| ") and not row.startswith("| Promise"):
            last = row.rstrip("| ").rpartition(" | ")[2]
            for part in last.split("; "):
                campaign, _, names = part.partition(": ")
                found[campaign] |= set(re.findall(r"\*([^*]+)\*", names))
    return found


def test_what_the_page_names_is_struck_by_the_campaigns() -> None:
    found = aimed()
    assert found.keys() == {"real Kafka", "twin", "fuzz", "soak", "—"}
    on_twin = {*map(str, Request), *map(str, Deed), *KINDS, *vars(watch)}
    assert found["real Kafka"] <= {fault.name for fault in FAULTS}
    assert found["twin"] <= on_twin
    assert found["fuzz"] <= TARGETS.keys()
    assert found["soak"] <= SOAKS


def test_whatever_has_to_be_told_of_what_others_do_is_aimed_at_a_promise() -> None:
    found = aimed()["real Kafka"]
    unaimed = [fault.name for fault in FAULTS if fault.tells and fault.name not in found]
    assert unaimed == []
