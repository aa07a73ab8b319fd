"""What every module of this package declares: which API it answers, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kreassign.twin.api.request import Request
from kreassign.wire.api import Api, Message


class Handler(NamedTuple):
    """An API, and the function that makes the answer to a request; whether the version is offered is checked before."""

    api: Api
    handle: Callable[[Request], Message]
