"""Policies: defaults for every line, and errors that name file, table, key, value and what is allowed."""

from __future__ import annotations

import pytest

from kreassign.autopilot.policy import Kind, Level, Policy, explained, parse_policy, schema
from kreassign.errors import InputError
from kreassign.executor.client_guard import ClientGuard, ClientQuery

DEFAULT_POLICY = Policy()
WRONG = {
    "a": "p.toml: this is not TOML: Expected '=' after a key",
    "[brokers]": "p.toml: there is no table 'brokers'",
    "broker-gone = 1": "p.toml: [broker-gone] is 1; it must be a table",
    "[broker-gone]\nlevels = 'act'": "p.toml: [broker-gone]: there is no key 'levels' (did you mean 'level'?)",
    "[broker-gone]\nlevel = 'asks'": '\'level\' is \'asks\'; it must be "tell" or "propose" or "ask" or "act"',
    "[broker-gone]\nlevel = 'ask'": "[broker-gone] has level = \"ask\", and [approvals] has no 'allowed-signers'",
    "[messages]\ndigest-at = '8:00'": "'digest-at' is '8:00'; it must be a time such as \"08:00\"",
    "[messages]\ndigest-at = 08:00:00": "'digest-at' is 08:00:00; it must be a time such as \"08:00\"",
    "[messages]\nslack = 1": "[messages]: 'slack' is 1; it must be a text",
    "[approvals]\nleast = 0": "[approvals]: 'least' is 0; it must be a whole number from 1",
    "[approvals]\nallowed-signers = 1": "'allowed-signers' is 1; it must be a text",
    "[broker-gone]\nlevel = ['act']": "'level' is ['act']; it must be \"tell\"",
    "[broker-gone]\ntell-after = '2 hours'": "'tell-after' is '2 hours' ('2 hours' is not a duration",
    "[broker-gone]\ntell-after = 120": "'tell-after' is 120 (it is no text); it must be a duration such as",
    "[broker-gone]\ntell-after = '-2m'": "'tell-after' is '-2m'",
    "[broker-gone]\ntell-after = '2h'": "'tell-after' is 2h, more than 'propose-after' with 30m",
    "[broker-gone]\nmost-share = true": "'most-share' is true; it must be a share from 0 to 1",
    "[disk-fills]\ntell-share = 85": "'tell-share' is 85; it must be a share from 0 to 1",
    "[disk-fills]\ntell-share = nan": "'tell-share' is nan",
    "[disk-fills]\nurgent-any-time = 1": "'urgent-any-time' is 1; it must be true or false",
    "[band-left]\nfind-at = 0.9": "'find-at' is 0.9; it must be a multiple of the mean from 1",
    "[runs]\nwindows = '22:00-06:00'": "'windows' is '22:00-06:00'; it must be a list",
    "[runs]\nwindows = ['22-06']": "('22-06' is not a window; write for example 22:00-06:00)",
    "[runs]\ntime-zone = 'Berlin'": "unknown time zone 'Berlin'",
    "[runs]\nthrottle = 'fast'": "'throttle' is 'fast' ('fast' is not an amount",
    "[runs]\nthrottle = 0": "[runs]: 'throttle' is 0",
    "[clients]\nqueries = ['max(p99)']": "'queries' is ['max(p99)'] ('max(p99)' is no condition",
    "[clients]\nqueries = 'a < 1'": "'queries' is 'a < 1'; it must be a list of conditions",
    "[clients]\nqueries = ['a < 1']": "p.toml: [clients]: queries about clients need the address of a Prometheus",
    "[clients]\nurl = 'prometheus'": "p.toml: [clients]: ",
    "[slow-broker]\nmetric = 'm'\n[clients]\ncommand = 'c'": "p.toml: [clients]: queries about clients need",
    "[clients]\ncommand = 'c'\nurl = 'https://p:9090'": "p.toml: [clients]: queries about clients need",
    "[slow-broker]\nmetric = 'm'": "p.toml: [clients]: queries about clients need the address of a Prometheus",
    "[clients]\nurl = 'https://p:9090'": "p.toml: [clients]: queries about clients need the address of a Prometheus",
    '[clients]\ncommand = "check \'"': "'command' is \"check '\" (No closing quotation); it must be a command",
    "[clients]\nurl = 1": "'url' is 1; it must be a text",
    "[budget]\nbytes-per-day = '9TB'": "'bytes-per-day' is 9 TB, more than 'bytes-per-week' with 6 TB",
    "[budget]\nruns-per-day = 0": "'runs-per-day' is 0; it must be a whole number from 1",
    "[care]\ninterval = '0s'": "p.toml: [care]: 'interval' is 0s; it must be more than 0",
    "[care]\ninterval = '30m'": "'interval' is 30m, more than",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_policy_is_refused_with_place_value_and_choice(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_policy(text, "p.toml")
    assert WRONG[text] in str(refused.value)
    assert str(refused.value).startswith("p.toml: ")


def test_all_mistakes_of_a_policy_are_named_at_once() -> None:
    text = (
        "[broker-gon]\n[runs]\nthrottle = 'fast'\n[broker-gone]\nlevel = 'do'\nact-after = '1m'\n"
        "[leaders]\nlevel = 'ask'\n"
    )
    with pytest.raises(InputError) as refused:
        parse_policy(text, "p.toml")
    head, *mistakes = str(refused.value).split("\n  - ")
    assert head == "p.toml: 5 mistakes:"
    parts = ("'broker-gon' (did you mean 'broker-gone'?)", "'throttle' is 'fast'", "'level' is 'do'",
             "'propose-after' is 30m, more than 'act-after' with 1m", '[leaders] has level = "ask"')  # fmt: skip
    assert all(part in one for part, one in zip(parts, mistakes, strict=True))


def test_a_policy_without_settings_tells_and_changes_nothing() -> None:
    assert parse_policy("[care]", "p.toml") == DEFAULT_POLICY
    with pytest.raises(InputError, match="is empty"):
        parse_policy(" \n", "p.toml")
    assert {DEFAULT_POLICY.level(kind) for kind in Kind} == {Level.TELL}
    assert next(iter(explained(DEFAULT_POLICY))).startswith("The autopilot changes nothing by itself")


def test_a_policy_has_a_guard_on_clients() -> None:
    text = "[clients]\nqueries = ['a < 1']\nurl = 'https://p:9090'\nlogin = '/login'\ncommand = 'check -w 1'"
    policy = parse_policy(text, "p.toml")
    query = ClientQuery.parse("a < 1")
    assert policy.clients.guard == ClientGuard((query,), "https://p:9090", "/login", command=("check", "-w", "1"))
    assert DEFAULT_POLICY.clients.guard is None
    (line,) = [line for line in explained(policy) if line.startswith("clients")]
    assert "conditions that hold while clients are well, in PromQL: a < 1 (set)" in line
    assert "command that exits with 0 while clients are well: check -w 1 (set)" in line


def test_every_default_can_be_written_into_a_file() -> None:
    for table, _, lines in schema():
        written = "\n".join(f"{line.key} = {_toml(line.written)}" for line in lines)
        assert parse_policy(f"[{table}]\n{written}", "p.toml") == DEFAULT_POLICY


def test_check_names_what_acts_and_what_was_set() -> None:
    policy = parse_policy("[broker-gone]\nlevel = 'act'\nact-after = '2h'", "p.toml")
    first, *rest = explained(policy)
    assert first == "The autopilot changes the cluster by itself for broker-gone; for nothing else."
    (gone,) = (one for one in rest if one.startswith("broker-gone"))
    assert "repaired by itself never earlier: 2h (set)" in gone
    assert gone.count("(set)") == 1


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
