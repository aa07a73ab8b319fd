"""Refusals of other distributions, which every command that hears them explains."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kreassign.operations.twin import scenario_of
from kreassign.twin.serving import serving_scenario
from tests.cli.commands.test_steering import Terminal


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with serving_scenario(scenario_of("distribution/confluent-cloud")) as server:
        yield Terminal(server.bootstrap_servers, tmp_path_factory.mktemp("state"))


@pytest.mark.parametrize(
    "words",
    [("doctor", "--measure-for", "0s"), ("decommission", "1", "--dry-run"), ("maintenance", "enter", "1", "--yes")],
    ids=lambda words: words[0],
)
def test_a_refusal_says_whose_cluster_it_is(terminal: Terminal, words: tuple[str, ...]) -> None:
    refused = terminal.ask_cluster(*words)
    assert refused.exit_code == 4
    assert "This is Confluent Cloud: Confluent balances this cluster by itself" in refused.stderr
