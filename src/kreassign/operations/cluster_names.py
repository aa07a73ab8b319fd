"""Which cluster a run was on, by the name that its operator gave it: told from its journal alone. Asks no cluster.

The command that started or resumed a run is in the journal. It names the cluster (`--cluster prod`) or its address; a
run of a state directory that one cluster has for itself is of that cluster. Whoever named it by the environment alone
cannot be told, and a wrong name would be worse than none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kreassign.executor.history.run_history import RunHistory


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """A cluster of the file of clusters: where it is, and the state directory of its runs, if it has its own."""

    name: str
    bootstrap_server: str | None = None
    state_dir: Path | None = None


def name_of(run: RunHistory, journal: Path, named: Sequence[NamedCluster]) -> str | None:
    """The name of the cluster of a run; None where that cannot be told."""
    for operator in reversed(run.operators):
        chosen = _given("--cluster", operator.command)
        if chosen is not None:
            return next((one.name for one in named if one.name == chosen), None)
        address = _given("--bootstrap-server", operator.command)
        if address is not None:
            there = [one.name for one in named if one.bootstrap_server == address]
            return there[0] if len(there) == 1 else None
    owners = [one.name for one in named if one.state_dir is not None and one.state_dir in journal.parents]
    return owners[0] if len(owners) == 1 else None


def _given(option: str, command: Sequence[str]) -> str | None:
    for word, following in pairwise((*command, "")):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and following:
            return following
    return None
