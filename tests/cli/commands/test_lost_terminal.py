"""A run and its terminal: closed, stopped, or never wanted. The run in a process of its own, against a served twin."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from testbed.waiting import PATIENCE_S, wait_until
from tests.cli.commands.test_steering import HELD, Terminal, serving_terminal

pytestmark = pytest.mark.thorough

PROGRAM = (sys.executable, "-c", "from kreassign.cli.main import main; main()")
FAST = ("--throttle", "20MB/s")
SLOW = ("--throttle", HELD)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    # A run that inherits an ignored signal outlives its terminal: tests that `nohup` started must not pass it on.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with serving_terminal(tmp_path) as found:
        yield found
    signal.signal(signal.SIGHUP, before)


def command(terminal: Terminal, *options: str) -> list[str]:
    shared = ["--measure-for", "0", "--poll-interval", "0.1", "--state-dir", str(terminal.state)]
    return [*PROGRAM, "run", "--yes", str(terminal.plan), "--bootstrap-server", terminal.bootstrap, *shared, *options]


def start(terminal: Terminal, *options: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
    """A run in a group of processes of its own, as a shell starts it."""
    words = [*before, *command(terminal, *options)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, text=True, process_group=0, **pipes)


def state(terminal: Terminal) -> str:
    return str(terminal.runs[0]["state"]) if terminal.runs else ""


def wait_for_moves(terminal: Terminal) -> str:
    """Until copies are under way; the id of the run."""
    wait_until(lambda: state(terminal) == "moving", what="the run to move")
    return str(terminal.runs[0]["run_id"])


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


# Nobody reads


def test_a_run_whose_reader_has_seen_enough_goes_on_to_its_end(terminal: Terminal) -> None:
    with start(terminal, *FAST) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline().startswith("run ")
            process.stdout.close()  # as `| head -1` does
            errors = process.stderr.read()
            assert (process.wait(PATIENCE_S), errors) == (0, "")
        finally:
            process.kill()
    assert state(terminal) == "done"


def test_a_run_whose_log_is_on_a_full_disk_goes_on_to_its_end(terminal: Terminal) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command(terminal, *FAST), stdout=full, stderr=full, timeout=PATIENCE_S, check=False)
    assert (done.returncode, state(terminal)) == (0, "done")


# Closed and stopped


def test_a_closed_terminal_pauses_the_run(terminal: Terminal) -> None:
    process = start(terminal, *SLOW)
    try:
        wait_for_moves(terminal)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGHUP)  # the shell passes on what the terminal has sent already
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130
    assert "The terminal is gone: pausing." in errors
    assert state(terminal) == "paused"


def test_under_nohup_the_run_outlives_its_terminal(terminal: Terminal) -> None:
    process = start(terminal, *SLOW, before=("nohup",))
    try:
        wait_for_moves(terminal)
        process.send_signal(signal.SIGHUP)
        terminal.let_go()
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert (process.returncode, state(terminal)) == (0, "done")


def test_ctrl_z_says_what_goes_on_and_fg_how_long_it_lasted(terminal: Terminal) -> None:
    process = start(terminal, *SLOW)
    try:
        run_id = wait_for_moves(terminal)
        process.send_signal(signal.SIGTSTP)
        shown = Path(f"/proc/{process.pid}/stat")
        wait_until(lambda: ") T " in shown.read_text(), what="the process to stop")
        refused = terminal.type("throttle", run_id, "100kB/s")
        assert (refused.exit_code, f"its process {process.pid} is stopped" in refused.stderr) == (5, True)
        assert f"its process {process.pid} is stopped" in terminal.type("status", run_id).stdout
        process.send_signal(signal.SIGCONT)
        assert "throttled to 100 kB/s" in terminal.type("throttle", run_id, "100kB/s").stdout
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130
    assert "Stopped: moves in flight go on in the cluster, throttled but not guarded" in errors
    assert re.search(r"Continued after \d+:\d\d", errors)


def test_where_no_shell_could_continue_it_ctrl_z_stops_nothing_and_says_so(terminal: Terminal) -> None:
    with subprocess.Popen(
        command(terminal, *SLOW), text=True, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            wait_for_moves(terminal)
            process.send_signal(signal.SIGTSTP)
            assert process.stderr is not None
            assert "Stopped" in process.stderr.readline()
            assert process.stderr.readline() == "Not stopped, because no shell is there to continue it.\n"
        finally:
            process.kill()


# Never wanted


def test_a_detached_run_goes_on_without_the_process_that_started_it(terminal: Terminal) -> None:
    done = subprocess.run(
        command(terminal, *SLOW, "--detach", "--format", "json"),
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
        umask=0,
    )
    told = json.loads(done.stdout)
    process, run_id = told["process"], told["run_id"]
    try:
        assert os.getsid(process) == process != os.getsid(0)
        assert wait_for_moves(terminal) == run_id
        assert terminal.runs[0]["is_active"]
        assert Path(told["log"]).stat().st_mode & 0o777 == 0o600
        assert Path(told["log"]).parent.stat().st_mode & 0o777 == 0o700
        assert "throttled to 20 MB/s" in terminal.type("throttle", run_id, "20MB/s").stdout
        watched = terminal.type("watch", run_id)
        assert f"run {run_id}: done" in watched.stdout
    finally:
        if state(terminal) != "done":
            os.kill(process, signal.SIGKILL)
    assert json.loads(Path(told["log"]).read_text())["state"] == "done"


def test_a_detached_run_names_the_command_that_follows_it(terminal: Terminal) -> None:
    done = subprocess.run(
        command(terminal, *FAST, "--detach"), capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    run_id = done.stdout.split()[1]
    assert done.stdout.endswith(f"\nnext: kreassign watch {run_id} --state-dir {terminal.state}\n")
    wait_until(lambda: state(terminal) == "done", what="the run to end")


def test_a_detached_run_that_cannot_begin_says_why_where_it_was_asked_for(terminal: Terminal) -> None:
    terminal.plan.write_text(
        '{"version":1,"partitions":[{"topic":"nowhere","partition":0,"replicas":[1]}]}', encoding="utf-8"
    )
    terminal.plan.with_suffix(".facts.json").unlink(missing_ok=True)
    done = subprocess.run(
        command(terminal, "--detach"), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the plan cannot be executed")
    assert not list(terminal.state.rglob("*.log"))
