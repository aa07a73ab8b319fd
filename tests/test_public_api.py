"""`import kreassign`: what it offers, what it costs, and the program that its guide shows."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

import kreassign
from kreassign.admin import AdminClient
from kreassign.cli.main import kreassign as command_line
from kreassign.errors import DataError, InputError
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.journal import find_journals, first_event
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.pace import Cap, Caps, Pace
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import MoveStatus, RunHistory
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.snapshot_files import read_snapshot
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import SAMPLES
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.server import serving
from kreassign.twin.version import KAFKA_4_3
from tests.cli.test_plan_command import UNEVEN, tables
from tests.executor.journal.test_journal import written
from tests.executor.run_events import started
from tests.executor.twin_runs import tp
from tests.twin.asking import cluster

GUIDE = Path(__file__).parent.parent / "docs" / "guides" / "use-from-python.md"
SPEED = 10.0
"""Seconds of the twin in one second of ours."""


def program() -> str:
    (block,) = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return str(block)


@pytest.mark.thorough
def test_the_program_of_the_guide_runs_from_plan_to_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    twin = Twin(cluster({"t": [[0, 3], [3, 1], [2, 0]]}), TwinSettings())
    names: dict[str, Any] = {}
    with serving(twin, speed=SPEED) as thread:
        assert "localhost:9092" in program()
        exec(program().replace("localhost:9092", thread.bootstrap_servers), names)
        with kreassign.connect(thread.bootstrap_servers) as client:
            found = client.describe_topics(["t"]).raise_if_any()["t"]
    seen = SimpleNamespace(**names)
    assert seen.rehearsal.history.state == "done"
    assert seen.done.state == "done"
    assert all(3 not in target for target in seen.plan.plan.replicas.values())
    printed = capsys.readouterr().out
    assert "rehearsal: done in" in printed
    assert "done 2 of 2" in printed
    assert "verified: True" in printed
    assert seen.undone.run.state == "done"
    assert [partition.replicas for partition in found.partitions] == [(0, 3), (3, 1), (2, 0)]
    assert len(find_journals(tmp_path / "kreassign")) == 2


def cordon_broker_3(client: AdminClient) -> None:
    """Kafka 4.3 takes moves to it nevertheless, so that its guard is what ends a run."""
    change = ConfigChange.set("cordoned.log.dirs", "*")
    client.incremental_alter_configs({ConfigResource.broker(3): [change]}).raise_if_any()


ROLLS_BACK = {GuardName.CORDONED: Reaction.ROLLBACK}


def test_a_program_is_told_of_the_rollback_that_a_guard_demands(tmp_path: Path) -> None:
    twin = Twin(cluster({"t": [[0, 1]]}), TwinSettings(version=KAFKA_4_3))
    plan = Plan((PartitionAssignment(tp(0), (3, 1)),))
    with serving(twin, speed=SPEED) as thread, kreassign.connect(thread.bootstrap_servers) as client:
        cordon_broker_3(client)
        ended = kreassign.run(client, plan, guards=ROLLS_BACK, measure_for_s=0.0, state_dir=tmp_path, poll_s=0.1)
    assert (ended.state, ended.wants_rollback) == ("cancelled", True)
    assert ended.problems[0] == "a guard demanded its rollback: nothing was left to roll back"


@pytest.mark.thorough
def test_a_program_that_resumes_a_run_gets_its_rollback(tmp_path: Path) -> None:
    before = ((0, 1), (0, 1), (0, 1))
    twin = Twin(cluster({"t": [[*one] for one in before]}), TwinSettings(version=KAFKA_4_3))
    plan, pace = Plan(tuple(PartitionAssignment(tp(n), (3, 1)) for n in range(3))), Pace(caps=Caps(cluster=Cap(1)))
    where: dict[str, Any] = {"state_dir": tmp_path, "poll_s": 0.1}

    def stop_after_a_move(run: RunHistory) -> None:
        if run.moves_by_state[MoveStatus.COMPLETE]:
            raise KeyboardInterrupt

    with serving(twin, speed=SPEED) as thread, kreassign.connect(thread.bootstrap_servers) as client:
        way: dict[str, Any] = {"guards": ROLLS_BACK, "pace": pace, "on_progress": stop_after_a_move}
        with pytest.raises(KeyboardInterrupt):
            kreassign.run(client, plan, measure_for_s=0.0, **way, **where)
        (journal,) = find_journals(tmp_path)
        cordon_broker_3(client)
        ended = kreassign.resume(client, journal.stem, **where)
        found = client.describe_topics(["t"]).raise_if_any()["t"]
    (undo,) = (path for path in find_journals(tmp_path) if path != journal)
    by = f"a guard demanded its rollback: run {undo.stem}, which is done"
    assert (ended.state, ended.problems[0], first_event(undo).undoes) == ("cancelled", by, journal.stem)
    assert tuple(partition.replicas for partition in found.partitions) == before


def test_the_guides_program_has_about_ten_lines() -> None:
    assert len([line for line in program().splitlines() if line.strip()]) <= 12


@pytest.mark.parametrize("name", kreassign.__all__)
def test_every_name_is_there_and_says_what_it_does(name: str) -> None:
    assert getattr(kreassign, name).__doc__
    assert name in dir(kreassign)


def leaves(group: click.Group, path: str) -> Iterator[str]:
    """Every command line's words up to its options."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield from leaves(command, f"{path} {name}") if isinstance(command, click.Group) else [f"{path} {name}"]


def offered() -> dict[str, list[str]]:
    """By command, what the guide's table names in its row: functions, and the values that they take."""
    rows = [
        line.split("|") for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| `kreassign ")
    ]
    return {
        command: re.findall(r"`([\w.]+)`", names) for _, commands, names, _ in rows
        for command in re.findall(r"`([^`]+)`", commands)
    }  # fmt: skip


def test_every_command_is_in_the_guides_table() -> None:
    assert sorted(offered()) == sorted(leaves(command_line, "kreassign"))


def test_the_table_and_the_offered_names_agree() -> None:
    for command, (name, *_) in offered().items():
        module, _, function = name.rpartition(".")
        assert callable(getattr(import_module(module or "kreassign"), function)), command
        assert bool(module) == name.startswith("kreassign.operations.")
    named = {name for names in offered().values() for name in names}
    assert {name for name in named if name[0].isupper()} <= set(kreassign.__all__)
    assert set(kreassign.__all__) - named == {"connect", "connect_controllers"}


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        str(kreassign.nonsense)


def test_importing_it_imports_nothing_else() -> None:
    program = "import sys, kreassign; print(*(name for name in sys.modules if name.startswith('kreassign')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kreassign"]


def test_the_command_line_is_a_module_that_python_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "kreassign", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"kreassign, version {kreassign.__version__}\n"


def test_rounds_are_collected_and_stored_as_from_the_command_line(tmp_path: Path) -> None:
    twin = Twin(cluster({"t": [[0, 3], [3, 1]]}), TwinSettings())
    with serving(twin, speed=SPEED) as thread, kreassign.connect(thread.bootstrap_servers) as client:
        rounds = list(kreassign.collect(client, tmp_path, rounds=3, interval_s=0.01, compact_every=2))
        outputs = kreassign.SnapshotOutputs(tmp_path, tmp_path / "cluster.json.gz", measure_for_s=0)
        kreassign.store_snapshot(client, outputs)
    assert [(one.number, one.partitions) for one in rounds] == [(1, 2), (2, 2), (3, 2)]
    assert len(open_log(tmp_path, SAMPLES).files()) == 2, "one of two rounds, and that of the third"
    assert len(read_rows(tmp_path, SAMPLES)) == 6
    merged = {one.table: one.merged for one in kreassign.compact_tables(tmp_path)}
    assert merged["samples"] == 1
    assert merged["clusters"] == 2
    whole = read_snapshot(tmp_path / "cluster.json.gz")
    assert kreassign.brokers_needed(tmp_path / "cluster.json.gz").present == 4
    assert len(kreassign.plan(tmp_path / "cluster.json.gz", kreassign.DrainBrokers((3,))).plan) == 2
    assert kreassign.plan(whole, kreassign.DrainBrokers((3,))).plan.replicas.keys() == {("t", 0), ("t", 1)}


def test_a_directory_of_tables_is_planned_from_and_the_plan_is_written(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    found = kreassign.plan(tmp_path, as_of="last")
    kreassign.write_plan(tmp_path / "plan.json", found.plan, found.facts)
    assert list(read_plan_file(tmp_path / "plan.json").plan.replicas.values()) == [(2,), (2,)]
    alternatives = kreassign.pareto(tmp_path, as_of="last")
    assert found.facts.totals.moved_bytes in {choice.moved_bytes for choice in alternatives.choices}
    with pytest.raises(DataError, match="no table"):
        kreassign.plan(tmp_path.parent, as_of="last")


def test_a_journal_that_cannot_be_read_is_set_aside_by_its_run_id(tmp_path: Path) -> None:
    path = written(tmp_path, started())
    with pytest.raises(InputError, match="can be read; go on with it"):
        kreassign.forget_journal("run-1", state_dir=tmp_path)
    path.write_bytes(b"once upon a time " * 100)
    kept = kreassign.forget_journal("run-1", state_dir=tmp_path)
    assert kept.exists()
    assert find_journals(tmp_path) == ()
