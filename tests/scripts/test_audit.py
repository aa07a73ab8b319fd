"""Known vulnerabilities of what is locked: found in documents of OSV, and never "none" where nothing could be asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from scripts.audit import Finding, NoDataError, findings_of_osv, pins
from tests.checks.source import ROOT

PINNED = {"click": "8.5.1", "ruamel-yaml": "0.19.1"}


def document(name: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    affected = {"package": {"ecosystem": "PyPI", "name": name}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    return {"id": "PYSEC-1", "affected": [affected], **more}


@pytest.mark.parametrize(("events", "is_found"), [
    (({"introduced": "0"},), True),
    (({"introduced": "0"}, {"fixed": "8.5.1"}), False),
    (({"introduced": "0"}, {"fixed": "8.5.2"}), True),
    (({"introduced": "0"}, {"fixed": "8.10"}), True),
    (({"introduced": "8.5.1"},), True),
    (({"introduced": "8.5.2"},), False),
    (({"introduced": "0"}, {"last_affected": "8.5.1"}), True),
    (({"introduced": "0"}, {"last_affected": "8.5.0"}), False),
    (({"fixed": "7.0"}, {"introduced": "8.0"}, {"introduced": "0"}, {"fixed": "9.0"}), True),
    (({"introduced": "0"}, {"fixed": "7.0"}, {"introduced": "8.6"}), False),
])  # fmt: skip
def test_a_version_is_vulnerable_from_where_it_began_to_where_it_was_fixed(
    events: tuple[dict[str, str], ...], is_found: bool
) -> None:
    assert bool(findings_of_osv(PINNED, [document("Click", *events)])) is is_found


def test_names_are_compared_as_pip_does_and_a_fix_is_told() -> None:
    told = findings_of_osv(PINNED, [document("ruamel.yaml", {"introduced": "0"}, {"fixed": "0.20"})])
    assert told == [Finding("ruamel-yaml", "0.19.1", "PYSEC-1", "0.20")]
    assert str(told[0]) == "ruamel-yaml 0.19.1: PYSEC-1, fixed in 0.20"


def test_listed_versions_count_and_withdrawn_or_foreign_ones_do_not() -> None:
    listed = {"id": "GHSA-1", "affected": [{"package": {"ecosystem": "PyPI", "name": "click"}, "versions": ["8.5.1"]}]}
    assert [one.id for one in findings_of_osv(PINNED, [listed])] == ["GHSA-1"]
    withdrawn = document("click", {"introduced": "0"}, withdrawn="2026-01-01T00:00:00Z")
    npm = {"id": "X", "affected": [{"package": {"ecosystem": "npm", "name": "click"}, "versions": ["8.5.1"]}]}
    assert findings_of_osv(PINNED, [withdrawn, npm]) == []
    with pytest.raises(NoDataError, match="about a package of PyPI"):
        findings_of_osv(PINNED, [npm])
    with pytest.raises(NoDataError):
        findings_of_osv(PINNED, [])


def audit(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts/audit.py"), *map(str, words)], capture_output=True, text=True,
        check=False, timeout=120, env={**os.environ, "HTTPS_PROXY": "http://127.0.0.1:9", "PIP_AUDIT_TIMEOUT": "5"},
    )  # fmt: skip


def test_a_dump_is_read_as_a_folder_and_as_the_archive_that_osv_offers(tmp_path: Path) -> None:
    here = pins((ROOT / "locks/product.lock").read_text())["click"]
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "1.json").write_text(json.dumps(document("click", {"introduced": "0"}, {"fixed": "99.0"})))
    (dump / "2.json").write_text(json.dumps(document("pytest", {"introduced": "0"})))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in dump.iterdir():
            archive.write(path, path.name)
    for place in (dump, tmp_path / "all.zip"):
        told = audit(place)
        assert (told.returncode, told.stdout.splitlines()[0]) == (1, f"click {here}: PYSEC-1, fixed in 99.0")
    (dump / "1.json").unlink()
    told = audit(dump)
    assert (told.returncode, told.stdout.split(" of ")[0]) == (0, "0 known vulnerabilities")


def test_without_a_comparison_one_line_says_so_and_it_fails(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "1.json").write_text("no JSON")
    (tmp_path / "empty").mkdir()
    (tmp_path / "archive.zip").write_text("no archive")
    for place in ((tmp_path / "none",), (tmp_path / "empty",), (tmp_path / "odd",), (tmp_path / "archive.zip",), ()):
        told = audit(*place)
        assert (told.returncode, told.stdout) == (2, ""), place
        assert re.fullmatch(r"not audited: .+; give documents of OSV: make audit OSV=PyPI/all\.zip\n", told.stderr)
