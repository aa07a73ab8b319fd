"""Who we are, said by SASL (KIP-152): one login on a connection that is open.

The only home of kafka.net, of which it uses the mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable

from kreassign.admin.settings import Sasl
from kreassign.errors import OutcomeUnknown, Unauthenticated, Unreachable
from kreassign.model.error_codes import NONE, UNSUPPORTED_SASL_MECHANISM, error_code
from kreassign.wire import api
from kreassign.wire.codec import decode_response, encode_request

LEAST_ITERATIONS = 4096
"""What Kafka's own clients require of both SCRAM mechanisms (ScramMechanism.java), after RFC 7677, section 4."""

Exchange = Callable[[bytes, float], bytes]
"""Sends a frame and returns the payload of the answer, within so many seconds."""


def log_in(exchange: Exchange, sasl: Sasl, client_id: str, timeout_s: float) -> float | None:
    """SaslHandshake, then as many SaslAuthenticate rounds as the mechanism needs, of `timeout_s` seconds each.

    Returns for how many seconds the broker takes requests without another login (KIP-368); None for no limit.
    Raises Unauthenticated, or Unreachable when an answer is missing: a login changes nothing on the broker.
    """

    def ask(asked: api.Api, request: api.Message) -> api.Message:
        return _ask(exchange, asked, request, client_id, timeout_s)

    _agree_on(sasl.mechanism, ask(api.SASL_HANDSHAKE, api.SASL_HANDSHAKE.request(mechanism=sasl.mechanism)))
    from kafka.net.sasl import get_sasl_mechanism  # noqa: PLC0415 - slow to load, and few connections need it

    is_scram = sasl.mechanism.startswith("SCRAM")
    mechanism = get_sasl_mechanism(sasl.mechanism)(
        sasl_mechanism=sasl.mechanism,
        sasl_plain_username=_name_in_scram(sasl.username) if is_scram else sasl.username,
        sasl_plain_password=sasl.password.reveal(),
    )
    lifetime_ms = 0
    while not mechanism.is_done():
        answer = ask(api.SASL_AUTHENTICATE, api.SASL_AUTHENTICATE.request(auth_bytes=mechanism.auth_bytes()))
        if answer.error_code != NONE:
            reason = answer.error_message or error_code(answer.error_code).text
            raise Unauthenticated(f"SASL {sasl.mechanism} as {sasl.username} was refused: {reason}")
        if is_scram:
            _refuse_weak_proof(sasl.mechanism, answer.auth_bytes)
        try:
            mechanism.receive(answer.auth_bytes)
        except (ValueError, KeyError) as error:
            raise Unauthenticated(f"SASL {sasl.mechanism} as {sasl.username} failed: {error}") from None
        lifetime_ms = answer.session_lifetime_ms
    if not mechanism.is_authenticated():
        raise Unauthenticated(f"SASL {sasl.mechanism} as {sasl.username} was refused")
    return lifetime_ms / 1000 if lifetime_ms > 0 else None


def _agree_on(mechanism: str, answer: api.Message) -> None:
    if answer.error_code == UNSUPPORTED_SASL_MECHANISM:
        raise Unauthenticated(
            f"the broker does not accept SASL mechanism {mechanism}; it offers {', '.join(answer.mechanisms)}"
        )
    if answer.error_code != NONE:
        reason = error_code(answer.error_code).text
        raise Unauthenticated(f"the broker refused SASL: {reason} Check that security.protocol fits the listener")


def _refuse_weak_proof(mechanism: str, answer: bytes) -> None:
    """Before a proof is made: whoever chose few iterations could find the password from it by trying."""
    try:
        # Read as kafka.net reads it; what it cannot read, it refuses by itself.
        iterations = int(dict(pair.split("=", 1) for pair in bytes(answer).decode().split(","))["i"])
    except (ValueError, KeyError):
        return
    if iterations < LEAST_ITERATIONS:
        raise Unauthenticated(
            f"{mechanism}: the broker requested {iterations} iterations, fewer than the minimum of "
            f"{LEAST_ITERATIONS}; no proof of the password was sent. If it is your broker, set the user's password "
            f"again: kafka-configs --alter --add-config '{mechanism}=[iterations={LEAST_ITERATIONS},password=...]'"
        )


def _name_in_scram(username: str) -> str:
    """RFC 5802 separates by commas and equal signs, and so spells those of a name otherwise."""
    return username.replace("=", "=3D").replace(",", "=2C")


def _ask(exchange: Exchange, asked: api.Api, request: api.Message, client_id: str, timeout_s: float) -> api.Message:
    # Version 1 of both has been there since Kafka 1.0 and 2.2; there is no asking before one is authenticated.
    frame = encode_request(1, request, correlation_id=0, client_id=client_id)
    try:
        return decode_response(asked, 1, exchange(frame, timeout_s), correlation_id=0)
    except OutcomeUnknown as error:
        raise Unreachable(str(error)) from error
