"""Journals with a mirror: another host resumes a run, and one process alone goes on. On the twin."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

import pytest

from kreassign.admin import AdminClient
from kreassign.errors import ExecutionError, InputError, JournalDamaged, MirrorUnavailable, Rejected
from kreassign.executor.events import Event, MovesSubmitted, StopRequested, ThrottleIntended, ThrottleRestored
from kreassign.executor.journal import FolderPlace, Journal, Mirror, bring_home, journal_path, kept_run, read_events
from kreassign.executor.journal.file import journal_rows
from kreassign.executor.lease import GROUP_ID, ClusterLease, Held, LeaseHolder, LeasePolicy
from kreassign.executor.state import RunView
from kreassign.model.error_codes import NONE
from kreassign.model.run import Operator, RunHistory
from kreassign.operations.mirrors import bring, checked_destination, executing, seen_from_afar
from kreassign.operations.run import Observer, RunContext, resume_run, start_run
from kreassign.operations.run_journals import find_journal, status
from tests.executor.deaths import Died, Dying
from tests.executor.odd_port import OddPort, refused
from tests.executor.test_lease_on_twin import with_offsets_topic
from tests.executor.twin_runs import TwinRig

MOVES = {0: (0, 2), 1: (1, 3)}
T = TypeVar("T")


pytestmark = pytest.mark.thorough


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    (tmp_path / "mirror").mkdir()
    return with_offsets_topic(TwinRig(tmp_path / "a", [[0, 1], [1, 2]]))


def mirror(rig: TwinRig, run_id: str = "run-1", cluster_id: str | None = None) -> Mirror:
    return Mirror(FolderPlace(place(rig)), cluster_id or rig.twin.cluster_id, kept_run(run_id), rig.transport)


def place(rig: TwinRig) -> Path:
    return rig.state_dir.parent / "mirror"


def context(
    rig: TwinRig,
    host: str,
    warn: Callable[[str], None] = pytest.fail,
    lease: LeasePolicy = LeasePolicy.AUTO,
    observers: tuple[Observer, ...] = (),
) -> RunContext:
    return RunContext(
        rig.state_dir.parent / host,
        rig.poll_s,
        warn=warn,
        operator=Operator("alice", host),
        lease=lease,
        observers=observers,
        journal_to=str(place(rig)),
    )


def lose_host(rig: TwinRig, at: type[Event], *, is_written: bool = True) -> None:
    """Run on a host that is gone at this event: its lease stays until the session is over."""
    started = replace(rig.prepared(MOVES), journal_to=str(place(rig)))
    rig.lease = ClusterLease(rig.client, rig.transport, LeaseHolder("run-1", "alice", "a", 0))
    assert isinstance(rig.lease.take(), Held)
    with Journal.create(rig.state_dir, started, mirror(rig)) as journal, pytest.raises(Died):
        rig.new_runner(Dying(journal, at, is_written=is_written)).start(started)


def expire(rig: TwinRig) -> None:
    assert rig.twin.groups.leave(GROUP_ID, "", "run-1", rig.twin.now_ms) == NONE


def resumed(rig: TwinRig, host: str = "b", lease: LeasePolicy = LeasePolicy.AUTO) -> RunHistory:
    """Do on this host as `kreassign resume run-1 --journal-from mirror` does."""
    chosen = context(rig, host, lease=lease)
    bring(rig.client, str(place(rig)), chosen.state_dir, "run-1", asks_lease=chosen.lease is not LeasePolicy.OFF)
    path = find_journal(chosen.state_dir, "run-1")
    return resume_run(rig.new_client(), path, chosen, clock=rig.transport)


@pytest.mark.parametrize(("at", "is_written"), [
    (ThrottleIntended, True),
    (MovesSubmitted, False),
    (ThrottleRestored, False),
])  # fmt: skip
def test_another_host_ends_the_run_of_a_lost_one(rig: TwinRig, at: type[Event], is_written: bool) -> None:
    lose_host(rig, at, is_written=is_written)
    with pytest.raises(InputError, match=r"run-1 of alice@a .* holds the lease of the cluster"):
        resumed(rig)
    assert not list((rig.state_dir.parent / "b").rglob("*.sqlite")), "nothing is taken from a host that may live"
    expire(rig)
    with seen_from_afar(rig.client, str(place(rig)), None) as state_dir:
        assert status(find_journal(state_dir, "run-1")).ended_ms is None
    found = resumed(rig)
    assert (found.state, found.journal_to, found.problems) == ("done", str(place(rig)), ())
    assert (rig.replicas, rig.throttles) == (MOVES, {})
    assert (
        read_events(journal_path(rig.state_dir.parent / "b", rig.twin.cluster_id, "run-1"))[0]
        == read_events(rig.path())[0]
    )
    with pytest.raises(InputError, match="there is nothing to resume"):  # the host that is back sees what was done
        resumed(rig, "a")
    assert read_events(rig.path()) == read_events(find_journal(rig.state_dir.parent / "b", "run-1"))


@pytest.mark.parametrize("lease", [LeasePolicy.AUTO, LeasePolicy.OFF])
def test_a_host_that_returns_sends_nothing_more(rig: TwinRig, lease: LeasePolicy) -> None:
    ended: list[RunHistory] = []
    due = [resumed]

    def be_replaced(run: RunView, _: object) -> None:
        if run.in_flight and due:
            if lease is LeasePolicy.AUTO:
                expire(rig)
            ended.append(due.pop()(rig, lease=lease))

    alone = context(rig, "a", lease=lease, observers=(be_replaced,))
    with pytest.raises(ExecutionError, match="another process has resumed run run-1"):
        start_run(rig.client, rig.prepared(MOVES), alone, clock=rig.transport)
    assert [(run.state, run.problems) for run in ended] == [("done", ())]
    assert (rig.replicas, rig.throttles) == (MOVES, {})


def test_a_run_holds_until_its_mirror_confirms(rig: TwinRig) -> None:
    warnings: list[str] = []
    gone, sent = place(rig).with_name("gone"), []

    def lose_and_find(run: RunView, _: object) -> None:
        if run.phase == "throttling" and not gone.exists() and not sent:
            place(rig).rename(gone)
            rig.after(40, lambda: sent.append(rig.replicas))
            rig.after(60, lambda: gone.rename(place(rig)))

    found = start_run(
        rig.client,
        rig.prepared(MOVES),
        context(rig, "a", warnings.append, observers=(lose_and_find,)),
        clock=rig.transport,
    )
    assert found.state == "done"
    assert sent == [{0: (0, 1), 1: (1, 2)}], "no move while its intention has no second place"
    holds, goes_on = warnings
    assert holds.startswith(f"run run-1 holds: {place(rig)} does not keep the journal: there is no folder")
    assert "can be written again, after" in goes_on
    assert mirror(rig).read()[-1][2] == "Verified"


def test_a_folder_whose_mount_is_gone_confirms_nothing(rig: TwinRig) -> None:
    warnings: list[str] = []
    gone, sent = place(rig).with_name("gone"), []

    def mount_again() -> None:
        place(rig).rmdir()  # nothing was left in it
        gone.rename(place(rig))

    def unmount(run: RunView, _: object) -> None:
        if run.phase == "throttling" and not gone.exists() and not sent:
            place(rig).rename(gone)
            place(rig).mkdir()
            rig.after(40, lambda: sent.append(rig.replicas))
            rig.after(60, mount_again)

    chosen = context(rig, "a", warnings.append, observers=(unmount,))
    found = start_run(rig.client, rig.prepared(MOVES), chosen, clock=rig.transport)
    assert (found.state, sent) == ("done", [{0: (0, 1), 1: (1, 2)}])
    assert "it has no entry of run run-1 any more, so it is not the same" in warnings[0]
    assert mirror(rig).read() == journal_rows(rig.path())


def test_no_run_goes_on_in_a_place_that_has_lost_it(rig: TwinRig) -> None:
    lose_host(rig, MovesSubmitted)
    expire(rig)
    place(rig).rename(place(rig).with_name("gone"))
    place(rig).mkdir()
    with pytest.raises(MirrorUnavailable, match="has no entry of run run-1 any more"):
        resume_run(rig.new_client(), rig.path(), context(rig, "a"), clock=rig.transport)


def test_a_run_that_could_not_begin_here_is_not_there(rig: TwinRig) -> None:
    in_its_way = rig.path().with_name(f".{rig.path().name}.unfinished") / "a folder"
    in_its_way.mkdir(parents=True)
    with pytest.raises(ExecutionError, match=r"cannot be created.*Nothing was sent"):
        start_run(rig.client, rig.prepared(MOVES), context(rig, "a"), clock=rig.transport)
    assert list(place(rig).iterdir()) == []


def test_whoever_keeps_the_journal_elsewhere_looks_where_it_was_kept(rig: TwinRig, tmp_path: Path) -> None:
    """Another host went on in the former place, and ended the run."""
    lose_host(rig, MovesSubmitted)
    expire(rig)
    assert resumed(rig).state == "done"
    (tmp_path / "second").mkdir()
    elsewhere = replace(context(rig, "a"), journal_to=str(tmp_path / "second"))
    with pytest.raises(InputError, match="there is nothing to resume"):
        resume_run(rig.new_client(), rig.path(), elsewhere, clock=rig.transport)


@pytest.mark.parametrize("destination", ["second", "none"])
def test_the_former_place_tells_where_a_run_went_on(rig: TwinRig, tmp_path: Path, destination: str) -> None:
    lose_host(rig, MovesSubmitted)
    expire(rig)
    (tmp_path / "second").mkdir()
    wanted = str(tmp_path / destination) if destination == "second" else destination
    elsewhere = replace(context(rig, "a"), journal_to=wanted)
    assert resume_run(rig.new_client(), rig.path(), elsewhere, clock=rig.transport).state == "done"
    with seen_from_afar(rig.client, str(place(rig)), "run-1") as state_dir:
        assert status(find_journal(state_dir, "run-1")).journal_to == (wanted if destination == "second" else None)


def test_without_the_former_place_an_operator_goes_on_with_a_warning(rig: TwinRig) -> None:
    warnings: list[str] = []
    lose_host(rig, MovesSubmitted)
    expire(rig)
    place(rig).rename(place(rig).with_name("gone"))
    alone = replace(context(rig, "a", warnings.append), journal_to="none")
    assert resume_run(rig.new_client(), rig.path(), alone, clock=rig.transport).state == "done"
    assert "Whether another host has gone on with run run-1 is not known" in warnings[0]


def test_what_another_host_replaced_is_kept_whole(rig: TwinRig, tmp_path: Path) -> None:
    """Its latest rows are in the log beside the file, as a process leaves them that is killed."""
    lose_host(rig, MovesSubmitted)
    there, dead = (journal_path(tmp_path / host, rig.twin.cluster_id, "run-1") for host in ("b", "dead"))
    shutil.copytree(rig.path().parent, there.parent)
    for number in (1, 2):
        with Journal.resume(rig.path(), rig.twin.cluster_id)[0] as journal:
            journal.append(StopRequested(rig.transport.now_ms() + number))
            shutil.copytree(rig.path().parent, dead.parent, dirs_exist_ok=True)
            written = journal_rows(rig.path())
        _append(there, mirror(rig), StopRequested(rig.transport.now_ms()))
        bring_home(dead, mirror(rig))
        assert journal_rows(dead) == mirror(rig).read()
        kept = dead.with_name(f"{dead.name}.superseded{'' if number == 1 else '-2'}")
        assert journal_rows(kept) == written


def test_an_entry_from_which_another_process_went_on_stays(rig: TwinRig, tmp_path: Path) -> None:
    lose_host(rig, MovesSubmitted)
    there = journal_path(tmp_path / "b", rig.twin.cluster_id, "run-1")
    slow = mirror(rig)

    class Suspended(FolderPlace):
        """Another host reads what was put before its writer has looked whether it is alone."""

        def put(self, name: str, content: bytes) -> None:
            super().put(name, content)
            bring_home(there, mirror(rig))
            _append(there, mirror(rig), StopRequested(rig.transport.now_ms()))

    slow.place = Suspended(place(rig))
    with pytest.raises(ExecutionError, match="another process has resumed run run-1"):
        _append(rig.path(), slow, StopRequested(rig.transport.now_ms()))
    assert mirror(rig).read() == journal_rows(there)


@pytest.mark.parametrize(("code", "is_free"), [(-1, False), (15, False), (16, False), (29, True), (30, True)])
def test_only_who_may_not_see_the_lease_goes_by_the_mirror_alone(rig: TwinRig, code: int, is_free: bool) -> None:
    """A coordinator that refuses for another reason does not say that nobody executes the run."""
    odd = OddPort(rig.client)
    odd.answer_always("describe_group", refused(code))
    with nullcontext() if is_free else pytest.raises(Rejected):
        assert executing(cast(AdminClient, odd), "run-1") is None


def test_no_run_begins_without_its_mirror(rig: TwinRig) -> None:
    place(rig).rmdir()
    with pytest.raises(MirrorUnavailable, match="there is no folder"):
        start_run(rig.client, rig.prepared(MOVES), context(rig, "a"), clock=rig.transport)
    assert not rig.path().exists()
    place(rig).write_text("a file")
    with pytest.raises(MirrorUnavailable, match="there is no folder"):
        start_run(rig.client, rig.prepared(MOVES), context(rig, "a"), clock=rig.transport)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(("number", "damage", "problem"), [
    (-1, _cut, "has a damaged entry: .*/000000000/"),
    (2, _cut, "has a damaged entry"),
    (2, Path.unlink, "lacks events 3 to "),
    (0, Path.unlink, "lacks events 1 to 1"),
    (2, lambda path: path.with_name("notes.txt").touch(), "has an entry 'notes.txt' that kreassign did not write"),
])  # fmt: skip
def test_a_damaged_mirror_is_refused(rig: TwinRig, number: int, damage: Callable[[Path], None], problem: str) -> None:
    lose_host(rig, MovesSubmitted)
    expire(rig)
    damage(sorted(place(rig).rglob("0*-*"))[number])
    with pytest.raises(JournalDamaged, match=f"the journal of run run-1 in .*mirror {problem}"):
        resumed(rig)
    assert not list((rig.state_dir.parent / "b").rglob("*.sqlite"))


def test_of_two_entries_the_one_counts_that_is_continued(rig: TwinRig, tmp_path: Path) -> None:
    lose_host(rig, MovesSubmitted)
    shutil.copytree(place(rig), tmp_path / "late")
    shutil.copytree(rig.state_dir, tmp_path / "c")
    late = Mirror(FolderPlace(tmp_path / "late"), rig.twin.cluster_id, kept_run("run-1"), rig.transport)
    _append(rig.path(), late, StopRequested(rig.transport.now_ms()))
    here = mirror(rig)
    path = journal_path(tmp_path / "c", rig.twin.cluster_id, "run-1")
    _append(path, here, StopRequested(rig.transport.now_ms() + 1))
    shutil.copytree(tmp_path / "late", place(rig), dirs_exist_ok=True)
    with pytest.raises(JournalDamaged, match="was written by two processes, and which of them went on is not known"):
        mirror(rig).read()
    _append(path, here, StopRequested(rig.transport.now_ms() + 2))
    assert mirror(rig).read() == journal_rows(path)


class Interrupted(FolderPlace):
    """Its call of this name, and this number, does not return: before or after it has done its work."""

    call, number, is_done, why = "put", 0, True, KeyboardInterrupt()

    def _do(self, name: str, work: Callable[[], T]) -> T:
        self.number -= name == self.call
        is_due = name == self.call and self.number == 0
        if is_due and not self.is_done:
            raise self.why
        done = work()
        if is_due:
            raise self.why
        return done

    def put(self, name: str, content: bytes) -> None:
        self._do("put", lambda: super(Interrupted, self).put(name, content))

    def names(self, folder: str) -> list[str]:
        return self._do("names", lambda: super(Interrupted, self).names(folder))


@pytest.mark.parametrize(
    "why", [KeyboardInterrupt(), MirrorUnavailable("there", "it hangs")], ids=["interrupt", "hangs"]
)
@pytest.mark.parametrize(("call", "is_done"), [("put", False), ("put", True), ("names", False), ("names", True)])
def test_a_journal_goes_on_after_an_event_whose_entry_was_not_confirmed(
    rig: TwinRig, call: str, is_done: bool, why: BaseException
) -> None:
    """An interrupt, or a place that gives up: the event may be there, and the next one is to follow it."""
    lose_host(rig, MovesSubmitted)
    there = Interrupted(place(rig))
    here = mirror(rig)
    here.place = there
    with Journal.resume(rig.path(), rig.twin.cluster_id)[0] as journal:
        here.read()
        journal.keep_in(here)
        there.call, there.is_done, there.why, there.number = call, is_done, why, 1
        with pytest.raises(type(why)):
            journal.append(StopRequested(rig.transport.now_ms()))
        journal.append(StopRequested(rig.transport.now_ms() + 1))
    assert mirror(rig).read() == journal_rows(rig.path())


def _append(path: Path, where: Mirror, event: Event) -> None:
    with Journal.resume(path, where.cluster_id)[0] as journal:
        if not where.position.sequence:
            where.read()
        journal.keep_in(where)
        journal.append(event)


def test_runs_of_two_clusters_share_a_place(rig: TwinRig, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    second = replace(rig.prepared(MOVES), run_id="run-2", cluster_id="other")
    lose_host(rig, MovesSubmitted)
    expire(rig)
    Journal.create(tmp_path / "other", second, mirror(rig, "run-2", "other")).close()
    with pytest.raises(InputError, match="has no run run-2 of this cluster"):
        seen_from_afar(rig.client, str(place(rig)), "run-2").__enter__()
    assert resumed(rig).state == "done"
    assert len(mirror(rig, "run-2", "other").read()) == 1


@pytest.mark.parametrize(("text", "checked"), [
    ("topic:journals", "topic:journals"),
    ("s3a://bucket/a/", "s3://bucket/a"),
    ("file:///mnt/a%20b", "/mnt/a b"),
    ("/mnt/journals", "/mnt/journals"),
    ("none", "none"),
])  # fmt: skip
def test_a_destination_is_named_in_one_form(text: str, checked: str) -> None:
    assert checked_destination(text) == checked


@pytest.mark.parametrize("text", [
    "", "topic:", "topic:a/b", "topic:..", "gs://b", "file:a",
    "s3://", "s3://k:s@b/p", "s3://a b", "s3://host:9000/b", "s3://b/../c", "s3://b/./c",
])  # fmt: skip
def test_what_is_no_destination_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        checked_destination(text)
