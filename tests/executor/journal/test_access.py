"""Readers of journals, their names, and reading the holder of a cluster without disturbing the run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.errors import InputError
from kreassign.executor.events import HoldRequested, RunStarted, StopRequested
from kreassign.executor.journal import (
    Journal,
    active_run,
    find_journals,
    folder,
    journal_path,
    post_request,
    read_events,
    set_aside,
)
from kreassign.executor.journal.folder import mounted_type
from kreassign.model.run import Operator
from kreassign.model.throttle import NO_THROTTLE
from kreassign.operations.run_journals import find_journal, is_active, this_operator
from tests.executor.journal.test_journal import written
from tests.executor.run_events import WHOLE, started

ODD = ("a.b", "..", ".", "", "a/b", "/tmp", "a*b", "[ab]", "a b", "ä", "a%2Eb", "a\\b", "a\nb", "-x")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_only_the_owner_may_read_journals_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with Journal.create(tmp_path / "far" / "away", started()) as journal:
            journal.append(StopRequested(5))
            folder = journal.path.parent
            files = {path.name: mode(path) for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert {mode(one) for one in (folder, folder.parent, folder.parent.parent)} == {0o700}
    assert set(files) >= {"run-1.sqlite", "run-1.sqlite-wal", "run-1.sqlite-shm", "lock", "holder"}
    assert set(files.values()) == {0o600}


def test_a_state_directory_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Journal.create(tmp_path, started()).close()
    assert mode(tmp_path) == 0o755


def test_resuming_closes_a_journal_that_others_could_read(tmp_path: Path) -> None:
    with Journal.create(tmp_path, started()) as journal:
        path = journal.path
    path.chmod(0o644)
    Journal.resume(path, "cluster-1")[0].close()
    assert mode(path) == 0o600


def test_new_names_are_on_disk_before_a_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    real = os.fsync

    def noting(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").readlink())
        real(file)

    monkeypatch.setattr(os, "fsync", noting)
    Journal.create(tmp_path / "state", started()).close()
    assert synced.index(tmp_path) < synced.index(tmp_path / "state") < synced.index(tmp_path / "state" / "cluster-1")


@pytest.mark.parametrize("cluster_id", ODD)
@pytest.mark.parametrize("run_id", ["run.1", "a/b", "a*b", "[x]", "..", "ä b"])
def test_runs_and_clusters_of_any_name_are_found_and_known_to_go_on(
    tmp_path: Path, cluster_id: str, run_id: str
) -> None:
    begun = RunStarted(0, run_id, cluster_id, (), NO_THROTTLE, ())
    with Journal.create(tmp_path, begun) as journal:
        path = journal.path
        assert path.resolve().parent.parent == tmp_path.resolve()
        assert path == journal_path(tmp_path, cluster_id, run_id) == find_journal(tmp_path, run_id)
        assert active_run(tmp_path, cluster_id) == path.stem
        assert is_active(path)
    assert not is_active(path)
    assert find_journals(tmp_path, run_id) == (path,)
    assert read_events(path) == (begun,)


def test_no_two_names_share_a_folder(tmp_path: Path) -> None:
    folders = [journal_path(tmp_path, name, "run-1").parent for name in ODD]
    assert len(set(folders)) == len(ODD)


@pytest.mark.thorough
def test_asking_who_runs_never_takes_a_lock_from_a_run(tmp_path: Path) -> None:
    """Three processes ask without pause while this one begins and ends runs: every one of them begins."""
    Journal.create(tmp_path, started()).close()
    program = (
        "import sys; from pathlib import Path\n"
        "from kreassign.executor.journal import active_run\n"
        "print('asking', flush=True)\n"
        "while True: active_run(Path(sys.argv[1]), 'cluster-1')"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    askers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        for asker in askers:
            assert asker.stdout is not None
            assert asker.stdout.readline() == "asking\n"
        path = journal_path(tmp_path, "cluster-1", "run-1")
        for _ in range(300):
            journal, _ = Journal.resume(path, "cluster-1")
            assert active_run(tmp_path, "cluster-1") == "run-1"
            journal.close()
    finally:
        for asker in askers:
            asker.kill()
            asker.communicate()


def test_who_executes_a_run_is_known_by_user_host_and_command() -> None:
    operator = this_operator()
    assert operator.user
    assert operator.host == os.uname().nodename
    assert operator.command
    assert str(Operator("ann", "h1", ("kreassign", "run", "plan.json"))) == "ann@h1: kreassign run plan.json"
    assert str(Operator("ann", "h1")) == "ann@h1"


def test_a_command_line_that_is_no_text_is_written_down_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/kreassign", "run", "plan-\udcff.json"])
    operator = this_operator()
    assert operator.command == ("kreassign", "run", "plan-\\udcff.json")
    path = written(tmp_path, replace(started(), operator=operator))
    assert read_events(path)[0] == replace(started(), operator=operator)


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - autofs systemd-1 rw
31 30 0:41 / /home rw shared:9 master:3 - nfs4 filer:/home rw,vers=4.2
32 22 0:42 / /mnt/a\\040b rw - fuse.sshfs ann@ops: rw
33 22 0:43 / /mnt/win rw - cifs //filer/x rw
34 31 8:2 / /home/.here rw - xfs /dev/sdb rw
35 22 0:44 / /mnt/odd rw - fuse.gocryptfs /x rw
not a mount
"""


@pytest.mark.parametrize(("place", "kind"), [
    ("/var/lib/kreassign", "ext4"), ("/home/.local/state/kreassign", "nfs4"), ("/home/.here/state", "xfs"),
    ("/homes", "ext4"), ("/mnt/a b/state", "fuse.sshfs"), ("/mnt/win", "cifs"), ("/mnt/odd/x", "fuse.gocryptfs"),
])  # fmt: skip
def test_a_folder_has_the_type_of_its_last_and_nearest_mount(place: str, kind: str) -> None:
    assert mounted_type(MOUNTS, place) == kind
    assert mounted_type("", place) is None


@pytest.mark.parametrize("kind", [
    "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.glusterfs", "virtiofs", "fuse.grpcfuse",
])  # fmt: skip
def test_no_journal_is_written_where_several_machines_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Neither a new one, nor a request to one; and nothing is made there."""
    path = written(tmp_path / "local", WHOLE[0])
    monkeypatch.setattr(folder, "mounted_type", lambda *_: kind)
    for deed in (
        lambda: Journal.create(tmp_path / "shared", started()),
        lambda: Journal.resume(path, "cluster-1"),
        lambda: post_request(path, lambda number: HoldRequested(5, number)),
        lambda: set_aside(path),
    ):
        with pytest.raises(InputError, match=rf"several machines \({kind}\).*--state-dir"):
            deed()
    assert not (tmp_path / "shared").exists()
    assert read_events(path) == WHOLE[:1], "it may be read"


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs", "overlay", "fuse.gocryptfs", "never heard of", None])
def test_a_file_system_that_is_not_known_to_be_shared_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str | None
) -> None:
    monkeypatch.setattr(folder, "mounted_type", lambda *_: kind)
    assert read_events(written(tmp_path, WHOLE[0])) == WHOLE[:1]
