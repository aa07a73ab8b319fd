from __future__ import annotations

import json

from kreassign.twin.zookeeper.control_requests import trace_line
from tests.twin.zookeeper.sending import body, sent, step


def test_a_line_says_when_from_whom_to_whom_and_what() -> None:
    request = sent(step(stopped=((1, True),)))[0]
    assert json.loads(trace_line(17, request)) == {
        "time": 17,
        "controllerId": 0,
        "controllerEpoch": 3,
        "to": 1,
        "api": "StopReplica",
        "apiKey": 5,
        "version": 4,
        "body": body(request),
    }
