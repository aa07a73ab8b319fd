"""Requests of a controller as lines of JSON, for `kreassign twin start --trace`."""

from __future__ import annotations

import json

from kreassign.twin.zookeeper.control_requests.requests import ControlRequest
from kreassign.wire.control import as_json


def trace_line(time_ms: int, request: ControlRequest) -> str:
    """One request: when, from whom, to whom, and what; the body is written as Kafka's request log has it."""
    body = as_json(request.decode())
    line = {
        "time": time_ms,
        "controllerId": body["controllerId"],
        "controllerEpoch": body["controllerEpoch"],
        "to": request.broker_id,
        "api": request.api.name,
        "apiKey": request.api_key,
        "version": request.version,
        "body": body,
    }
    return json.dumps(line, separators=(",", ":"))
