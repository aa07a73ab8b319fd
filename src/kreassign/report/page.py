"""PURE. Pages with charts: one self-contained HTML document each, which forbids itself to ask anybody for anything.

The policy in the head of a page names its scripts by their hashes: nothing else is executed, wherever it came from,
and no address is asked. A server that hands a page out may add a policy of its own; the stricter one holds.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from functools import cache

from jinja2 import PackageLoader

from kreassign import __version__
from kreassign.report.chart import Chart
from kreassign.report.environment import page_environment


def render_page(template: str, charts: Iterable[Chart], **values: object) -> str:
    """The page of a template that extends `base.html`; `charts` are all that it shows by `picture`."""
    scripts = (plotly(), own_script())
    return (
        page_environment()
        .get_template(template)
        .render(
            figures=_as_data({chart.name: chart.figure for chart in charts}),
            scripts=scripts,
            policy=policy(scripts),
            version=__version__,
            **values,
        )
    )


@cache
def policy(scripts: tuple[str, ...]) -> str:
    """What the page may do: execute these scripts, have styles and pictures within itself, and nothing else."""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {hashes}; {rest}"


@cache
def plotly() -> str:
    """The library that draws, as its Python package brings it."""
    return _file_of("plotly", "package_data", "plotly.min.js")


@cache
def own_script() -> str:
    """The script that has the charts drawn."""
    return _file_of("kreassign.report", "templates", "charts.js")


def _file_of(package: str, folder: str, name: str) -> str:
    """A file of a package, as it is: templates include no scripts, whose braces they would read as their own."""
    return PackageLoader(package, folder).get_source(page_environment(), name)[0]


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _as_data(figures: object) -> str:
    """JSON that cannot end the element in which it stands."""
    text = json.dumps(figures, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
