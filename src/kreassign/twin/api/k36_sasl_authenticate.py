"""SaslAuthenticate: carries the tokens of a SASL mechanism.

Versions: 0-2.
Permission: none.

Behaviour:
- The right name and password are answered with no error, wrong ones with SASL_AUTHENTICATION_FAILED and Kafka's text,
  after which the connection ends.
- From a client that is authenticated already, or need not be: ILLEGAL_SASL_STATE.

Left out:
- Sessions that expire: the lifetime is always 0, which means for ever.
- The pause that a real broker makes before it closes the connection of a client that failed.
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
    return api.SASL_AUTHENTICATE.response(
        error_code=ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
    )


HANDLERS = (Handler(api.SASL_AUTHENTICATE, _handle),)
