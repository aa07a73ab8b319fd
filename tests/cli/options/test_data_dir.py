from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.options.values import data_option


@click.command()
@data_option
def tell(data: Path | str) -> None:
    click.echo(f"{type(data).__name__} {data}")


@pytest.mark.parametrize("address", ["s3a://bucket/data", "hdfs://name:8020/data", "file:///data"])
def test_an_address_keeps_its_slashes(address: str) -> None:
    assert CliRunner().invoke(tell, ["--data", address]).output == f"str {address}\n"


@pytest.mark.parametrize("address", ["s3a://", "s3:///data", "://bucket", "file://host/data"])
def test_an_address_without_a_place_is_refused(address: str) -> None:
    refused = CliRunner().invoke(tell, ["--data", address])
    assert refused.exit_code == 2
    assert f"{address!r} is no address; write for example s3a://bucket/data" in refused.stderr


@pytest.mark.parametrize("address", ["ftp://host/data", "wasb://c@host/data", "s4://bucket/data"])
def test_an_address_that_nothing_can_open_is_refused_first(address: str) -> None:
    refused = CliRunner().invoke(tell, ["--data", address])
    assert refused.exit_code == 2
    assert f"tables cannot be kept in {address.partition(':')[0]}://, only in s3a://, s3://, " in refused.stderr


def test_anything_else_is_a_directory(tmp_path: Path) -> None:
    assert CliRunner().invoke(tell, ["--data", str(tmp_path)]).output == f"PosixPath {tmp_path}\n"
    (tmp_path / "file").touch()
    assert CliRunner().invoke(tell, ["--data", str(tmp_path / "file")]).exit_code == 2
