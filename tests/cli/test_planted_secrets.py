"""Secrets of every kind, looked for in all that commands say, log and leave, errors included, on a twin behind TLS.

`tests/real/test_planted_password.py` does so for a password of SCRAM, in processes of their own.
"""

from __future__ import annotations

import ssl
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kreassign.cli.main import kreassign
from kreassign.kafka_tools import leader_election, reassign_partitions, topics
from kreassign.twin.access import Users
from kreassign.twin.server import ListenerConfig, serving
from testbed.properties import render
from tests.logs import Logged
from tests.monitoring.receiver import Receiver, receiving
from tests.planted import contents, forms
from tests.twin.asking import twin

PASSWORD, KEY_PASSWORD, HOOK = "planted-password-1", "planted-key-password-2", "planted-webhook-secret-3"
WRONG, WRONG_KEY, CLIENT_SECRET = "planted-wrong-4", "planted-wrong-key-5", "planted-client-secret-6"
PLANTED = (PASSWORD, KEY_PASSWORD, HOOK, WRONG, WRONG_KEY, CLIENT_SECRET)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@dataclass
class Story:
    """Arguments of commands, and all their output."""

    addresses: str
    secrets: Path
    said: bytes = b""

    def words(self, words: str, who: str) -> list[str]:
        own = str(self.secrets / who)
        return [*words.split(), "--bootstrap-server", self.addresses, "--command-config", own]

    def give(self, words: str, who: str = "good", *, asks: bool = True) -> int:
        """With its traceback, where it fails."""
        given = self.words(words, who) if asks else words.split()
        found = CliRunner().invoke(kreassign, ["--debug", *given])
        told = "".join(traceback.format_exception(found.exception)) if found.exception else ""
        self.said += f"{found.output}{told}".encode()
        return found.exit_code


def owner(authority: trustme.CA) -> tuple[bytes, bytes]:
    """A client's key, encrypted, and its chain."""
    issued = authority.issue_cert("bob@example")
    key = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    hidden = BestAvailableEncryption(KEY_PASSWORD.encode())
    return (
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden),
        b"".join(one.bytes() for one in issued.cert_chain_pems),
    )


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    listener = ListenerConfig("SASL_SSL", users=Users({"bob": PASSWORD}), tls=context)
    secrets, here = tmp_path / "secrets", tmp_path / "here"
    for folder in (secrets, here):
        folder.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("KREASSIGN_STATE_DIR", str(here / "state"))
    key, chain = owner(authority)
    (secrets / "store.pem").write_bytes(key + chain)
    (secrets / "trust.pem").write_bytes(authority.cert_pem.bytes())
    (secrets / "hook").write_text(HOOK)
    good = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="bob" password="{PASSWORD}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secrets / "trust.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(secrets / "store.pem"),
        "ssl.key.password": KEY_PASSWORD,
    }
    bearer = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{BEARER.rpartition('.')[0]}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:9/token",
        "sasl.jaas.config": f'{BEARER} required clientId="us" clientSecret="{CLIENT_SECRET}";',
    }
    for name, changed in {
        "good": {},
        "wrong": {"sasl.jaas.config": good["sasl.jaas.config"].replace(PASSWORD, WRONG)},
        "wrong-key": {"ssl.key.password": WRONG_KEY},
        "no-end": {"sasl.jaas.config": f'{PLAIN} required username="bob" password="{WRONG}'},
        "bearer": bearer,
    }.items():
        (secrets / name).write_text(render({**good, **changed}))
    with serving(twin({"t": [[0, 1], [1, 2]]}), (listener,), speed=50.0) as server:
        addresses = server.server.addresses(listener.name)
        yield Story(",".join(f"{host}:{port}" for host, port in addresses.values()), secrets)


def sent(receiver: Receiver) -> bytes:
    return b"".join(repr(headers).encode() + body for headers, body in receiver.got)


def test_no_secret_of_any_kind_is_said_logged_sent_or_left_by_any_command(
    story: Story, logged: Logged, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("move.json").write_text('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,1]}]}')
    with receiving([400]) as receiver:
        monitored = f"--webhook {receiver.url} --webhook-secret-file {story.secrets / 'hook'}"
        for words in (
            "snapshot --measure-for 0 --out cluster.json.gz",
            "collect --data data --rounds 1",
            "plan rebalance --measure-for 0 --out found.json",
            f"run move.json --yes --measure-for 0 --throttle 1GB/s {monitored}",
            "rollback --yes",
            "verify found.json",
        ):
            assert story.give(words) in {0, 1}, story.said.decode()
        assert story.give("doctor --measure-for 0") in {0, 1}
        story.said += sent(receiver)
        assert b"done" in sent(receiver)
    for words in ("status --format json", "report --out run.html", "report --plan found.json --out plan.html"):
        assert story.give(words, asks=False) == 0
    for who in ("wrong", "wrong-key", "no-end"):
        for words in ("snapshot --measure-for 0 --out no.json", "run move.json --yes", "collect --data data"):
            assert story.give(words, who) != 0, (who, words)
        for main in (reassign_partitions.main, topics.main):
            assert main(story.words("--list", who)) == 1
        elect = story.words("--election-type preferred --all-topic-partitions", who)
        assert leader_election.main(["--admin.config" if one == "--command-config" else one for one in elect]) == 1
    assert story.give("doctor", "bearer") != 0
    assert reassign_partitions.main(story.words("--list", "good")) == 0
    printed = capsys.readouterr()
    said = story.said + printed.out.encode() + printed.err.encode() + logged.text.encode()
    assert b"was refused" in said, "of the wrong password"
    assert b"answered 400" in said, "of the webhook"
    assert b"Traceback" in said
    looked_at = dict(contents(Path()))
    assert {".sqlite", ".gz", ".json", ".html", ".parquet"} <= {path.suffix for path in looked_at}
    assert [
        (form, path) for form in forms(PLANTED, "bob") for path, content in contents(Path()) if form in content
    ] == []
    assert [form for form in forms(PLANTED, "bob") if form in said] == []
