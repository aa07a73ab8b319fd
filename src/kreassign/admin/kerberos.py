"""Mechanism GSSAPI (RFC 4752): Kerberos by the system's library. Imported on use only: gssapi is an extra.

Tickets come from a keytab or from kinit. Kerberos protects only the login, as in Kafka: integrity and privacy of
later messages are up to TLS.
"""

from __future__ import annotations

import hashlib
import struct

import gssapi
from gssapi.exceptions import GSSError

from kreassign.admin.settings import Kerberos
from kreassign.errors import Unauthenticated

_NO_LAYER = 1


class Gssapi:
    """One login at one broker. Raises Unauthenticated without a ticket for it."""

    def __init__(self, settings: Kerberos, host: str) -> None:
        self._settings = settings
        self._where = f"{settings.service_name}@{host}"
        self._is_done = self._is_authenticated = False
        try:
            service = gssapi.Name(self._where, gssapi.NameType.hostbased_service)
            self._context = gssapi.SecurityContext(
                name=service, creds=_tickets(settings), mech=gssapi.MechType.kerberos, usage="initiate"
            )
            self._next = self._context.step() or b""
        except GSSError as error:
            raise self._failure(error) from None

    def auth_bytes(self) -> bytes:
        """The next message to the broker."""
        self._is_done = self._is_authenticated
        return self._next

    def receive(self, auth_bytes: bytes) -> object:
        """Process the broker's answer."""
        try:
            if not self._context.complete:
                self._next = self._context.step(bytes(auth_bytes)) or b""
            elif not self._is_done:
                self._next = self._without_layer(bytes(auth_bytes))
                self._is_authenticated = True
        except GSSError as error:
            raise self._failure(error) from None
        return None

    def is_done(self) -> bool:
        """True when no more messages are to be sent."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """True when both sides have authenticated each other."""
        return self._is_authenticated

    def _without_layer(self, offer: bytes) -> bytes:
        """Answer the offered security layers with none (maximum message size 0). The user is that of the ticket."""
        layers = self._context.unwrap(offer).message
        if len(layers) != 4 or not layers[0] & _NO_LAYER:
            raise ValueError("the broker insists on a security layer, which Kafka's protocol does not have")
        return bytes(self._context.wrap(struct.pack(">I", _NO_LAYER << 24), encrypt=False).message)

    def _failure(self, error: GSSError) -> Unauthenticated:
        said = " ".join(str(error).split())
        return Unauthenticated(
            f"SASL GSSAPI at {self._where}: {said}. Check the keytab or kinit (klist), the service name and host of "
            "the broker, krb5.conf, and the clocks"
        )


def _tickets(settings: Kerberos) -> gssapi.Credentials:
    name = gssapi.Name(settings.principal, gssapi.NameType.kerberos_principal) if settings.principal else None
    store = {}
    if settings.keytab is not None:
        # Tickets of a keytab go to a memory cache of this process, one per keytab; other caches stay untouched.
        whose = hashlib.sha256(f"{settings.principal} {settings.keytab}".encode()).hexdigest()
        store = {"client_keytab": f"FILE:{settings.keytab}", "ccache": f"MEMORY:kreassign-{whose}"}
    elif settings.ticket_cache is not None:
        store = {"ccache": f"FILE:{settings.ticket_cache}"}
    return gssapi.Credentials(name=name, usage="initiate", store=store or None, mechs=[gssapi.MechType.kerberos])
