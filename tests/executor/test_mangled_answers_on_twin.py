"""Brokers that answer nonsense for two minutes, in whole frames: the run fails in words of ours at worst, and ends.

What it did meanwhile nobody can promise: whoever is told that a rate was set before leaves it.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import ClusterError, ExecutionError
from kreassign.executor.history.run_history import fold, history
from kreassign.executor.journal import Journal, read_events
from kreassign.model.run import ENDED, RunHistory
from tests.executor.twin_runs import RATE, TwinRig
from tests.wire.mangled import MangledTransport

pytestmark = pytest.mark.thorough

HOME = [[0, 1], [1, 0], [0, 1], [1, 0]]
AWAY = {0: (2, 1), 1: (3, 0), 2: (4, 1), 3: (2, 0)}
NONSENSE_S, PATIENCE_S = 120, 4 * 3_600
MOST_RESUMES = 30


def executed(rig: TwinRig) -> RunHistory:
    """The run at its end, resumed as often as it takes."""
    started = rig.prepared(AWAY, throttle=RATE // 2)
    with Journal.create(rig.state_dir, started) as journal:
        try:
            return rig.new_runner(journal).start(started)
        except ClusterError:
            pass
    for _ in range(MOST_RESUMES):
        rig.transport.sleep(30.0)
        try:
            found = rig.resume()
        except ClusterError:
            continue
        except ExecutionError:
            found = history(fold(read_events(rig.path())))
        if found.state in ENDED and not found.throttle_residue:
            return found
    pytest.fail(f"not at its end after {MOST_RESUMES} resumes")


@pytest.mark.parametrize("seed", range(16))
def test_a_run_whose_brokers_answer_nonsense_for_a_while_comes_to_its_end(tmp_path: Path, seed: int) -> None:
    rig = TwinRig(tmp_path, HOME)
    mangled = MangledTransport(rig.transport, random.Random(seed), rate=0.0)
    settings = client_settings({"request.timeout.ms": "5000"}, bootstrap_servers="broker-0:9092,broker-1:9092")
    rig.client = AdminClient.connect(settings, clock=rig.transport, transport=mangled)
    rig.after(1, lambda: setattr(mangled, "rate", 0.05))
    rig.after(NONSENSE_S, lambda: setattr(mangled, "rate", 0.0))
    rig.end_within(PATIENCE_S)
    found = executed(rig)
    assert mangled.mangled
    assert found.state in {"done", "failed"}
