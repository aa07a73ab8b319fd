import pytest

from kreassign.twin.access import Users

USERS = Users({"alice": "secret"})


def test_the_right_password_gives_the_name() -> None:
    assert USERS.judge(b"\0alice\0secret") == ("alice", None)
    assert USERS.judge(b"alice\0alice\0secret") == ("alice", None)


@pytest.mark.parametrize(("token", "refusal"), [
    (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    (b"\0alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
    (b"\0alice\0secret\0more\0and more", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    (b"\0\0secret", "Authentication failed: username not specified"),
    (b"\0alice\0", "Authentication failed: password not specified"),
    (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
    (b"\0bob\0secret", "Authentication failed: Invalid username or password"),
    (b"bob\0alice\0secret",
     "Authentication failed: Client requested an authorization id that is different from username"),
    (b"\0alice\0\xff\xfe", "Authentication failed: Invalid username or password"),
])  # fmt: skip
def test_anything_else_is_refused_in_the_words_of_kafka(token: bytes, refusal: str) -> None:
    assert USERS.judge(token) == (None, refusal)


def test_passwords_are_not_printed() -> None:
    assert "secret" not in repr(USERS)
    assert "alice" in repr(USERS)
