from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.options.data_dir import data_or_address_option, warn_of_failures


@click.command()
@data_or_address_option
def tell(data: Path | str) -> None:
    click.echo(f"{type(data).__name__} {data}")


@pytest.mark.parametrize("address", ["s3a://bucket/data", "hdfs://name:8020/data", "file:///data"])
def test_an_address_keeps_its_slashes(address: str) -> None:
    assert CliRunner().invoke(tell, ["--data", address]).output == f"str {address}\n"


def test_anything_else_is_a_directory(tmp_path: Path) -> None:
    assert CliRunner().invoke(tell, ["--data", str(tmp_path)]).output == f"PosixPath {tmp_path}\n"
    (tmp_path / "file").touch()
    assert CliRunner().invoke(tell, ["--data", str(tmp_path / "file")]).exit_code == 2


def test_few_failures_are_named_and_many_counted(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_failures("offsets", {f"t-{number}": ValueError(f"no {number}") for number in range(5)})
    assert capsys.readouterr().err.splitlines() == [
        "warning: 5 without offsets:",
        "  t-0: no 0",
        "  t-1: no 1",
        "  t-2: no 2",
        "  and 2 more",
    ]


def test_no_failure_is_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_failures("offsets", {})
    assert capsys.readouterr().err == ""
