"""Modules loaded at start: in fresh interpreters, because imports stay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from kreassign.model import Broker
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.snapshot_files import write_snapshot

CLIENTS = "{name for name in sys.modules if name.startswith(('kafka.producer', 'kafka.consumer', 'kafka.admin'))}"
QUICK = "from kreassign.startup import defer_kafka_clients; defer_kafka_clients(); import kreassign.wire.api"
# Each case in a process of its own, forked from one that has imported nothing else: the start is what takes long.
EACH_IN_A_FORK = """
import json, os, sys, traceback
cases = json.loads(sys.argv[1])
exec(cases.pop("first"))
failed = []
for name, program in cases.items():
    if not os.fork():
        try:
            exec(program)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.wait()[1]:
        failed.append(name)
print(json.dumps(failed))
"""


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def failing(first: str, **cases: str) -> tuple[list[str], str]:
    """Failing cases, each after the same beginning, with their output."""
    done = run(EACH_IN_A_FORK, json.dumps({"first": first, **cases}))
    assert done.returncode == 0, done.stderr
    failed: list[str] = json.loads(done.stdout)
    return failed, done.stderr


def test_the_library_is_whole_for_others_and_lean_for_our_programs() -> None:
    failed, errors = failing(
        f"import sys; {QUICK}",
        no_clients=f"assert not {CLIENTS}, {CLIENTS}",
        from_import="from kafka import KafkaProducer; assert KafkaProducer.__name__ == 'KafkaProducer'",
        attribute="import kafka; assert kafka.__version__.startswith('3.')",
        whole="import kafka; assert kafka.KafkaProducer and type(kafka).__name__ == 'module'",
        submodule="from kafka import consumer; assert consumer.KafkaConsumer",
    )
    assert failed == [], errors


def test_a_name_that_the_library_does_not_have_is_an_error_as_ever() -> None:
    failed, errors = failing(QUICK, missing="import kafka; kafka.no_such_thing")
    assert failed == ["missing"]
    assert "AttributeError" in errors
    assert "no_such_thing" in errors


def test_a_library_that_is_there_first_stays_what_it_is() -> None:
    done = run(f"import sys, kafka; {QUICK}; assert sys.modules['kafka'] is kafka and kafka.KafkaProducer")
    assert done.returncode == 0, done.stderr


def test_our_programs_start_without_the_clients() -> None:
    """One after the other, asked for their version: what the first of them loads is loaded for all."""
    programs = ("scripts.leader_election", "scripts.preferred_replica_election", "scripts.reassign_partitions",
                "scripts.topics", "main.main")  # fmt: skip
    done = run(
        "import contextlib, sys; from kreassign.kafka_tools import scripts; from kreassign.cli import main\n"
        "sys.argv[1:] = ['--version']\n"
        f"for program in ({', '.join(programs)}):\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        program()\n"
        f"    print('clients:', {CLIENTS} or 'none')"
    )
    assert done.stdout.count("clients: none\n") == len(programs), done


def test_what_reads_journals_only_starts_without_the_client() -> None:
    """They are asked again and again while a run goes on; half of their time was the loading of unused modules."""
    failed, errors = failing(
        "import sys",
        steer="import kreassign.cli.commands.steer; assert 'kreassign.admin' not in sys.modules",
    )
    assert failed == [], errors


def test_a_library_leaves_the_modules_of_the_program_alone() -> None:
    done = run("import kreassign.admin, sys; assert type(sys.modules['kafka']).__name__ == 'module'")
    assert done.returncode == 0, done.stderr


HEAVY = (
    "kafka.protocol",
    "kreassign.admin",
    "numba",
    "numpy",
    "prometheus_client",
    "pyarrow",
    "rich",
    "yaml",
)
EXTRAS = ("pyspark", "py4j", "pandas", "starlette", "uvicorn", "anyio", "gssapi", "botocore", "boto3")
"""What an installation without extras lacks."""


def loaded_by(*words: str) -> set[str]:
    """The packages that a command has loaded at its end."""
    done = run(
        "import contextlib, sys\nfrom kreassign.cli.main import main\n"
        f"sys.argv[1:] = {list(words)!r}\n"
        "with contextlib.suppress(SystemExit):\n    main()\n"
        "print('loaded', *sys.modules, file=sys.stderr)"
    )
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("loaded "))
    return set(line.split()[1:])


def test_help_loads_nothing_that_takes_long() -> None:
    loaded = loaded_by("--help")
    assert "kreassign.cli.main" in loaded
    assert not loaded.intersection((*HEAVY, *EXTRAS))


def test_a_plan_loads_no_extra_neither_spark_nor_web(tmp_path: Path) -> None:
    snapshot, plan = tmp_path / "cluster.json", tmp_path / "plan.json"
    partitions = (SnapshotPartition((1,), (1,), 1, 1, ("/d",), (10,)),) * 2
    hosts = tuple(SnapshotBroker(Broker(number, "h", 9092), (SnapshotLogDir("/d"),)) for number in (1, 2))
    write_snapshot(snapshot, ClusterSnapshot(1_767_225_600_000, "c", hosts, (SnapshotTopic("t", partitions),)))
    loaded = loaded_by("plan", "drain-brokers", "2", "--snapshot", str(snapshot), "--out", str(plan))
    assert plan.exists()
    assert "kreassign.planner" in loaded
    assert not loaded.intersection(EXTRAS)
