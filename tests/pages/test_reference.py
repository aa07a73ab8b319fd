"""Tables of the reference that people wrote say what the code says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.cli.profiles import SHARED, names_in
from kreassign.errors import KreassignError
from tests.checks.source import ROOT


def every_error(above: type[KreassignError] = KreassignError) -> Iterator[type[KreassignError]]:
    yield above
    for below in above.__subclasses__():
        if below.__module__ == KreassignError.__module__:
            yield from every_error(below)


def test_every_error_is_on_its_page_with_its_exit_code() -> None:
    page = (ROOT / "docs/reference/errors-and-exit-codes.md").read_text(encoding="utf-8")
    rows = {name: int(code) for code, name in re.findall(r"^\| (\d+) \| `(\w+)` \| ", page, re.MULTILINE)}
    assert rows == {error.__name__: error.exit_code for error in every_error()}


def test_the_configuration_on_its_page_is_read_and_no_shared_option_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    assert [option for option in SHARED if f"`{option}`" not in page] == []
    (example,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    path = tmp_path / "config.toml"
    path.write_text(example, encoding="utf-8")
    assert names_in(path) == {"test", "prod"}
    monkeypatch.setenv("KREASSIGN_CONFIG", str(path))
    monkeypatch.setenv("KREASSIGN_STATE_DIR", str(tmp_path))
    for name in ("test", "prod"):
        assert CliRunner().invoke(kreassign, ["--cluster", name, "status", "--all"]).exit_code == 0
