from __future__ import annotations

import pytest

from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.wire import api
from tests.twin.asking import ask, twin

BROKERS, CONTROLLERS = 1, 2


def test_a_broker_lists_live_brokers_and_fenced_ones_if_asked_to() -> None:
    asked = twin()
    asked.stop(1)
    live = ask(asked, api.DESCRIBE_CLUSTER, 2, endpoint_type=BROKERS)
    assert [(one.broker_id, one.host, one.port, one.rack, one.is_fenced) for one in live.brokers] == [
        (0, "broker-0", 9092, "a", False), (2, "broker-2", 9092, "a", False), (3, "broker-3", 9092, "b", False),
    ]  # fmt: skip
    assert (live.cluster_id, live.endpoint_type) == ("twin", BROKERS)
    assert live.controller_id in {0, 2, 3}
    everyone = ask(asked, api.DESCRIBE_CLUSTER, 2, endpoint_type=BROKERS, include_fenced_brokers=True)
    assert [one.broker_id for one in everyone.brokers if one.is_fenced] == [1]
    assert len(everyone.brokers) == 4


def test_the_controller_lists_itself() -> None:
    response = ask(twin(), api.DESCRIBE_CLUSTER, 2, node=100, endpoint_type=CONTROLLERS)
    assert (response.controller_id, [one.broker_id for one in response.brokers]) == (100, [100])


@pytest.mark.parametrize(
    ("node", "kind", "code", "text"),
    [
        (0, CONTROLLERS, 114,
         "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"),
        (100, BROKERS, 114,
         "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"),
        (0, 9, 115, "Unsupported endpoint type 9"),
    ],
)  # fmt: skip
def test_the_wrong_kind_of_endpoint_is_told_so(node: int, kind: int, code: int, text: str) -> None:
    response = ask(twin(), api.DESCRIBE_CLUSTER, 1, node=node, endpoint_type=kind)
    assert (response.error_code, response.error_message, response.brokers) == (code, text, [])


def test_version_0_is_for_brokers() -> None:
    assert len(ask(twin(), api.DESCRIBE_CLUSTER, 0).brokers) == 4
    assert ask(twin(), api.DESCRIBE_CLUSTER, 0, node=100).error_code == 42


def test_the_controller_asks_for_a_permission_and_brokers_do_not() -> None:
    nobody = twin(permissions=Permissions(frozenset()))
    assert len(ask(nobody, api.DESCRIBE_CLUSTER, 2, endpoint_type=BROKERS).brokers) == 4
    assert ask(nobody, api.DESCRIBE_CLUSTER, 2, node=100, endpoint_type=CONTROLLERS).error_code == 31
    someone = twin(permissions=Permissions(frozenset({Allow(ANONYMOUS, Operation.ALTER)})))
    assert ask(someone, api.DESCRIBE_CLUSTER, 2, node=100, endpoint_type=CONTROLLERS).error_code == 0


def test_operations_are_told_when_they_are_asked_for() -> None:
    response = ask(twin(), api.DESCRIBE_CLUSTER, 2, endpoint_type=BROKERS, include_cluster_authorized_operations=True)
    assert response.authorized_operations == {5, 7, 8, 9, 10, 11, 12}
    assert ask(twin(), api.DESCRIBE_CLUSTER, 2, endpoint_type=BROKERS).authorized_operations is None
