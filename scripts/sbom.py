#!/usr/bin/env python3
"""Print what an installation of kreassign consists of, with versions and licences, as a CycloneDX 1.6 document.

python scripts/sbom.py [EXTRA...] > build/sbom.json

It lists the packages that are installed here and that kreassign, with these extras (spark and web if none is named),
needs, directly or not: not those that only its tests need. The same installation gives the same document.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kreassign.report import page

PRODUCT, EXTRAS = "kreassign", ("spark", "web")
# What packages that name no SPDX expression write in its place.
_SPDX = {
    "Apache 2.0": "Apache-2.0", "Apache Software License": "Apache-2.0", "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause", "3-Clause BSD License": "BSD-3-Clause", "BSD 3-Clause License": "BSD-3-Clause",
    "MIT License": "MIT",
}  # fmt: skip
PERMISSIVE = frozenset({
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "MIT", "MIT-0", "PSF-2.0", "Zlib",
    "Apache-2.0 WITH LLVM-exception",
})  # fmt: skip
_WORDS = re.compile(r"\s+(?:AND|OR)\s+|[()]")


class IncompleteError(Exception):
    """Something that an installation needs is not here to be listed. The text says what."""


@dataclass(frozen=True, slots=True)
class Component:
    """A package of an installation, with the names of those that it needs, or a script that kreassign brings."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]
    registry: str = "pypi"

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:{self.registry}/{self.name}@{self.version}"


PLOTLY = "plotly.js-cartesian-dist-min"


def plotly() -> Component:
    """The script of the pages, which is a file of kreassign; its first lines say what it is."""
    head = page.script("plotly.js")[:300]
    version = re.search(r"\* plotly\.js \(cartesian - minified\) v([\d.]+)\n", head)
    licence = re.search(r"\* Licensed under the (MIT) license\n", head)
    if version is None or licence is None:
        raise IncompleteError(f"the head of plotly.js names no version and licence: {head}")
    return Component(PLOTLY, version[1], licence[1], (), "npm")


def licence_of(found: Distribution) -> str:
    """Its SPDX expression; "" where it names none that is known."""
    told = found.metadata
    if expression := told.get("License-Expression"):
        return expression
    classifiers = (each.split(" :: ")[-1] for each in told.get_all("Classifier", []) if each.startswith("License ::"))
    for text in ((told.get("License") or "").splitlines() or [""])[0], *classifiers:
        if text in _SPDX or text in _SPDX.values():
            return _SPDX.get(text, text)
    return ""


def components(product: str = PRODUCT, extras: Iterable[str] = EXTRAS) -> dict[str, Component]:
    """The product and all that it needs, by name, the product first. Raises IncompleteError."""
    found: dict[str, Component] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    queue = [(canonicalize_name(product), frozenset(extras))]
    while queue:
        name, wanted = queue.pop(0)
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        installed = distribution(name)
        needs = tuple(_needs(installed, wanted))
        known = {need for need, _ in needs} | set(found[name].needs if name in found else ())
        found[name] = Component(name, installed.version, licence_of(installed), tuple(sorted(known)))
        queue += needs
    if (ours := found.get(PRODUCT)) is not None:
        found[PRODUCT] = replace(ours, needs=(*ours.needs, PLOTLY))
        found[PLOTLY] = plotly()
    return found


def without_permissive_licence(found: Iterable[Component]) -> dict[str, str]:
    """Licences by name of those that ask more than credit of whoever uses them, or whose licence is not known."""
    return {one.name: one.licence or "none that is known" for one in found if not _is_permissive(one.licence)}


def _is_permissive(expression: str) -> bool:
    names = {name for part in _WORDS.split(expression) if (name := part.strip())}
    return bool(names) and names <= PERMISSIVE


def _needs(installed: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The packages that one asks for on this machine, each with the extras of it. Raises IncompleteError."""
    for line in installed.requires or ():
        asked = Requirement(line)
        marker = asked.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        try:
            distribution(asked.name)
        except PackageNotFoundError:
            needed = f"{installed.name} needs {asked.name}, which is not installed here"
            raise IncompleteError(f"{needed}: nobody can tell its version and licence") from None
        yield canonicalize_name(asked.name), frozenset(asked.extras)


def document(found: Mapping[str, Component]) -> dict[str, object]:
    """A document of CycloneDX about the first of these, which consists of the others."""
    product, *others = found.values()
    dependencies = [{"ref": one.purl, "dependsOn": [found[name].purl for name in one.needs]} for one in found.values()]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, " ".join(one.purl for one in found.values()))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": _entry(product, "application")},
        "components": [_entry(one, "library") for one in sorted(others, key=lambda one: one.name)],
        "dependencies": dependencies,
    }


def _entry(one: Component, kind: str) -> dict[str, object]:
    entry: dict[str, object] = {
        "type": kind, "bom-ref": one.purl, "name": one.name, "version": one.version, "purl": one.purl,
    }  # fmt: skip
    return entry | ({"licenses": [{"expression": one.licence}]} if one.licence else {})


def main() -> None:
    """Print it."""
    extras = tuple(sys.argv[1:]) or EXTRAS
    try:
        found = components(extras=extras)
    except IncompleteError as error:
        raise SystemExit(f"no list of parts: {error}") from error
    sys.stdout.write(json.dumps(document(found), indent=2) + "\n")


if __name__ == "__main__":
    main()
