"""Who the brokers take a client for, by Kafka's own rules (`DefaultKafkaPrincipalBuilder`). Pure.

Brokers may have rules of their own (principal.builder.class, ssl.principal.mapping.rules,
sasl.kerberos.principal.to.local.rules); no client can know those.
"""

from __future__ import annotations

import re

from kreassign.admin.settings import ClientSettings, Kerberos, OAuth, Sasl, SecurityProtocol, Tls, UnsecuredToken
from kreassign.admin.tls_properties import certificates

ANONYMOUS = "User:ANONYMOUS"


def principal_of(settings: ClientSettings) -> str | None:
    """`User:name`; None where only the brokers know, such as the subject of a token that is fetched."""
    if settings.security_protocol is SecurityProtocol.SSL:
        return _of_certificate(settings.tls)
    if not settings.security_protocol.uses_sasl:
        return ANONYMOUS
    match settings.sasl:
        case Sasl(username=name):
            return f"User:{name}"
        case Kerberos(principal=str(principal)):
            return f"User:{re.split('[/@]', principal)[0]}"
        case OAuth(tokens=UnsecuredToken(claims=claims)):
            subject = dict(claims).get("sub")
            return f"User:{subject}" if subject else None
        case _:
            return None


def _of_certificate(tls: Tls) -> str | None:
    """The name in the certificate that is shown, as Java writes it (RFC 2253); none is shown without a key store."""
    if tls.certificate_chain is None:
        return ANONYMOUS
    try:
        return f"User:{certificates().subject_of(tls.certificate_chain)}"
    except ValueError:
        return None
