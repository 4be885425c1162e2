"""A name stands once before the reason that is told of it."""

from __future__ import annotations

import pytest

from keptlog.log.words.named import named, named_lines, unnamed


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("a file is gone", "users-0: a file is gone"),
        ("users-0: a file is gone", "users-0: a file is gone"),
        ("users-0 is closed", "users-0 is closed"),
        ("topic users-0: a file is gone", "topic users-0: a file is gone"),
        ("users-01: a file is gone", "users-0: users-01: a file is gone"),
        ("users-0.b: a file is gone", "users-0: users-0.b: a file is gone"),
        ("there is no topic 'users-0'", "there is no topic 'users-0'"),
        ("there is no topic 'users-01'", "users-0: there is no topic 'users-01'"),
    ],
)
def test_a_reason_that_says_the_name_itself_is_left_as_it_is(reason: str, told: str) -> None:
    assert named("users-0", reason) == told


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("topic users: a file is gone", "a file is gone"),
        ("users: a file is gone", "a file is gone"),
        ("topic users has no file", "topic users has no file"),
        ("two\nlines", "two lines"),
    ],
)
def test_behind_a_name_the_reason_does_not_say_it_again(reason: str, told: str) -> None:
    assert unnamed("users", reason) == told


def test_reasons_stand_in_the_order_of_their_names() -> None:
    assert named_lines({"b": "b: it is late", "a": "it is gone"}) == ["a: it is gone", "b: it is late"]
