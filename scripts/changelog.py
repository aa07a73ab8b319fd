#!/usr/bin/env python3
"""Put the fragments in `changelog/` into CHANGELOG.md as the section of a version, and remove them.

python scripts/changelog.py VERSION DATE
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("added", "changed", "fixed")


def section(version: str, date: str, fragments: Mapping[str, str]) -> str:
    """The section of a version. `fragments` maps file names `<slug>.<kind>.md` to their texts."""
    parts = [f"## {version} ({date})"]
    for kind in KINDS:
        texts = [fragments[name].strip() for name in sorted(fragments) if name.endswith(f".{kind}.md")]
        if texts:
            parts += [f"### {kind.capitalize()}", "\n".join(f"- {_indented(text)}" for text in texts)]
    return "\n\n".join(parts) + "\n"


def with_section(changelog: str, new: str) -> str:
    """The changelog with a section put before the newest one, or at the end where there is none."""
    head, mark, rest = changelog.partition("\n## ")
    return head.rstrip("\n") + "\n\n" + new + (f"\n{mark[1:]}{rest}" if mark else "")


def main(version: str, date: str) -> None:
    """Write CHANGELOG.md and remove the fragments."""
    folder = ROOT / "changelog"
    paths = sorted(path for kind in KINDS for path in folder.glob(f"*.{kind}.md"))
    if not paths:
        raise SystemExit("changelog/ holds no fragments, so there is nothing to release")
    changelog = ROOT / "CHANGELOG.md"
    new = section(version, date, {path.name: path.read_text() for path in paths})
    changelog.write_text(with_section(changelog.read_text(), new))
    for path in paths:
        path.unlink()


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
