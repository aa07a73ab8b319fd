#!/usr/bin/env python3
"""Write the tables of docs/reference/client-properties.md from the table of Kafka's client properties.

python scripts/client_properties_page.py
"""

from __future__ import annotations

from pathlib import Path

from kreassign.admin.properties import CLIENT_KEYS, ClientKey, Use

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "client-properties.md"
BEGIN = "<!-- Written by scripts/client_properties_page.py from src/kreassign/admin/properties.py. -->"
END = "<!-- End of what is written. -->"

_HEADS = {
    Use.HEARD: "### Heard\n\n| Key | Default | Meaning here |\n|---|---|---|",
    Use.IGNORED: "### Accepted without effect\n\n| Key | Why nothing is lost |\n|---|---|",
    Use.REFUSED: "### Refused\n\n| Key | Why |\n|---|---|",
}


def with_tables(page: str) -> str:
    """The page with its tables as the code has them."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = "\n\n".join("\n".join([_HEADS[use], *(_row(key) for key in CLIENT_KEYS if key.use is use)]) for use in Use)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def _row(key: ClientKey) -> str:
    cells = [f"`{key.name}`", *([key.default] if key.use is Use.HEARD else []), key.text]
    if key.use is Use.REFUSED and key.default:
        cells[-1] += f"; its default `{key.default}` is accepted"
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
