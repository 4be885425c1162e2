"""What is stored as JSON comes back as it was; unknown fields are read over, and nonsense says where it is."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from keptlog.errors import InvariantViolated, LogCorrupt
from keptlog.table.metadata.stored_json import from_json, from_json_file, to_json


@dataclass(frozen=True, slots=True)
class Wheel:
    inches: int


@dataclass(frozen=True, slots=True)
class Cart:
    """One of each that may be stored."""

    name: str
    wheels: tuple[Wheel, ...]
    owner: str | None = None
    spokes: tuple[int, ...] = ()


CART = Cart("hay", (Wheel(26), Wheel(28)), None, (36, 40))


def read(text: str) -> Cart:
    return from_json(Cart, text, "topic t: property log.cart", "cart", "build another one")


@pytest.mark.parametrize("cart", [CART, Cart("", ()), Cart("ä\n", (), "ada")])
def test_what_was_stored_comes_back(cart: Cart) -> None:
    assert read(to_json(cart)) == cart


def test_fields_that_are_not_known_are_read_over_at_every_depth() -> None:
    stored = json.loads(to_json(CART)) | {"colour": {"name": "blue"}, "": None}
    stored["wheels"][1]["brake"] = [1, 2]
    assert read(json.dumps(stored)) == CART


def test_a_field_with_a_default_may_be_missing() -> None:
    assert read('{"name": "hay", "wheels": []}') == Cart("hay", ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not JSON"),
        ('{"name": "hay"', "it is not JSON"),
        ("[]", r"it is \[\], not an object"),
        ("null", "it is None, not an object"),
        ("{}", "it has no name"),
        ('{"name": "hay"}', "it has no wheels"),
        ('{"name": 7, "wheels": []}', "name: it is 7, not text"),
        ('{"name": null, "wheels": []}', "name: it is None, not text"),
        ('{"name": "hay", "wheels": {}}', "wheels: it is {}, not a list"),
        ('{"name": "hay", "wheels": [{"inches": "26"}]}', "wheels: inches: it is '26', not a whole number"),
        ('{"name": "hay", "wheels": [{"inches": 26.0}]}', "wheels: inches: it is 26.0, not a whole number"),
        ('{"name": "hay", "wheels": [{"inches": true}]}', "wheels: inches: it is True, not a whole number"),
        ('{"name": "hay", "wheels": [{}]}', "wheels: it has no inches"),
        ('{"name": "hay", "wheels": [], "owner": 7}', "owner: it is 7, not text"),
    ],
)
def test_what_is_missing_or_of_another_type_is_refused_with_the_name_the_value_and_the_remedy(
    text: str, why: str
) -> None:
    with pytest.raises(LogCorrupt, match=rf"^topic t: property log\.cart=.* is no cart \({why}\); build another one$"):
        read(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": None},
        {"name": 7},
        {"wheels": (Wheel(26.0),)},  # type: ignore[arg-type]
        {"wheels": (Wheel(np.int64(26)),)},  # type: ignore[arg-type]
        {"spokes": (True,)},
        {"spokes": 36},
        {"owner": b"ada"},
    ],
)
def test_what_would_be_refused_when_it_is_read_is_not_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvariantViolated, match=r"^Cart can't be stored, for it could not be read again"):
        to_json(replace(CART, **wrong))


def test_a_message_shows_no_more_than_the_beginning_of_a_long_value() -> None:
    with pytest.raises(LogCorrupt, match="is no cart") as refused:
        read(json.dumps({"name": 10**1000, "wheels": ["x" * 100_000]}))
    assert len(str(refused.value)) < 2000


def test_several_may_be_stored_as_a_list() -> None:
    assert from_json(tuple[Wheel, ...], '[{"inches": 1, "brake": 2}]', "w", "wheels", "") == (Wheel(1),)
    with pytest.raises(LogCorrupt, match=r"it is {}, not a list"):
        from_json(tuple[Wheel, ...], "{}", "w", "wheels", "")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is not JSON"),
        (b"\xff\x00", "it is not JSON"),
        (b"[1, 2", "it is not JSON"),
        (b"{}", "it has no inches"),
    ],
)
def test_a_file_that_is_none_is_refused_by_its_name_alone(content: bytes, why: str) -> None:
    with pytest.raises(LogCorrupt) as refused:
        from_json_file(Wheel, content, "wheel.json", "wheel", "throw it away")
    assert str(refused.value) == f"wheel.json is no wheel ({why}); throw it away"
