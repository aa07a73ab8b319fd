"""Every twin that any test makes is checked after every step. There is no way to switch that off.

A twin that a test breaks on purpose is a deep copy of one that was made: what is found wrong with it is told to nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from typing import Any

import pytest

from kreassign.errors import InvariantBroken
from kreassign.twin.checkers import check_all, check_step
from kreassign.twin.cluster import Twin
from kreassign.twin.core import Step


class Watch:
    """The twins that were made since the last look, and what was found wrong with any."""

    def __init__(self) -> None:
        self.made: list[Twin] = []
        self.findings: list[str] = []

    def __deepcopy__(self, _memo: dict[int, Any]) -> Watch:
        """A watch of its own for the copy of a twin, without all twins that were made before."""
        return Watch()

    def take(self, twin: Twin) -> None:
        """Watch a new twin."""
        self.made.append(twin)
        check_all(twin)
        twin.watch(self._look)

    def _look(self, twin: Twin, step: Step) -> None:
        try:
            check_step(twin, step)
        except InvariantBroken as broken:
            # A server may swallow what is raised inside it; the end of the test does not.
            self.findings.append(str(broken))
            raise

    def close(self) -> list[str]:
        """Faults found since the last look, after checking every new twin as a whole."""
        for twin in self.made:
            try:
                check_all(twin)
            except InvariantBroken as broken:
                self.findings.append(f"at the end {broken}")
        findings = self.findings[:]
        self.made.clear()
        self.findings.clear()
        return findings


@pytest.fixture(scope="session", autouse=True)
def watched_twins() -> Iterator[Watch]:
    """From here on every twin is watched as soon as it is made."""
    watch = Watch()
    with pytest.MonkeyPatch.context() as patch:
        make = Twin.__init__

        @wraps(make)
        def make_watched(self: Twin, *arguments: Any, **named: Any) -> None:
            make(self, *arguments, **named)
            watch.take(self)

        patch.setattr(Twin, "__init__", make_watched)
        yield watch


@pytest.fixture(autouse=True)
def invariants_hold(watched_twins: Watch) -> Iterator[None]:
    """A test fails if an invariant was broken during it."""
    watched_twins.made.clear()  # Twins of several tests are served meanwhile; each of their steps is checked.
    yield
    findings = watched_twins.close()
    assert not findings, findings
