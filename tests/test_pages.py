"""Pages tell the truth: what README, CONTRIBUTING, SECURITY and `docs/` name is there.

Each rule is tested twice: on the pages, and on a small page that breaks it.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from kreassign.cli.commands.plan import DEFAULT_TASK
from kreassign.cli.main import kreassign
from kreassign.executor.lease import GROUP_ID, OFFSETS_TOPIC
from kreassign.wire import api
from tests.checks import pages
from tests.checks.pages import Programs
from tests.checks.source import ROOT, Source, assert_none, product, read

TOOLS = ("kafka-reassign-partitions", "kafka-leader-election", "kafka-preferred-replica-election", "kafka-topics")
# Options of programs that are not ours, where a page speaks of them.
OTHER_OPTIONS = frozenset({
    "--archives", "--py-files", "--packages", "--option", "--add-config",
})  # fmt: skip
# kafka-topics of Kafka 2.8, which pages compare the twin with.
OLDER_OPTIONS = {"kafka-topics": frozenset({"--zookeeper"})}


def every_page() -> tuple[Source, ...]:
    return read("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "changelog/README.md")


@cache
def every_path() -> frozenset[str]:
    folders = [*pages.FOLDERS, ".ci"]
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    return frozenset(path.relative_to(ROOT).as_posix() for path in [*paths, *ROOT.glob("*")])


def tool_options(name: str) -> frozenset[str]:
    """The options in a drop-in tool's table."""
    table = ROOT / f"src/kreassign/kafka_tools/options/{name}.toml"
    return frozenset(f"--{option}" for option in tomllib.loads(table.read_text()))


@pytest.fixture(scope="module")
def programs() -> Programs:
    tools = {name: tool_options(name) | OLDER_OPTIONS.get(name, frozenset()) for name in TOOLS}
    return Programs(kreassign, tools, {"kreassign plan": DEFAULT_TASK})


def test_the_pages_and_the_programs_are_found(programs: Programs) -> None:
    assert len(every_page()) > 50
    assert {"--execute", "--verify"} <= programs.tools["kafka-reassign-partitions"]
    assert "--describe" in programs.tools["kafka-topics"]
    assert all("--help" in options for options in programs.tools.values())
    assert "--throttle" in programs.options()


def test_paths_on_pages_are_there() -> None:
    paths = every_path()
    assert_none(finding for page in every_page() for finding in pages.missing_paths(page, paths))


def test_modules_on_pages_can_be_imported() -> None:
    paths = every_path()
    assert_none(finding for page in every_page() for finding in pages.missing_modules(page, paths))


def test_make_targets_on_pages_are_there() -> None:
    (makefile,) = read("Makefile")
    assert_none(finding for page in every_page() for finding in pages.missing_targets(page, makefile.text))


def test_command_lines_on_pages_can_be_typed(programs: Programs) -> None:
    assert_none(finding for page in every_page() for finding in pages.wrong_command_lines(page, programs))


def test_commands_that_messages_of_the_product_name_can_be_typed(programs: Programs) -> None:
    found = [finding for file in product() for finding in pages.wrong_commands_in_strings(file, programs)]
    # `plan --check FILE` is turned into `plan check FILE` before anything is parsed.
    assert_none(one for one in found if one.text != "shows `kreassign plan rebalance --check`, which it does not have")


def test_options_on_pages_are_there(programs: Programs) -> None:
    assert_none(finding for page in every_page() for finding in pages.unknown_options(page, programs, OTHER_OPTIONS))


def test_paragraphs_on_pages_have_subjects_of_their_own() -> None:
    assert_none(finding for page in every_page() for finding in pages.continued_sentences(page))


def test_all_installed_commands_are_on_the_page_about_installing() -> None:
    (pyproject, page) = (*read("pyproject.toml"), *read("docs/start/install.md"))
    (scripts,) = re.findall(r"\[project\.scripts\]\n(.*?)\n\n", pyproject.text, re.DOTALL)
    names = re.findall(r"^([a-z-]+) = ", scripts, re.MULTILINE)
    assert len(names) == 5
    assert not [name for name in names if f"`{name}`" not in page.text]


# What the client asks for and changes nothing with. Every other API is a change of the cluster.
READS = frozenset({
    "ApiVersions", "DescribeCluster", "DescribeConfigs", "DescribeGroups", "DescribeLogDirs", "DescribeQuorum",
    "DescribeTopicPartitions", "Fetch", "ListOffsets", "ListPartitionReassignments", "Metadata", "OffsetFetch",
    "ReplicaStatus", "SaslAuthenticate", "SaslHandshake",
})  # fmt: skip


def test_every_record_in_a_cluster_is_on_the_security_page() -> None:
    (page,) = read("SECURITY.md")
    calls = "\n".join(
        translation.text for translation in read("src/kreassign/admin/*.py", "src/kreassign/admin/translate/*.py")
    )
    asked = {getattr(api, name).name for name in re.findall(r"\bapi\.([A-Z_\d]+)\b", calls)}
    assert asked >= READS
    assert sorted(name for name in asked - READS if name not in page.text) == []
    assert sorted(name for name in (GROUP_ID, OFFSETS_TOPIC) if f"`{name}`" not in page.text) == []


# The checks above must be able to fail.


def page_with(text: str) -> Source:
    return Source("docs/page.md", f"# Page\n\n{text}\n")


@pytest.mark.parametrize("text", [
    "`src/kreassign/gone.py`",
    "`executor/gone/`",
    "`tests/gone.toml`",
    "`gone.py`",
    "`tests/test_pages.py::test_gone`",
    "`tests/test_pages.py::TestGone::test_gone`",
    "`tests/test_pages.py::test_method_gone`",
    "`python scripts/gone.py`",
])  # fmt: skip
def test_paths_that_are_not_there_are_found(text: str) -> None:
    (finding,) = pages.missing_paths(page_with(text), every_path())
    assert "gone" in str(finding)
    assert finding.line == 3


@pytest.mark.parametrize("text", [
    "`admin/client.py`", "`src/kreassign/`", "`tests/test_pages.py::page_with`", "`client.py`", "`changelog/<x>.md`",
    "`tests/test_pages.py::test_targets_that_are_not_there_are_found[make gone]`",
    "`data/snapshots`", "`/brokers/ids`", "`plan.json`", "tests/gone.py",
])  # fmt: skip
def test_paths_that_are_there_and_examples_are_fine(text: str) -> None:
    assert not list(pages.missing_paths(page_with(text), every_path()))


@pytest.mark.parametrize(("name", "is_there"), [
    ("test_function", True),
    ("test_function[a_case]", True),
    ("test_function[another_case]", False),
    ("TestClass", True),
    ("TestClass::test_method", True),
    ("test_method", False),
    ("TestClass::test_function", False),
    ("TestClass::test_gone", False),
    ("test_inner", False),
    ("test_value", False),
])  # fmt: skip
def test_what_is_named_as_a_test_has_to_be_one_that_is_run(name: str, is_there: bool, tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(
        "test_value = 'a_case'\n"
        "def test_function():\n    def test_inner(): ...\n"
        "class TestClass:\n    def test_method(self): ...\n"
    )
    assert pages.has(str(path), name) is is_there


@pytest.mark.parametrize("text", [
    "`kreassign.gone`", "`kreassign.admin.Gone`", "```\nimport kreassign.gone\n```", "`python -m bench.gone`",
])  # fmt: skip
def test_modules_that_are_not_there_are_found(text: str) -> None:
    assert len(list(pages.missing_modules(page_with(text), every_path()))) == 1
    right = text.replace("kreassign.gone", "kreassign.errors").replace("Gone", "AdminClient").replace("gone", "process")
    assert not list(pages.missing_modules(page_with(right), every_path()))


@pytest.mark.parametrize("text", ["`make gone`", "`make SEEDS=1-3 gone`", "```\nmake gone\n```"])
def test_targets_that_are_not_there_are_found(text: str) -> None:
    makefile = "demo: ## x\n"
    assert len(list(pages.missing_targets(page_with(text), makefile))) == 1
    assert not list(pages.missing_targets(page_with(text.replace("gone", "demo")), makefile))


@pytest.mark.parametrize(("wrong", "right"), [
    ("kreassign gone", "kreassign verify"),
    ("kreassign verify --gone", "kreassign verify --command-config F"),
    ("kreassign plan gone", "kreassign plan rebalance"),
    ("kreassign plan --gone", "kreassign plan --out F"),
    ("kreassign plan --out F --gone", "kreassign plan --out gone"),
    ("kreassign verify a.json \\\n    --gone=3", "kreassign verify a.json \\\n    --command-config=3"),
    ("A=1 .venv/bin/kreassign --gone verify", "A=1 .venv/bin/kreassign --debug verify"),
    ("x | kafka-topics --gone", "x | kafka-topics --list"),
    ("kafka-reassign-partitions [--gone]", "kafka-reassign-partitions [--list]"),
])  # fmt: skip
def test_command_lines_that_cannot_be_typed_are_found(programs: Programs, wrong: str, right: str) -> None:
    block, span = f"```\n{wrong}\n```", f"`{wrong}`"
    for text in [block] if "\n" in wrong else [block, span]:
        assert len(list(pages.wrong_command_lines(page_with(text), programs))) == 1
        assert not list(pages.wrong_command_lines(page_with(text.replace(wrong, right)), programs))


@pytest.mark.parametrize(("wrong", "right"), [
    ("'cancel with `kreassign cancel --gone`'", "'cancel with `kreassign cancel --drain`'"),
    ("'`kreassign '\n'gone`'", "'`kreassign '\n'verify`'"),
    ("f'`kreassign forget {x} --gone`'", "f'`kreassign forget {x} --broker {y}`'"),
    ("'''See `kreassign plan\n--gone`.'''", "'''See `kreassign plan\n--out`.'''"),
])  # fmt: skip
def test_commands_in_strings_that_cannot_be_typed_are_found(programs: Programs, wrong: str, right: str) -> None:
    (finding,) = pages.wrong_commands_in_strings(Source("src/it.py", f"x = (\n{wrong}\n)"), programs)
    assert ("gone" in str(finding), finding.line) == (True, 2)
    assert not list(pages.wrong_commands_in_strings(Source("src/it.py", f"x = (\n{right}\n)"), programs))


def test_options_that_no_command_has_are_found(programs: Programs) -> None:
    (finding,) = pages.unknown_options(page_with("`--gone FILE`, `--list`, `--theirs`"), programs, {"--theirs"})
    assert "--gone" in str(finding)


@pytest.mark.parametrize(("after", "is_found"), [
    ("says what is wrong.", True),
    ("![a picture](a.png)\n\nsays what is wrong.", True),
    ("`doctor` says what is wrong.", False),
    ("kreassign's own commands read it strictly.", False),
])  # fmt: skip
def test_half_sentences_after_blocks_are_found(after: str, is_found: bool) -> None:
    page = Source("page.md", f"```sh\nkreassign doctor\n```\n\n{after}\n")
    assert bool(list(pages.continued_sentences(page))) == is_found
