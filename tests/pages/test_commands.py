"""Commands on pages work as they stand there: each page's are given in order, on a twin, in a folder of their own."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kreassign.operations.twin import Serving, faults_of, scenario_of
from kreassign.twin.serving import serving_scenario
from testbed.ports import HOST
from tests.checks.page_commands import PageCommands, commands_of, lines_not_there
from tests.checks.source import ROOT
from tests.leftovers import VARIABLE as MARK
from tests.pages.shell import Told, run_steps

PageWith = Callable[[str], Path]
FOLDERS = ("start", "guides", "incidents")
PAGES = sorted([ROOT / "README.md", *(page for folder in FOLDERS for page in (ROOT / "docs" / folder).glob("*.md"))])
# Blocks that are not run. Lower this number whenever one can be; raise it only with a reason that a reviewer accepts.
LEFT_OUT = 39

ADDRESS = re.compile(r"\b(broker-1|localhost|127\.0\.0\.1):9092\b")
ROWS_OF_PORTS = range(20_000, 32_000, 12)
PORT = re.compile(r"\b(19092|9405|8085)\b")
RUN = re.compile(r"\bRUN_ID\b(?!=)|\b2027013[01]T\d{6}Z-1a2b3c4d\b")
# Commands that need a place for tables, and do not say which.
PLACELESS = re.compile(r"kreassign (?:collect|load|show-load|snapshot)\b(?![^&|;]*--(?:data|out)\b)")
# A page says what is worth measuring; here it is to be quick.
WAIT = re.compile(r"--interval \d+s")
# What readers would set as they like: what is asked, how long is measured, and how often looked.
SETTINGS = {
    "KREASSIGN_YES": "1",
    "KREASSIGN_MEASURE_FOR": "0.3",
    "KREASSIGN_POLL_INTERVAL": "0.2",
    "KREASSIGN_DATA": "data",
    "COLUMNS": "120",
}


def commands_on(page: Path) -> PageCommands:
    return commands_of(page.read_text(encoding="utf-8"))


def cases() -> Iterator[object]:
    for page in PAGES:
        found = commands_on(page)
        if any(step.commands for step in found.to_run()):
            marks = [getattr(pytest.mark, name) for name in found.needs]
            yield pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@contextmanager
def rows_of_ports(count: int) -> Iterator[list[int]]:
    """The first ports of rows that nobody else takes while the block runs; the nodes of a twin get those after it.

    The last port of a row stays bound: other processes of tests see by it that the row is taken. None is of those that
    the system gives to whoever asks for any.
    """
    with ExitStack() as held:
        firsts: list[int] = []
        for first in Random().sample(ROWS_OF_PORTS, len(ROWS_OF_PORTS)):
            *row, last = range(first, first + ROWS_OF_PORTS.step)
            holder = held.enter_context(socket.socket())
            with suppress(OSError):
                holder.bind((HOST, last))
                firsts += [first] if all(map(is_free, row)) else []
            if len(firsts) == count:
                break
        yield firsts


def is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def as_here(commands: str, bootstrap_servers: str, ports: dict[str, str]) -> str:
    """Commands with what stands for a reader's own cluster, run and ports replaced by those of the test."""
    named = ADDRESS.sub(bootstrap_servers, commands)
    named = PORT.sub(lambda port: ports[port[1]], named)
    return WAIT.sub("--interval 0.3s", RUN.sub("$(latest-run)", named))


def run_page(page: Path, folder: Path) -> list[Told]:
    """Give the commands of a page; what came of each."""
    commands = commands_on(page)
    home = folder / "home"
    home.mkdir()
    for name in ("examples", "constraints.txt"):
        (home / name).symlink_to(ROOT / name)
    scenario = ROOT / "src/kreassign/twin/scenarios" / f"{commands.scenario}.toml"
    serving = Serving(speed=commands.speed, faults=faults_of(commands.faults), control_port=0)
    with (
        rows_of_ports(3) as firsts,
        serving_scenario(scenario_of(scenario), serving, scenario.parent) as served,
    ):
        ports = dict(zip(("19092", "9405", "8085"), map(str, firsts), strict=True))
        control = served.server.control_address
        assert control is not None
        environment = (
            {name: value for name, value in os.environ.items() if not name.startswith("KREASSIGN_") or name == MARK}
            | SETTINGS
            | {
                "HOME": str(home),
                "KREASSIGN_CONFIG": os.devnull,
                "KREASSIGN_STATE_DIR": str(folder / "state"),
                "KREASSIGN_BOOTSTRAP_SERVER": served.bootstrap_servers,
                "KREASSIGN_CONTROL": f"{control.host}:{control.port}",
                "KREASSIGN_LISTEN": "127.0.0.1:0",
                "KREASSIGN_PORT": "0",
            }
        )
        steps = [
            replace(step, commands=as_here(step.commands, served.bootstrap_servers, ports))
            for step in commands.to_run()
        ]
        return run_steps(steps, home, environment, folder / "out")


@pytest.mark.thorough
@pytest.mark.parametrize("page", list(cases()))
def test_commands_work_as_they_stand_on_the_page(page: Path, tmp_path: Path) -> None:
    found = run_page(page, tmp_path)
    failed = [str(told) for told in found if not told.is_as_expected()]
    assert not failed, "\n".join(failed)
    assert len(found) == len(commands_on(page).to_run())
    wrong = [
        (told.step.line, line) for told in found for line in lines_not_there(told.step.shown, told.stdout + told.stderr)
    ]
    assert wrong == [], [told.stdout for told in found if told.step.shown]


def test_blocks_name_their_language_and_exceptions_have_reasons() -> None:
    pages = {str(page.relative_to(ROOT)): commands_on(page) for page in PAGES}
    assert len(pages) > 40
    assert [f"{name}:{wrong}" for name, found in pages.items() for wrong in found.wrong] == []
    left_out = [step for found in pages.values() for step in found.steps if step.reason_not_to]
    assert len(left_out) == LEFT_OUT


def placeless(page: Path) -> Iterator[str]:
    """Commands on a page that work only because the tests set `KREASSIGN_DATA`."""
    before = ""
    for step in commands_on(page).steps:
        for line in step.commands.replace("\\\n", " ").splitlines():
            if PLACELESS.search(line) and "export KREASSIGN_DATA" not in before:
                yield f"{page.name}:{step.line}: {line}"
            before += line


def test_commands_that_need_a_place_for_tables_say_which() -> None:
    assert [line for page in PAGES for line in placeless(page)] == []


# The tests above must be able to fail.


@pytest.fixture
def page_with(tmp_path: Path) -> PageWith:
    def made(text: str) -> Path:
        page = tmp_path / "page.md"
        page.write_text(text, encoding="utf-8")
        return page

    return made


def test_commands_without_a_place_for_tables_are_found(page_with: PageWith) -> None:
    page = page_with(
        "```sh\nkreassign snapshot && kreassign collect --data d\nexport KREASSIGN_DATA=d\nkreassign load\n```\n"
    )
    (found,) = placeless(page)
    assert found == "page.md:1: kreassign snapshot && kreassign collect --data d"


@pytest.mark.thorough
def test_the_first_command_that_fails_ends_its_page(page_with: PageWith, tmp_path: Path) -> None:
    page = page_with("```sh\nfalse\ntrue\n```\n\n```sh\ntrue\n```\n")
    (told,) = run_page(page, tmp_path)
    assert not told.is_as_expected()


@pytest.mark.thorough
def test_an_exit_code_that_a_page_names_is_asked_for(page_with: PageWith, tmp_path: Path) -> None:
    page = page_with(
        "<!-- exit code: 2 -->\n```sh\nkreassign run\n```\n\n<!-- exit code: 3 -->\n```sh\nkreassign run\n```\n"
    )
    assert [told.is_as_expected() for told in run_page(page, tmp_path)] == [True, False]


@pytest.mark.thorough
def test_commands_share_folder_variables_and_cluster(page_with: PageWith, tmp_path: Path) -> None:
    page = page_with(
        "<!-- first\nexport WHAT=topics\n-->\n"
        "```sh\nkafka-topics --bootstrap-server broker-1:9092 --list > $WHAT\n```\n\n"
        "```sh\ngrep -x payments topics\n```\n"
    )
    assert [(told.exit_code, told.stdout) for told in run_page(page, tmp_path)] == [(0, ""), (0, ""), (0, "payments\n")]


@pytest.mark.thorough
def test_what_serves_is_waited_for_and_ended_with_its_page(page_with: PageWith, tmp_path: Path) -> None:
    page = page_with("<!-- until: bootstrap servers -->\n```sh\nkreassign twin start\n```\n\n```sh\necho after\n```\n")
    served, after = run_page(page, tmp_path)
    (line,) = [line for line in served.stdout.splitlines() if line.startswith("bootstrap servers: ")]
    host, _, port = line.removeprefix("bootstrap servers: ").split(",")[0].partition(":")
    assert after.stdout == "after\n"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


@pytest.mark.thorough
def test_what_ends_before_it_serves_fails(page_with: PageWith, tmp_path: Path) -> None:
    page = page_with("<!-- until: bootstrap servers -->\n```sh\necho something else\n```\n")
    assert [told.exit_code for told in run_page(page, tmp_path)] == [None]
