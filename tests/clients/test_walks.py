"""Comparison of walks, and the walks of the clients in Python: the others are run by `make test-clients`."""

from __future__ import annotations

import pytest
from kafka.admin import KafkaAdminClient

from kreassign.twin.server import serving
from testbed import KafkaCluster
from tests.clients.known import KNOWN, unexpected
from tests.clients.programs import PROGRAMS, Language, Program
from tests.clients.walks import BrokenWalkError, Difference, differences, prepare, walk
from tests.conformance.clusters import NEWEST, small_twin

IN_PYTHON = [program for program in PROGRAMS if program.language is Language.PYTHON]


def test_steps_that_differ_are_told_in_their_order() -> None:
    on_twin = {"create": "created", "produce": {"code": 44}, "delete": {"code": 3}}
    on_kafka = {"create": "created", "produce": "kept", "delete": "deleted"}
    assert differences(on_twin, on_kafka) == (
        Difference("produce", {"code": 44}, "kept"), Difference("delete", {"code": 3}, "deleted")
    )  # fmt: skip


def test_a_known_difference_is_expected_only_as_it_is_known() -> None:
    as_known, otherwise = Difference("produce", {"code": 44}, "kept"), Difference("produce", {"code": 7}, "kept")
    of_another_step = Difference("create", {"code": 44}, "created")
    assert unexpected("sarama", [as_known, otherwise, of_another_step]) == (otherwise, of_another_step)


def test_every_program_has_a_row_of_what_it_finds_otherwise() -> None:
    assert set(KNOWN) == {program.name for program in PROGRAMS}


def test_a_program_that_does_not_end_its_walk_is_told() -> None:
    with pytest.raises(BrokenWalkError, match="no-such-client ended after 'its start' with 1"):
        walk(Program("no_such_module", "no-such-client", Language.PYTHON), "127.0.0.1:1", "t")


@pytest.mark.kafka
@pytest.mark.uses_cluster("conformance")
@pytest.mark.parametrize("program", IN_PYTHON, ids=lambda program: program.name)
def test_a_client_finds_the_same_in_a_twin_and_in_kafka(
    conformance: KafkaCluster, topic_name: str, program: Program
) -> None:
    with serving(small_twin(NEWEST, len(conformance.brokers))) as twin:
        for servers in (twin.bootstrap_servers, conformance.bootstrap_servers):
            prepare(servers)
        on_twin = walk(program, twin.bootstrap_servers, topic_name)
        on_kafka = walk(program, conformance.bootstrap_servers, topic_name)
    forget_groups(conformance.bootstrap_servers, topic_name)
    surprises = unexpected(program.name, differences(on_twin, on_kafka))
    assert not surprises, "\n".join(f"{one.step}: twin {one.on_twin}, Kafka {one.on_kafka}" for one in surprises)


def forget_groups(bootstrap: str, topic: str) -> None:
    """Leave no group of this walk to the tests that come after it."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        known = {group["group_id"] for group in client.list_groups()}
        client.delete_groups([group for group in known if group.startswith(topic)])
    finally:
        client.close()
