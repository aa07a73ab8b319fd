"""How this installation was made, and so the line that adds an extra to it.

pip, pipx and uv write down where a package came from (`direct_url.json`, PEP 610); pipx and uv have environments of
their own. By a name alone they would look in an index of packages, where the name may be anybody's.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import unquote, urlsplit

OWN = "kreassign"
_OF_EXTRA = re.compile(r"""([\w.-]+).*\bextra == ["']([\w-]+)["']""")


def line_for(extra: str) -> str:
    """The command line that adds an extra to this installation."""
    try:
        ours: Distribution | None = distribution(OWN)
    except PackageNotFoundError:  # run from its sources
        ours = None
    origin, needed = (None, ()) if ours is None else (ours.read_text("direct_url.json"), ours.requires or ())
    return line_by(origin, extra, _installed(needed), Path(sys.prefix), has_pip=_is_there("pip"))


def line_by(origin: str | None, extra: str, others: Collection[str], prefix: Path, *, has_pip: bool = True) -> str:
    """The line for the environment `prefix`, whose `others` are extras that it has.

    `origin` is the text of `direct_url.json`. pipx and uv make an environment from scratch, so that the others are
    named, too.
    """
    with_others = _requirement(origin, {extra, *others})
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {with_others}"
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install --force {with_others}"
    python, alone = quote(str(prefix / "bin" / "python")), _requirement(origin, {extra})
    return f"{python} -m pip install {alone}" if has_pip else f"uv pip install --python {python} {alone}"


def _requirement(origin: str | None, extras: Collection[str]) -> str:
    """The argument of each installer; a checkout that is gone, or was never written down, is the current directory."""
    named = f"[{','.join(sorted(extras))}]"
    found: dict[str, Any] = {"url": "file:"} if origin is None else json.loads(origin)
    url = str(found["url"])
    if commit := found.get("vcs_info"):
        return quote(f"{OWN}{named} @ {commit['vcs']}+{url}@{commit['commit_id']}")
    if not url.startswith("file:"):
        return quote(f"{OWN}{named} @ {url}")
    path = Path(unquote(urlsplit(url).path))
    editable = "-e " if found.get("dir_info", {}).get("editable") else ""
    return editable + quote(f"{path if path.exists() else '.'}{named}")


def _installed(requirements: Iterable[str]) -> set[str]:
    """Extras all of whose packages are installed."""
    found: dict[str, list[bool]] = defaultdict(list)
    for line in requirements:
        if named := _OF_EXTRA.match(line):
            found[named[2]].append(_is_there(named[1]))
    return {extra for extra, there in found.items() if all(there)}


def _is_there(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
