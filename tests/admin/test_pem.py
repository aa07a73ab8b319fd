import pytest

from kreassign.admin import tls

CERTIFICATE = "-----BEGIN CERTIFICATE-----\n" + "A" * 64 + "\nQUJD\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nS0VZ\n-----END PRIVATE KEY-----"
OLD_KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nS0VZ\n"
    "-----END RSA PRIVATE KEY-----"
)


def test_certificates_and_keys_are_distinguished() -> None:
    text = f"{CERTIFICATE}\n{KEY}\n{CERTIFICATE}\n"
    assert tls.pem_certificates(text) == f"{CERTIFICATE}\n{CERTIFICATE}"
    assert tls.pem_private_keys(text) == KEY


@pytest.mark.parametrize("joint", [" ", " \t ", "\r\n", "\n\n"])
def test_lines_that_a_properties_file_joined_are_put_apart_again(joint: str) -> None:
    assert tls.pem_certificates(CERTIFICATE.replace("\n", joint)) == CERTIFICATE


def test_what_stands_around_the_blocks_is_left_out() -> None:
    assert (
        tls.pem_certificates(f"# Főtanúsítvány\nBag Attributes\n  friendlyName: ca\n{CERTIFICATE}\n# end")
        == CERTIFICATE
    )


@pytest.mark.parametrize("label", ["PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"])
def test_keys_of_every_kind_are_found(label: str) -> None:
    key = KEY.replace("PRIVATE KEY", label)
    assert tls.pem_private_keys(key) == key
    assert tls.pem_certificates(key) == ""


def test_headers_of_an_old_encrypted_key_are_kept() -> None:
    assert tls.pem_private_keys(OLD_KEY) == OLD_KEY


@pytest.mark.parametrize("text", ["", "nothing", "-----BEGIN CERTIFICATE-----\nQUJD", KEY, "\xfe\xed\xfe\xed"])
def test_no_certificate_is_an_empty_text(text: str) -> None:
    assert tls.pem_certificates(text) == ""
