"""The processes that tests start die with pytest, or with its worker, however it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.processes import is_alive
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

ENDLESS_TEST = """
import os, pathlib, subprocess

def test_that_starts_a_process_and_waits():
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    part = pathlib.Path("pids.part")
    part.write_text(f"{os.getpid()} {child.pid}")
    part.rename("pids")
    child.wait()
"""
REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("killed", ["the worker", "the controller"])
def test_no_process_of_a_test_outlives_a_killed_pytest(tmp_path: Path, killed: str) -> None:
    (tmp_path / "test_endless.py").write_text(ENDLESS_TEST)
    options = ("-p", "xdist", "-p", "tests.leftovers", "-n", "1", "--max-worker-restart", "0", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *options, "-c", "/dev/null", "--rootdir", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) as controller:
        pids = tmp_path / "pids"
        wait_until(pids.exists, what="the test to run")
        worker, child = map(int, pids.read_text().split())
        os.kill(worker if killed == "the worker" else controller.pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(child), what="the process that the test started to end")
        wait_until(lambda: not is_alive(worker), what="the worker to end")
