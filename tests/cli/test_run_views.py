"""Displays of runs: on a terminal, in a pipe, as a summary and as JSON."""

import io
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from kreassign.cli.main import kreassign
from kreassign.cli.output import PlainConsole
from kreassign.cli.run_text import Bars, BarsView, JsonView, LinesView, screen, view_for
from kreassign.errors import InputError
from kreassign.executor.events import (
    CancelRequested,
    Event,
    HealthObserved,
    HoldRequested,
    MovesObserved,
    PlacementState,
    ReleaseRequested,
    RunStarted,
    StopRequested,
    VerdictsRecorded,
)
from kreassign.executor.guards import GuardName, Health, Reaction, Verdict, guard_settings
from kreassign.executor.history.audit_trail import audit_trail
from kreassign.executor.history.run_history import history
from kreassign.executor.journal import Journal, read_events
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.state import Machine
from kreassign.model.run import BrokerProgress, LogDirTarget, MoveStatus, Operator, RunHistory
from kreassign.model.throttle import NO_THROTTLE
from kreassign.operations.run_journals import NO_CLUSTER, InForce, find_journal, this_operator
from kreassign.report.run_page import render_run, report_view
from tests.approved import approve
from tests.executor.run_events import LIVE, MOVES, SUBMITTED, WHOLE, look, measured, seen
from tests.executor.twin_runs import TwinRig, pace
from tests.report.test_html import Page

HALF_WAY: tuple[Event, ...] = (
    *SUBMITTED,
    look(10_000, PlacementState.MOVING, done=0),
    look(20_000, PlacementState.MOVING, done=400),
)


def terminal(*, is_terminal: bool) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=is_terminal, width=120, height=12, highlight=False, markup=False), text


def written(state_dir: Path, *events: Event) -> Path:
    first, *rest = events
    assert isinstance(first, RunStarted)
    with Journal.create(state_dir, first) as journal:
        for event in rest:
            journal.append(event)
        return journal.path


# --- live ---


def test_a_run_that_is_over_has_no_end_to_be_unknown() -> None:
    console, text = terminal(is_terminal=True)
    console.print(screen(measured(WHOLE), 120, 40))
    shown = text.getvalue()
    assert "the run has ended: done" in shown
    assert "ETA unknown" not in shown


def test_bars_are_for_terminals_and_lines_for_the_rest() -> None:
    for is_terminal, view in ((True, BarsView), (False, LinesView)):
        with view_for(terminal(is_terminal=is_terminal)[0]) as shown:
            assert isinstance(shown, view)


def test_bars_show_each_move_and_the_whole_with_bytes_rate_and_end() -> None:
    console, text = terminal(is_terminal=False)
    console.print(Bars(measured(HALF_WAY)).picture(10))
    approve(text.getvalue(), "bars")


def test_moves_that_do_not_fit_are_counted_and_the_unfinished_come_first() -> None:
    console, text = terminal(is_terminal=False)
    run = measured((*HALF_WAY, MovesObserved(21_000, (seen(MOVES[0], PlacementState.ARRIVED),))))
    console.print(Bars(run).picture(1))
    lines = text.getvalue().splitlines()
    assert "a-1 →" in lines[1]
    assert lines[2].strip() == "and 1 more"


@pytest.mark.parametrize("status", MoveStatus)
def test_a_move_of_any_status_has_a_bar(status: MoveStatus) -> None:
    console, text = terminal(is_terminal=False)
    run = measured(HALF_WAY)
    console.print(Bars(replace(run, moves=(replace(run.moves[0], status=status),))).picture(10))
    assert "a-0 → 2" in text.getvalue()


def test_with_no_color_bars_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = re.compile("\x1b\\[[0-9;]*(?:3|9|4|10)[0-7][;m]|\x1b\\[38;")
    shown = {}
    for name in ("", "1"):
        monkeypatch.setenv("NO_COLOR", name)
        text = io.StringIO()
        PlainConsole(text, width=120).print(Bars(measured(HALF_WAY)).picture(10))
        shown[name] = bool(coloured.search(text.getvalue()))
    assert shown == {"": True, "1": False}


def test_bars_are_redrawn_in_place() -> None:
    console, text = terminal(is_terminal=True)
    with BarsView(console) as view:
        view.show(measured(HALF_WAY))
        view.show(measured(HALF_WAY))
    assert "\x1b[1A" in text.getvalue()


def screen_of(run: RunHistory, width: int = 100, height: int = 30) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, force_terminal=False, width=width, height=height, highlight=False, markup=False)
    console.print(screen(run, width, height))
    return text.getvalue().splitlines()


TOLD = ("stall: a-0 has made no progress. Look.",)


def test_a_terminal_shows_moves_brokers_guards_and_events() -> None:
    # Brokers with most still to copy come first: 2 and 0 have the larger of the two copies.
    approve(screen_of(replace(measured(HALF_WAY), verdicts=TOLD)), "terminal")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("height", [8, 16, 17, 24, 60])
def test_a_terminal_of_any_size_is_neither_overfull_nor_too_wide(width: int, height: int) -> None:
    run = measured(HALF_WAY)
    many = tuple(
        replace(move, topic=f"a-topic-with-a-rather-long-name-{number}") for number in range(50) for move in run.moves
    )
    brokers = tuple(replace(run.measured.brokers[0], broker=number) for number in range(30))
    progress = replace(run.measured, brokers=brokers, recent=tuple((0, "x" * 300) for _ in range(20)))
    crowded = replace(run, moves=many, verdicts=TOLD * 9, progress=progress)
    shown = screen_of(crowded, width, height)
    assert len(shown) <= height
    assert max(map(len, shown)) <= width


def test_at_80_columns_every_figure_of_a_move_is_whole() -> None:
    approve(screen_of(measured(HALF_WAY), width=80, height=24), "terminal-of-80-columns")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_name_figure_or_advice_is_cut_at_any_width(width: int) -> None:
    run = measured(HALF_WAY)
    moves = tuple(replace(run.moves[0], topic=f"payments-settled-{letter}") for letter in "abc")
    advice = "rate: a-0 never ends at this rate. Give every broker at least 20 MB/s with `kreassign throttle`"
    shown = screen_of(replace(run, moves=moves, verdicts=(advice,)), width, height=30)
    words = " ".join(" ".join(shown).split())
    assert f"guard {advice}" in words
    assert [f"payments-settled-{letter}-0 → 2" in words for letter in "abc"] == [True] * 3
    approve(shown, f"terminal-of-{width}-columns-and-longer-names")


def test_a_broker_of_three_ways_has_a_sentence_where_a_table_is_too_wide() -> None:
    run = measured(HALF_WAY)
    busy = replace(run.measured.brokers[0], written_bytes_per_s=5e6, read_bytes_per_s=6e6, within_bytes_per_s=7e6)
    words = " ".join(" ".join(screen_of(with_brokers(run, busy), width=40)).split())
    assert f"broker {busy.broker}: in 5 MB/s, out 6 MB/s, within 7 MB/s, throttle 1 MB/s" in words


def test_a_low_terminal_says_how_many_guards_it_leaves_out() -> None:
    run = replace(measured(HALF_WAY), verdicts=(f"stall: {'a-0 ' * 100}", *TOLD))
    assert screen_of(run, width=40, height=10)[-1:] == ["  2 guards not shown: `kreassign status`"]


def test_moves_that_copy_come_before_those_in_the_queue_of_a_broker() -> None:
    run = measured(HALF_WAY)
    first, second = run.moves
    assert first.estimate is not None
    queued = replace(first, estimate=replace(first.estimate, rate_bytes_per_s=0.0, eta_s=None))
    rows = [line.split()[0] for line in screen_of(replace(run, moves=(queued, second)))]
    assert rows[1:3] == ["a-1", "a-0"]


def with_brokers(run: RunHistory, *brokers: BrokerProgress) -> RunHistory:
    return replace(run, progress=replace(run.measured, brokers=brokers))


def test_a_terminal_lists_only_brokers_that_move_anything() -> None:
    run = measured(HALF_WAY)
    still = replace(run.measured.brokers[0], read_bytes_per_s=0.0, written_bytes_per_s=0.0, within_bytes_per_s=0.0)
    rows = [line.split() for line in screen_of(with_brokers(run, *run.measured.brokers, replace(still, broker=77)))]
    assert not [row for row in rows if row[:1] == ["77"]]
    text = "\n".join(screen_of(with_brokers(run, still, replace(still, broker=77))))
    assert "nothing moves: no broker sends or receives anything" in text
    assert "throttle" not in text


def test_a_terminal_shows_copies_between_log_directories() -> None:
    run = measured(HALF_WAY)
    dirs = (LogDirTarget(0, "/data/d1", "/data/d0"), LogDirTarget(1, "/data/d0", "/data/d0"))
    moves = tuple(replace(move, target=move.original, adding=(), log_dirs=dirs) for move in run.moves)
    within = replace(
        run.measured.brokers[0], broker=0, read_bytes_per_s=0.0, written_bytes_per_s=0.0, within_bytes_per_s=5e6,
        left_bytes=1_000,
    )  # fmt: skip
    shown = screen_of(with_brokers(replace(run, moves=moves), within))
    assert any(line.startswith("  a-0 → 0:/data/d1 ") for line in shown)
    at = next(place for place, line in enumerate(shown) if line.split() == ["broker", "within", "throttle"])
    assert shown[at + 1].split()[:3] == ["0", "5", "MB/s"]


def test_lines_tell_what_a_guard_says_once_until_it_is_content() -> None:
    console, text = terminal(is_terminal=False)
    calm = measured(HALF_WAY)
    view = LinesView(console)
    for verdicts in ((), TOLD, ("stall: a-0 has made no progress for longer. Look.",), (), TOLD):
        view.show(replace(calm, verdicts=verdicts))
    assert [line for line in text.getvalue().splitlines() if "guard" in line] == [f"  guard {TOLD[0]}"] * 2


def lines_of(*events: Event) -> list[str]:
    console, text = terminal(is_terminal=False)
    machine = Machine()
    meter = ProgressMeter(machine.view)
    view = LinesView(console)
    for event in events:
        machine.replay(event)
        meter.follow(event)
        view.show(history(machine.view, meter, is_active=True))
    return text.getvalue().splitlines()


def test_lines_show_phases_progress_and_finished_moves() -> None:
    approve(lines_of(*WHOLE), "lines-of-a-whole-run")


def test_every_live_view_shows_a_paused_run_as_paused() -> None:
    paused = (*HALF_WAY, HoldRequested(21_000, 1))
    going_on = (*paused, ReleaseRequested(22_000, 2))
    approve(lines_of(*going_on), "lines-of-a-paused-run")
    bars, lines = terminal(is_terminal=False)
    bars.print(Bars(measured(paused)).picture(10))
    assert lines.getvalue().split()[:2] == ["paused", "0/2"]
    assert "moving 0/2" not in lines.getvalue()
    documents, text = terminal(is_terminal=False)
    JsonView(documents).show(measured(paused))
    told_to_programs = json.loads(text.getvalue())
    assert (told_to_programs["phase"], told_to_programs["state"].partition(",")[0]) == ("moving", "paused")


def test_lines_tell_the_progress_every_few_seconds_only() -> None:
    looks = [look(10_000 + 1_000 * second, PlacementState.MOVING, done=10 * second) for second in range(21)]
    told = [line for line in lines_of(*SUBMITTED, *looks) if "copied" in line]
    assert 4 <= len(told) <= 6
    assert told[-1].endswith("20 B/s, ETA 1:20 (from 1:12 to 1:28)")


# --- status and watch ---


def invoke(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(kreassign, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_status_tells_how_a_run_ended(tmp_path: Path) -> None:
    written(tmp_path, *WHOLE)
    code, text = invoke("status", "run-1", "--state-dir", tmp_path)
    assert code == 0
    approve(text, "status-of-a-finished-run", DIR=tmp_path)


def test_status_of_a_paused_run_names_throttle_and_both_ways_on(tmp_path: Path) -> None:
    written(tmp_path, *SUBMITTED, StopRequested(9_000))
    code, text = invoke("status", "--state-dir", tmp_path)
    assert code == 0
    approve(text, "status-of-a-paused-run", DIR=tmp_path)


def test_a_cancelled_run_never_says_that_all_is_as_planned(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 0]])
    rig.ask_after(15, lambda at_ms, number: CancelRequested(at_ms, number, is_now=True, by="ann"))
    run = rig.run(rig.prepared({0: (2, 1), 1: (3, 0)}, pace=pace(moves=1)))
    code, text = invoke("status", "--state-dir", tmp_path)
    assert code == 0
    assert text.startswith("run run-1: cancelled; 1 of 2 moves complete, ")
    assert "\nnext: kreassign rollback run-1 --dry-run " in text
    trail = audit_trail(read_events(rig.path()))
    page = Page(render_run(report_view(run, None, None, {}, trail))).words
    for told in (text, page):
        assert "as the plan says" not in told
        assert "matches the plan" not in told


def test_how_to_go_on_names_the_cluster_as_whoever_started_the_run_did(tmp_path: Path) -> None:
    first, *rest = SUBMITTED
    assert isinstance(first, RunStarted)
    ann = Operator("ann", "h1", ("kreassign", "run", "plan.json", "--bootstrap-server", "broker-1:9092"))
    written(tmp_path, replace(first, operator=ann), *rest, StopRequested(9_000))
    text = invoke("status", "--state-dir", tmp_path)[1]
    assert f"next: kreassign resume run-1 --bootstrap-server broker-1:9092 --state-dir {tmp_path}\n" in text


@pytest.mark.parametrize("script", ["/usr/bin/kreassign", "/usr/lib/python3/kreassign/__main__.py"])
def test_a_run_is_started_by_kreassign_however_it_was_called(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [script, "run", "plan.json"])
    assert this_operator().command == ("kreassign", "run", "plan.json")


ONE, TWO = InForce("cluster-1"), InForce("cluster-2")


def test_without_an_id_a_command_means_a_run_of_the_cluster_in_force(tmp_path: Path) -> None:
    first = SUBMITTED[0]
    assert isinstance(first, RunStarted)
    for number in (2, 3):
        written(tmp_path, replace(first, run_id=f"run-{number}"))
    with Journal.create(tmp_path, first):
        assert {find_journal(tmp_path, None, here).stem for here in (NO_CLUSTER, ONE)} == {"run-1"}
        assert {find_journal(tmp_path, "last", here).stem for here in (NO_CLUSTER, ONE)} == {"run-3"}
        written(tmp_path, replace(first, run_id="run-4", cluster_id="cluster-2"))
        assert find_journal(tmp_path, None, ONE).stem == "run-1"
        assert find_journal(tmp_path, "last", ONE).stem == "run-3"
        assert find_journal(tmp_path, None, TWO).stem == find_journal(tmp_path, "last", TWO).stem == "run-4"
        assert find_journal(tmp_path, "run-4", ONE).stem == "run-4", "which is named"
    assert find_journal(tmp_path, None, ONE).stem == "run-3"
    written(tmp_path, replace(first, run_id="run-40"))
    assert [find_journal(tmp_path, name).stem for name in ("run-4", "run-40", "run-3")] == [
        "run-4",
        "run-40",
        "run-3",
    ]
    written(tmp_path, replace(first, run_id="later-1"))
    assert find_journal(tmp_path, "later").stem == "later-1", "the beginning of one id is enough"
    with pytest.raises(
        InputError, match=r"the ids of 5 runs begin with run: run-40 \(cluster cluster-1\), .*; name one"
    ):
        find_journal(tmp_path, "run")


@pytest.mark.parametrize(("here", "run", "said"), [
    (NO_CLUSTER, None, ("runs of 2 clusters are there, and no cluster is named: run-1 (cluster cluster-1), run-4 "
                       "(cluster a/b); name the run, or the cluster (--bootstrap-server)")),
    (NO_CLUSTER, "last", ("runs of 2 clusters are there, and no cluster is named: run-1 (cluster cluster-1), run-4 "
                         "(cluster a/b); name the run, or the cluster (--bootstrap-server)")),
    (InForce("other"), None, ("there is no run of cluster other in {dir}; runs of other clusters are there: run-4 "
                             "(cluster a/b), run-1 (cluster cluster-1)")),
    (InForce(why="it is silent"), "last", ("it is silent, so which run is meant is not known; name the run. The latest "
                                          "runs are: run-4 (cluster a/b), run-1 (cluster cluster-1)")),
])  # fmt: skip
def test_a_run_of_another_cluster_is_never_meant(tmp_path: Path, here: InForce, run: str | None, said: str) -> None:
    first = SUBMITTED[0]
    assert isinstance(first, RunStarted)
    written(tmp_path, replace(first, run_id="run-4", cluster_id="a/b"))
    with Journal.create(tmp_path, first), pytest.raises(InputError) as refused:
        find_journal(tmp_path, run, here)
    assert str(refused.value) == said.format(dir=tmp_path)


COMMANDS = ("status", "watch", "pause", "throttle 1MB/s", "pace --max-moves 5", "resume", "cancel", "rollback --yes",
            "report", "audit run last --data {dir}", "verify last", "plan restore --run last")  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_the_runs_where_the_cluster_in_force_is_silent(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only run is of another cluster, for all that is known."""
    (tmp_path / "client.properties").write_text("security.protocol=NONE")
    monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", "localhost:1")
    monkeypatch.setenv("KREASSIGN_COMMAND_CONFIG", str(tmp_path / "client.properties"))
    written(tmp_path, SUBMITTED[0])
    code, text = invoke(*command.format(dir=tmp_path).split(), "--state-dir", tmp_path)
    assert (code, "security.protocol" in text) == (2, True)
    if command != "verify last":
        said = "so which run is meant is not known; name the run. The latest runs are: run-1 (cluster cluster-1)"
        assert text.startswith("error: the cluster at localhost:1 could not be asked (")
        assert said in text.replace("\n", " ")


@pytest.fixture(params=["refuses", "never answers"])
def silent_address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An address in force without a Kafka behind it, which gets a second to answer."""
    monkeypatch.setattr("kreassign.cli.options.cluster.ASK_MS", 1_000)
    with socket.socket() as node:
        node.bind(("127.0.0.1", 0))
        if request.param == "never answers":
            node.listen()
        address = f"127.0.0.1:{node.getsockname()[1]}"
        monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", address)
        yield address


@pytest.mark.parametrize("command", ["status", "watch", "report --out {dir}/page.html"])
def test_the_only_run_is_shown_while_the_cluster_is_silent(tmp_path: Path, silent_address: str, command: str) -> None:
    written(tmp_path, *HALF_WAY)
    code, text = invoke(*command.format(dir=tmp_path).split(), "--state-dir", tmp_path)
    said = text.replace("\n", " ")
    assert code == 0
    assert f"the cluster at {silent_address} could not be asked (no node of the cluster can be reached: " in said
    assert "so which run is meant is not known; shown is that of cluster cluster-1, the only one with runs in" in said
    assert "run run-1: " in text


def test_of_two_clusters_both_runs_are_shown_and_neither_is_steered(tmp_path: Path, silent_address: str) -> None:
    first = SUBMITTED[0]
    assert isinstance(first, RunStarted)
    with Journal.create(tmp_path, first), Journal.create(tmp_path, replace(first, run_id="run-4", cluster_id="other")):
        code, text = invoke("status", "--state-dir", tmp_path)
        assert (code, "shown is one of each cluster with runs in" in text.replace("\n", " ")) == (0, True)
        assert all(
            re.search(rf"^{run} +{of} ", text, re.MULTILINE) for run, of in (("run-1", "cluster-1"), ("run-4", "other"))
        )
        for command in (
            "pause",
            "throttle 1MB/s",
            "pace --max-moves 5",
            "cancel",
            "watch",
            "report",
            "audit run last --data {dir}",
        ):
            code, text = invoke(*command.format(dir=tmp_path).split(), "--state-dir", tmp_path)
            assert (code, "so which run is meant is not known" in text.replace("\n", " ")) == (2, True), command


@pytest.mark.parametrize("command", [one for one in COMMANDS if not one.startswith(("rollback", "verify"))])
def test_a_command_asks_which_of_two_clusters_is_meant(tmp_path: Path, command: str) -> None:
    first = SUBMITTED[0]
    assert isinstance(first, RunStarted)
    written(tmp_path, first)
    written(tmp_path, replace(first, run_id="run-4", cluster_id="cluster-2"))
    code, text = invoke(*command.format(dir=tmp_path).split(), "--state-dir", tmp_path)
    assert (code, "run-4 (cluster cluster-2), run-1 (cluster cluster-1); name the run" in text.replace("\n", " ")) == (
        2, True,
    ), text  # fmt: skip


def test_the_only_cluster_with_runs_is_meant_where_none_is_named(tmp_path: Path) -> None:
    first = SUBMITTED[0]
    assert isinstance(first, RunStarted)
    for number in range(1, 5):
        written(tmp_path, replace(first, run_id=f"run-{number}"))
    text = invoke("status", "--state-dir", tmp_path)[1]
    assert text.startswith("run run-4: ")
    assert text.endswith(f"and 3 other runs: kreassign status --all --state-dir {tmp_path}\n")


def test_status_of_a_killed_run_says_that_its_process_is_gone(tmp_path: Path) -> None:
    written(tmp_path, *HALF_WAY)
    approve(invoke("status", "run-1", "--state-dir", tmp_path)[1], "status-of-a-killed-run", DIR=tmp_path)
    approve(invoke("status", "--all", "--state-dir", tmp_path)[1], "status-of-all-runs", DIR=tmp_path)


def test_nothing_shown_of_a_killed_run_says_when_it_ends(tmp_path: Path) -> None:
    """A killed run does not end by itself, however fast its copies are."""
    written(tmp_path, *HALF_WAY)
    nobody = "no process executes it; its moves in flight go on, and `kreassign resume run-1` goes on with the rest"
    text = invoke("status", "run-1", "--state-dir", tmp_path)[1]
    assert f"ETA unknown: {nobody}\n" in text
    shown = [line for line in invoke("watch", "run-1", "--state-dir", tmp_path)[1].splitlines() if "ETA" in line]
    assert shown
    assert all(line.endswith(f"ETA unknown: {nobody}") for line in shown)
    found = json.loads(invoke("status", "run-1", "--state-dir", tmp_path, "--format", "json")[1])["progress"]
    assert (found["eta_s"], found["end"], found["why_no_end"]) == (None, None, nobody)
    watched = json.loads(invoke("watch", "run-1", "--state-dir", tmp_path, "--format", "json")[1].splitlines()[0])
    assert (watched["eta_s"], watched["why_no_end"]) == (None, nobody)


def test_status_of_an_executed_run_names_nothing_left_behind(tmp_path: Path) -> None:
    first, *rest = HALF_WAY
    assert isinstance(first, RunStarted)
    with Journal.create(tmp_path, first) as journal:
        for event in rest:
            journal.append(event)
        text = invoke("status", "run-1", "--state-dir", tmp_path)[1]
    approve(text, "status-of-an-executed-run", DIR=tmp_path)


def test_last_verdicts_of_a_killed_run_carry_their_time(tmp_path: Path) -> None:
    verdict = Verdict(GuardName.DISK, Reaction.HOLD, "a disk is full", "make room")
    begun = RunStarted(0, "run-1", "cluster-1", MOVES[:1], NO_THROTTLE, LIVE, guard_settings())
    inspected = HealthObserved(20_000, Health(LIVE, cordoned=(2,)))
    untouched = look(1_000, PlacementState.UNTOUCHED, MOVES[0])
    written(tmp_path, begun, untouched, inspected, VerdictsRecorded(20_000, (verdict,)))
    text = invoke("status", "run-1", "--state-dir", tmp_path)[1]
    assert "disk (as last checked, 00:00:20 UTC): a disk is full" in text
    assert "nothing new is started" not in text


def test_why_there_is_no_end_is_shown_on_a_terminal_too_and_once(tmp_path: Path) -> None:
    for outlook in ((), ("broker 2 is down",)):
        console, text = terminal(is_terminal=False)
        run = replace(measured(HALF_WAY), outlook=outlook).without_end("broker 2 is down")
        console.print(Bars(run).picture(10))
        assert text.getvalue().count("broker 2 is down") == 1
    console, text = terminal(is_terminal=False)
    console.print(Bars(measured(SUBMITTED)).picture(10))
    assert "ETA calculating; no copy has begun yet" in text.getvalue()


def test_status_as_json_has_the_history_and_the_progress(tmp_path: Path) -> None:
    written(tmp_path, *HALF_WAY)
    found = json.loads(invoke("status", "run-1", "--state-dir", tmp_path, "--format", "json")[1])
    assert (found["run_id"], found["state"], found["is_active"]) == ("run-1", "moving", False)
    assert found["progress"]["rate_bytes_per_s"] == 80.0
    assert [move["status"] for move in found["moves"]] == ["moving", "moving"]
    assert len(json.loads(invoke("status", "--all", "--state-dir", tmp_path, "--format", "json")[1])["runs"]) == 1


def test_status_without_runs_says_so(tmp_path: Path) -> None:
    shown = CliRunner().invoke(kreassign, ["status", "--state-dir", str(tmp_path)])
    assert (shown.exit_code, shown.stdout) == (0, f"no runs in {tmp_path}\n")
    assert shown.stderr == "next: kreassign plan --out plan.json --bootstrap-server HOST:PORT\n"


@pytest.mark.parametrize("command", ["status", "watch"])
def test_an_unknown_run_is_refused_with_the_runs_that_are_known(tmp_path: Path, command: str) -> None:
    written(tmp_path, *WHOLE)
    code, text = invoke(command, "run-9", "--state-dir", tmp_path)
    assert code == 2
    assert "there is no run run-9" in text
    assert "run-1" in text


def test_watch_ends_with_the_summary_when_no_process_executes_the_run(tmp_path: Path) -> None:
    written(tmp_path, *WHOLE)
    code, text = invoke("watch", "run-1", "--state-dir", tmp_path)
    assert code == 0
    approve(text, "watch-of-a-finished-run", DIR=tmp_path)


def test_a_journal_can_be_named_by_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, *WHOLE)
    assert invoke("status", path)[1].startswith("run run-1: done")


# --- run, before it reaches a cluster ---


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Missing argument 'PLAN'"),
        (["PLAN", "--throttle", "fast"], "'fast' is not an amount"),
    ],
)
def test_contradictory_options_are_usage_errors(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[]}')
    filled = [str(plan) if argument == "PLAN" else argument for argument in arguments]
    code, text = invoke("run", *filled, "--bootstrap-server", "localhost:1")
    assert code == 2
    assert sentence in text


def test_watch_json_prints_a_document_per_change_and_then_history(tmp_path: Path) -> None:
    written(tmp_path, *WHOLE)
    code, text = invoke("watch", "run-1", "--state-dir", tmp_path, "--format", "json")
    first, last = map(json.loads, text.splitlines())
    assert (code, first["phase"], first["finished"], first["moves"]) == (0, "done", 2, 2)
    assert (last["run_id"], last["state"]) == ("run-1", "done")
