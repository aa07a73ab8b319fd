"""A run that outlives its tokens, their issuer's absence, and the logins of its connections."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from kreassign.model import NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import write_plan
from testbed import KafkaCluster, Listener
from testbed.fork_server import fork_server
from testbed.properties import render
from testbed.records import load_topic
from testbed.security import OAUTH_MODULE
from testbed.waiting import wait_until
from tests.admin.token_server import Reply, TokenServer, granted

SECRET = "pa55-client"
TOPIC = "long"
TOKEN_S = 5.0


def test_a_run_outlives_its_tokens_and_an_issuer_that_is_away(cluster: KafkaCluster, tmp_path: Path) -> None:
    with connect(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, assignments=((0,), (0,)))]).raise_if_any()
    load_topic(cluster.bootstrap_servers, TOPIC, {0: 15_000_000, 1: 15_000_000})
    moves = tuple(PartitionAssignment(TopicPartition(TOPIC, number), (1,)) for number in range(2))
    write_plan(tmp_path / "plan.json", Plan(moves), None)
    assert cluster.issuer is not None
    issuer, tokens = cluster.issuer, []

    def issue() -> Reply:
        tokens.append(issuer.token(lifetime_s=TOKEN_S))
        return granted(tokens[-1])

    with closing(TokenServer(issue)) as server:
        properties = cluster.client_properties(Listener.SASL_SSL) | {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.oauthbearer.token.endpoint.url": server.url,
            "sasl.jaas.config": f'{OAUTH_MODULE} required clientId="us" clientSecret="{SECRET}";',
        }
        (tmp_path / "client.properties").write_text(render(properties))
        words = ["run", "--yes", str(tmp_path / "plan.json"), "--measure-for", "0", "--throttle", "1MB/s"]
        where = ["--bootstrap-server", cluster.bootstrap(Listener.SASL_SSL)]
        own = ["--command-config", str(tmp_path / "client.properties"), "--state-dir", str(tmp_path / "state")]
        process = fork_server().start("kreassign", *words, *where, *own)
        wait_until(lambda: len(tokens) >= 2, what="a token that was renewed")
        server.reply = Reply(503, b"")
        # So often that the last token has ended meanwhile: it is asked every ten seconds while one lasts.
        asked = len(server.asked)
        wait_until(lambda: len(server.asked) >= asked + 10, what="an issuer that is missed")
        assert process.poll() is None
        server.reply = issue
        output = "".join(process.communicate(timeout=180))
    assert process.returncode == 0, output
    with connect(cluster.bootstrap_servers) as admin:
        (found,) = admin.describe_topics([TOPIC]).raise_if_any().values()
    assert [partition.replicas for partition in found.partitions] == [(1,), (1,)]
    assert "answered 503" in output
    written = [output.encode(), *(file.read_bytes() for file in (tmp_path / "state").rglob("*") if file.is_file())]
    assert len(written) > 1
    assert not [secret for secret in (SECRET, *tokens) if any(secret.encode() in text for text in written)]
