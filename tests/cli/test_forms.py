"""The forms of documents for programs: JSON, YAML and CSV have the same content."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.cli.output import ROWS, written
from tests.cli.test_run_views import written as journal
from tests.executor.run_events import WHOLE

DOCUMENT = {"ok": True, "note": "no: yes", "moves": [{"topic": "ä,b", "to": [1, 2]}, {"topic": "c", "size": None}]}


def test_yaml_says_what_json_says() -> None:
    assert yaml.safe_load(written(DOCUMENT, "yaml")) == json.loads(written(DOCUMENT, None)) == DOCUMENT


def test_csv_has_the_main_table_and_nested_values_as_json() -> None:
    rows = list(csv.DictReader(io.StringIO(written(DOCUMENT, "csv"))))
    assert rows == [{"topic": "ä,b", "to": "[1, 2]", "size": ""}, {"topic": "c", "to": "", "size": ""}]
    assert written({"a": 1, "b": False, "moves": []}, "csv") == "a,b,moves\n1,false,[]"


@pytest.mark.parametrize("name", ["-o", "--format"])
def test_commands_take_each_form(tmp_path: Path, name: str) -> None:
    journal(tmp_path, *WHOLE)

    def status(form: str, command: str = "status") -> str:
        shown = CliRunner().invoke(kreassign, [command, name, form, "--state-dir", str(tmp_path)])
        return shown.stdout if shown.exit_code == 0 else shown.stderr

    assert status("table") == status("text")
    found = json.loads(status("json"))
    assert yaml.safe_load(status("yaml")) == found
    moves = list(csv.DictReader(io.StringIO(status("csv"))))
    assert [(one["topic"], int(one["partition"])) for one in moves] == [
        (one["topic"], one["partition"]) for one in found["moves"]
    ]
    assert "text or JSON lines; csv is not supported" in status("csv", "watch")
    assert "moves" in ROWS
