"""Commands without extras, and their messages about the rest: in processes that cannot import them."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kreassign.errors import EXTRA_OF, lacking
from kreassign.model import Broker
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.snapshot_files import write_snapshot
from tests.checks.source import ROOT

# Several commands in one process, each in a fork of it: the start is what takes long.
WITHOUT_EXTRAS = """
import json, os, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
from kreassign.cli.main import main
for words in json.loads(sys.argv[2]):
    if not os.fork():
        sys.argv = ["kreassign", *words]
        main()
    print("exit", os.waitstatus_to_exitcode(os.wait()[1]), file=sys.stderr, flush=True)
"""


def outputs(folder: Path, *commands: tuple[str, ...], **variables: str) -> list[tuple[int, str]]:
    """Exit code and error output of each command, without the packages of all extras."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, json.dumps([*EXTRA_OF]), json.dumps(commands)],
        capture_output=True, text=True, check=True, timeout=120, cwd=folder,
        env={**os.environ, **variables},
    )  # fmt: skip
    parts, text = [], ""
    for line in done.stderr.splitlines(keepends=True):
        if line.startswith("exit "):
            parts.append((int(line.split()[1]), text))
            text = ""
        else:
            text += line
    return parts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    partitions = (SnapshotPartition((1,), (1,), 1, 1, ("/d",), (10,)),) * 2
    hosts = tuple(SnapshotBroker(Broker(number, "h", 9092), (SnapshotLogDir("/d"),)) for number in (1, 2))
    cluster = ClusterSnapshot(1_767_225_600_000, "c", hosts, (SnapshotTopic("t", partitions),))
    write_snapshot(tmp_path / "cluster.json", cluster)
    (tmp_path / "cluster.parquet").touch()
    return tmp_path


def test_a_base_installation_plans_rehearses_and_reports(folder: Path) -> None:
    codes = outputs(
        folder,
        ("plan", "drain-brokers", "2", "--snapshot", "cluster.json", "--out", "drain.json"),
        ("plan", "--snapshot", "cluster.json", "--out", "plan.json"),
        ("rehearse", "plan.json", "--snapshot", "cluster.json"),
        ("report", "--plan", "plan.json", "--out", "plan.html"),
    )
    assert [code for code, _ in codes] == [0, 0, 0, 0], codes


LACKING = {
    ("plan", "--snapshot", "cluster.json", "--on", "spark", "--out", "p.json"): "spark",
    ("plan", "--snapshot", "cluster.parquet", "--out", "p.json"): "tables",
    ("plan", "--snapshot", "cluster.json", "--data", "d", "--out", "p.json"): "tables",
    ("collect", "--data", "d"): "tables",
    ("load", "--data", "d"): "spark",
    ("audit", "compare", "a", "b", "--data", "d"): "spark",
    ("stream-metrics", "--data", "d"): "spark",
    ("web",): "web",
}


def test_each_command_names_the_extra_that_it_lacks(folder: Path) -> None:
    for (code, text), (words, extra) in zip(outputs(folder, *LACKING), LACKING.items(), strict=True):
        assert (code, text.count("\n")) == (1, 1), (words, text)
        assert re.search(rf"pip install .*\[{extra}\]'\n$", text), words


def test_mistakes_and_help_need_no_extra(folder: Path) -> None:
    helped = [(name, "--help") for name in ("collect", "load", "show-load", "stream-metrics", "compact")]
    assert outputs(folder, *helped) == [(0, "")] * len(helped)
    for code, text in outputs(folder, ("plan", "--trottle", "5"), ("--brokers", "1"), ("colect",)):
        assert code == 2, text
        assert "Traceback" not in text


@pytest.mark.parametrize("typed", ["kreassign col", "kreassign collect --"])
def test_completion_needs_no_extra(folder: Path, typed: str) -> None:
    at = str(len(typed.split(" ")) - 1)
    assert outputs(folder, (), _KREASSIGN_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=at) == [(0, "")]


def test_every_named_extra_installs_its_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    brought = {"arro3": "deltalake", "py4j": "pyspark", "llvmlite": "numba", "anyio": "starlette"}
    for package, extra in EXTRA_OF.items():
        assert any(line.startswith(brought.get(package, package)) for line in extras[extra]), package


def test_a_failed_import_of_our_own_names_no_extra() -> None:
    assert lacking(ImportError("no name", name="kreassign.model"), "plan") is None


def test_a_plan_too_large_for_python_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = importlib.import_module("kreassign.planner.search.compiled.compiler")
    monkeypatch.setattr(compiler, "_machine_code", None)
    with (
        pytest.raises(Exception, match=r"needs numba.*pip install .*\[plan-at-scale\]'"),
        compiler.as_pays(compiler.MOST_WITHOUT_COMPILER + 1, len),
    ):
        pass
    with compiler.as_pays(compiler.MOST_WITHOUT_COMPILER, len):
        pass
