#!/usr/bin/env python3
"""Compare what an installation consists of (locks/product.lock) with known vulnerabilities.

python scripts/audit.py          asks PyPI, by pip-audit
python scripts/audit.py PLACE    reads documents of OSV: a folder of them, or the archive PyPI/all.zip that OSV offers

Exit code 0 where nothing is known, 1 where something is, 2 where there is nothing to compare with: that is no "none".
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "locks" / "product.lock"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


class NoDataError(Exception):
    """There is nothing to compare with. The text says why."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A known vulnerability of what is locked; `fixed_in` are versions, "" where none is known."""

    name: str
    version: str
    id: str
    fixed_in: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}: {self.id}" + (f", fixed in {self.fixed_in}" if self.fixed_in else "")


def pins(lock: str) -> dict[str, str]:
    """Version by name, of the text of a lock file."""
    return {canonicalize_name(name): version for name, version in _PIN.findall(lock)}


def findings_of_osv(pinned: Mapping[str, str], documents: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Findings in documents of OSV for these versions. No document is NoDataError."""
    found, count = set(), 0
    for document in documents:
        affected = [one for one in document.get("affected", []) if one.get("package", {}).get("ecosystem") == "PyPI"]
        count += bool(affected)
        for one in () if document.get("withdrawn") else affected:
            name = canonicalize_name(one["package"]["name"])
            if name in pinned and _concerns(one, pinned[name]):
                found.add(Finding(name, pinned[name], document["id"], ", ".join(_fixed(one))))
    if not count:
        raise NoDataError("no document there is about a package of PyPI")
    return sorted(found)


def _concerns(affected: Mapping[str, Any], version: str) -> bool:
    if version in affected.get("versions", []):
        return True
    ranges = (one["events"] for one in affected.get("ranges", []) if one["type"] == "ECOSYSTEM")
    return any(_is_within(events, Version(version)) for events in ranges)


def _is_within(events: Iterable[Mapping[str, str]], version: Version) -> bool:
    """True if the last event up to this version leaves it vulnerable. Events are ordered by version, not by place."""
    steps = sorted((_version(text), kind) for event in events for kind, text in event.items() if kind != "limit")
    is_vulnerable = False
    for at, kind in steps:
        if kind == "introduced" and at <= version:
            is_vulnerable = True
        if (kind == "fixed" and at <= version) or (kind == "last_affected" and at < version):
            is_vulnerable = False
    return is_vulnerable


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise NoDataError(f"{text!r} is no version of a package of PyPI") from error


def _fixed(affected: Mapping[str, Any]) -> list[str]:
    events = (event for one in affected.get("ranges", []) if one["type"] == "ECOSYSTEM" for event in one["events"])
    return sorted({event["fixed"] for event in events if "fixed" in event}, key=_version)


def documents_at(place: Path) -> Iterator[Mapping[str, Any]]:
    """The documents of a folder or an archive."""
    if place.is_file():
        with zipfile.ZipFile(place) as archive:
            for name in archive.namelist():
                if name.endswith(".json"):
                    yield json.loads(archive.read(name))
        return
    for path in sorted(place.rglob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def findings_of_pip_audit(lock: Path) -> list[Finding]:
    """Findings of PyPI. NoDataError where it cannot be asked, or does not know a package."""
    words = ["--strict", "--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json"]
    command = [str(Path(sys.executable).parent / "pip-audit"), *words, "--requirement", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError as error:
        raise NoDataError((done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]) from error
    return sorted(
        Finding(one["name"], one["version"], known["id"], ", ".join(known["fix_versions"]))
        for one in packages
        for known in one["vulns"]
    )


def main(words: list[str]) -> int:
    """Print one line for each vulnerability, and the exit code."""
    pinned = pins(LOCK.read_text(encoding="utf-8"))
    try:
        found = findings_of_osv(pinned, documents_at(Path(words[0]))) if words else findings_of_pip_audit(LOCK)
    except (NoDataError, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        reason = f"{type(error).__name__} {error}" if isinstance(error, KeyError) else str(error)
        sys.stderr.write(f"not audited: {reason}; give documents of OSV: make audit OSV=PyPI/all.zip\n")
        return 2
    sys.stdout.writelines(f"{one}\n" for one in found)
    sys.stdout.write(f"{len(found)} known vulnerabilities of {len(pinned)} packages\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
