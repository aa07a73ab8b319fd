"""Certificates and keys of the twin and the page: a wrong file is named, with what to do, and OpenSSL is not quoted."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from kreassign.certificates import listener_context, mistake_in
from kreassign.cli.main import kreassign
from kreassign.errors import InputError


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of a certificate, its key, and files that people give in their place."""
    issued = trustme.CA().issue_cert("localhost")
    chain, key = issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()
    lines = chain.splitlines(keepends=True)
    contents = {
        "right.pem": chain,
        "right.key": key,
        "other.key": trustme.CA().issue_cert("localhost").private_key_pem.bytes(),
        "rsa.key": rsa.generate_private_key(65_537, 2_048).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ),
        "encrypted.key": load_pem_private_key(key, None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
        ),
        "cut.pem": b"".join(lines[:2] + lines[4:]),
        "cut.key": b"".join(key.splitlines(keepends=True)[:1] + key.splitlines(keepends=True)[-1:]),
        "der.pem": base64.b64decode(b"".join(lines[1:-1])),
        "text.key": b"secret",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    return tmp_path


NO_PAIR = "certificate {certificate} cannot be used with key {key}: the private key does not belong to the first "
ENCRYPTED = "key {key} is encrypted, and no password can be given here. Write it without: `openssl pkey -in {key} -out "
NO_PEM = "{certificate} holds no certificate in PEM form. Convert it from DER with `openssl x509 -inform der -in "
MISTAKES = [
    ("right.pem", "other.key", NO_PAIR),
    ("right.pem", "rsa.key", NO_PAIR),
    ("right.pem", "encrypted.key", ENCRYPTED),
    ("cut.pem", "right.key", "certificate {certificate} is damaged: OpenSSL cannot read it. Copy it again"),
    ("right.pem", "cut.key", "key {key} is damaged: OpenSSL cannot read it. Copy it again"),
    ("right.key", "right.pem", "{certificate} holds no certificate, but a private key: name the file of the cert"),
    ("right.pem", "right.pem", "{key} holds no private key, but a certificate: name the file of the private key"),
    ("der.pem", "right.key", NO_PEM),
    ("right.pem", "text.key", "{key} holds no private key in PEM form. Convert it from DER with `openssl pkey "),
    ("gone.pem", "right.key", "cannot read the certificate {certificate}: no such file or directory"),
    ("right.pem", "folder", "cannot read the private key {key}: is a directory"),
]


@pytest.mark.parametrize(("certificate", "key", "said"), MISTAKES)
def test_a_wrong_file_is_named_with_what_to_do(certificate: str, key: str, said: str, files: Path) -> None:
    with pytest.raises(InputError) as refused:
        listener_context(files / certificate, files / key)
    assert str(refused.value).startswith(said.format(certificate=files / certificate, key=files / key))


@pytest.mark.parametrize(("reason", "said"), [
    ("EE_KEY_TOO_SMALL", "the key of the certificate is too short. Issue one of 2,048 bits or more"),
    ("CA_KEY_TOO_SMALL", "the key of an authority in the chain is too short. Issue one of 2,048 bits or more"),
    ("CA_MD_TOO_WEAK", "a signature in the chain is too weak. Sign with SHA-256"),
    ("PEM_LIB", None),
])  # fmt: skip
def test_weak_certificates_are_explained(reason: str, said: str | None) -> None:
    """Which ones OpenSSL refuses is a setting of the machine."""
    error = ssl.SSLError()
    error.reason = reason
    assert mistake_in(error) == said


def test_the_page_and_the_twin_name_the_wrong_file(files: Path) -> None:
    scenario = files / "twin.toml"
    scenario.write_text('[[brokers]]\ncount = 1\n[security]\ncertificate = "right.pem"\nkey = "other.key"\n')
    pair = ["--certificate", str(files / "right.pem"), "--key", str(files / "other.key")]
    for line in (
        ["web", "--listen", "127.0.0.1:0", "--state-dir", str(files), *pair],
        ["twin", "start", "--scenario", str(scenario), "--port", "0"],
    ):
        refused = CliRunner().invoke(kreassign, line)
        assert (refused.exit_code, refused.output.split(":")[0]) == (2, "error"), refused.output
        said = f"certificate {files / 'right.pem'} cannot be used with key {files / 'other.key'}: the private key"
        assert said in refused.output
        assert "SSL" not in refused.output
