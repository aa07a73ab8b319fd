"""Tokens of AWS's own library, at a node that reads them: nobody is asked, since a signature needs nothing but keys."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from kreassign.admin import ClientSettings, SecurityProtocol, TcpTransport
from kreassign.admin.msk import _region_of
from kreassign.admin.settings import MskIam, OAuth
from kreassign.errors import InputError, Unauthenticated
from kreassign.wire import api
from testbed.waiting import PATIENCE_S
from tests.admin.listener import Listener
from tests.logs import Logged

REGION = MskIam(region="eu-west-1")


@pytest.fixture
def node() -> Iterator[Listener]:
    with closing(Listener()) as node:
        node.answers[api.SASL_HANDSHAKE] = api.SASL_HANDSHAKE.response(error_code=0, mechanisms=["OAUTHBEARER"])
        node.answers[api.SASL_AUTHENTICATE] = api.SASL_AUTHENTICATE.response(
            error_code=0, auth_bytes=b"", session_lifetime_ms=0
        )
        yield node


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Credentials of a test, the only ones at hand."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return tmp_path


def log_in(node: Listener, source: MskIam = REGION) -> dict[str, list[str]]:
    """Token as it arrives."""
    sasl = OAuth(source)
    settings = ClientSettings((node.address,), security_protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
    with closing(TcpTransport(settings).connect(node.address, PATIENCE_S)):
        (message,) = node.messages(api.SASL_AUTHENTICATE)
    token = bytes(message.auth_bytes).split(b"Bearer ")[1].rstrip(b"\x01")
    url = urlsplit(base64.urlsafe_b64decode(token + b"==").decode())
    assert url.hostname == "kafka.eu-west-1.amazonaws.com"
    return parse_qs(url.query)


def failure(node: Listener, source: MskIam = REGION) -> str:
    with pytest.raises(Unauthenticated) as refused:
        log_in(node, source)
    assert "pa55" not in "".join(traceback.format_exception(refused.value))
    assert not node.asked
    return str(refused.value)


def test_credentials_of_the_environment_sign_the_token(
    node: Listener, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "pa55-aws")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "pa55-session")
    said = log_in(node)
    assert said["X-Amz-Security-Token"] == ["pa55-session"]
    assert said["Action"] == ["kafka-cluster:Connect"]
    assert said["X-Amz-Credential"][0].startswith("AKIDEXAMPLE/")
    assert said["X-Amz-Expires"] == ["900"]
    assert "pa55" not in logged.text


def test_a_profile_has_its_own_credentials(node: Listener, aws: Path) -> None:
    (aws / "credentials").write_text("[two]\naws_access_key_id=AKIDTWO\naws_secret_access_key=pa55-aws\n")
    assert log_in(node, MskIam("eu-west-1", profile="two"))["X-Amz-Credential"][0].startswith("AKIDTWO/")
    assert "AWS says ProfileNotFound. Check the profile, role or environment" in failure_of_profile(node)


def failure_of_profile(node: Listener) -> str:
    node.asked.clear()
    return failure(node, MskIam("eu-west-1", profile="three"))


def test_no_credentials_at_all_are_named(node: Listener) -> None:
    assert "there are no credentials of AWS. Check the profile, role or environment: aws sts" in failure(node)


def test_the_region_is_that_of_the_broker_unless_configured(node: Listener) -> None:
    assert _region_of("b-1.c.abc123.c2.kafka.us-east-1.amazonaws.com") == "us-east-1"
    assert _region_of("boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com") == "eu-west-1"
    with pytest.raises(InputError, match=r"the host 127.0.0.1 does not say its region of AWS: set awsStsRegion"):
        log_in(node, MskIam())
