"""PURE. What templates of pages may use: filters for amounts, and charts. All text is shown as text."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kreassign.model.printable import printable
from kreassign.report import charts
from kreassign.report.text import (
    format_bytes,
    format_change,
    format_count,
    format_duration,
    format_rate,
    format_replicas,
    format_signed_bytes,
    format_time,
)


def _shown(value: object) -> object:
    """A value as the page shows it: names and messages of a cluster without characters that deceive."""
    return value if isinstance(value, Markup) else printable(str(value))


def page_environment() -> Environment:
    """A fresh environment for one page."""
    environment = Environment(
        loader=PackageLoader("kreassign.report"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": format_bytes,
        "signed_bytes": format_signed_bytes,
        "rate": format_rate,
        "duration": format_duration,
        "time": format_time,
        "count": format_count,
        "replicas": format_replicas,
    }
    environment.globals |= {
        "charts": charts,
        "change": format_change,
        "format_bytes": format_bytes,
        "format_rate": format_rate,
    }
    return environment
