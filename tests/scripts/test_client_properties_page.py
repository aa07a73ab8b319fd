from kreassign.admin.properties import CLIENT_KEYS
from scripts.client_properties_page import BEGIN, END, PAGE, with_tables


def test_the_page_is_what_the_script_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page
    tables = page[page.index(BEGIN) : page.index(END)]
    assert all(tables.count(f"| `{key.name}` |") == 1 for key in CLIENT_KEYS)
