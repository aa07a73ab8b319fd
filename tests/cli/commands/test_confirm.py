"""Before a cluster is changed: what will happen is shown, and somebody has to agree."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import termios
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.commands.decommission import is_begun, print_preview
from kreassign.cli.main import kreassign
from kreassign.executor.brokers import Blocked
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.approvals import ApprovalRequest, format_request
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.connect import connect
from kreassign.operations.decommission import DecommissionPreview
from kreassign.operations.plan_files import revoke, write_plan
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from testbed.waiting import PATIENCE_S
from tests.approved import approve
from tests.cli.commands.test_lost_terminal import PROGRAM
from tests.cli.commands.test_steering import Terminal
from tests.twin.asking import cluster

pytestmark = pytest.mark.thorough

QUICK = ("--measure-for", "0", "--poll-interval", "0.1")


def is_moving(terminal: Terminal) -> bool:
    with connect(terminal.bootstrap) as client:
        return bool(client.list_partition_reassignments())


def answered(terminal: Terminal, answer: str, *options: str) -> tuple[int, str]:
    """A run that is started at a terminal of its own, where somebody types this; its exit code and what was shown."""
    return typed(terminal, answer, "run", str(terminal.plan), *QUICK, *options)


def typed(terminal: Terminal, answer: str, *command: str) -> tuple[int, str]:
    """Run any command with typed input."""
    return at_terminal([*command, "--bootstrap-server", terminal.bootstrap, "--state-dir", str(terminal.state)], answer)


def at_terminal(words: list[str], answer: str = "", meanwhile: Callable[[], object] | None = None) -> tuple[int, str]:
    """Run a whole command line at a terminal; `meanwhile` is done while its question is open."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "dumb", "COLUMNS": "80"}
    attributes = termios.tcgetattr(theirs)
    attributes[3] &= ~termios.ECHO  # else the answer is shown wherever the program has come to
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    with subprocess.Popen([*PROGRAM, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        if meanwhile is not None:
            while b"begin?" not in shown and (part := read(ours)):
                shown += part
            meanwhile()
        os.write(ours, answer.encode())
        while part := read(ours):
            shown += part
        code = process.wait(PATIENCE_S)
    os.close(ours)
    return code, shown.decode().replace("\r\n", "\n")


def read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 10_000)
    except OSError:  # nobody has the other end any more
        return b""


def test_at_a_terminal_the_run_is_shown_and_begins_only_if_somebody_agrees(terminal: Terminal) -> None:
    code, shown = answered(terminal, "n\n", "--throttle", "2MB/s")
    assert code == 1, shown
    approve(shown, "run-declined")
    assert not is_moving(terminal)
    assert not terminal.runs
    code, shown = answered(terminal, "y\n", "--throttle", "50MB/s")
    assert (code, terminal.runs[0]["state"]) == (0, "done"), shown


def test_an_approval_taken_back_at_the_question_permits_no_run(terminal: Terminal) -> None:
    assert CliRunner().invoke(kreassign, ["approve", str(terminal.plan)]).exit_code == 0
    words = ["run", str(terminal.plan), *QUICK, "--require-approval"]
    where = ["--bootstrap-server", terminal.bootstrap, "--state-dir", str(terminal.state)]
    code, shown = at_terminal([*words, *where], "y\n", meanwhile=lambda: revoke(terminal.plan))
    assert (code, "error: nobody has approved plan.json" in shown) == (2, True), shown
    assert not terminal.runs


def test_a_falling_factor_is_told_before_all_else_and_needs_consent(terminal: Terminal) -> None:
    """By the run's question and its dry run, and by those of the rollback that raises it again."""
    write_plan(terminal.plan, Plan((PartitionAssignment(TopicPartition("t", 0), (1,)),)), None)
    falls, rises = (
        f"replication factor of 1 partition {how}: t-0" for how in ("falls from 2 to 1", "rises from 1 to 2")
    )
    refused = terminal.ask_cluster("run", terminal.plan, *QUICK, "--yes")
    assert (refused.exit_code, falls in refused.stderr, "--allow-factor-change" in refused.stderr) == (2, True, True)
    dry = terminal.ask_cluster("run", terminal.plan, *QUICK, "--dry-run", "--allow-factor-change")
    code, shown = answered(terminal, "n\n", "--allow-factor-change")
    assert (code, shown.splitlines()[0], dry.stderr.splitlines()[0]) == (1, falls, falls), shown
    assert terminal.ask_cluster("run", terminal.plan, *QUICK, "--yes", "--allow-factor-change").exit_code == 0
    code, shown = typed(terminal, "n\n", "rollback", "last")
    assert (code, shown.splitlines()[0]) == (1, rises), shown


def test_an_end_of_input_at_the_question_begins_nothing_and_says_so(terminal: Terminal) -> None:
    code, shown = answered(terminal, "\x04", "--throttle", "2MB/s")
    assert (code, shown.splitlines()[-1]) == (1, "nothing was sent")
    assert not terminal.runs


def test_ctrl_c_at_a_passphrase_signs_nothing(tmp_path: Path) -> None:
    key, request = tmp_path / "key", tmp_path / "plan.request.json"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(key)), check=True)
    request.write_text(format_request(ApprovalRequest("ann", "cluster", 0, 1, (1,), ("rebalance",), {})))
    ours, theirs = pty.openpty()
    # Tests that were started in the background inherit that SIGINT is ignored.
    heard = ("env", "--default-signal=INT", "setsid", "--ctty")
    words = (*heard, *PROGRAM, "approve", str(tmp_path / "plan.json"), "--key", str(key))
    (tmp_path / "plan.json").write_text('{"version": 1, "partitions": []}')
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while b"passphrase" not in shown and (part := read(ours)):
            shown += part
        os.write(ours, b"\x03")
        while part := read(ours):
            shown += part
        code = process.wait(PATIENCE_S)
    os.close(ours)
    assert (code, shown.decode().splitlines()[-1]) == (130, "interrupted"), shown
    assert not list(tmp_path.glob("*.sig"))


def test_without_a_terminal_a_command_needs_yes(
    terminal: Terminal,
) -> None:
    refused = terminal.type("run", terminal.plan, "--bootstrap-server", "localhost:1")
    assert refused.exit_code == 2
    assert "standard input is no terminal. Add --yes to begin, or --dry-run to look first" in refused.stderr


def test_a_dry_run_shows_what_would_be_done_and_the_command_that_does_it(terminal: Terminal) -> None:
    shown = terminal.ask_cluster("run", terminal.plan, "--dry-run", "--measure-for", "0.2")
    assert shown.exit_code == 0, shown.output
    assert "  throttle: none, so that copies take what disks and networks give\n" in shown.stderr
    assert re.search(r"\n  proposed: --throttle \d+MB/s, assuming networks of 1 Gbit/s\n", shown.stderr)
    assert "    with this it carries at most 70% of the assumed 125 MB/s\n" in shown.stderr
    (following,) = (line for line in shown.stderr.splitlines() if line.startswith("next: "))
    assert following.startswith(f"next: kreassign run {terminal.plan} --measure-for 0.2 --bootstrap-server ")
    assert following.endswith("MB/s")
    assert "--dry-run" not in following
    found = json.loads(terminal.ask_cluster("run", terminal.plan, "--dry-run", *QUICK, "--format", "json").stdout)
    assert (found["copies"], found["copied_bytes"], found["proposal"]) == (4, 40_000_000, None)
    assert not is_moving(terminal)
    assert not terminal.runs


def test_a_dry_run_says_that_there_is_no_place_for_the_journal(terminal: Terminal) -> None:
    result = terminal.ask_cluster("run", terminal.plan, *QUICK, "--dry-run", "--journal-to", terminal.state / "gone")
    assert (result.exit_code, f"there is no folder {terminal.state / 'gone'}" in result.stderr) == (5, True)


def test_what_others_are_moving_already_is_counted_before_anything_begins(tmp_path: Path) -> None:
    other = TopicPartition("t", 1)
    with serving(Twin(cluster({"t": [[0, 1], [1, 0]]}), TwinSettings())) as server:
        terminal = Terminal(server.bootstrap_servers, tmp_path)
        write_plan(terminal.plan, Plan((PartitionAssignment(TopicPartition("t", 0), (1, 0)),)), None)
        server.do(lambda twin: twin.stop(2))
        with connect(terminal.bootstrap) as client:
            # Nobody copies to a broker that is down, so it is there for as long as the test takes.
            client.alter_partition_reassignments({other: (1, 0, 2)}).raise_if_any()
            assert other in client.list_partition_reassignments()
        shown = terminal.ask_cluster("run", terminal.plan, "--dry-run", *QUICK, "--alongside", "--throttle", "2MB/s")
    assert shown.exit_code == 0, shown.output
    assert "  already moving by others: 1 partition\n" in shown.stderr


def test_a_rollback_shows_what_it_does_and_begins_only_if_somebody_agrees(terminal: Terminal) -> None:
    done = json.loads(terminal.ask_cluster("run", terminal.plan, "--yes", *QUICK, "--format", "json").stdout)
    unasked = terminal.ask_cluster("rollback")
    assert (unasked.exit_code, "cannot ask whether to begin the rollback" in unasked.stderr) == (2, True)
    priced = terminal.ask_cluster("rollback", "--dry-run")
    approve(priced.output, "rollback", RUN=done["run_id"], SERVER=terminal.bootstrap, STATE=terminal.state)
    command = ("rollback", "--throttle", "50MB/s", "--poll-interval", "0.1")
    code, shown = typed(terminal, "n\n", *command)
    assert code == 1, shown
    approve(shown, "rollback-declined", RUN=done["run_id"])
    assert (is_moving(terminal), len(terminal.runs)) == (False, 1)
    code, shown = typed(terminal, "y\n", *command)
    assert (code, [run["state"] for run in terminal.runs]) == (0, ["done", "done"]), shown
    code, shown = typed(terminal, "", "rollback", done["run_id"])
    nothing = "nothing moves back, for every partition that the run moved is where it was before"
    assert (code, " ".join(shown.split())) == (0, f"rollback of run {done['run_id']}: {nothing}")


def test_an_interrupted_drain_is_resumed_only_if_somebody_agrees() -> None:
    seen = DecommissionPreview(Blocked("broker 3 is silent"), resumed=("run-1",))
    with CliRunner().isolation("n\n"), pytest.raises(click.exceptions.Exit):
        is_begun(seen)
    assert not is_begun(replace(seen, resumed=()))


def test_a_preview_says_what_follows_its_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    silent = Blocked("broker 3 is silent")
    seen = DecommissionPreview(silent, resumed=("run-1", "run-2"), rolled_back=("run-2",), unregistered=(3,))
    print_preview(seen, is_quiet=False)
    shown = capsys.readouterr().out
    assert "\n  run run-1, run-2 is resumed first\n  run run-2 is rolled back then: a guard demanded that\n" in shown
    print_preview(seen, is_quiet=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["resumed"], found["rolled_back"]) == (["run-1", "run-2"], ["run-2"])
    assert (found["unregistered"], "\nafter the drain: unregister broker 3\n" in shown) == ([3], True)


def test_a_preview_names_rollbacks_that_guards_demanded(capsys: pytest.CaptureFixture[str]) -> None:
    seen = DecommissionPreview(Blocked("broker 3 is silent"), demanded_rollbacks=("run-1",))
    assert not is_begun(seen), "they are left to the operator"
    print_preview(seen, is_quiet=False)
    assert (
        "\n  a guard demanded the rollback of run run-1, and it was not made: `kreassign rollback run-1`"
        in capsys.readouterr().out
    )
    print_preview(seen, is_quiet=True)
    assert json.loads(capsys.readouterr().out)["demanded_rollbacks"] == ["run-1"]


def test_brokers_leave_service_only_if_somebody_agrees(terminal: Terminal) -> None:
    code, shown = typed(terminal, "n\n", "maintenance", "enter", "1")
    assert code == 1, shown
    assert "then: cordon the log directories of broker 1\nbegin? [y/N]: " in shown
    code, shown = typed(terminal, "n\n", "decommission", "1", "--measure-for", "0")
    assert code == 1, shown
    assert "first: cordon the log directories of broker 1\nto drain:\n  this run changes 2 partitions: " in shown
    with connect(terminal.bootstrap) as client:
        assert {one.leader for one in client.describe_topics(["t"]).ok["t"].partitions} == {0, 1}
        key = ConfigResource.broker(1)
        assert not client.describe_configs([key], names=("cordoned.log.dirs",)).ok[key]["cordoned.log.dirs"].value
    assert not terminal.runs
