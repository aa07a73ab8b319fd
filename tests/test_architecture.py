"""Places of third-party packages, of effects and of answers, and quick imports. Every rule is a row with its reason.

Who of our own packages may import whom is checked by tests/test_imports.py. The picture of both is in
docs/design/architecture.md: to allow something new, change the rule and the picture.
"""

from __future__ import annotations

import ast
from dataclasses import fields

import pytest

from kreassign.model.run import MoveHistory, RunHistory
from tests.checks.architecture import (
    Home,
    QuickStart,
    far_from_home,
    loaded_with,
    modules_named_in_text,
    slow_starts,
    strangers,
)
from tests.checks.source import ROOT, Source, assert_none, product

# They load a command, or an operation, when it is first used; the names are in a table of texts.
LOADED_BY_NAME = ("src/kreassign/cli/main.py", "src/kreassign/kafka_tools/scripts.py", "src/kreassign/__init__.py")

THIRD_PARTY = (
    Home(
        "Kafka's message classes",
        ("kafka.protocol",),
        ("wire/",),
        "its classes change with its releases; one package translates",
        "from kafka.protocol.admin import ListPartitionReassignmentsRequest",
    ),
    Home(
        "Kafka's batches of records",
        ("kafka.record", "kafka.errors"),
        ("wire/records.py",),
        "one file writes and reads them, for journals in a topic",
        "from kafka.record import MemoryRecords",
    ),
    Home(
        "kafka-python's networking",
        ("kafka.net",),
        ("admin/sasl.py",),
        "its insides move between releases; one file bears it",
        "from kafka.net.sasl import get_sasl_mechanism",
    ),
    Home(
        "the rest of kafka-python",
        ("kafka",),
        (),
        "its clients retry by themselves and drop the broker's messages; use AdminClient",
        "from kafka import KafkaAdminClient",
    ),
    Home(
        "Spark",
        ("pyspark", "py4j", "pandas", "grpc"),
        ("pipeline/",),
        "only the data commands may need it",
        "from pyspark.sql import DataFrame",
    ),
    Home(
        "arrays",
        ("numpy",),
        ("pipeline/", "planner/", "twin/", "model/replica_columns.py"),
        "a million replicas are counted in arrays, and handed on as one value; all else speaks in single values",
        "import numpy",
    ),
    Home(
        "the compiler of inner loops",
        ("numba",),
        ("planner/search/compiled/machine_code.py",),
        "one file bears what it asks for; the loops themselves stay ordinary functions of arrays",
        "import numba",
    ),
    Home("Parquet", ("pyarrow",), ("pipeline/",), "tables are read and written in one package", "import pyarrow"),
    Home(
        "the logs of tables",
        ("deltalake",),
        ("pipeline/tables/",),
        "which files are a table is asked and decided in one package",
        "from deltalake import DeltaTable",
    ),
    Home(
        "the ZooKeeper client",
        ("kazoo",),
        ("twin/store.py", "kafka_tools/"),
        "only the twin's store and --zookeeper of the drop-in tools need it",
        "from kazoo.client import KazooClient",
    ),
    Home(
        "terminal output",
        ("rich", "click"),
        ("cli/", "kafka_tools/", "report/"),
        "packages return values; only the edge shows them",
        "import click",
    ),
    Home(
        "Java property files",
        ("javaproperties",),
        ("admin/properties.py",),
        "the form of such a file is known in one place",
        "import javaproperties",
    ),
    Home(
        "Kerberos",
        ("gssapi",),
        ("admin/kerberos.py",),
        "an extra: one file is loaded where it is used",
        "import gssapi",
    ),
    Home(
        "signatures of AWS",
        ("aws_msk_iam_sasl_signer", "botocore"),
        ("admin/msk.py",),
        "an extra: one file is loaded where it is used",
        "import botocore",
    ),
    Home(
        "certificates and private keys",
        ("cryptography",),
        ("admin/java_stores.py", "admin/assertions.py"),
        "stores of Java are read by us, and assertions signed; TLS itself is the standard library's",
        "from cryptography import x509",
    ),
    Home(
        "Prometheus' formats",
        ("prometheus_client",),
        ("pipeline/ingest/measure_files.py", "monitoring/metrics.py"),
        "one file reads pages of metrics, and one writes them",
        "from prometheus_client.parser import text_string_to_metric_families",
    ),
    Home(
        "templates",
        ("jinja2", "markupsafe"),
        ("report/", "web/"),
        "only reports and the page are HTML",
        "import jinja2",
    ),
    Home(
        "the page",
        ("starlette", "uvicorn", "anyio"),
        ("web/",),
        "an extra: it is loaded by the one command that serves",
        "from starlette.applications import Starlette",
    ),
    Home("YAML", ("yaml",), ("cli/output.py",), "one file writes it, for whoever asks for it", "import yaml"),
)

EFFECTS = (
    Home(
        "reading and writing files",
        (
            "builtins.open", "io.open", "tempfile", "shutil", "glob", "fcntl", "mmap", "pathlib.Path.home",
            "pathlib.Path.cwd", "?.open", "?.read_text", "?.write_text", "?.read_bytes", "?.write_bytes", "?.mkdir",
            "?.unlink", "?.rmdir", "?.iterdir", "?.rglob", "?.exists", "?.is_file", "?.is_dir", "?.touch",
            "?.expanduser", "os.open", "os.replace", "os.rename", "os.remove", "os.unlink", "os.mkdir",
            "os.makedirs", "os.listdir", "os.scandir", "os.stat", "os.fsync", "os.path.exists",
        ),
        (
            "admin/properties.py", "admin/tls.py", "certificates.py",
            "admin/tokens.py", "admin/assertions.py", "twin/store.py", "executor/runner.py", "executor/journal/",
            "model/error_codes.py", "twin/controller/config_keys.py", "twin/version.py",  # Kafka's own, of the package
            "pipeline/tables/", "pipeline/spark_session.py", "planner/search/compiled/", "operations/",
            "cli/", "kafka_tools/", "installation.py",
        ),
        "elsewhere take and return text or values",
        "def f(path): return path.read_text()",
    ),
    Home(
        "texts of files",
        ("?.read_text",),
        (
            "model/error_codes.py", "twin/controller/config_keys.py", "twin/version.py",  # of the package
            "operations/monitoring.py", "pipeline/tables/schemas.py", "cli/main.py",
            "admin/tokens.py", "admin/properties.py", "kafka_tools/",  # in encodings that Kafka decides
            "executor/journal/folder.py", "planner/search/compiled/", "cli/terminal.py",  # that kreassign wrote
            "executor/journal/processes.py", "installation.py",  # of the kernel, and of pip
        ),
        "files that users name are read by operations/text_files.py, which names another encoding",
        "def f(path): return path.read_text()",
    ),
    Home(
        "sockets",
        ("socket", "select", "selectors", "asyncio", "http", "urllib.request", "socketserver", "wsgiref"),
        (
            "admin/transport.py", "admin/tokens.py", "monitoring/metrics.py", "monitoring/webhooks.py",
            "monitoring/client_signals.py", "twin/server.py", "twin/serving.py", "web/server.py",
        ),
        "take a Transport, so that the twin can stand in for a cluster",
        "import socket",
    ),
    Home(
        "TLS",
        ("ssl",),
        ("admin/", "certificates.py", "twin/server.py", "monitoring/client_signals.py"),
        "certificates belong to the edge of the cluster, and to that of Prometheus",
        "import ssl",
    ),
    Home(
        "threads",
        ("threading", "concurrent.futures", "multiprocessing", "_thread"),
        (
            "admin/", "monitoring/metrics.py", "monitoring/webhooks.py", "monitoring/client_signals.py",
            "twin/server.py", "twin/transport.py", "pipeline/tables/commits.py", "pipeline/tables/parquet.py",
            "pipeline/spark_session.py", "cli/streams.py", "cli/commands/autopilot.py", "web/",
        ),
        "asking many brokers, or a store for many files, at once, or Spark while a job waits, needs them, and telling "
        "others without keeping a run waiting; the page serves many at once, an autopilot looks at many; the "
        "rest stays single-threaded",
        "from concurrent.futures import ThreadPoolExecutor",
    ),
    Home(
        "the machine's time",
        (
            "time", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today",
            "datetime.date.today", "sched",
        ),
        ("clock.py",),
        "take a Clock, so that a rehearsal can run in virtual time",
        "import time",
    ),
    Home(
        "randomness",
        ("random.*", "secrets", "uuid.uuid1", "uuid.uuid4", "os.urandom"),
        (
            "admin/assertions.py", "executor/runner.py", "operations/autopilot_lease.py", "operations/run.py",
            "operations/whole_file.py",
            "kafka_tools/", "pipeline/tables/", "web/settings.py",
        ),
        "take a seeded random.Random, so that a run can be repeated",
        "import random\nx = random.random()",
        but=("random.Random",),
    ),
    Home(
        "TOML",
        ("tomllib",),
        (
            "model/documents.py",
            "admin/properties.py", "cli/main.py", "kafka_tools/command_line.py",
            "twin/controller/config_keys.py",  # tables of our own, as the three before
        ),
        "Python's parser raises errors of its own for deep and long files; one function names them all",
        "import tomllib",
    ),
    Home(
        "databases",
        ("sqlite3", "dbm", "shelve"),
        ("executor/journal/", "pipeline/ingest/imported_samples.py"),
        "the journal is the only memory of a run; besides, SQLite judges rows in memory by rules that are SQL",
        "import sqlite3",
    ),
    Home(
        "other programs",
        ("subprocess", "os.system", "os.fork", "os.kill", "os.exec", "os.spawn", "pty"),
        (
            "cli/terminal.py", "cli/options/connections.py", "cli/commands/autopilot.py", "cli/commands/demo.py",
            "operations/ssh_signatures.py", "monitoring/client_signals.py",
        ),
        "kreassign goes on by itself in the background, starts what prints a secret, or says how clients feel, where "
        "the user says so, shows its own commands, watches each cluster by itself, and signs and "
        "verifies by ssh-keygen, which has the keys",
        "import subprocess",
    ),
    Home(
        "the terminal",
        ("builtins.print", "builtins.input", "sys.stdout", "sys.stderr", "sys.stdin", "getpass"),
        ("cli/", "kafka_tools/"),
        "return text; the command line prints it",
        "print('moved')",
    ),
    Home(
        "the process",
        ("os.environ", "os.getenv", "os.getcwd", "os.chdir", "sys.argv", "sys.exit", "os._exit", "signal", "atexit"),
        (
            "cli/", "kafka_tools/", "operations/run_journals.py", "pipeline/spark_session.py", "admin/properties.py",
            "monitoring/client_signals.py",  # ends the commands that it started
        ),
        "settings arrive as arguments; only the edge reads them from the process",
        "import os\nhome = os.environ['HOME']",
    ),
)  # fmt: skip

ANSWERS = (
    Home(
        "Kafka's way to read a plan",
        ("kreassign.model.plan.parse_plan",),
        ("kafka_tools/",),
        "commands of our own read plans strictly, by operations/plan_files.py",
        "from kreassign.model.plan import parse_plan",
    ),
    Home(
        "whether a text is a plan",
        ("kreassign.model.plan_document.parse_plan_document", "kreassign.model.proposals.parse_proposals"),
        ("operations/plan_files.py", "model/plan_document.py"),
        "one reader decides for all commands, the page and programs, and names the file",
        "from kreassign.model.plan_document import parse_plan_document",
    ),
    Home(
        "why a plan leaves a partition",
        ("kreassign.planner.problem.holds",),
        ("planner/",),
        "commands get sentences, which are made in one place",
        "from kreassign.planner.problem.holds import Hold",
    ),
    Home(
        "why a run refuses a partition",
        ("kreassign.executor.preflight.violations", "kreassign.executor.preflight.hindrances"),
        ("operations/plan.py", "operations/rollback.py"),
        "every run is prepared by `prepare`; besides, new destinations and rollbacks are judged partition by partition",
        "from kreassign.executor.preflight import violations",
    ),
    Home(
        "which replication factors a plan changes",
        (
            "kreassign.model.replication_factor.FactorChanges", "kreassign.model.replication_factor.factor_changes",
            "kreassign.model.replication_factor.CONSENT",
        ),
        ("operations/plan.py", "executor/cluster/requests.py"),
        "a plan knows them from its inputs, all else reads them with `read_factors`",
        "from kreassign.model.replication_factor import FactorChanges",
    ),
    Home(
        "what a factor below min.insync.replicas means",
        ("kreassign.model.replication_factor.undercut",),
        ("model/topic_changes.py", "executor/history/findings.py"),
        "changes of topics and the doctor say it beside what they found; plans and runs by FactorChanges",
        "from kreassign.model.replication_factor import undercut",
    ),
    Home(
        "which replicas in sync go for ones that lag",
        ("kreassign.model.replication_factor.lost_in_sync", "kreassign.model.replication_factor.keeps_lagging"),
        (
            "model/topic_changes.py", "executor/preflight.py", "executor/cluster/requests.py",
            "planner/check/legality.py",
        ),
        "a list is judged when topics change, before a run, before each move, and as a plan",
        "from kreassign.model.replication_factor import lost_in_sync",
    ),
    Home(
        "whether a run that ended is rolled back",
        ("kreassign.operations.run.start_run", "kreassign.operations.run.resume_run"),
        ("operations/run.py", "operations/rollback.py", "operations/whole_runs.py"),
        "a guard may demand it of every run; only a rollback is not rolled back itself",
        "from kreassign.operations.run import start_run",
    ),
)  # fmt: skip
"""Questions to which all commands give one answer, each with who may ask."""

HEAVY = (
    "pyspark", "py4j", "pandas", "numpy", "pyarrow", "deltalake", "jinja2", "sqlite3", "kazoo", "starlette", "uvicorn",
    "anyio",
)  # fmt: skip
QUICK_STARTS = (
    QuickStart(
        "kreassign.kafka_tools.reassign_partitions", HEAVY, "The drop-in tool must start faster than Kafka's own."
    ),
    QuickStart("kreassign", (*HEAVY, "kafka", "click", "rich"), "Every module of ours loads it first."),
    QuickStart("kreassign", HEAVY, "What a program does not use costs it nothing."),
    QuickStart("kreassign.operations.connect", HEAVY, "Connecting needs no tables and no plans."),
    QuickStart("kreassign.cli.main", HEAVY, "Each command loads only what it needs."),
    QuickStart(
        "kreassign.cli.commands.plan",
        ("starlette", "uvicorn", "anyio", "pyspark"),
        "A plan needs no page and no Spark.",
    ),
    QuickStart("kreassign.admin", HEAVY, "The client is a library of its own."),
    QuickStart("kreassign.pipeline.tables.schemas", HEAVY, "Tables are described without any engine."),
)


def test_only_the_entry_points_load_modules_by_name() -> None:
    assert_none(finding for source in product() for finding in modules_named_in_text(source, LOADED_BY_NAME))


def test_third_party_packages_stay_in_their_homes() -> None:
    assert_none(finding for source in product() for finding in far_from_home(source, THIRD_PARTY, typing_counts=True))


def test_no_third_party_package_is_homeless() -> None:
    assert_none(finding for source in product() for finding in strangers(source, THIRD_PARTY))


def test_effects_stay_in_their_homes() -> None:
    assert_none(finding for source in product() for finding in far_from_home(source, EFFECTS, typing_counts=False))


def test_each_question_is_answered_in_one_place() -> None:
    assert_none(finding for source in product() for finding in far_from_home(source, ANSWERS, typing_counts=False))


@pytest.mark.parametrize("rule", QUICK_STARTS, ids=lambda rule: rule.module)
def test_quick_modules_load_nothing_heavy(rule: QuickStart) -> None:
    assert_none(slow_starts(rule, product()))


# The checks above must be able to fail: here they judge sources that break each rule.


def _source(path: str, text: str) -> Source:
    return Source(f"src/kreassign/{path}", text)


@pytest.mark.parametrize("text", [
    "import importlib\nx = importlib.import_module('kreassign.admin')",
    "COMMAND = 'kreassign.admin.client:main'",
])  # fmt: skip
def test_a_module_that_is_named_in_a_text_is_found(text: str) -> None:
    (finding,) = modules_named_in_text(_source("twin/cluster.py", text), LOADED_BY_NAME)
    assert "names kreassign.admin" in str(finding)
    assert not list(modules_named_in_text(_source("cli/main.py", text), LOADED_BY_NAME))


@pytest.mark.parametrize("home", THIRD_PARTY + EFFECTS + ANSWERS, ids=lambda home: home.what)
def test_every_home_is_enforced_outside_and_left_alone_inside(home: Home) -> None:
    outside = _source("model/cluster.py", home.example)
    (finding,) = far_from_home(outside, (home,), typing_counts=True)
    assert home.what in str(finding)
    for place in home.homes:
        inside = _source(place + "x.py" if place.endswith("/") else place, home.example)
        assert not list(far_from_home(inside, (home,), typing_counts=True))


@pytest.mark.parametrize("text", [
    "from time import monotonic as tick\nx = tick()",
    "def f():\n    import time",
    "from datetime import datetime\nx = datetime.now()",
    "import datetime as dt\nx = dt.datetime.now()",
    "import random\nx = random.Random()",
    "from random import shuffle",
    "from os import environ",
    "import os.path\nx = os.environ",
    "with open('x') as file: pass",
    "from pathlib import Path\nx = Path('x').read_text()",
    "import sys\nprint('x', file=sys.stderr)",
])  # fmt: skip
def test_effects_are_found_however_they_are_written(text: str) -> None:
    assert list(far_from_home(_source("model/cluster.py", text), EFFECTS, typing_counts=False))


@pytest.mark.parametrize("text", [
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import socket\ndef f(x: socket.socket) -> None: ...",
    "import random\nx = random.Random(7)",
    "from datetime import UTC, datetime\nx = datetime.fromtimestamp(0, tz=UTC)",
    "import os\nx = os.sep",
    "timeless = 'print'",
])  # fmt: skip
def test_what_has_no_effect_is_left_alone(text: str) -> None:
    assert not list(far_from_home(_source("model/cluster.py", text), EFFECTS, typing_counts=False))


def test_an_unknown_package_is_found() -> None:
    (finding,) = strangers(_source("cli/main.py", "import json\nimport polars"), THIRD_PARTY)
    assert "polars" in str(finding)


def test_a_heavy_import_is_found_through_other_modules() -> None:
    rule = QuickStart("kreassign.cli.main", ("pyspark",), "why")
    main = _source("cli/main.py", "from kreassign.pipeline.load.job import run")
    packages = (_source("__init__.py", ""), _source("cli/__init__.py", ""), _source("pipeline/__init__.py", ""))
    heavy, lazy = "import pyspark", "def run():\n    import pyspark"
    (finding,) = slow_starts(rule, (*packages, main, _source("pipeline/load/job.py", heavy)))
    assert "(kreassign.cli.main → kreassign.pipeline.load.job.run → pyspark)" in str(finding)
    assert not list(slow_starts(rule, (*packages, main, _source("pipeline/load/job.py", lazy))))


def test_a_rule_about_a_module_that_is_not_there_is_found() -> None:
    (finding,) = slow_starts(QuickStart("kreassign.gone", HEAVY, "why"), (_source("__init__.py", ""),))
    assert "kreassign.gone, which is not there" in str(finding)


def test_what_a_package_re_exports_counts_as_loaded() -> None:
    sources = (
        _source("__init__.py", ""),
        _source("a/__init__.py", "from kreassign.a.b import c"),
        _source("a/b.py", "import x"),
    )
    assert {"kreassign", "kreassign.a", "kreassign.a.b", "x"} == loaded_with("kreassign.a.b", sources).keys()


MOST_SHARED = 4
"""Fields that a class may share with a run or a move by chance."""

RESTATED = {
    "Change": "document of a plan, before there is a run",
    "RunSummary": "document of a run in a list, also of a journal that cannot be read",
    "MoveView": "times of a move since the start of its run, for the page of a run",
}
"""Classes that have fields of a run's or a move's value again, and why."""


def test_no_class_restates_a_run_or_a_move() -> None:
    values = [{field.name for field in fields(one)} for one in (RunHistory, MoveHistory)]
    found = {
        node.name
        for folder in ("report", "web", "monitoring", "operations", "cli")
        for path in (ROOT / "src" / "kreassign" / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for names in [{_name_of_field(one) for one in node.body}]
        if any(len(names & value) > MOST_SHARED for value in values)
    }
    assert found == set(RESTATED), "read RunHistory and MoveHistory of model/run.py instead"


def _name_of_field(node: ast.stmt) -> str | None:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return node.name if isinstance(node, ast.FunctionDef) else None
