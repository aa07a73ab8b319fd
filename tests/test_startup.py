"""Each case in a fresh interpreter, because what is imported stays imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

CLIENTS = "{name for name in sys.modules if name.startswith(('kafka.producer', 'kafka.consumer', 'kafka.admin'))}"
QUICK = "from kreassign.startup import defer_kafka_clients; defer_kafka_clients(); import kreassign.wire.api"


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    "program",
    [
        f"import sys; {QUICK}; assert not {CLIENTS}, {CLIENTS}",
        f"{QUICK}; from kafka import KafkaProducer; assert KafkaProducer.__name__ == 'KafkaProducer'",
        f"{QUICK}; import kafka; assert kafka.__version__.startswith('3.')",
        f"{QUICK}; import kafka; assert kafka.KafkaProducer and type(kafka).__name__ == 'module'",
        f"{QUICK}; from kafka import consumer; assert consumer.KafkaConsumer",
        f"import sys, kafka; {QUICK}; assert sys.modules['kafka'] is kafka and kafka.KafkaProducer",
    ],
    ids=["no clients", "from import", "attribute", "whole", "submodule", "library first"],
)
def test_the_library_is_whole_for_others_and_lean_for_our_programs(program: str) -> None:
    done = run(program)
    assert done.returncode == 0, done.stderr


def test_a_name_that_the_library_does_not_have_is_an_error_as_ever() -> None:
    done = run(f"{QUICK}; import kafka; kafka.no_such_thing")
    assert "AttributeError" in done.stderr
    assert "no_such_thing" in done.stderr


@pytest.mark.parametrize(
    "program",
    [
        "from kreassign.cli import main as it; it.main()",
        "from kreassign.kafka_tools import scripts as it; it.leader_election()",
        "from kreassign.kafka_tools import scripts as it; it.preferred_replica_election()",
        "from kreassign.kafka_tools import scripts as it; it.reassign_partitions()",
        "from kreassign.kafka_tools import scripts as it; it.topics()",
    ],
)
def test_our_programs_start_without_the_clients(program: str) -> None:
    at_exit = f"atexit.register(lambda: print('clients:', {CLIENTS} or 'none'))"
    done = run(f"import atexit, sys; {at_exit}; sys.argv[1:] = ['--version']; {program}")
    assert done.stdout.splitlines()[-1] == "clients: none", done


def test_a_library_leaves_the_modules_of_the_program_alone() -> None:
    done = run("import kreassign.admin, sys; assert type(sys.modules['kafka']).__name__ == 'module'")
    assert done.returncode == 0, done.stderr
