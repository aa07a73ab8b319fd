"""Clusters have the names by which operators reach them, or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.executor.history.run_history import history
from kreassign.model.run import Operator, RunHistory
from kreassign.operations.run_journals import NamedCluster, name_of
from tests.executor.run_events import WHOLE, replayed

PROD = NamedCluster("prod", "broker-1:9092", Path("/srv/prod"))
NAMED = (PROD, NamedCluster("test", "t-1:9092"), NamedCluster("twin", "t-2:9092"), NamedCluster("copy", "t-2:9092"))


def run(*commands: str) -> RunHistory:
    return replace(
        history(replayed(*WHOLE)[0]), operators=tuple(Operator("ann", "h1", tuple(one.split())) for one in commands)
    )


@pytest.mark.parametrize(
    ("commands", "journal", "name"),
    [
        (["kreassign run plan.json --cluster prod --yes"], "/var/c/run-1", "prod"),
        (["kreassign run plan.json --cluster=test"], "/srv/prod/c/run-1", "test"),
        (["kreassign run plan.json --cluster other"], "/srv/prod/c/run-1", None),
        (["kreassign run plan.json --bootstrap-server t-1:9092"], "/var/c/run-1", "test"),
        (["kreassign run plan.json --bootstrap-server t-2:9092"], "/var/c/run-1", None),
        (["kreassign run plan.json --cluster test", "kreassign resume --cluster prod"], "/var/c/run-1", "prod"),
        (["kreassign run plan.json --cluster test", "kreassign resume"], "/var/c/run-1", "test"),
        (["kreassign run plan.json"], "/srv/prod/c/run-1", "prod"),
        (["kreassign run plan.json"], "/var/c/run-1", None),
        ([], "/var/c/run-1", None),
    ],
)
def test_a_run_belongs_to_the_named_cluster_or_its_state_directory(
    commands: list[str], journal: str, name: str | None
) -> None:
    assert name_of(run(*commands), Path(journal), NAMED) == name
