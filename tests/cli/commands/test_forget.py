"""`kreassign forget` and what else the command line says of journals that cannot be read, and of who ran what."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.executor.events import RunResumed
from kreassign.executor.journal import find_journals
from kreassign.model.run import Operator
from tests.approved import approve
from tests.executor.journal.test_journal import written
from tests.executor.run_events import LIVE, SUBMITTED, WHOLE, started

ANN = Operator("ann", "h1", ("kreassign", "run", "plan.json"))
BEN = Operator("ben", "h2", ("kreassign", "resume", "run-1"))


def invoke(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(kreassign, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def damaged(state: Path) -> Path:
    """The journal of run-2, which cannot be read, beside that of run-1, which can."""
    written(state, *WHOLE)
    path = written(state, replace(started(), run_id="run-2"))
    path.write_bytes(b"once upon a time " * 100)
    return path


def test_status_lists_the_others_and_names_the_journal_that_cannot_be_read(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    code, text = invoke("status", "--all", "--state-dir", tmp_path)
    assert code == 0
    approve(text, "status-with-an-unreadable-journal", DIR=tmp_path)
    found = json.loads(invoke("status", "--all", "--state-dir", tmp_path, "--format", "json")[1])
    assert [run["run_id"] for run in found["runs"]] == ["run-1"]
    assert [(one["run_id"], one["journal"]) for one in found["unreadable"]] == [("run-2", str(path))]
    assert invoke("status", "run-1", "--state-dir", tmp_path)[0] == 0
    code, text = invoke("status", "run-2", "--state-dir", tmp_path)
    assert (code, text.startswith(f"error: {path} cannot be read")) == (5, True)


def test_a_journal_that_cannot_be_read_is_set_aside_and_kept(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    content = path.read_bytes()
    code, text = invoke("forget", "run-2", "--state-dir", tmp_path)
    assert code == 0
    approve(text, "forget-a-run", DIR=tmp_path)
    assert path.with_name("run-2.sqlite.unreadable").read_bytes() == content
    assert [one.stem for one in find_journals(tmp_path)] == ["run-1"]


def test_a_journal_that_can_be_read_is_not_set_aside(tmp_path: Path) -> None:
    path = written(tmp_path, *SUBMITTED)
    code, text = invoke("forget", "run-1", "--state-dir", tmp_path)
    assert code == 2
    assert "kreassign resume run-1" in text
    assert path.exists()


def test_status_tells_the_plan_and_who_started_and_resumed_the_run(tmp_path: Path) -> None:
    begun = replace(started(), plan_id="0123456789abcdef", operator=ANN)
    written(tmp_path, begun, *SUBMITTED[1:], RunResumed(9_000, LIVE, BEN), RunResumed(9_500, LIVE, BEN))
    text = invoke("status", "run-1", "--state-dir", tmp_path)[1]
    approve(text, "status-with-operators", DIR=tmp_path)
    found = json.loads(invoke("status", "run-1", "--state-dir", tmp_path, "--format", "json")[1])
    assert [one["user"] for one in found["operators"]] == ["ann", "ben"]


def test_a_lost_broker_is_given_up_with_what_stays_set_there(tmp_path: Path) -> None:
    written(tmp_path, *SUBMITTED)
    code, text = invoke("forget", "run-1", "--broker", "1", "--state-dir", tmp_path)
    assert code == 0
    approve(text, "forget-a-broker", DIR=tmp_path)
    assert "that broker was given up as lost by" in invoke("status", "run-1", "--state-dir", tmp_path)[1]
    code, text = invoke("forget", "run-1", "--broker", "1", "--state-dir", tmp_path)
    assert code == 2
    assert "nothing to restore on broker 1" in text
