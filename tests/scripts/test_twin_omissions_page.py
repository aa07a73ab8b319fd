"""The page of the twin's omissions is what the headers of its handlers say, and those say what the code does."""

from __future__ import annotations

import pytest

from kreassign.twin.api.handlers import HANDLERS
from kreassign.twin.api.request import Handler
from scripts.twin_omissions_page import PAGE, documented, header, offered, omissions_page

TEXT = """Dance: moves the partitions to music.

Permission: none,
and no shame.

Behaviour:
- Steps are counted.

Left out:
- Tango, which needs two
  nodes.
- Waltz.
"""


def test_a_header_is_read() -> None:
    said = header(TEXT)
    assert (said.name, said.summary) == ("Dance", "moves the partitions to music.")
    assert said.permission == "none, and no shame."
    assert said.behaviour == ("Steps are counted.",)
    assert said.left_out == ("Tango, which needs two nodes.", "Waltz.")


@pytest.mark.parametrize("missing", ["Dance: ", "Permission: ", "Behaviour:", "Left out:"])
def test_a_header_without_one_of_its_parts_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match=r"begin a header|must list"):
        header(TEXT.replace(missing, ""))


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.api.name)
def test_each_header_names_its_api(handler: Handler) -> None:
    assert documented(handler).name == handler.api.name


def test_every_offered_api_has_a_handler_and_every_handler_is_offered() -> None:
    assert all(offered(handler.api.key) != "None" for handler in HANDLERS)
    assert offered(46) == "0"
    assert offered(75) == "none on 3.7; 0 on 3.9, 4.2, 4.3, 4.4"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == omissions_page(), "run `python scripts/twin_omissions_page.py`"
