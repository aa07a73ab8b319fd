"""SaslHandshake: names a SASL mechanism.

Versions: 0-1.
Permission: none.

Behaviour:
- On a listener with users: PLAIN is accepted, anything else gets UNSUPPORTED_SASL_MECHANISM and the connection ends.
- After version 0 the tokens come bare, after version 1 in SaslAuthenticate.
- On a listener without users, and from a client that is authenticated already: ILLEGAL_SASL_STATE.

Left out:
- Mechanisms other than PLAIN; authenticating again on the same connection.
"""

from __future__ import annotations

from kreassign.model.error_codes import ILLEGAL_SASL_STATE
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message


def _handle(request: Request) -> Message:
    """Only reached when nothing is to be authenticated; before that the connection answers."""
    del request
    return api.SASL_HANDSHAKE.response(error_code=ILLEGAL_SASL_STATE, mechanisms=[])


HANDLERS = (Handler(api.SASL_HANDSHAKE, _handle),)
