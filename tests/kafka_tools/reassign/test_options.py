"""Options of each action, in Kafka's order of checks."""

import pytest

from kreassign.kafka_tools.command_line import UncaughtError, UsageError, parse
from kreassign.kafka_tools.reassign.options import HELP_TEXT, OPTIONS, Action, choose_action

ONE_ACTION = "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"
SOME_BOOTSTRAP = "Please specify either --bootstrap-server or --bootstrap-controller"
ONE_BOOTSTRAP = "Please don't specify both --bootstrap-server and --bootstrap-controller"
PLAN = "--reassignment-json-file plan.json"
TOPICS = "--topics-to-move-json-file topics.json"
EVERY_EXECUTE_OPTION = (
    "--additional --throttle 1 --replica-alter-log-dirs-throttle 1 --timeout 1 --disallow-replication-factor-change "
    "--command-config x"
)


def chosen(text):
    return choose_action(parse(OPTIONS, text.split()))


def refusal(text):
    with pytest.raises(UsageError) as caught:
        chosen(text)
    return str(caught.value)


def misplaced(option, action):
    return f'Option "[{option}]" can\'t be used with action "[{action}]"'


def missing(option):
    return f'Missing required argument "[{option}]"'


@pytest.mark.parametrize(("text", "action"), [
    (f"--bootstrap-server a:1 --generate --broker-list 101,102 {TOPICS}", Action.GENERATE),
    (f"--bootstrap-server a:1 --generate --broker-list 1 {TOPICS} --disable-rack-aware", Action.GENERATE),
    (f"--bootstrap-server a:1 --execute {PLAN}", Action.EXECUTE),
    (f"--bootstrap-server a:1 --execute --throttle 100 {PLAN}", Action.EXECUTE),
    (f"--bootstrap-server a:1 --execute {PLAN} {EVERY_EXECUTE_OPTION}", Action.EXECUTE),
    (f"--bootstrap-server a:1 --verify {PLAN}", Action.VERIFY),
    (f"--bootstrap-server a:1 --verify {PLAN} --preserve-throttles", Action.VERIFY),
    ("--bootstrap-server a:1 --list", Action.LIST),
    ("--bootstrap-controller a:1 --list", Action.LIST),
    (f"--bootstrap-server a:1 --cancel {PLAN} --preserve-throttles --timeout 5", Action.CANCEL),
    (f"--bootstrap-controller a:1 --cancel {PLAN}", Action.CANCEL),
    ("--bootstrap-server a:1 --cancel --all", Action.CANCEL),
    ("--bootstrap-controller a:1 --cancel --all --output f --preserve-throttles --timeout 5", Action.CANCEL),
])  # fmt: skip
def test_what_belongs_together_is_accepted(text, action):
    assert chosen(text) is action


@pytest.mark.parametrize("text", ["", "--help", "--help --list --bootstrap-server a:1", "--execute --verify --help"])
def test_help_is_a_failure_of_usage(text):
    assert refusal(text) == HELP_TEXT


@pytest.mark.parametrize("text", ["x", "--bootstrap-server a:1", "--execute --verify", f"--list --cancel {PLAN}"])
def test_exactly_one_action_is_wanted(text):
    assert refusal(text) == ONE_ACTION


def test_a_blank_word_is_not_no_word():
    with pytest.raises(UsageError, match="exactly one action"):
        choose_action(parse(OPTIONS, [" "]))


@pytest.mark.parametrize("action", ["generate", "execute", "verify", "cancel", "list", "cancel --all"])
def test_a_bootstrap_address_is_wanted_before_anything_else(action):
    assert refusal(f"--{action}") == SOME_BOOTSTRAP


@pytest.mark.parametrize("action", ["generate", "execute", "verify", "cancel", "list"])
def test_two_kinds_of_bootstrap_address_are_one_too_many(action):
    assert refusal(f"--{action} --bootstrap-server a:1 --bootstrap-controller b:1") == ONE_BOOTSTRAP


@pytest.mark.parametrize(("text", "option"), [
    ("--execute", "reassignment-json-file"),
    ("--verify", "reassignment-json-file"),
    ("--cancel --preserve-throttles", "reassignment-json-file"),
    ("--cancel --output f", "reassignment-json-file"),
    ("--generate", "topics-to-move-json-file"),
    ("--generate --broker-list 1", "topics-to-move-json-file"),
    (f"--generate {TOPICS}", "broker-list"),
    ("--execute --broker-list 1", "reassignment-json-file"),
])  # fmt: skip
def test_what_is_missing_is_named_before_what_is_misplaced(text, option):
    assert refusal(f"{text} --bootstrap-server a:1") == missing(option)


@pytest.mark.parametrize(("text", "option"), [
    (f"--execute {PLAN} {TOPICS}", "topics-to-move-json-file"),
    (f"--execute {PLAN} --broker-list 1", "broker-list"),
    (f"--execute {PLAN} --preserve-throttles", "preserve-throttles"),
    (f"--execute {PLAN} --all", "all"),
    (f"--generate --broker-list 1 {TOPICS} --throttle 100", "throttle"),
    (f"--generate --broker-list 1 {TOPICS} --throttle -1", "throttle"),
    (f"--generate --broker-list 1 {TOPICS} {PLAN}", "reassignment-json-file"),
    (f"--verify {PLAN} --broker-list 1", "broker-list"),
    (f"--verify {PLAN} --throttle 100", "throttle"),
    (f"--verify {PLAN} --timeout 1", "timeout"),
    (f"--verify {PLAN} {TOPICS}", "topics-to-move-json-file"),
    (f"--verify {PLAN} --additional", "additional"),
    (f"--cancel {PLAN} --additional", "additional"),
    (f"--cancel {PLAN} --throttle 1 --additional", "throttle"),
    ("--cancel --all --throttle 1", "throttle"),
    (f"--list {PLAN}", "reassignment-json-file"),
    ("--list --preserve-throttles", "preserve-throttles"),
    ("--list --output f", "output"),
])  # fmt: skip
def test_the_first_misplaced_option_is_named(text, option):
    action = text.split()[0].removeprefix("--")
    assert refusal(f"{text} --bootstrap-server a:1") == misplaced(option, action)


@pytest.mark.parametrize(
    "text",
    [f"--generate --broker-list 1 {TOPICS}", f"--execute {PLAN}", f"--verify {PLAN}"],
    ids=lambda text: text[2:6],
)
def test_controllers_serve_only_cancel_and_list(text):
    action = text.split()[0].removeprefix("--")
    assert refusal(f"{text} --bootstrap-controller a:1") == misplaced("bootstrap-controller", action)


def test_all_takes_no_file():
    expected = 'Option "[all]" can\'t be used with option "[reassignment-json-file]"'
    assert refusal(f"--bootstrap-server a:1 --cancel --all {PLAN}") == expected


@pytest.mark.parametrize(("text", "option", "owner"), [
    (f"--cancel {PLAN} --output f", "output", "all"),
    (f"--cancel {PLAN} --dry-run", "dry-run", "all"),
    (f"--execute {PLAN} --cancel-first", "cancel-first", "additional"),
])  # fmt: skip
def test_an_option_that_goes_with_another_alone_names_it(text, option, owner):
    expected = f'Option "[{option}]" can only be used with option "[{owner}]"'
    assert refusal(f"--bootstrap-server a:1 {text}") == expected


@pytest.mark.parametrize(
    "option", ["additional", "timeout 1", "disallow-replication-factor-change", "command-config x"]
)
def test_what_zookeeper_cannot_do_is_refused(option):
    name = option.split()[0]
    with pytest.raises(UncaughtError, match=rf"You must specify --bootstrap-server when using \"\[{name}\]\""):
        chosen(f"--zookeeper a:2181 --execute {PLAN} --{option}")


@pytest.mark.parametrize("action", [f"cancel {PLAN}", "list"])
def test_zookeeper_neither_lists_nor_cancels(action):
    assert refusal(f"--zookeeper a:2181 --{action}") == misplaced("zookeeper", action.split()[0])
