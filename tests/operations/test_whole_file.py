"""A file is replaced as a whole, and nobody's link decides where its content goes."""

from __future__ import annotations

import os
import resource
import secrets
import stat
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from kreassign.errors import ExecutionError, InputError
from kreassign.executor.journal import Journal, journal_path
from kreassign.executor.journal.folder import HOLDER, LOCK
from kreassign.model.authorization import error_text
from kreassign.model.plan import parse_plan
from kreassign.model.plan_facts import plan_id
from kreassign.operations import broker_changes
from kreassign.operations.plan_files import approval_path, approve, read_plan_file, write_plan
from kreassign.operations.whole_file import PRIVATE_MODE, changing_state, replace_file, replacing, write_page
from tests.executor.run_events import started

PLAN = parse_plan('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}')


def test_a_file_is_replaced_or_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    replace_file(path, b"one")
    replace_file(path, b"two", PRIVATE_MODE)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o600)
    with pytest.raises(FileNotFoundError), replacing(path):
        (tmp_path / "missing").read_bytes()
    assert (path.read_bytes(), [one.name for one in tmp_path.iterdir()]) == (b"two", ["plan.json"])


@pytest.mark.parametrize(("folder", "why"), [
    ("/proc", "no such file or directory; make its directory, or choose another place"),
    ("/dev/full", "not a directory; choose another place"),
])  # fmt: skip
@pytest.mark.parametrize("write", [lambda path: replace_file(path, b"one"), lambda path: write_page(path, "one")])
def test_a_place_that_takes_no_file_is_told_by_its_own_name(
    folder: str, why: str, write: Callable[[Path], None]
) -> None:
    path = Path(folder) / "plan.json"
    with pytest.raises(OSError, match=r"plan\.json") as refused:
        write(path)
    assert error_text(refused.value) == f"{path}: {why}"


def test_a_full_disk_asks_for_room(tmp_path: Path) -> None:
    """The limit of this process stands for the disk; nothing is left of the file."""
    path, limits = tmp_path / "plan.json", resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(OSError, match="No space left") as refused:
        write_page(Path("/dev/full"), "one")
    assert error_text(refused.value) == "/dev/full: no space left on device; make room there, or choose another place"
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
    try:
        with pytest.raises(OSError, match="too large") as refused:
            replace_file(path, b"one")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert error_text(refused.value) == f"{path}: file too large; choose another place"
    assert not [*tmp_path.iterdir()]


def test_no_link_of_others_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither at the temporary name of a process, which others can guess, nor at the final name."""
    victim, path = tmp_path / "victim", tmp_path / "plan.json"
    victim.write_text("precious", encoding="ascii")
    for name in (path, approval_path(path)):
        name.with_name(f".{name.name}.{os.getpid()}.unfinished").symlink_to(victim)
    write_plan(path, PLAN, None)
    approve(path, plan_id(read_plan_file(path).plan), "ann", "", 1)
    monkeypatch.setattr(secrets, "token_hex", lambda count: "0" * 2 * count)
    path.with_name(f".{path.name}.{'0' * 16}.unfinished").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_plan(path, PLAN, None)
    assert victim.read_text(encoding="ascii") == "precious"


@pytest.mark.parametrize("name", [LOCK, HOLDER])
def test_no_lock_is_a_link_of_others(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="ascii")
    folder = journal_path(tmp_path, "cluster-1", "run-1").parent
    folder.mkdir()
    (folder / name).symlink_to(victim)
    with pytest.raises(ExecutionError, match="cannot be created"):
        Journal.create(tmp_path, started())
    assert victim.read_text(encoding="ascii") == "precious"


NOTES = pytest.mark.parametrize(
    ("note", "noted"),
    [
        (broker_changes.note_cordons, broker_changes.noted_cordons),
        (broker_changes.note_decommissions, broker_changes.noted_decommissions),
    ],
)


@NOTES
def test_nobody_is_told_to_move_away_a_note_that_is_unreadable_for_now(
    note: Callable[[Path, str, Iterable[int]], None], noted: Callable[[Path, str], frozenset[int]], tmp_path: Path
) -> None:
    """It may be whole, and would no longer say which cordons are ours."""
    note(tmp_path, "cluster-1", (3,))
    (path,) = (one for one in tmp_path.glob("*/*") if one.suffix == "")
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match=rf"^{path} cannot be read: is a directory\. Then give the command again$"):
        noted(tmp_path, "cluster-1")


@NOTES
def test_two_commands_at_once_lose_no_broker_that_the_other_noted(
    note: Callable[[Path, str, Iterable[int]], None], noted: Callable[[Path, str], frozenset[int]], tmp_path: Path
) -> None:
    both_ready = Barrier(2)

    def command(brokers: range) -> None:
        both_ready.wait()
        for broker in brokers:
            note(tmp_path, "cluster-1", (broker,))

    with ThreadPoolExecutor() as commands:
        list(commands.map(command, (range(10), range(10, 20))))
    assert noted(tmp_path, "cluster-1") == set(range(20))


def test_a_lock_is_moved_away_only_if_it_is_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "state" / "note"
    with changing_state(path, "a note", "Nothing was changed"):
        pass
    free = os.dup(0)
    os.close(free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(InputError) as refused, changing_state(path, "a note", "Nothing was changed"):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "could not be written: too many open files. Nothing was changed; let processes open" in str(refused.value)
    assert "move it away" not in str(refused.value)
