"""Sizes, words, dead code, silenced checks, and whether the pages tell the truth about the code.

Each rule is tested twice: on the repository, and on a small text that breaks it, so that the check itself can fail.
"""

from __future__ import annotations

import subprocess

import click
import pytest

from kreassign.cli.main import COMMANDS
from kreassign.executor.cluster.port import WRITES
from tests.checks import answers, shape, whole
from tests.checks.source import ROOT, Finding, Source, assert_none, product, python, read

FUNCTION_LINES = 70
SHORT_FUNCTION_LINES = 35
SHARE_OF_SHORT_FUNCTIONS = 0.9
# Lower this number whenever a silenced check goes away; raise it only with a reason that a reviewer accepts.
SILENCED_CHECKS = 7

FOLDERS = ("src/kreassign", "tests", "testbed", "bench", "scripts", "examples")
EMPTY_WORDS = ("utils", "util", "helpers", "helper", "common", "manager", "base", "misc")
NO_MOCKS = dict.fromkeys(
    ("unittest.mock", "mock", "pytest_mock"),
    "no mocks: use real values, the testbed's brokers, or a small class of the test's own",
)
NO_SLEEPS = dict.fromkeys(
    ("time.sleep", "asyncio.sleep", "kreassign.clock.SystemClock.sleep"),
    "wait for a condition with a deadline, never for a time",
)
NO_PRINTING = {"builtins.print": "only the command line, the testbed and the benchmarks print"}
BUILD_FILES = ("constraints*.txt", "pyproject.toml", "locks/*", "Makefile", "jvm/*.xml", "scripts/*", ".ci/*", "*.cfg")
TEXTS = (
    "src/**/*",
    "tests/**/*.py",
    "testbed/**/*.py",
    "bench/**/*.py",
    "examples/*",
    "docs/**/*.md",
    "changelog/*",
    "*.md",
)
DECIDING = ("src/kreassign/executor", "src/kreassign/operations", "src/kreassign/planner/problem")
READING = (*DECIDING, *(f"src/kreassign/{one}" for one in (
    "admin", "autopilot", "cli", "kafka_tools", "pipeline/ingest", "report", "web",
)))  # fmt: skip
LEFT_OUT = {
    ("admin/client.py", "minima"): "a topic whose settings were refused has no known minimum",
    ("admin/kafka_calls.py", "list_offsets"): "what failed is asked for again",
    ("admin/session.py", "call"): "the broker that answered is not asked for",
    ("kafka_tools/command_line.py", "number"): "options that a tool knows, no answer of a cluster",
    ("cli/commands/cluster.py", "summary"): "the brokers without an answer are named, whatever the reason",
    ("kafka_tools/reassign/tool_client.py", "statuses"): "as in Kafka a partition that nobody reports has no progress",
    ("pipeline/ingest/snapshots.py", "_reported_copies"): "a copy that was not reported has no size and no directory",
    ("pipeline/ingest/snapshots.py", "log_dir_rows"): "a broker that did not answer has no rows, and was warned of",
    ("executor/cluster/sizes.py", "_tail_sizes"): "a partition without a pending upload has none",
    ("executor/cluster/measurements.py", "measure"): "what has no offset has no rate, and its brokers no known traffic",
    ("executor/cluster/measurements.py", "_sizes"): "what has no size has no rate, and its brokers no known traffic",
    ("executor/cluster/requests.py", "_statuses"): "a copy of which nothing is told keeps its last progress",
    ("executor/cluster/requests.py", "without_records"): "doctor names this cause only where it is seen",
    ("operations/run.py", "preview_run"): "a broker that did not answer is among those of unknown free space",
    ("operations/plan_inputs.py", "inputs_of_cluster"): "a topic that is missing is named where its factor changes",
    ("operations/table_inputs.py", "inputs_of_present"): "a topic that is missing is named where its factor changes",
    ("operations/plan_tasks.py", "pose_topic"): "no new partition is put on a dead broker, which says itself",
    ("operations/plan_tasks.py", "pose_partitions"): "no new partition is put on a dead broker, which says itself",
    ("operations/report.py", "_log_dirs"): "only topics that may be hidden are looked for there",
    ("operations/snapshot.py", "_broker"): "a broker without known directories is stored so, and was warned of",
}
"""Places in `READING` where an answer may be read by half, or has a default, and why: file, and function."""

ALWAYS_MANY = {
    ("model/topic_changes.py", "more"): "more than 10,000, in the words that tests on real brokers know",
    ("twin/zookeeper/decisions.py", "present"): "a broker's own words",
    ("cli/commands/show_load.py", "title"): "an adjective",
    ("twin/checkers.py", "partition.topic_partition"): "a name, and a verb",
    ("operations/broker_changes.py", "len(keys)"): "the partitions of a topic that has 50",
    ("kafka_tools/reassign/messages.py", "len(move.replicas)"): "of a move, which has two at least",
    ("kafka_tools/reassign/messages.py", "len(listed)"): "of a move, which has two at least",
}
"""Texts with a plural after a value that is never one: file, and value."""

COMMANDS_PAGE = "docs/reference/kreassign.md"


def every_python_file() -> tuple[Source, ...]:
    return python(*FOLDERS)


def shipped_and_run_by_hand() -> tuple[Source, ...]:
    return python("src/kreassign", "testbed", "bench", "scripts")


def pages() -> dict[str, Source]:
    return {page.path: page for page in read("*.md", "docs/**/*.md", "changelog/README.md")}


def every_path() -> set[str]:
    """All files and folders that a page may link to."""
    files = [path.relative_to(ROOT) for folder in ("docs", "src", "tests", "testbed", "bench", "jvm", "scripts",
             "changelog", ".ci", "examples") for path in (ROOT / folder).rglob("*")]  # fmt: skip
    return {path.as_posix() for path in [*files, *(path.relative_to(ROOT) for path in ROOT.glob("*"))]}


def commands() -> set[str]:
    (main,) = read("src/kreassign/cli/main.py")
    return whole.registered_commands(main)


def options_of(command: str) -> set[str]:
    """The long names of the options of a command, but for --help; `-o` is said once, of all commands."""
    options = [one for one in COMMANDS[command].load().params if isinstance(one, click.Option)]
    return {name for one in options for name in (*one.opts, *one.secondary_opts)} - {"-o"}


def source(text: str, path: str = "src/kreassign/model/cluster.py") -> Source:
    return Source(path, text)


# The checks look at something


@pytest.mark.parametrize(("folder", "least"), [("src/kreassign", 40), ("tests", 15), ("testbed", 10), ("bench", 3)])
def test_the_files_are_found(folder: str, least: int) -> None:
    assert len(python(folder)) >= least


def test_the_pages_are_found() -> None:
    assert {"README.md", "docs/README.md", "CONTRIBUTING.md"} <= pages().keys()


# Tests are where the code is; nothing lies about


def test_every_room_of_the_product_has_its_room_of_tests() -> None:
    tests = [file.path for file in python("tests")]
    assert whole.rooms_without_tests([file.path for file in product()], tests) == []


def test_a_room_without_tests_is_found() -> None:
    modules = ("src/kreassign/clock.py", "src/kreassign/twin/__init__.py", "src/kreassign/twin/groups/group.py")
    assert whole.rooms_without_tests(modules, ["tests/test_clock.py"]) == ["src/kreassign/twin/groups"]
    assert whole.rooms_without_tests(modules, ["tests/test_clock.py", "tests/twin/groups/asking.py"]) == [
        "src/kreassign/twin/groups"
    ]
    assert not whole.rooms_without_tests(modules, ["tests/test_clock.py", "tests/twin/groups/test_group.py"])


def git_files(*options: str) -> dict[str, int]:
    """Files that git lists, with their sizes, but for those that are gone. Skips where this is no repository of git."""
    told = subprocess.run(["git", "ls-files", "-z", *options], cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode:
        pytest.skip(f"git lists nothing here: {told.stderr.strip()}")
    paths = (ROOT / path for path in told.stdout.split("\0") if path)
    return {path.relative_to(ROOT).as_posix(): path.stat().st_size for path in paths if path.is_file()}


def test_nothing_that_a_program_left_behind_lies_about() -> None:
    known, unknown = git_files(), git_files("--others", "--exclude-standard")
    assert list(whole.stray_files(known, unknown, git_files("--cached", "--ignored", "--exclude-standard"))) == []


@pytest.mark.parametrize("path", ["spark.log", "docs/empty.md", "src/a.py.orig", "src/a.py~", "tests/core.77"])
def test_stray_files_are_found(path: str) -> None:
    size = 0 if "empty" in path else 10
    assert path in str(*whole.stray_files({path: size}, {}, []))
    assert path in str(*whole.stray_files({}, {path: size}, []))
    assert path in str(*whole.stray_files({}, {}, [path]))


def test_files_that_belong_here_are_no_strays() -> None:
    known = {"src/kreassign/py.typed": 0, "tests/clients/__init__.py": 0, "src/kreassign/core.py": 10, "README.md": 10}
    assert not list(whole.stray_files(known, {"docs/a page.md": 10}, []))


# Sizes. How long modules are is reported by `make sizes`, not limited: see CONTRIBUTING.


def test_no_function_is_too_long() -> None:
    assert_none(finding for file in every_python_file() for finding in shape.long_functions(file, FUNCTION_LINES))


@pytest.mark.parametrize("folder", FOLDERS)
def test_most_functions_are_short(folder: str) -> None:
    assert shape.share_of_short_functions(python(folder), SHORT_FUNCTION_LINES) >= SHARE_OF_SHORT_FUNCTIONS


def test_sizes_are_measured() -> None:
    text = "class A:\n    def f(self, a, /, b, *, c):\n        x = 1\n        return x"
    assert "f has 3 lines, more than 2" in str(*shape.long_functions(source(text), 2))
    assert shape.share_of_short_functions([source(text)], 2) == 0.0
    assert not [*shape.long_functions(source(text), 3)]


# Words


def test_names_say_something() -> None:
    assert_none(finding for file in every_python_file() for finding in shape.banned_names(file, EMPTY_WORDS))


def test_nothing_is_put_off() -> None:
    files = (*every_python_file(), *read("docs/**/*.md", "*.md", "Makefile", "scripts/*", ".ci/*"))
    assert_none(finding for file in files for finding in shape.unfinished(file))


@pytest.mark.parametrize(("path", "text"), [
    ("src/kreassign/utils.py", ""),
    ("src/kreassign/common/x.py", ""),
    ("src/kreassign/admin/kafka_helpers.py", ""),
    ("src/kreassign/admin/client.py", "class ConnectionManager: ..."),
    ("src/kreassign/admin/client.py", "class BaseClient: ..."),
])  # fmt: skip
def test_empty_words_are_found(path: str, text: str) -> None:
    assert len(list(shape.banned_names(source(text, path), EMPTY_WORDS))) == 1


def test_words_inside_other_words_are_fine() -> None:
    text = "class Database: ...\nclass Managed: ..."
    assert not list(shape.banned_names(source(text, "src/kreassign/admin/baseline.py"), EMPTY_WORDS))


def test_no_text_says_1_partitions() -> None:
    found = {finding: _place(finding) for file in python("src/kreassign") for finding in shape.bare_counts(file)}
    assert_none(finding for finding, place in found.items() if place not in ALWAYS_MANY)
    assert set(ALWAYS_MANY) <= set(found.values()), "a row of ALWAYS_MANY is over"


@pytest.mark.parametrize(("text", "is_found"), [
    ('f"{len(names)} partitions"', True),
    ('f"broker {broker} leads {count} "\nf"log directories"', True),
    ('f"{hours:.0f} hours"', True),
    ('f"{counted(count, \'partition\')} of {len(names)} partitions"', False),
    ('f"{KEPT_DAYS * 24} hours"', False),
    ('f"{factor:.2f} times"', False),
    ('f"{factor} times its speed"', False),
    ('f"{count} moves" if count else ""', True),
    ('"1 move" if count == 1 else f"{count} moves"', False),
    ('f"broker {broker} moves"', False),
])  # fmt: skip
def test_numbers_before_a_plural_are_found(text: str, *, is_found: bool) -> None:
    assert bool(list(shape.bare_counts(source(f"told = ({text})")))) is is_found


@pytest.mark.parametrize("word", ["todo", "fixme", "xxx"])
def test_work_put_off_is_found(word: str) -> None:
    assert list(shape.unfinished(source(f"# {word.upper()}: later")))
    assert not list(shape.unfinished(source(f"# {word}_list")))


@pytest.mark.parametrize("mark", ["<", ">"])
def test_an_unfinished_merge_is_found(mark: str) -> None:
    assert list(shape.unfinished(source(f"{7 * mark} ours")))
    assert not list(shape.unfinished(source(f"x {7 * mark} y")))


# Calls


def test_there_are_no_mocks() -> None:
    assert_none(finding for file in every_python_file() for finding in shape.banned_calls(file, NO_MOCKS))


def test_tests_never_sleep() -> None:
    assert_none(finding for file in python("tests") for finding in shape.banned_calls(file, NO_SLEEPS))


def test_tests_do_not_print() -> None:
    assert_none(finding for file in python("tests") for finding in shape.banned_calls(file, NO_PRINTING))


def test_buttons_are_found_by_their_whole_name() -> None:
    texts = {file.path: file.text for file in python("tests") + python("scripts") if file.path != "tests/test_tidy.py"}
    assert [path for path, text in texts.items() if 'get_by_role("button"' in text] == ["tests/browser.py"]


@pytest.mark.parametrize("text", [
    "from unittest import mock",
    "from unittest.mock import Mock",
    "import time\ndef test_it():\n    time.sleep(1)",
    "from time import sleep as wait\nwait(1)",
    "print('here')",
])  # fmt: skip
def test_banned_calls_are_found(text: str) -> None:
    banned = NO_MOCKS | NO_SLEEPS | NO_PRINTING
    assert list(shape.banned_calls(source(text, "tests/test_it.py"), banned))


# Answers of a cluster


def test_whoever_reads_an_answer_names_what_failed() -> None:
    found = {finding: _place(finding) for file in python(*READING) for finding in answers.half_answers(file)}
    assert_none(finding for finding, place in found.items() if place not in LEFT_OUT)
    assert set(LEFT_OUT) <= set(found.values()), "a row of LEFT_OUT is over"


def _place(finding: Finding) -> tuple[str, str]:
    return finding.path.removeprefix("src/kreassign/"), finding.text.split()[0]


@pytest.mark.parametrize("body", [
    "return port.describe_topics(names).ok",
    "found = port.describe_topics(names)\n    return found.ok, other.failed",
    "found = read_topics(port, names)\n    return found.known",
    "values, _ = read_configs(port, names)\n    return values",
    "_, __, gone = check(port)\n    return gone",
    "found = port.describe_log_dirs(names)\n    return [found.ok.get(one, ()) for one in found.failed]",
    "found = read_topics(port, names)\n    return found.known.get(names, 0), found.unknown",
])  # fmt: skip
def test_answers_that_are_read_by_half_are_found(body: str) -> None:
    assert list(answers.half_answers(source(f"def read(port, names):\n    {body}")))


@pytest.mark.parametrize("body", [
    "found = port.describe_topics(names)\n    return found.ok, found.failed",
    "found = read_topics(port, names)\n    return judged(found), found.known",
    "known, absent, unknown = read_topics(port, names)\n    return known",
    "host, _, port = text.partition(':')\n    return host",
    "found = read_topics(port, names)\n    return found.known.get(names), found.unknown",
    "found = read_topics(port, names)\n    return found.known.get(names, None), found.unknown",
])  # fmt: skip
def test_answers_that_are_read_as_a_whole_are_fine(body: str) -> None:
    assert not list(answers.half_answers(source(f"def read(port, names):\n    {body}")))


def test_log_directories_and_moves_are_read_by_functions_that_look_twice() -> None:
    readings = "src/kreassign/executor/cluster/readings.py"
    found = [finding for file in python(*DECIDING) for finding in answers.single_answers(file)]
    assert {finding.path for finding in found} == {readings}, "\n".join(map(str, found))


@pytest.mark.parametrize("line", [
    "client.describe_log_dirs([0])",
    "ask_twice(client.describe_log_dirs, [0])",
    "client.list_partition_reassignments()",
])  # fmt: skip
def test_calls_whose_answer_is_believed_at_once_are_found(line: str) -> None:
    assert list(answers.single_answers(source(line)))


def test_each_write_is_confirmed_by_the_lease_right_before_it_is_sent() -> None:
    assert_none(finding for file in python(*DECIDING) for finding in answers.unconfirmed_writes(file, WRITES))


@pytest.mark.parametrize(("line", "is_found"), [
    ("self._client.elect_leaders(partitions)", True),
    ("context.controllers.incremental_alter_configs(changes)", True),
    ("self._client.incremental_alter_configs(changes, validate_only=True)", False),
    ("self._client.unregister_broker(broker, confirm=confirm)", False),
    ("self._port = confirmed_writes(port, confirm)\nself._port.elect_leaders(partitions)", False),
    ("port.elect_leaders(partitions)", False),
])  # fmt: skip
def test_writes_by_a_port_that_is_not_confirmed_are_found(line: str, *, is_found: bool) -> None:
    assert bool(list(answers.unconfirmed_writes(source(line), WRITES))) is is_found


# Silenced checks


def test_silenced_checks_name_their_code_and_reason() -> None:
    assert_none(finding for file in every_python_file() for finding in shape.unexplained_silencers(file))


def test_silenced_checks_do_not_become_more() -> None:
    found = [finding for file in every_python_file() for finding in shape.silencers(file)]
    assert len(found) <= SILENCED_CHECKS, "\n".join(map(str, found))


@pytest.mark.parametrize("comment", [
    "noqa",
    "noqa: S608",
    "noqa: S608 - why",
    "type: ignore",
    "type: ignore[attr-defined]",
    "ruff: noqa: S608 - the whole file, for a reason",
])  # fmt: skip
def test_unexplained_silencers_are_found(comment: str) -> None:
    assert list(shape.unexplained_silencers(source(f"x = 1  # {comment}")))


@pytest.mark.parametrize("comment", [
    "noqa: S608, S607 - the table name is a constant",
    "type: ignore[attr-defined]  # kafka-python ships no types",
])  # fmt: skip
def test_explained_silencers_are_counted_but_fine(comment: str) -> None:
    file = source(f"x = 1  # {comment}")
    assert len(shape.silencers(file)) == 1
    assert not list(shape.unexplained_silencers(file))


def test_a_silencer_inside_a_text_is_none() -> None:
    assert not shape.silencers(source("x = '# noqa'"))


# Modules and packages


def test_every_module_is_reached_from_a_command() -> None:
    (pyproject,) = read("pyproject.toml")
    assert_none(whole.dead_modules(product(), whole.entry_points(pyproject.text)))


def test_package_files_only_re_export() -> None:
    files = python("src/kreassign", "testbed", "bench")
    assert_none(finding for file in files for finding in shape.package_files(file))


def test_everything_public_is_documented() -> None:
    assert_none(finding for file in shipped_and_run_by_hand() for finding in shape.undocumented(file))


def test_dead_modules_are_found() -> None:
    files = [
        source("def f():\n    from kreassign.b import x", "src/kreassign/a.py"),
        source("COMMAND = 'kreassign.c.d:main'", "src/kreassign/b.py"),
        source("", "src/kreassign/c/__init__.py"),
        source("from . import f", "src/kreassign/c/d.py"),
        source("", "src/kreassign/c/f.py"),
        source("import kreassign.a", "src/kreassign/dead.py"),
    ]
    assert [finding.path for finding in whole.dead_modules(files, ["kreassign.a"])] == ["src/kreassign/dead.py"]


def test_entry_points_are_read_from_the_project_file() -> None:
    assert whole.entry_points("[project.scripts]\nx = 'kreassign.cli.main:main'") == {"kreassign.cli.main"}


@pytest.mark.parametrize("text", [
    "from a import B",
    "from a import B, c\n__all__ = ['c', 'B']",
    "from a import B\n__all__ = ['B', 'C']",
    "from a import B\n__all__ = ['B']\nX = 1",
    "def f(): ...",
])  # fmt: skip
def test_package_files_that_do_more_are_found(text: str) -> None:
    assert list(shape.package_files(source(text, "src/kreassign/a/__init__.py")))


def test_plain_package_files_are_fine() -> None:
    text = '"""What it is."""\nfrom a import X_Y, b, C\n__all__ = ["X_Y", "C", "b"]\n__version__ = "1"'
    assert not list(shape.package_files(source(text, "src/kreassign/a/__init__.py")))


LATE = """
from importlib import import_module
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from a.b import C, d
_HOMES = {"C": "a.b", "d": "a.b"}
__all__ = ["C", "d"]
def __getattr__(name): ...
"""


def test_package_files_may_re_export_late() -> None:
    assert not list(shape.package_files(source(LATE, "src/kreassign/__init__.py")))


@pytest.mark.parametrize("text", [
    LATE.replace('["C", "d"]', '["C"]'),
    LATE.replace("__getattr__", "connect"),
    LATE + "def connect(): ...\n",
])  # fmt: skip
def test_package_files_that_do_more_than_re_export_late_are_found(text: str) -> None:
    assert list(shape.package_files(source(text, "src/kreassign/__init__.py")))


def test_undocumented_names_are_found() -> None:
    text = 'class A:\n    """A."""\n    def f(self): ...\n    def _g(self): ...\ndef h(): ...\ndef _i(): ...'
    found = [finding.text for finding in shape.undocumented(source(text))]
    assert found == [
        "the module says nothing about itself",
        "f has no documentation string",
        "h has no documentation string",
    ]


# The error tree


def test_the_drawn_error_tree_is_the_real_one() -> None:
    (errors,) = read("src/kreassign/errors.py")
    assert len(whole.drawn_errors(errors.text)) > 10
    assert_none(whole.differing_errors(errors))


ERRORS = '''"""Errors.

    Top
    ├── A        wrong; .path        exit 2
    │   └── B    worse
    └── C        last
"""
class Top(Exception): exit_code = 1
class A(Top):
    exit_code = 2
    def __init__(self): self.path = 1
class B(A): ...
class C(Top): ...
'''


@pytest.mark.parametrize(("before", "after"), [
    ("class B(A)", "class B(Top)"),
    ("exit_code = 2", "exit_code = 3"),
    ("self.path", "self.line"),
    ("class C(Top): ...\n", ""),
    ("    └── C        last\n", ""),
])  # fmt: skip
def test_differences_from_the_drawn_tree_are_found(before: str, after: str) -> None:
    assert not list(whole.differing_errors(source(ERRORS)))
    assert before in ERRORS
    assert len(list(whole.differing_errors(source(ERRORS.replace(before, after))))) == 1


# Machines and registries


def test_build_files_name_no_machine_and_no_registry() -> None:
    assert_none(finding for file in read(*BUILD_FILES) for finding in whole.hosts_and_paths(file))


def test_no_file_names_a_path_of_our_machine() -> None:
    assert_none(finding for file in read(*TEXTS, *BUILD_FILES) for finding in whole.machine_paths(file))


@pytest.mark.parametrize("line", [
    "click @ https://files.example.org/click.whl",
    "--extra-index-url https://x",
    "--find-links wheels",
    "click @ file:///wheels/click.whl",
    "<repositories>",
    "CACHE := /var/cache/pip",
    "home=/home" + "/somebody/x",
])  # fmt: skip
def test_hosts_and_paths_are_found(line: str) -> None:
    assert list(whole.hosts_and_paths(source(line, "constraints.txt")))


@pytest.mark.parametrize("line", [
    "#!/usr/bin/env bash",
    "click==8.1",
    '<project xmlns="http://maven.apache.org/POM/4.0.0">',
    "build/tmp/x: ; $(CURDIR)/tmp/x",
])  # fmt: skip
def test_what_every_machine_has_is_fine(line: str) -> None:
    assert not list(whole.hosts_and_paths(source(line, "Makefile")))


def test_paths_of_our_machine_are_found() -> None:
    assert list(whole.machine_paths(source("see /" + "root/notes")))
    assert not list(whole.machine_paths(source("see docs/root/x and /data/kafka")))


# Pages


def test_links_lead_somewhere() -> None:
    known, paths = pages(), every_path()
    assert_none(finding for page in known.values() for finding in whole.broken_links(page, known, paths))


def test_every_page_is_reached_from_the_map() -> None:
    docs = {path: page for path, page in pages().items() if path.startswith("docs/")}
    assert_none(whole.unreachable_pages(docs, "docs/README.md"))


def test_every_page_is_in_the_menu_of_the_site() -> None:
    docs = [path.removeprefix("docs/") for path in pages() if path.startswith("docs/")]
    assert_none(whole.pages_not_in_the_menu(docs, (ROOT / "mkdocs.yml").read_text()))


def test_every_command_has_its_section() -> None:
    assert_none(whole.undocumented_commands(commands(), pages()[COMMANDS_PAGE]))


def test_sections_name_the_options_of_their_commands() -> None:
    page = pages()[COMMANDS_PAGE]
    assert_none(finding for name in COMMANDS for finding in whole.options_that_differ(name, options_of(name), page))


def test_pages_show_only_commands_that_are_there() -> None:
    known = commands()
    assert known
    assert_none(finding for page in pages().values() for finding in whole.invented_commands(page, known))


def test_changes_are_written_as_fragments() -> None:
    names = {path.name for path in (ROOT / "changelog").iterdir()} - {"README.md"}
    assert not [name for name in names if not whole.is_fragment(name)]


@pytest.mark.parametrize("link", ["[x](b.md)", "[x](../a.md#no-such)", "[x](#nowhere)", "[x]: b.md"])
def test_broken_links_are_found_and_good_ones_left_alone(link: str) -> None:
    page = source(
        f"# Top\n\nSee [a](../a.md#a-title), [web](https://example.org), [up](#top).\n\n{link}\n", "docs/x/p.md"
    )
    known = {page.path: page, "docs/a.md": source("# `A` title!", "docs/a.md")}
    (finding,) = whole.broken_links(page, known, [page.path, "docs/a.md"])
    assert finding.line == 5


def test_links_inside_code_blocks_are_no_links() -> None:
    page = source("```\n[x](nowhere.md)\n```\n", "docs/p.md")
    assert not list(whole.broken_links(page, {}, []))


def test_unreachable_pages_are_found() -> None:
    known = {
        "docs/README.md": source("[a](x/a.md)"),
        "docs/x/a.md": source("[back](../README.md)"),
        "docs/x/b.md": source("[a](a.md)"),
    }
    assert [finding.path for finding in whole.unreachable_pages(known, "docs/README.md")] == ["docs/x/b.md"]


def test_pages_that_the_menu_does_not_name_are_found() -> None:
    menu = "nav:\n  - README.md\n  - Design:\n      - why/b.md\n      - Other: why/c.md\n"
    found = whole.pages_not_in_the_menu(["README.md", "why/a.md", "why/b.md", "why/c.md"], menu)
    assert [finding.path for finding in found] == ["docs/why/a.md"]


def test_commands_and_sections_that_do_not_match_are_found() -> None:
    main = source('C = {"plan": Lazy("kreassign.cli.commands.plan:plan", "Plan."), "other": 1}')
    assert whole.registered_commands(main) == {"plan"}
    page = source("# Commands\n\n## `kreassign plan`\n\n```\n$ kreassign plan\n$ kreassign dance\n```\n", "docs/p.md")
    assert not list(whole.undocumented_commands({"plan"}, page))
    assert list(whole.undocumented_commands({"plan", "run"}, page))
    assert [finding.line for finding in whole.invented_commands(page, {"plan"})] == [7]


def test_options_and_mentions_that_do_not_match_are_found() -> None:
    page = source("# X\n\n## kreassign plan\n\n`--out FILE`, `--old`\n\n## kreassign run\n\n`--new`\n", "docs/p.md")
    found = [str(finding) for finding in whole.options_that_differ("plan", {"--out", "--new"}, page)]
    assert len(found) == 2
    assert "docs/p.md:3: --new is not named in" in found[0]
    assert "docs/p.md:3: --old is named in" in found[1]
    assert not list(whole.options_that_differ("plan", {"--out", "--old"}, page))


@pytest.mark.parametrize("name", ["foundation.md", "foundation.new.md", "Foundation.added.md", "notes.txt"])
def test_badly_named_fragments_are_found(name: str) -> None:
    assert not whole.is_fragment(name)
    assert whole.is_fragment("foundation.added.md")
