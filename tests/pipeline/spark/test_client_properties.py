from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import InputError
from kreassign.pipeline.tables.access import by_reference

FILE = Path("/etc/kafka/client.properties")
READER = "org.apache.kafka.common.config.provider.FileConfigProvider"


def test_tls_and_sasl_settings_are_references_others_stay() -> None:
    properties = {"security.protocol": "SASL_SSL", "sasl.jaas.config": "password=p", "ssl.truststore.password": "q"}
    assert by_reference(properties, FILE) == {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": "${kreassign:/etc/kafka/client.properties:sasl.jaas.config}",
        "ssl.truststore.password": "${kreassign:/etc/kafka/client.properties:ssl.truststore.password}",
        "config.providers": "kreassign",
        "config.providers.kreassign.class": READER,
    }
    plain = {"security.protocol": "PLAINTEXT", "ssl.endpoint.identification.algorithm": ""}
    assert by_reference(plain, FILE) == plain


def test_references_of_the_file_to_elsewhere_stay() -> None:
    own = {"config.providers": "env", "config.providers.env.class": "x.EnvVarConfigProvider",
           "sasl.jaas.config": "${env:JAAS}", "ssl.key.password": "p"}  # fmt: skip
    found = by_reference(own, FILE)
    assert found["sasl.jaas.config"] == "${env:JAAS}"
    assert found["ssl.key.password"].startswith("${kreassign:")
    assert (found["config.providers"], found["config.providers.env.class"]) == (
        "env,kreassign",
        "x.EnvVarConfigProvider",
    )


@pytest.mark.parametrize("name", ["a:b", "a}b"])
def test_a_path_that_a_reference_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="a colon or a brace"):
        by_reference({"ssl.key.password": "p"}, Path("/etc") / name)
    assert by_reference({"client.id": "me"}, Path("/etc") / name) == {"client.id": "me"}
