"""A campaign in short: a handful of quick faults on real Kafka. `make torture-kafka` is the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.campaign import Campaign
from tests.torture.faults import FAULTS

pytestmark = pytest.mark.kafka

QUICK = (
    "SIGKILL to the run while it moves",
    "reader of its output gone",
    "clock set an hour ahead",
    "leader restarted",
    "1 to 4 writes cut off after they were carried out",
)


def test_a_handful_of_faults_breaks_no_promise(tmp_path: Path) -> None:
    campaign = Campaign([fault for fault in FAULTS if fault.name in QUICK], seed=1, folder=tmp_path)
    campaign.execute(len(QUICK))
    assert campaign.broken == []
    assert (campaign.struck, campaign.lost) == (len(QUICK), 0)
    assert campaign.records > 0
