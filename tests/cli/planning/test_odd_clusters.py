"""Every way to plan, on clusters of shapes that none of the other tests has: a plan or one clear refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.model import Broker
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.snapshot_files import write_snapshot

pytestmark = pytest.mark.thorough

GIGABYTE = 10**9
DIRS = tuple(SnapshotLogDir(path, 1_000 * GIGABYTE, 500 * GIGABYTE) for path in ("/a", "/b"))
Hosts = tuple[SnapshotBroker, ...]


def host(
    number: int, rack: str | None = None, *, dirs: tuple[SnapshotLogDir, ...] = DIRS, is_fenced: bool = False
) -> SnapshotBroker:
    return SnapshotBroker(Broker(number, "host", 9092, rack, is_fenced), dirs)


def three(*dirs: SnapshotLogDir) -> Hosts:
    return tuple(host(number, dirs=dirs or DIRS) for number in range(3))


def held(
    *replicas: int,
    isr: tuple[int, ...] | None = None,
    size: int | None = GIGABYTE,
    log_dir: str | None = "/a",
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
) -> SnapshotPartition:
    in_sync = replicas if isr is None else isr
    leader, count = (in_sync or (-1,))[0], len(replicas)
    return SnapshotPartition(replicas, in_sync, leader, 1, (log_dir,) * count, (size,) * count, adding, removing)


SHAPES: dict[str, tuple[Hosts, dict[str, list[SnapshotPartition]]]] = {
    "one broker": ((host(0),), {"t": [held(0), held(0)]}),
    "no topic": (three(), {}),
    "no partition": (three(), {"t": []}),
    "no log directories known": (
        tuple(host(number, dirs=()) for number in range(3)),
        {"t": [held(0, 1, size=None, log_dir=None), held(1, 2, size=None, log_dir=None)]},
    ),
    "no file systems known": (three(SnapshotLogDir("/a")), {"t": [held(0, 1), held(1, 2)]}),
    "nothing written": (three(), {"t": [held(0, 1, size=0)] * 6}),
    "all but one gone": ((host(0),), {"t": [held(0, 1, 2, isr=(0,)), held(2, 1, isr=())]}),
    "nobody leads": ((host(0), host(1)), {"t": [held(0, 1, isr=())] * 3}),
    "an offline directory": (
        (host(0, dirs=(SnapshotLogDir("/a", is_offline=True),)), host(1), host(2)),
        {"t": [held(0, 1, isr=(1,)), held(1, 2)]},
    ),
    "full disks": (three(SnapshotLogDir("/a", GIGABYTE, 0)), {"t": [held(0, 1), held(0, 1)]}),
    "cordoned disks": (three(SnapshotLogDir("/a", 9 * GIGABYTE, GIGABYTE, is_cordoned=True)), {"t": [held(0, 1)] * 2}),
    "racks of some": ((host(0, "a"), host(1, "a"), host(2), host(3, "b")), {"t": [held(0, 1), held(1, 0, 2, 3)]}),
    "highest ids": ((host(2**31 - 1), host(2**31 - 2), host(0)), {"t": [held(2**31 - 1, 0), held(2**31 - 2, 0)]}),
    "a move": (
        (*three(), host(3)), {"t": [held(2, 0, 1, isr=(0, 1), adding=(2,), removing=(1,)), held(1, 2)]},
    ),
    "a factor above the brokers": ((host(0), host(1)), {"t": [held(0, 1, 5, 6, isr=(0, 1))]}),
    "an absurd size": (three(), {"t": [held(0, 1, size=2**62), held(1, 2)]}),
    "sizes beyond 64 bits in all": (three(SnapshotLogDir("/a")), {"t": [held(0, 1, size=2**62)] * 6 + [held(1, 2)]}),
    "a fenced broker": ((host(0), host(1), host(2, is_fenced=True)), {"t": [held(0, 2, isr=(0,)), held(2, 1)]}),
    "topics of Kafka itself": (three(), {"__consumer_offsets": [held(0, 1)] * 3, "a.b_c-d": [held(2, 1)]}),
}  # fmt: skip
TASKS = (
    "rebalance",
    "drain-brokers 0",
    "add-brokers 1",
    "demote 0",
    "leaders",
    "repair",
    "replication-factor 2",
    "replication-factor 3 --topics t",
    "disks",
    "drain-dirs 0:/a",
    "drain-dirs 0:/a --between-brokers",
    "what-if --remove-brokers 0",
    "what-if --add-brokers 2",
    "brokers-needed",
    "new-topic new --partitions 3 --replication-factor 1",
    "partitions t 9",
    "pareto",
)


@pytest.mark.parametrize("name", SHAPES)
def test_every_task_ends_with_a_plan_or_a_refusal(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    brokers, topics = SHAPES[name]
    known = tuple(SnapshotTopic(topic, tuple(partitions)) for topic, partitions in topics.items())
    write_snapshot(tmp_path / "cluster.json", ClusterSnapshot(1_767_225_600_000, "cluster", brokers, known))
    for task in TASKS:
        words = ["plan", *task.split(), "--snapshot", "cluster.json", "--out", "plan.json"]
        done = CliRunner().invoke(kreassign, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), (task, repr(done.exception))
        assert done.exit_code in {0, 2, 3}, (task, done.output)
        assert done.exit_code == 0 or "rror: " in done.stderr, (task, done.output)
