from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign


def define(*arguments: str) -> Result:
    return CliRunner().invoke(kreassign, ["define-tables", *arguments])


def test_definitions_go_to_stdout_for_a_catalog_or_for_dbt() -> None:
    sql = define("--location", "s3a://bucket/data", "--schema", "kafka")
    assert (sql.exit_code, sql.stderr) == (0, "next: kreassign load --data s3a://bucket/data\n")
    assert sql.stdout.startswith(
        "CREATE SCHEMA IF NOT EXISTS `kafka`;\n\nCREATE TABLE IF NOT EXISTS `kafka`.`clusters` (\n"
    )
    assert sql.stdout.endswith("LOCATION 's3a://bucket/data/audit_brokers';\n")
    dbt = define("--location", "/srv/data", "--format", "dbt")
    assert dbt.stdout.startswith("# Sources for dbt")
    assert "PARTITIONED BY (`date`)" in sql.stdout
    bare = define("--location", "/srv/data", "--no-columns").stdout
    assert "COMMENT" in bare
    assert "PARTITIONED" not in bare
    assert define("--location", "/srv/data", "--no-columns", "--format", "dbt").exit_code == 2
    assert '          location: "/srv/data/audit_brokers"\n' in dbt.stdout


@pytest.mark.parametrize(("arguments", "said"), [
    (("--location", "data"), "'data' is no address; write for example s3a://bucket/data"),
    (("--location", "/da ta"), "'/da ta' is no address"),
    (("--location", "/data", "--schema", "a.b"), "'a.b' is not a name of a schema"),
    (("--location", "/data", "--schema", "1"), "'1' is not a name of a schema"),
])  # fmt: skip
def test_what_is_no_address_or_no_name_is_refused(arguments: tuple[str, ...], said: str) -> None:
    result = define(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
