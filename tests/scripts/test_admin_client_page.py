"""The reference of the client is what its docstrings say."""

from __future__ import annotations

from kreassign.admin import AdminClient
from scripts.admin_client_page import JAVA, PAGE, admin_client_page, public_methods


class Client:
    """A client."""

    def ask(self, what: str, *, timeout_ms: int | None = None) -> str:
        """Ask for something.

        Errors: none.
        """
        return f"{what} {timeout_ms}"

    def _hidden(self) -> None:
        """Not shown."""


SECTION = """\
| `askFor` | [`ask`](#ask) |

## Methods

### ask

```python
ask(what: str, *, timeout_ms: int | None = None) -> str
```

Ask for something.

Errors: none.
"""


def test_a_method_becomes_a_section_and_hidden_ones_are_left_out() -> None:
    assert admin_client_page(Client, {"askFor": "ask"}).endswith(SECTION)


def test_every_method_of_java_leads_to_one_that_is_there() -> None:
    assert set(JAVA.values()) <= public_methods(AdminClient).keys()


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == admin_client_page()
