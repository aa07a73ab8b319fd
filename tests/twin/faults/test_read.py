"""Faults as people write them, and what is refused."""

from __future__ import annotations

import random
import re
import tomllib
from typing import Any

import pytest

from kreassign.errors import InputError
from kreassign.twin.faults import PlannedFault, draw_faults, read_fault, read_faults
from kreassign.twin.faults.kinds import KINDS
from kreassign.wire import api
from tests.checks.source import read
from tests.twin.asking import twin

ALTER = api.ALTER_PARTITION_REASSIGNMENTS.key
SYNTAX_PAGE = "docs/reference/faults.md"
GUIDE = "docs/guides/break-the-twin.md"


@pytest.mark.parametrize(("text", "values", "at_ms", "lasts_ms"), [
    ("crash:2@60s+30s", (2,), 60_000, 30_000),
    ("crash:2@60", (2,), 60_000, None),
    ("stop:0@1.5m+2h", (0,), 90_000, 7_200_000),
    ("freeze:1@0+250ms", (1,), 0, 250),
    ("cut:1:3@1s", (1, 3), 1_000, None),
    ("stale:1@1s+1m", (1, None), 1_000, 60_000),
    ("stale:1:10@1s", (1, 10), 1_000, None),
    ("slow:1:/data/1/d0:0.1@1s", (1, "/data/1/d0", 0.1), 1_000, None),
    ("fail:1:/data/1@d0@1s", (1, "/data/1@d0"), 1_000, None),
    ("failover@1s", (), 1_000, None),
    ("failover-in:alterpartitionreassignments@1s", (ALTER,), 1_000, None),
    ("lose@1s", (None, None), 1_000, None),
    ("lose:any:2@1s", (None, 2), 1_000, None),
    ("delay:3s:any:any@1s", (3_000, None, None), 1_000, None),
    ("refuse:89:AlterPartitionReassignments@1s", (89, ALTER, None), 1_000, None),
    ("refuse-after:unknown_server_error:AlterPartitionReassignments:2@1s", (-1, ALTER, 2), 1_000, None),
    ("stale-answers:AlterPartitionReassignments:any:3@1s", (ALTER, None, 3), 1_000, None),
    ("clear-throttles@1s", (None,), 1_000, None),
    ("set-throttles:500@1s", (500,), 1_000, None),
    ("list-replica:a.b:0:3@1s", ("a.b", 0, 3), 1_000, None),
    ("move:orders:0:2,3@1s", ("orders", 0, (2, 3)), 1_000, None),
    ("step-clock:-1h@1s", (-3_600_000,), 1_000, None),
    ("step-clock:+500ms@1s", (500,), 1_000, None),
    ("suspend:2m@1s", (120_000,), 1_000, None),
])  # fmt: skip
def test_a_text_says_what_breaks_when_and_for_how_long(
    text: str, values: tuple[object, ...], at_ms: int, lasts_ms: int | None
) -> None:
    kind = re.split("[:@]", text)[0]
    assert read_fault(text) == PlannedFault(kind, values, at_ms, lasts_ms)


def test_tables_and_texts_of_a_file_say_the_same() -> None:
    tables: list[dict[str, Any] | str] = [
        {"kind": "slow", "at": 60, "lasts": "1.5m", "broker": 1, "path": "/d0", "factor": 0.5},
        {"kind": "delay", "at": "1s", "by": "3s", "api": "Metadata"},
        "crash:2@3s",
    ]
    texts = ("slow:1:/d0:0.5@60s+90s", "delay:3s:Metadata@1s", "crash:2@3s")
    assert read_faults(tables) == tuple(map(read_fault, texts))


@pytest.mark.parametrize(("entry", "text"), [
    ("crash:2", "does not say when; write for example crash:2@60s"),
    ("explode:2@1s", "is of no kind that the twin knows: crash, stop, freeze"),
    ("crash@1s", "does not say broker; its form is crash:BROKER@AT"),
    ("crash:2:3@1s", "has too many parts; its form is crash:BROKER@AT"),
    ("stale@1s", r"its form is stale:BROKER\[:BEHIND\]@AT"),
    ("crash:two@1s", "broker 'two' is no number"),
    ("crash:-2@1s", "broker '-2' is no number"),
    ("crash:2@soon", "at 'soon' is no time"),
    ("crash:2@1s+", "lasts '' is no time"),
    ("slow:1:d0:0.1@1s", "path 'd0' is no absolute path"),
    ("slow:1:/d0:fast@1s", "factor 'fast' is no number"),
    ("lose:DeleteRecords@1s", "api 'DeleteRecords' is no API of the twin"),
    ("refuse:0:Metadata@1s", "error '0' is no error of Kafka"),
    ("refuse:29:any@1s", "api 'any' must be one API"),
    ("move:orders:0:2,x@1s", "replicas '2,x' is no number"),
    ("step-clock:back@1s", "by 'back' is no time"),
    ({"at": 1, "broker": 2}, "has no kind"),
    ({"kind": "crash", "broker": 2}, "has no at"),
    ({"kind": "crash", "at": 1, "broker": 2, "dir": "/d0"}, "says dir; its form is crash:BROKER"),
    ({"kind": "crash", "at": 1, "broker": True}, "broker true is no number"),
    ({"kind": "crash", "at": 1, "broker": 1.5}, "broker 1.5 is no number"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_with_the_entry(entry: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        read_faults([entry])


def test_faults_drawn_at_random_are_the_same_for_the_same_seed() -> None:
    box = twin()
    drawn = [draw_faults(random.Random(seed), box, 200, 60_000) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert KINDS.keys() - {one.kind for one in drawn[0]} == {
        "isolate", "cut-remote", "clear-lists", "list-replica", "move", "cancel-moves", "recreate", "delete",
        "step-clock", "suspend",
    }  # fmt: skip
    for one in drawn[0]:
        one.check(box)


def test_the_reference_has_every_kind_in_its_form() -> None:
    (page,) = read(SYNTAX_PAGE)
    forms = {
        name: name + "".join(f":{one.name.upper()}" if one.is_needed else f"[:{one.name.upper()}]"
                             for one in kind.parameters)
        for name, kind in KINDS.items()
    }  # fmt: skip
    rows = [line.split("`")[1] for line in page.lines if line.startswith("| `")]
    assert rows == list(forms.values())


def example(path: str, language: str) -> str:
    """The first block of code of a page."""
    (page,) = read(path)
    found = re.search(rf"^```{language}\n(.*?)^```", page.text, re.DOTALL | re.MULTILINE)
    assert found, path
    return found[1]


def test_the_table_that_the_reference_shows_is_read() -> None:
    tables = tomllib.loads(example(SYNTAX_PAGE, "toml"))["faults"]
    assert read_faults(tables) == (read_fault("slow:1:/data/1/d0:0.1@60s+10m"),)


def test_what_the_guide_shows_runs() -> None:
    names: dict[str, Any] = {}
    exec(example(GUIDE, "python"), names)
    names["twin"].advance(10_000)
    assert names["twin"].is_frozen(1)
