"""The changelog is put together from fragments."""

from __future__ import annotations

from scripts.changelog import section, with_section

FRAGMENTS = {
    "b-thing.fixed.md": "Fixed b.\n",
    "z-thing.added.md": "Added z,\nin two lines.\n",
    "a-thing.added.md": "Added a.",
}
SECTION = """\
## 0.1.0 (2027-01-31)

### Added

- Added a.
- Added z,
  in two lines.

### Fixed

- Fixed b.
"""


def test_a_section_sorts_fragments_by_kind_and_slug() -> None:
    assert section("0.1.0", "2027-01-31", FRAGMENTS) == SECTION


def test_the_first_section_goes_to_the_end() -> None:
    assert with_section("# Changelog\n\nIntroduction.\n", "## 1\n") == "# Changelog\n\nIntroduction.\n\n## 1\n"


def test_a_new_section_goes_before_the_older_ones() -> None:
    older = "# Changelog\n\nIntroduction.\n\n## 1\n\n- one\n"
    assert with_section(older, "## 2\n\n- two\n") == "# Changelog\n\nIntroduction.\n\n## 2\n\n- two\n\n## 1\n\n- one\n"
