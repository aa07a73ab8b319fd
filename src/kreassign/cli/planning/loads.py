"""What the loads of plans rest on, for people: lines that fit a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.console import Console

from kreassign.clock import SystemClock
from kreassign.model.load_basis import ForecastBasis, LoadBasis
from kreassign.model.printable import shortened

WIDTH = 78
_FROM = {"unknown": "as 0, unknown", "size": "by size", "topic": "topic's median", "measured": "as measured"}
"""Priors in words, the weakest first: what does not fit is at the end."""

_LOAD = "`kreassign load`"
_RENEW = {"snapshot": "`kreassign snapshot`"}
"""How to get new ones."""


def print_loads(terminal: Console, basis: LoadBasis, max_age_s: float | None = None) -> None:
    """Print them, with the age that they have now, and first of all that they are too old."""
    for line in load_lines(basis, SystemClock().now_ms(), max_age_s):
        terminal.print(line)


def load_lines(basis: LoadBasis, now_ms: int, max_age_s: float | None = None) -> Iterator[str]:
    """Which loads, how old, how many are doubtful and why, what is planned with instead, and whom it concerns."""
    since = f"{_time(basis.measured_ms)} ({_age(now_ms - basis.measured_ms)})"
    end = "" if basis.doubtful_count or basis.is_glimpse else "; none doubtful"
    if basis.is_stale(now_ms, max_age_s):
        renewed = _RENEW.get(basis.source, _LOAD)
        yield f"stale loads: last measured {_age(now_ms - basis.measured_ms)}; renew them with {renewed}"
    if basis.source == "cluster":
        only = " only" if basis.is_glimpse else ""
        yield f"loads: measured for {basis.measured_for_s or 0:g} s{only}, {since}{end}"
        if basis.is_glimpse:
            yield f"  what other hours bring is not known: run `kreassign collect`, then {_LOAD}"
    elif basis.source == "snapshot":
        yield f"loads: those of the snapshot, {since}{end}"
    elif basis.last_hour_ms is None:
        yield f"loads: {basis.source}, snapshot of {since}{end}"
    else:
        yield f"loads: {basis.source}, samples until {since}{end}"
    if basis.forecast is not None:
        yield from _forecast(basis.forecast)
    if basis.doubtful_count:
        yield from _doubts(basis)
    if basis.unsized:
        yield f"unknown sizes: {basis.unsized} of {basis.partitions} partitions, which stay"
    if basis.assumed_reads:
        count = f"{basis.assumed_reads} of {basis.partitions} partitions"
        yield f"assumed net-out: {count}, for nobody measured their consumers:"
        yield f"  taken to read {basis.reads_per_write:g} x what is written (reads-per-write of the goals file)"


def _doubts(basis: LoadBasis) -> Iterator[str]:
    reasons = [f"{count} {reason}" for reason, count in basis.reasons.items()]
    yield _fit(f"doubtful loads: {basis.doubtful_count} of {basis.partitions} partitions: ", reasons)
    yield _fit(
        "  planned with: ",
        [f"{basis.priors[prior]} {words}" for prior, words in _FROM.items() if prior in basis.priors],
    )
    named = [shortened(str(one.topic_partition)) for one in basis.doubtful]
    yield _fit("  largest: ", named, basis.doubtful_count)
    most = sorted(basis.brokers, key=lambda one: (-one.write_share, -one.size_share, one.broker))
    shares = [f"{one.broker}: {one.write_share:.0%}/{one.size_share:.0%}" for one in most]
    yield _fit("  share of brokers' writes/bytes: ", shares)


def _forecast(basis: ForecastBasis) -> Iterator[str]:
    ahead = f"forecast: {basis.horizon_days:g} days ahead"
    if basis.low_ratio is None or basis.high_ratio is None:
        yield ahead
    else:
        yield f"{ahead}, 95% interval from x {basis.low_ratio:.2f} to x {basis.high_ratio:.2f} (median)"
    if basis.median_error is None or basis.covered_share is None:
        yield "  not tested: that takes two whole weeks of samples"
    else:
        tested = f"  tested on {basis.tested_partitions} partitions: "
        yield f"{tested}error {basis.median_error:.0%}, {basis.covered_share:.0%} in the interval"


def _fit(title: str, parts: Sequence[str], total: int = 0) -> str:
    """As many of the parts as fit, at least one, and how many more there are of all, or in `total`."""
    total = max(total, len(parts))
    count = len(parts)
    while count > 1 and len(_joined(title, parts[:count], total)) > WIDTH:
        count -= 1
    return _joined(title, parts[:count], total)


def _joined(title: str, parts: Sequence[str], total: int) -> str:
    more = f" and {total - len(parts)} more" if total > len(parts) else ""
    return f"{title}{', '.join(parts)}{more}"


def _time(time_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):  # a file may say any number
        return f"{time_ms} ms"


def _age(age_ms: int) -> str:
    seconds = age_ms / 1000
    if seconds < 0:
        return "ahead of this clock"
    for unit, length, least in (("days", 86_400, 2), ("hours", 3_600, 2), ("minutes", 60, 2)):
        if seconds >= least * length:
            return f"{seconds // length:.0f} {unit} ago"
    return f"{seconds:.0f} seconds ago"
