"""The line that adds an extra fits how kreassign was installed, and asks no index for its name."""

import json
from pathlib import Path

import pytest

from kreassign.errors import missing_extra
from kreassign.installation import line_by


@pytest.mark.parametrize(("record", "line"), [
    ("pipx_metadata.json", "pipx install --force '{source}[tables,web]'"),
    ("uv-receipt.toml", "uv tool install --force '{source}[tables,web]'"),
    ("pyvenv.cfg", "{prefix}/bin/python -m pip install '{source}[web]'"),
])  # fmt: skip
def test_each_installer_gets_its_own_line(tmp_path: Path, record: str, line: str) -> None:
    (tmp_path / record).touch()
    origin = json.dumps({"url": f"file://{tmp_path}", "dir_info": {}})
    assert line_by(origin, "web", {"tables"}, tmp_path) == line.format(source=tmp_path, prefix=tmp_path)


@pytest.mark.parametrize(("origin", "what"), [
    (None, "'.[web]'"),
    ({"url": "file:///no/such/checkout", "dir_info": {}}, "'.[web]'"),
    ({"url": "file:///tmp", "dir_info": {"editable": True}}, "-e '/tmp[web]'"),
    ({"url": "https://h/k.git", "vcs_info": {"vcs": "git", "commit_id": "f00"}}, "'kreassign[web] @ git+https://h/k.git@f00'"),
    ({"url": "https://h/k.whl", "archive_info": {}}, "'kreassign[web] @ https://h/k.whl'"),
])  # fmt: skip
def test_it_is_installed_from_where_it_came(tmp_path: Path, origin: dict[str, object] | None, what: str) -> None:
    line = line_by(None if origin is None else json.dumps(origin), "web", set(), tmp_path, has_pip=False)
    assert line == f"uv pip install --python {tmp_path}/bin/python {what}"


def test_the_error_ends_with_the_line() -> None:
    assert str(missing_extra("the page needs uvicorn", "web")).startswith("the page needs uvicorn: ")
