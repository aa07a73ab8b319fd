"""`kreassign web` and `kreassign approve`: what they refuse, and how a plan that needs approval gets it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.commands.web import listen_address
from kreassign.cli.main import kreassign
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan_files import write_plan
from testbed.fork_server import fork_server
from tests.executor.twin_runs import tp

TOKEN = "correct-horse-battery-staple-42"


def web(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(kreassign, ["web", *words], env={"KREASSIGN_WEB_TOKEN": None, **environment})


@pytest.mark.parametrize(("text", "address"), [
    ("8090", ("127.0.0.1", 8090)), (":8090", ("127.0.0.1", 8090)), ("ops.example", ("ops.example", 8085)),
    ("::1", ("::1", 8085)), ("[::1]:0", ("::1", 0)),
])  # fmt: skip
def test_the_page_listens_here_and_on_its_own_port_by_default(text: str, address: tuple[str, int]) -> None:
    assert listen_address(text) == address


@pytest.mark.parametrize(("words", "why"), [
    (["--allow-control"], "--allow-control needs a token"),
    (["--listen", "0.0.0.0:8085"], "needs TLS (--certificate and --key) and a token"),
    (["--certificate", __file__], "both --certificate and --key"),
])  # fmt: skip
def test_what_would_let_others_in_is_refused(words: list[str], why: str) -> None:
    done = web(*words)
    assert (done.exit_code, why in " ".join(done.output.split())) == (2, True), done.output


def test_a_token_that_could_be_guessed_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2\n")
    for done in (web("--token-file", str(tmp_path / "token")), web(KREASSIGN_WEB_TOKEN="hunter2")):
        assert (done.exit_code, "at least 24 characters" in " ".join(done.output.split())) == (2, True)
        assert "hunter2" not in done.output


def test_users_are_read_from_a_file_that_an_error_names(tmp_path: Path) -> None:
    users = tmp_path / "web.users"
    users.write_text("ann approver hunter2\n")
    done = web("--allow-control", "--users", str(users))
    assert (done.exit_code, "line 1: a token has at least 24" in " ".join(done.output.split())) == (2, True)
    assert "web.users" in done.output
    assert "hunter2" not in done.output
    users.write_text(f"ann approver {TOKEN}\n")
    both = web("--users", str(users), "--token-file", str(users))
    assert (both.exit_code, both.output.count(TOKEN)) == (2, 0)


def test_no_token_is_taken_from_the_command_line() -> None:
    assert "No such option" in web("--token", TOKEN).output


def test_the_command_serves_until_it_is_ended_and_says_where(tmp_path: Path) -> None:
    words = ["web", "--listen", "0", "--state-dir", str(tmp_path)]
    process = fork_server().start("kreassign", *words, imports=["kreassign.cli.commands.web"])
    try:
        said = process.stdout.readline()
        assert re.fullmatch(r"serving http://127.0.0.1:\d+/ \(Ctrl-C ends\)\n", said), said
    finally:
        process.terminate()
        _, errors = process.communicate(60)
    assert errors == ""


@pytest.mark.thorough
def test_a_run_that_needs_approval_is_refused_before_the_cluster_is_asked(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    write_plan(plan, Plan((PartitionAssignment(tp(0), (2, 1)),)), None)

    def run(*words: str) -> Result:
        return CliRunner().invoke(kreassign, list(words))

    needing = ("run", str(plan), "--require-approval", "--yes", "--bootstrap-server", "127.0.0.1:1",
               "--state-dir", str(tmp_path))  # fmt: skip
    assert "nobody has approved plan.json" in run(*needing).output
    approved = run("approve", str(plan), "--note", "change 4711")
    assert (approved.exit_code, " approved by " in approved.output) == (0, True)
    assert "approved" not in run(*needing).output
    assert run("approve", str(plan), "--revoke").exit_code == 0
    assert "nobody has approved plan.json" in run(*needing).output
