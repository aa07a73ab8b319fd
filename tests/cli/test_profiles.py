"""Clusters by name: what a configuration file says, what wins over it, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import COMMANDS, kreassign
from kreassign.cli.options.connections import with_secrets
from kreassign.cli.profiles import SHARED, profile_in_force
from kreassign.errors import InputError
from kreassign.executor.journal import read_events
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan_files import write_plan
from kreassign.twin.access import Users
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import ListenerConfig, serving
from tests.cli.test_help import EVERY_OPTION
from tests.twin.asking import cluster

UNEVEN = [[0, 1]] * 8
QUICK = ("--measure-for", "0.1")
AT_ONCE = ("--measure-for", "0")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Twin(cluster({"t": UNEVEN}), TwinSettings()), speed=10.0) as thread:
        yield thread.bootstrap_servers


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration file of this test; no other setting is in the environment."""
    for name in ("KREASSIGN_BOOTSTRAP_SERVER", "KREASSIGN_DATA", "KREASSIGN_CLUSTER", "KREASSIGN_COMMAND_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("KREASSIGN_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "kreassign").mkdir()
    monkeypatch.setenv("KREASSIGN_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "kreassign" / "config.toml"


def invoke(*words: object) -> Result:
    return CliRunner().invoke(kreassign, [str(word) for word in words])


def test_a_cluster_is_named_by_option_variable_or_default(
    address: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(
        f'[clusters.prod]\nbootstrap-server = "{address}"\nformat = "json"\n'
        '[clusters.prod.doctor]\nmeasure-for = 0\n[clusters.test]\nbootstrap-server = "localhost:1"\n'
    )
    for words in (("--cluster", "prod", "doctor"), ("doctor", "--cluster", "prod"), ("doctor", "--cluster=prod")):
        shown = invoke(*words)
        assert json.loads(shown.stdout)["ok"], shown.output
    assert invoke("doctor").exit_code == 2
    monkeypatch.setenv("KREASSIGN_CLUSTER", "prod")
    assert json.loads(invoke("doctor").stdout)["ok"]
    monkeypatch.delenv("KREASSIGN_CLUSTER")
    config.write_text(f'default = "prod"\n{config.read_text()}')
    assert json.loads(invoke("doctor").stdout)["ok"]
    assert f" at {address}\n  4 brokers, " in invoke().stdout


def test_what_is_typed_wins_over_the_environment_and_that_over_the_profile(
    address: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(f'[clusters.prod]\nbootstrap-server = "{address}"\n[clusters.prod.plan]\nmeasure-for = "0.1s"\n')
    for measured in ("0.1", "0.2", "0.3"):
        typed = ("--measure-for", "0.3s") if measured == "0.3" else ()
        if measured == "0.2":
            monkeypatch.setenv("KREASSIGN_MEASURE_FOR", "0.2s")
        made = invoke("plan", "--cluster", "prod", *typed)
        assert f"measuring write rates for {measured} s" in made.stderr, made.output
    assert made.stderr.endswith("next: kreassign plan --cluster prod --measure-for 0.3s --out plan.json\n")


def test_the_default_is_not_in_force_where_another_address_is_given(
    address: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its credentials are not meant for whoever is there."""
    config.write_text(
        'default = "prod"\n[clusters.prod]\nbootstrap-server = "localhost:1"\n'
        '[clusters.prod.properties]\n"security.protocol" = "NONE"\n'
    )
    assert "NONE" in invoke("doctor").stderr
    assert invoke("doctor", "--bootstrap-server", address, "--measure-for", "0").exit_code == 0
    monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", address)
    assert invoke("doctor", "--measure-for", "0").exit_code == 0


def test_the_properties_file_names_the_servers(address: str, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = config.parent / "client.properties"
    file.write_text(f"bootstrap.servers = {address} \n")
    doctor = ("doctor", "--measure-for", "0")
    assert invoke(*doctor, "--command-config", file).exit_code == 0
    assert invoke(*doctor, "--command-config", file, "--bootstrap-server", "localhost:1").exit_code == 4
    config.write_text('default = "prod"\n[clusters.prod]\nbootstrap-server = "localhost:1"\n')
    assert invoke(*doctor, "--command-config", file).exit_code == 0
    config.write_text(
        f'[clusters.prod.properties]\n"bootstrap.servers" = "{address}"\n'
        '[clusters.test]\nbootstrap-server = "localhost:1"\n'
    )
    assert invoke(*doctor, "--cluster", "prod").exit_code == 0
    monkeypatch.setenv("KREASSIGN_COMMAND_CONFIG", str(file))
    assert invoke(*doctor, "--cluster", "test").exit_code == 4
    assert f" at {address}\n" in invoke().stdout
    file.write_text("bootstrap.servers = http//x\n")
    assert "bootstrap.servers: 'http//x' is not an address" in invoke(*doctor).stderr


def test_a_cluster_id_without_profile_stays_with_its_command(config: Path) -> None:
    config.write_text('[clusters.prod]\nbootstrap-server = "localhost:1"\n')
    refused = invoke("plan", "--cluster", "lkc-1", "--data", config.parent / "none", "--as-of", "last")
    assert refused.exit_code == 6, refused.output
    refused = invoke("doctor", "--cluster", "lkc-1")
    assert refused.exit_code == 2
    assert f"there is no cluster 'lkc-1' in {config}; it has: prod" in refused.stderr


@pytest.mark.parametrize(("text", "said"), [
    ("[clusters.prod]\nbootstrap_server = 'b:1'", "has 'bootstrap_server' (did you mean 'bootstrap-server'?)"),
    ("[clusters.prod]\nthrottle = '5MB/s'", "options of one command go into a table of its name"),
    ("[clusters.prod.rum]\nthrottle = '5MB/s'", "a table 'rum', and there is no such command (did you mean 'run'?)"),
    ("[clusters.prod.doctor]\nmeasure = '5s'", "clusters.prod.doctor has no option 'measure' (did you mean 'measure"),
    ("[clusters.prod.properties]\nssl = 5", "properties are texts by name"),
    ("default = ['prod']", ": `default` is ['prod']; it must be the name of a cluster"),
    ("default = 7", ": `default` is 7; it must be the name of a cluster"),
    ("[cluster.prod]", "has 'cluster' (did you mean 'clusters'?); it may have `default`, and a table [clusters.NAME]"),
    ("defaul = 'prod'", "has 'defaul' (did you mean 'default'?); it may have"),
    ("[clusters.prod]\nbootstrap-server = ['b:1', 'b:2']", "clusters.prod: 'bootstrap-server' is a list; it must be "),
    ("[clusters.prod]\nstate-dir = true", "clusters.prod: 'state-dir' is true; it must be a text or a number, as on "),
    ("[clusters.prod.doctor]\nmeasure-for = ['5s']", "clusters.prod.doctor: 'measure-for' is a list; it must be "),
    ("[clusters.prod]\n[clusters.prod]", "is not TOML: Cannot declare clusters.prod twice (at line 2, column 15)"),
    ("[clusters.prod", "is not TOML"),
    ("", "there is no cluster 'prod' in "),
])  # fmt: skip
def test_what_the_file_cannot_mean_is_refused_with_its_name_and_place(config: Path, text: str, said: str) -> None:
    config.write_text(text)
    refused = invoke("doctor", "--cluster", "prod")
    assert (refused.exit_code, str(config) in refused.stderr, said in refused.stderr) == (2, True, True), refused.stderr


def test_clusters_to_choose_from_are_named_where_none_is_chosen(config: Path) -> None:
    config.write_text('[clusters.prod]\nbootstrap-server = "b:1"\n[clusters.test]\nbootstrap-server = "b:2"\n')
    assert f"; or choose a cluster of {config}: --cluster prod or test. For example: " in invoke("doctor").stderr
    shown = invoke()
    assert f"or --cluster with a name of {config}: prod, test\n" in shown.stdout
    assert "next: kreassign doctor --cluster prod\n  or: kreassign doctor --cluster test\n" in shown.stderr


def test_other_clusters_are_not_proposed_where_the_chosen_one_is_silent(config: Path) -> None:
    config.write_text("""[clusters.prod]
bootstrap-server = "b:1"
properties = { "security.protocol" = "NONE" }
[clusters.test]
bootstrap-server = "b:2"
""")
    shown = invoke("--cluster", "prod")
    assert "cluster at b:1: " in shown.stdout
    assert shown.stderr == "next: kreassign doctor --cluster prod\n"


def test_an_option_that_no_command_of_a_group_has_is_refused(config: Path) -> None:
    config.write_text("[clusters.prod.plan]\nmeasured-for = '5s'\n")
    refused = invoke("plan", "--cluster", "prod")
    assert refused.exit_code == 2
    assert "clusters.prod.plan has no option 'measured-for' (did you mean 'measure-for'?)" in refused.stderr


def test_a_cluster_without_a_file_is_refused_with_where_the_file_would_be(config: Path) -> None:
    refused = invoke("doctor", "--cluster", "prod")
    assert (refused.exit_code, f"there is no cluster 'prod': {config} is not there" in refused.stderr) == (2, True)


# Secrets


def test_secrets_come_from_commands_and_by_the_providers_of_kafka() -> None:
    found = with_secrets({"sasl.jaas.config": 'x password="${command:echo s3cret}";', "a": "${env:HOME}"})
    assert found["sasl.jaas.config"] == 'x password="s3cret";'
    assert (found["a"], found["config.providers"]) == ("${env:HOME}", "env,file,dir")
    assert found["config.providers.env.class"].endswith("EnvVarConfigProvider")
    assert with_secrets({}) == {}


@pytest.mark.parametrize(("command", "what"), [("true", "printed nothing"), ("false", "failed with exit code 1"),
                                               ("no-such-program", "could not be started: no such file")])  # fmt: skip
def test_a_command_that_tells_no_secret_is_named_with_its_property(command: str, what: str) -> None:
    with pytest.raises(InputError, match=f"sasl.jaas.config refers to the command '{command}', which {what}"):
        with_secrets({"sasl.jaas.config": f"${{command:{command}}}"})


# Every option


def test_every_option_has_an_environment_variable_of_its_name() -> None:
    for name, option in EVERY_OPTION.items():
        long = max(option.opts, key=len)
        if option.param_type_name == "option" and long != "--cluster":
            named = [f"KREASSIGN_{one.removeprefix('--').replace('-', '_').upper()}" for one in option.opts]
            assert option.envvar in named, name


def test_a_named_configuration_file_that_is_not_there_is_refused(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KREASSIGN_CONFIG", str(tmp_path / "typo.toml"))
    refused = invoke("status")
    said = f"KREASSIGN_CONFIG names {tmp_path / 'typo.toml'}, which is not there"
    assert (refused.exit_code, said in refused.stderr) == (2, True)
    monkeypatch.setenv("KREASSIGN_CONFIG", os.devnull)
    assert invoke("status").exit_code == 0


@pytest.mark.parametrize("is_link", [True, False])
def test_a_configuration_that_cannot_be_read_as_a_file_is_refused(config: Path, *, is_link: bool) -> None:
    config.unlink(missing_ok=True)
    if is_link:
        config.symlink_to("moved.toml")
    else:
        config.mkdir(parents=True)
    refused = invoke("status")
    why = "is a link to moved.toml, which is not there" if is_link else "is a directory"
    assert (refused.exit_code, f"{config} {why}" in refused.stderr) == (2, True)
    assert [invoke("status", each).exit_code for each in ("--help", "-h")] == [0, 0]


def test_a_configuration_whose_reading_fails_is_named(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KREASSIGN_CONFIG", "/proc/self/mem")
    refused = invoke("status")
    said = "\nError: /proc/self/mem cannot be read: Input/output error\n"
    assert (refused.exit_code, refused.stderr.endswith(said)) == (2, True)


def test_what_all_commands_share_are_options_that_there_are(config: Path) -> None:
    there = {one.removeprefix("--") for option in EVERY_OPTION.values() for one in option.opts}
    assert there >= set(SHARED)
    assert profile_in_force(None, tuple(COMMANDS), has_address=False) is None


# Secrets


LISTENERS = (ListenerConfig("SASL_PLAINTEXT", users=Users({"bob": "s3cret-of-bob"})), ListenerConfig())
LOGIN = (
    '[clusters.prod.properties]\n"security.protocol" = "SASL_PLAINTEXT"\n"sasl.mechanism" = "PLAIN"\n'
    '"sasl.jaas.config" = \'org.apache.kafka.common.security.plain.PlainLoginModule required username="bob" '
    'password="${command:cat SECRET}";\'\n'
)


@pytest.mark.thorough
def test_a_profile_reaches_its_cluster_and_its_secret_is_not_stored(config: Path, tmp_path: Path) -> None:
    secret, plan, state = tmp_path / "secret", tmp_path / "plan.json", tmp_path / "state"
    secret.write_text("s3cret-of-bob\nnot this line\n")
    write_plan(plan, Plan((PartitionAssignment(TopicPartition("t", 0), (2, 3)),)), None)
    with serving(Twin(cluster({"t": [[0, 1]]}), TwinSettings()), LISTENERS, speed=10.0) as thread:
        host, port = thread.server.addresses(LISTENERS[0].name)[0]
        address = f'[clusters.prod]\nbootstrap-server = "{host}:{port}"\n'
        config.write_text(address)
        assert invoke("doctor", "--cluster", "prod", *AT_ONCE).exit_code != 0
        config.write_text(address + LOGIN.replace("SECRET", str(secret)))
        looked = invoke("doctor", "--cluster", "prod", *AT_ONCE)
        assert (looked.exit_code, "all is well" in looked.stdout) == (0, True), looked.output
        done = invoke("run", plan, "--cluster", "prod", "--yes", *AT_ONCE, "--poll-interval", "0.1")
        assert done.exit_code == 0, done.output
        secret.write_text("wrong\n")
        refused = invoke("doctor", "--cluster", "prod", *AT_ONCE)
        assert refused.exit_code not in {0, 1}
    assert "s3cret" not in looked.output + done.output + refused.output
    kept = [path for path in state.rglob("*") if path.is_file()]
    (journal,) = (path for path in kept if path.suffix == ".sqlite")
    told = repr(list(read_events(journal)))
    assert ("RunStarted" in told, "s3cret" in told) == (True, False)
    assert not [path for path in kept if b"s3cret" in path.read_bytes()]


def test_all_clusters_are_watched_and_one_that_is_away_delays_none(address: str, config: Path) -> None:
    state = config.parent.parent / "state"
    config.write_text(
        f'[clusters.prod]\nbootstrap-server = "{address}"\n[clusters.test]\nbootstrap-server = "localhost:1"\n'
    )
    policy = config.with_name("policy.toml")
    policy.write_text("[care]\n")
    watched = invoke("autopilot", "watch-all", policy, "--once", "--dry-run")
    assert watched.exit_code == 4
    assert "test: error: no node of the cluster can be reached" in watched.output
    assert "prod: next: kreassign autopilot status" in watched.output
    assert "not looked after: test" in watched.stderr
    assert list(state.glob("*/autopilot-dry-run/decisions.sqlite"))
    strange = invoke("autopilot", "watch-all", policy, "live")
    assert strange.exit_code == 2
    assert f"there is no cluster 'live' in {config}; it has: prod, test" in strange.stderr
