"""The passes of the search, as the documentation lists them."""

import re
from pathlib import Path

from kreassign.planner.search.search import PASSES

PAGE = Path("docs/concepts/planning.md")


def test_the_documentation_lists_the_passes_in_their_order() -> None:
    section = PAGE.read_text().partition("## The passes\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\d+\. \*\*(.+?)\.?\*\*", section, re.MULTILINE)
    assert listed == [*(one.name for one in PASSES), "Log directories"]
