"""UnregisterBroker: takes a broker out of the cluster for good.

Versions: 0.
Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- Replica lists, and moves to the broker, go on naming it; it leads nothing and is in sync with nothing any more.
- A broker that is not registered is BROKER_ID_NOT_REGISTERED.

Left out:
- The refusal's text is that of 4.3 whatever the release; 3.9 sends an empty one.
- A process that runs on unregistered does not shut down; after its next start it registers again.
"""

from __future__ import annotations

from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message


def _handle(request: Request) -> Message:
    response = api.UNREGISTER_BROKER.response
    if not request.allows(Operation.ALTER):
        text = request.denial(Operation.ALTER)
        return response(error_code=CLUSTER_AUTHORIZATION_FAILED, error_message=text)
    outcome = request.cluster.controller.unregister_broker(request.message.broker_id)
    # Unlike in most answers the text of one that went well is empty, not null.
    return response(error_code=outcome.code, error_message=outcome.message or "")


HANDLERS = (Handler(api.UNREGISTER_BROKER, _handle),)
