"""PURE. Where Spark runs, and with which settings: what every command that uses it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """`master` is `local[*]` by default, or what spark-submit decides. Settings in `conf` come before ours."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


LOCAL_SPARK = SparkOptions()
