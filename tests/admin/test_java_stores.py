"""Key and trust stores as keytool writes them (tests/admin/stores/README.md says how), read without Java."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin import ClientSettings, TcpTransport, client_settings
from kreassign.admin.java_stores import JavaStore
from kreassign.admin.settings import Secret
from kreassign.errors import InputError

STORES = Path(__file__).parent / "stores"
ALICE = (STORES / "alice.pem").read_text().strip()
SECRETS = ("pa55-store", "pa55-key", "pa55-wrong")


def settings(**properties: str) -> ClientSettings:
    """Settings of a TLS client; an underscore stands for a dot, and a store is one of ours."""
    named = {key.replace("_", "."): value for key, value in properties.items()}
    placed = {key: str(STORES / value) if key.endswith("location") else value for key, value in named.items()}
    return client_settings({"security.protocol": "SSL", **placed}, bootstrap_servers="b")


def refusal(**properties: str) -> str:
    with pytest.raises(InputError) as refused:
        settings(**properties)
    said = f"{refused.value} {refused.value!r}"
    assert not [secret for secret in SECRETS if secret in said]
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    return str(refused.value)


# What is read


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "pkcs12"])
@pytest.mark.parametrize("name", ["trust.jks", "trust.p12", "trust-without-password.p12"])
def test_a_trust_store_is_read_whatever_of_both_its_type_says_as_java_does(name: str, kind: str) -> None:
    found = settings(ssl_truststore_location=name, ssl_truststore_type=kind, ssl_truststore_password="pa55-store")
    assert found.tls.trusted_certificates == ALICE


def test_without_a_type_it_is_javas_own() -> None:
    assert settings(ssl_truststore_location="trust.jks").tls.trusted_certificates == ALICE


@pytest.mark.parametrize("name", ["key.jks", "key.p12", "key-legacy.p12"])
def test_a_key_store_gives_the_chain_and_the_key_that_fit_each_other(name: str) -> None:
    passwords = {"ssl_keystore_password": "pa55-store"} | ({"ssl_key_password": "pa55-key"} if "jks" in name else {})
    found = settings(ssl_keystore_location=name, **passwords)
    assert found.tls.certificate_chain is not None
    assert "BEGIN CERTIFICATE" in found.tls.certificate_chain
    TcpTransport(found)  # OpenSSL refuses a key that is not the certificate's.
    assert "PRIVATE KEY" not in f"{found} {found!r}"


def test_the_certificate_of_a_key_store_is_the_one_that_keytool_exports() -> None:
    found = settings(ssl_keystore_location="key.jks", ssl_keystore_password="pa55-store", ssl_key_password="pa55-key")
    assert found.tls.certificate_chain == ALICE


# What is refused, and what to do


def trust(name: str, **properties: str) -> dict[str, str]:
    return {"ssl_truststore_location": name, **properties}


def keys(name: str, **properties: str) -> dict[str, str]:
    return {"ssl_keystore_location": name, "ssl_keystore_password": "pa55-store", **properties}


USELESS: dict[str, tuple[dict[str, str], list[str]]] = {
    "a wrong password of JKS": (
        trust("trust.jks", ssl_truststore_password="pa55-wrong"),
        ["trust.jks cannot be opened: ssl.truststore.password is wrong"],
    ),
    "a wrong password of PKCS12": (
        trust("trust.p12", ssl_truststore_password="pa55-wrong"),
        ["trust.p12 cannot be opened: ssl.truststore.password is wrong"],
    ),
    "no password": (trust("trust.p12"), ["trust.p12 cannot be opened: ssl.truststore.password is missing"]),
    "no password of the key": (keys("key.jks"), ["the private key 'alice' of", "ssl.key.password"]),
    "a wrong password of the key": (
        keys("key.jks", ssl_key_password="pa55-wrong"), ["the private key 'alice' of", "ssl.key.password"],
    ),
    "JKS without a key": (keys("trust.jks"), ["holds no private key; it has only certificates (ca)"]),
    "PKCS12 without a key": (keys("trust.p12"), ["holds no private key; it has only certificates (ca)"]),
    "no certificate": (
        trust("empty.jks", ssl_truststore_password="pa55-store"),
        ["holds no trusted certificate. Import the authority of the brokers: keytool -importcert"],
    ),
    "several keys": (
        keys("two-keys.jks"),
        ["holds private keys of several aliases (", "alice", "bob", "keytool -importkeystore -srcalias ALIAS"],
    ),
    "another form of Java": (
        keys("key.jceks"),
        ["JCEKS, which is not supported. Convert it: keytool -importkeystore -srcstoretype JCEKS", "ssl.keystore.loc"],
    ),
    "PEM without its type": (trust("alice.pem"), ["alice.pem is PEM text: set ssl.truststore.type=PEM"]),
    "another type": (
        trust("trust.jks", ssl_truststore_type="BCFKS"),
        ["ssl.truststore.type=BCFKS is not one of PEM, JKS, PKCS12. Convert the store: keytool"],
    ),
    "no file": (keys("absent.jks"), ["cannot read ssl.keystore.location"]),
}  # fmt: skip


@pytest.mark.parametrize(("properties", "said"), USELESS.values(), ids=USELESS)
def test_a_store_that_cannot_be_used_is_refused_with_what_to_do(properties: dict[str, str], said: list[str]) -> None:
    refused = refusal(**properties)
    assert [part for part in said if part not in refused] == []


@pytest.mark.parametrize("name", ["key.jks", "key.p12"])
def test_a_key_store_trusts_its_own_certificate_as_in_java(name: str) -> None:
    found = settings(ssl_truststore_location=name, ssl_truststore_password="pa55-store")
    assert found.tls.trusted_certificates is not None
    assert found.tls.trusted_certificates.count("BEGIN CERTIFICATE") == 1


def test_a_chain_is_in_the_order_of_tls_without_strangers() -> None:
    root = trustme.CA()
    between = root.create_child_ca()
    ours = between.issue_cert("alice@example.org", common_name="alice")
    others = [trustme.CA(), root, between]
    certificates = [x509.load_pem_x509_certificate(one.cert_pem.bytes()) for one in others]
    key = load_pem_private_key(ours.private_key_pem.bytes(), password=None)
    leaf = x509.load_pem_x509_certificate(ours.cert_chain_pems[0].bytes())
    content = pkcs12.serialize_key_and_certificates(
        b"a", key, leaf, certificates, BestAvailableEncryption(b"pa55-store")
    )
    store = JavaStore("it", "ssl.keystore", content, Secret("pa55-store"))
    chain = x509.load_pem_x509_certificates(store.key_entry().chain.encode())
    assert chain == [leaf, certificates[2], certificates[1]]
    assert len(x509.load_pem_x509_certificates(store.trusted_certificates().encode())) == 2


def test_of_several_keys_of_one_issuer_that_is_used_which_java_uses() -> None:
    """Java 17 took carol (`X509ExtendedKeyManager.chooseEngineClientAlias`); alice is the first in the store."""
    store = JavaStore("it", "ssl.keystore", (STORES / "three-keys.p12").read_bytes(), Secret("pa55-store"))
    entry = store.key_entry()
    assert entry.alias == "carol"
    leaf, authority = x509.load_pem_x509_certificates(entry.chain.encode())
    assert (leaf.subject.rfc4514_string(), authority.subject.rfc4514_string()) == ("CN=Carol", "CN=ca")
    TcpTransport(settings(ssl_keystore_location="three-keys.p12", ssl_keystore_password="pa55-store"))  # they fit


@pytest.mark.parametrize("name", ["key.jks", "trust.jks", "key.p12", "trust.p12"])
@given(st.data())
def test_a_damaged_store_is_an_error_in_words_and_never_a_traceback(name: str, data: st.DataObject) -> None:
    content = bytearray((STORES / name).read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    password = data.draw(st.sampled_from([None, Secret("pa55-store")]))
    store = JavaStore("the store", "ssl.keystore", bytes(content), password, Secret("pa55-key"))
    for read in (store.trusted_certificates, store.key_entry):
        said = "the store"
        try:
            read()
        except InputError as error:
            said = str(error)
        assert "the store" in said
        assert "pa55" not in said


# On a connection


def test_what_a_trust_store_holds_is_what_the_client_trusts() -> None:
    found = settings(ssl_truststore_location="trust.p12", ssl_truststore_password="pa55-store").tls
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=found.trusted_certificates)
    assert context.cert_store_stats()["x509"] == 1
