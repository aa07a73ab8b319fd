"""A forked program is what one is that was started: what it is given, what it leaves, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.fork_server import fork_server
from testbed.waiting import PATIENCE_S

# A module of Python's own that runs any statement.
RUN = ("timeit", "-n1", "-r1", "-s")


def test_it_has_its_words_folder_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAID", "here")
    statement = "import os, sys; print(os.getcwd(), os.environ['SAID'], len(sys.argv), sys.stdin.read())"
    done = fork_server().run(*RUN, statement)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, f"{tmp_path} here 5 ")


@pytest.mark.parametrize("words", [("--version",), ("nonsense",), ("status", "--state-dir", "/dev/null/no")])
def test_it_says_and_returns_what_a_process_of_its_own_does(words: tuple[str, ...]) -> None:
    own = subprocess.run(
        [sys.executable, "-m", "kreassign", *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    for _ in range(2):
        done = fork_server().run("kreassign", *words)
        assert (done.exit_code, done.stdout, done.stderr) == (own.returncode, own.stdout, own.stderr)


def test_an_error_that_nobody_catches_is_told_with_its_trace() -> None:
    done = fork_server().run("no_such_module")
    assert done.exit_code == 1
    assert "No module named no_such_module" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it_and_no_other(number: signal.Signals) -> None:
    waiting = [fork_server().start(*RUN, "import signal; print('up', flush=True); signal.pause()") for _ in range(2)]
    assert [program.stdout.readline() for program in waiting] == ["up\n", "up\n"]
    waiting[0].send_signal(number)
    assert waiting[0].communicate(PATIENCE_S) == ("", "")
    assert (waiting[0].returncode, waiting[1].poll()) == (-number, None)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting[1].wait(0)
    waiting[1].kill()
    waiting[1].communicate(PATIENCE_S)
    with pytest.raises(ProcessLookupError):
        os.kill(waiting[1].pid, 0)


def test_one_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        fork_server().run(*RUN, "import signal; signal.pause()", timeout_s=0.1)
