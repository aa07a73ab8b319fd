"""Mistyped command lines of a first hour: each answer says what was meant, or shows a line that works."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.cli.mistakes import OTHER_WORDS
from kreassign.errors import InputError
from kreassign.model.text import did_you_mean, likely
from kreassign.operations.twin import scenario_file
from tests.cli.test_help import every_command

LINES = {
    "paln": "Did you mean 'plan'?",
    "help": "Did you mean '--help'?",
    "version": "Did you mean '--version'?",
    "plan --ou plan.json": "No such option '--ou'. Did you mean '--out'?",
    "plan --output plan.json": "Did you mean '--out'?",
    "plan -o plan.json": "; --out names a file",
    "plan drain 3": "Did you mean 'drain-brokers' or 'drain-dirs'?",
    "plan drain-brokers": "Missing argument 'IDS'. For example: kreassign plan drain-brokers ",
    "--bootstrap-server b:1": "an option of `kreassign snapshot`, `kreassign collect`, `kreassign stream-metrics` and ",
    "plan --out a/b/plan.json": "there is no directory 'a/b'; make it with `mkdir -p a/b`",
    "snapshot --out no/cluster.json": "there is no directory 'no'; make it with `mkdir -p no`",
    "doctor --bootstrap-servers b:1": "Did you mean '--bootstrap-server'?",
    "doctor b:9092": "unexpected extra argument (b:9092). For example: kreassign doctor --bootstrap-server ",
    "run": "Missing argument 'PLAN'. For example: kreassign run plan.json ",
    "run plan.jsn": "File 'plan.jsn' does not exist. Did you mean plan.json?",
    r"run C:\plans\plan.json": r"File 'C:\plans\plan.json' does not exist",
    r"twin start --scenario C:\x": r"'C:\x' is neither a file",
    "run {folder}/plna.json": "Did you mean plan.json?",
    "run plan.json --throttle 50 MB/s": "50 without a unit is 50 B/s; write 50MB/s, or 50B/s if it is meant",
    "plan --budget-bytes 50 GB": "unexpected extra argument (GB). Write an amount without a blank, as in 50GB",
    "run plan.json --throttle 50": "50 without a unit is 50 B/s; write 50MB/s, or 50B/s if it is meant",
    "run plan.json --throttle-broker 3=50": "50 without a unit is 50 B/s",
    "run plan.json --throtle 50MB/s": "Did you mean '--throttle'?",
    "run plan.json --throttle 50Mb/s": "'50Mb/s' would be bits: write 50MB/s if bytes are meant, else an eighth of it",
    "plan --throttle 50MB/s": "No such option '--throttle'. It is an option of `kreassign rehearse`, `kreassign run`, ",
    "rehearse plan.json": "Missing option '--snapshot'; or export KREASSIGN_SNAPSHOT, which stands for it. ",
    "resume --yes": "No such option '--yes'. kreassign resume asks nothing: leave it out",
    "--throttle 50MB/s run plan.json": "It is an option of `kreassign run`: write it after the command",
    "maintenance 3": "No such command '3'. For example: kreassign maintenance enter ",
    "throttle": "Missing argument 'RATE'. For example: kreassign throttle ",
    "verify plan.jsn": "there is no file plan.jsn; a plan is a file of JSON, a run is named by its id",
    "plan --goal disk,net-in": "this is not a list with commas: give the option once for each",
    "plan import a.json,b.json": ": separate them with blanks",
    "twin start --scenario skewd": "; did you mean skewed?",
    "plan drian 3": "Did you mean 'drain-brokers' or 'drain-dirs'?",
    "plan approve plan.json": "No such command 'approve'. It is a command of its own: `kreassign approve`",
    "run --execute plan.json": "No such option '--execute'. That is `kreassign run PLAN` here",
    "run --reassignment-json-file plan.json": "That is `kreassign run PLAN` here",
    "run --plan plan.json": "'--plan'. Write PLAN without an option's name. For example: kreassign run plan.json",
    "status --run-id last": "'--run-id'. Write RUN_ID without an option's name. For example: kreassign status",
    "run plan.json -y": "No such option '-y'. Did you mean '--yes'?",
    "plan -f plan.json": "No such option '-f'. For example: kreassign plan rebalance ",
    "plan orders": "No such command 'orders'. For example: kreassign plan --bootstrap-server ",
    "drian": "Did you mean 'drain'?",
    "report plan.json": "unexpected extra argument (plan.json). Write --plan plan.json",
    "report last": "unexpected extra argument (last). Write --run last",
    "completion": "Choose from: bash, zsh, fish. For example: kreassign completion bash",
    "throttle 50": "Invalid value for 'RATE': 50 without a unit is 50 B/s",
    "run plan.json --yes --deadline 2020-01-01T06:00": "for '--deadline': 2020-01-01T06:00 is in the past",
    "run plan.json --yes --deadline 9999-12-31T23:59": "a deadline must be in the years 1970 to 9998; leave it out",
    "show-load --as-of 9999-12-31T23:59 --data {folder}": "'9999-12-31T23:59' is not in the years 2 to 9998, or the",
    "show-load --as-of 0001-01-01T00:00+14:00 --data {folder}": "is not in the years 2 to 9998, or the number of a ",
    "plan drain-brokers 3 --replace-with 4,5": "one successor for each broker: 1 broker and 2 successors are given",
    "web --listen 8085x": "'8085x' is neither a port nor an address; write for example 8085 or 0.0.0.0:8443",
    "plan --topics *orders": "nothing to repeat at position 0; for any beginning write '.*orders'",
    "doctor --zookeeper z:2181": "No such option '--zookeeper'. For example: kreassign doctor --bootstrap-server ",
    "run last": "File 'last' does not exist; `kreassign plan --out FILE` makes one",
    "autopilot check no": "File 'no' does not exist; a policy is a TOML file that you write",
    "autopilot chekc": "File 'chekc' does not exist; a policy is a TOML file that you write",
    "run .": "'.' is a directory, and a file is wanted; `kreassign plan --out FILE` makes one",
    "snapshot --out .": "Invalid value for '--out': '.' is a directory, and a file is wanted",
    "status --state-dir {folder}/plan.json": "plan.json' is a file, and a directory is wanted: name another",
    "rehearse plan.json --snapshot no": "File 'no' does not exist; `kreassign snapshot --out FILE` makes one",
    "run ~/plan.json": "; ~ is no directory here: write $HOME, without quotes around it",
    "plan --out ~/plan.json": "there is no directory '~'; ~ is no directory here: write $HOME",
    "run plan.json --throttle 50Mbit": "'50Mbit' would be bits: write 50MB if bytes are meant, else an eighth of it",
    "run plan.json --throttle 50mbps": "'50mbps' would be bits: write 50MB/s if bytes are meant, else an eighth of it",
    "run plan.json --throttle 50MBPS": "'50MBPS' would be bits: write 50MB/s if bytes are meant, else an eighth of it",
    "doctor --bootstrap-server b:1;c:1": "'b:1;c:1' is not an address; write host:port, for example ",
    "doctor --bootstrap-server 9092": "'9092' is not an address; write host:port, for example broker-1:9092",
    "rollback plan.json --state-dir {folder}": "run plan.json in {folder} (that is a file; a run is named by its id)",
    "decommission 1 2": "unexpected extra argument (2). Write ids as one list with commas and no blanks, as in 7,8",
    "plan rebalance drain-brokers 1": "`kreassign plan drain-brokers` is a command of its own: give one after ",
    "run plan.json --expect-current no": "File 'no' does not exist; `kreassign plan --current-out FILE` makes one",
    "doctor --command-config plan.json": "plan.json is not a properties file: it is JSON. Write lines like security.",
    "decommission 3": "cannot ask whether to begin the decommission: standard input is no terminal. Add --yes",
    "maintenance exit 3": "cannot ask whether to exit maintenance: standard input is no terminal. Add --yes",
    "elect": "No such command 'elect'. That is `kreassign plan leaders` here",
    "sandbox": "That is `kreassign twin start` here",
    "maintenance status": "No such command 'status'. `kreassign doctor` names brokers in maintenance",
    "plan set-factor orders 5": "That is `kreassign plan replication-factor N` here",
    "web --port 8080": "No such option '--port'. That is `kreassign web --listen PORT` here",
    "doctor --host localhost": "No such option '--host'. For example: kreassign doctor --bootstrap-server ",
    "twin remove 4": "Did you mean 'recover'?",
    "maintenance stop": "No such command 'stop'. For example: kreassign maintenance enter ",
    "undo": "That is `kreassign rollback` here",
    "doctor --bootstrap-server b:99999": "'b:99999' is not an address: its port must be from 1 to 65535; write host:",
    "doctor --bootstrap-server b:0": "'b:0' is not an address: its port must be from 1 to 65535; write host:port",
    "run plan.json --bootstrap-controller [::1]:65536": "'[::1]:65536' is not an address: its port must be from 1 to ",
    "web --listen 99999": "'99999' is neither a port nor an address: its port must be from 1 to 65535; write for ",
    "web --listen 0.0.0.0:99999": "'0.0.0.0:99999' is neither a port nor an address: its port must be from 1 to 65535",
    "twin kill 4 --control localhost:99999": "no address of a control port: its port must be from 1 to 65535; write ",
    "twin start --zookeeper z:2181,y:99999/kafka": "'y:99999' is not an address: its port must be from 1 to 65535; ",
    "run plan.json --webhook https://h:99999/": "no address of a webhook: its port must be from 1 to 65535; write for ",
    "run plan.json --guard-url http://p:0": "no address of a Prometheus: its port must be from 1 to 65535; write for ",
    "run plan.json --guard-url http://p:x": "'http://p:x' is no address of a Prometheus; write for example https://",
    "run plan.json --metrics-port 99999": "'99999' is not a whole number from 0 to 65535",
    "twin start --brokers 99999999999": "'99999999999' is not a whole number from 1 to 10000",
    "twin start --controllers 1.5": "'1.5' is not a whole number from 1 to 100",
    "twin kill -- -1": "'-1' is not a whole number from 0 to 2147483647",
    "plan brokers-needed --at-most 0": "'0' is not a number above 0 and at most 100",
    "plan --tolerance 1e400": "'1e400' is not a finite number of at least 0 and below 100",
    "plan what-if --at tomorrow": "'tomorrow' is not a date; write for example 2027-01-31",
    "status 2027 --state-dir {folder}": "there is no run 2027 in {folder}, nor any other; `kreassign run",
}


@pytest.mark.parametrize(("line", "said"), LINES.items(), ids=LINES)
def test_a_mistake_of_a_first_hour_is_answered(
    line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", "127.0.0.1:1")
    Path("plan.json").write_text('{"version":1,"partitions":[]}')
    result = CliRunner().invoke(kreassign, line.format(folder=tmp_path).split())
    assert (result.exit_code, said.format(folder=tmp_path) in result.output) == (2, True), result.output


def test_a_refused_value_that_was_not_typed_is_named_with_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('default = "prd"\n[clusters.prod.run]\nthrottle = "50"\n')
    monkeypatch.setenv("KREASSIGN_CONFIG", str(config))
    words = ["run", str(config), "--bootstrap-server", "localhost:1"]
    refused = CliRunner().invoke(kreassign, [*words, "--cluster", "prod"])
    assert f"write 50MB/s, or 50B/s if it is meant; it comes from {config}\n" in refused.output
    monkeypatch.setenv("KREASSIGN_THROTTLE", "fast")
    refused = CliRunner().invoke(kreassign, words)
    assert "; it comes from the environment variable KREASSIGN_THROTTLE\n" in refused.output
    refused = CliRunner().invoke(kreassign, ["doctor"])
    assert refused.output.endswith(f"there is no cluster 'prd' in {config}, which its `default` names; it has: prod\n")


@pytest.mark.parametrize(("line", "said"), [
    ("doctor", "Missing option '--bootstrap-server'; or export KREASSIGN_BOOTSTRAP_SERVER, which stands for it. "),
    ("load", "Missing option '--data'; or export KREASSIGN_DATA, which stands for it. For example: kreassign load "),
])  # fmt: skip
def test_a_missing_option_names_its_environment_variable(line: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second terminal lacks what the first exported."""
    for name in ("KREASSIGN_BOOTSTRAP_SERVER", "KREASSIGN_DATA"):
        monkeypatch.delenv(name, raising=False)
    result = CliRunner().invoke(kreassign, [line])
    assert (result.exit_code, said in result.output) == (2, True), result.output


@pytest.mark.parametrize(("typed", "line", "meant"), [
    ("BOOTSTRAP_SERVERS", "doctor", "BOOTSTRAP_SERVER"),
    ("THROTLE", "run plan.json", "THROTTLE"),
    ("MEASUREFOR", "plan", "MEASURE_FOR"),
])  # fmt: skip
def test_a_mistyped_variable_is_refused(typed: str, line: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the throttle that was exported a run would copy as fast as it can."""
    monkeypatch.setenv(f"KREASSIGN_{typed}", "5")
    refused = CliRunner().invoke(kreassign, line.split())
    said = f"no option reads the environment variable KREASSIGN_{typed}; did you mean KREASSIGN_{meant}? Rename it, or "
    assert (refused.exit_code, said in refused.output) == (2, True), refused.output


def test_a_variable_of_another_command_is_no_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KREASSIGN_MAX_MOVE", "5")
    assert CliRunner().invoke(kreassign, ["status", "--state-dir", str(tmp_path)]).exit_code == 0
    monkeypatch.delenv("KREASSIGN_MAX_MOVE")
    monkeypatch.setenv("KREASSIGN_CONFIG", "/dev/null")
    monkeypatch.setenv("KREASSIGN_WEBHOOK_SECRET", "0123456789abcdef")
    for command in ("run", "load"):
        assert "environment variable" not in CliRunner().invoke(kreassign, [command]).output.replace("or export", "")


@pytest.mark.parametrize("words", OTHER_WORDS.items(), ids=OTHER_WORDS)
def test_what_others_call_a_command_leads_to_one_that_exists(words: tuple[str, tuple[str, ...]]) -> None:
    meant, others = words
    known = {name for name, _ in every_command()}
    assert " ".join(word for word in meant.split() if word.islower() and word[0] != "-") in known
    assert not {*others} & known, "it is a command"


def test_a_group_alone_shows_its_help() -> None:
    shown = CliRunner().invoke(kreassign, ["audit"])
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr.startswith("Usage: kreassign audit [OPTIONS] COMMAND [ARGS]...")
    assert "Error" not in shown.stderr


def test_every_command_shows_an_example_where_something_is_missing() -> None:
    without = {
        name for name, command in every_command() if _needs(command) and "kreassign" not in (command.epilog or "")
    }
    assert without == set()


def _needs(command: click.Command) -> bool:
    return isinstance(command, click.Group) or any(parameter.required for parameter in command.params)


def test_names_that_were_probably_meant_are_few() -> None:
    assert likely("--yes", ["--lease", "--format"]) == []
    assert likely("--out-file", ["--out", "--out-dir", "--output"]) == ["--out"]
    assert did_you_mean("skewd", ["skewed", "scale-out"]) == "did you mean skewed?"
    assert did_you_mean("nothing", ["skewed"]) == ""


def test_a_scenario_that_is_unlike_all_is_only_listed() -> None:
    with pytest.raises(InputError, match=re.compile(r"neither a file nor one of the scenarios .*skewed$")):
        scenario_file("xyz")


@pytest.mark.parametrize(
    ("typed", "said"),
    {
        "--snapshots data --dry-run": "--dry-run: only for a journal, not for --snapshots",
        "--snapshots data --bootstrap-server b:1": "--bootstrap-server: only for a journal, not for --snapshots",
        "--of cluster": "--of: only for --snapshots, not for a journal",
    }.items(),
)
def test_a_replay_refuses_options_that_it_would_ignore(typed: str, said: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[care]\n")
    result = CliRunner().invoke(kreassign, ["autopilot", "replay", str(policy), *typed.split()])
    assert (result.exit_code, said in result.output) == (2, True), result.output
