"""`kreassign demo`: what it shows of a killed run, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kreassign.cli.commands.demo import STEPS, walk

# With options of the user's own, which the demo must neither follow nor touch.
OF_THE_USER = {
    "KREASSIGN_BOOTSTRAP_SERVER": "192.0.2.1:9092",
    "KREASSIGN_DATA": "/nowhere",
    "KREASSIGN_LEASE": "require",
}


def test_the_demo_shows_a_killed_run_and_the_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, text in {**OF_THE_USER, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    walk(speed=4)
    shown = capfd.readouterr().out
    parts = shown.split("── ")[1:]
    assert [part.partition("\n")[0] for part in parts] == [
        f"{number} of {len(STEPS)}. {step.title}" for number, step in enumerate(STEPS, start=1)
    ]
    for number, words in {
        1: ("bytes are uneven: broker 0",), 4: ("$ kill -9 ",), 5: ("its process is gone", "throttle in force"),
        6: (": done; ",), 7: ("all as planned",), 8: ("all is well",), 9: (": done; ",), 10: ("all as planned",),
    }.items():  # fmt: skip
        for each in words:
            assert each in parts[number - 1], parts[number - 1]
    assert list(tmp_path.iterdir()) == []


def test_a_demo_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-m", "kreassign", "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=tmp_path, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        next(line for line in lines if line.startswith("reading the cluster"))
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert (process.returncode, rest.splitlines()[-1]) == (130, "interrupted")
    assert list(tmp_path.iterdir()) == []
