"""TLS settings → a context of OpenSSL; and what its errors mean in words."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from kreassign.admin.settings import Tls
from kreassign.errors import InputError


def tls_context(tls: Tls) -> ssl.SSLContext:
    """What a client of these settings trusts and presents. InputError if OpenSSL cannot use them."""
    context = ssl.create_default_context()
    context.check_hostname = tls.verifies_host_name
    if tls.trusted_certificates is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = tls.verifies_host_name
        # As Java, all of the trust store is trusted, also what is no root: an intermediate, or the server's own.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(cadata=tls.trusted_certificates)
        except (ssl.SSLError, ValueError) as error:
            raise InputError(f"the trust store holds no usable PEM certificate: {error}") from None
    context.minimum_version, context.maximum_version = (
        ssl.TLSVersion[version.replace(".", "_")] for version in (tls.versions[0], tls.versions[-1])
    )
    if tls.certificate_chain is not None and tls.private_key is not None:
        _load_certificate(context, tls)
    return context


def _load_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    """Hand chain and key to OpenSSL, which takes them from a file only: one that nobody else can read, gone at once."""
    assert tls.certificate_chain is not None
    assert tls.private_key is not None
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{tls.private_key.reveal()}\n{tls.certificate_chain}\n")
        # An empty password makes OpenSSL fail on an encrypted key instead of asking the terminal.
        password = tls.key_password.reveal() if tls.key_password is not None else ""
        context.load_cert_chain(name, password=password)
    except (ssl.SSLError, ValueError, OSError) as error:
        reason = getattr(error, "reason", None) or "wrong ssl.key.password, or no PEM key and certificate chain"
        raise InputError(f"the key store cannot be used: {reason}") from None
    finally:
        Path(name).unlink()


# What OpenSSL found wrong with a certificate (X509_V_ERR_…), and what helps.
_ADVICE = {
    9: "It is not valid yet: compare the clocks",
    10: "Renew it on that server, or compare the clocks",
    18: "Import the authority that signed it into the trust store",
    19: "Import the authority that signed it into the trust store",
    20: "Import the authority that signed it into the trust store",
    21: "Import the authority that signed it into the trust store",
    62: "Use a name that is in its certificate, or issue one for this name",
    64: "Use a name that is in its certificate, or issue one for this address",
}


# What a server says of us (RFC 8446, section 6.2), and what helps.
_ADVICE_ON_ALERTS = {
    "certificate expired": "Renew the certificate of this client (ssl.keystore.location)",
    "unknown ca": "Have the brokers trust who signed the certificate of this client (ssl.keystore.location)",
    "certificate required": "It wants a certificate of this client: set ssl.keystore.location",
    "handshake failure": "It may want a certificate of this client (ssl.keystore.location), or another version of TLS",
    "bad certificate": "It may want another certificate of this client (ssl.keystore.location)",
}


def advice_on_alert(reason: str) -> str:
    """What to do about the alert by which a server refused a connection; empty if it is not known."""
    return next((f". {advice}" for alert, advice in _ADVICE_ON_ALERTS.items() if alert in reason), "")


def distrust(who: object, error: ssl.SSLCertVerificationError) -> str:
    """Why the certificate of a server is not believed, in words, and what to do."""
    said = f"the certificate of {who} is not trusted: {error.verify_message or error.reason}"
    advice = _ADVICE.get(error.verify_code)
    return f"{said}. {advice}" if advice else said
