"""The clock that the campaign sets under a run: it is the one that the run goes by. On a served twin."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kreassign.executor.events import ClockStepped
from kreassign.executor.journal import find_journals, read_events
from testbed.waiting import PATIENCE_S
from tests.cli.commands.test_steering import HELD, serving_terminal
from tests.torture.stepped_clock import STEP_MS

pytestmark = pytest.mark.thorough

HOME = Path(__file__).parents[2]


@pytest.mark.parametrize(("number", "step_ms"), [(signal.SIGUSR1, STEP_MS), (signal.SIGUSR2, -STEP_MS)])
def test_a_run_whose_clock_is_set_says_so_and_ends_as_planned(
    tmp_path: Path, number: signal.Signals, step_ms: int
) -> None:
    with serving_terminal(tmp_path) as terminal:
        words = ["--throttle", HELD, "--measure-for", "0", "--poll-interval", "0.1", "--state-dir", terminal.state]
        command = [
            sys.executable, "-m", "tests.torture.stepped_clock", "run", "--yes", terminal.plan,
            "--bootstrap-server", terminal.bootstrap, *words,
        ]  # fmt: skip
        with subprocess.Popen(
            list(map(str, command)), cwd=HOME, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as run:
            try:
                terminal.wait_for_a_move()
                run.send_signal(number)
                terminal.let_go()
                _, errors = run.communicate(timeout=PATIENCE_S)
            finally:
                run.kill()
        assert (run.returncode, errors) == (0, "")
        (path,) = find_journals(terminal.state)
    (step,) = (event.ahead_ms for event in read_events(path) if isinstance(event, ClockStepped))
    assert abs(step - step_ms) < STEP_MS / 2
    assert terminal.runs[0]["state"] == "done"
