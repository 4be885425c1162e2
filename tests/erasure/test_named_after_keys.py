"""What a request says of itself is stored for good, so it is refused if a key stands in it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from keptlog.errors import InvalidConfig
from tests.erasure.world import KEY, World, new_id

CUSTOMER = b"customer-0007"


def asked(world: World, key: bytes, *, by_hash: bool = False, **said: str) -> Any:
    if by_hash:
        return world.ask_by_hash(world.eraser.hash_of(key), **said)
    return world.ask(key, **said)


@pytest.mark.parametrize("by_hash", [False, True])
@pytest.mark.parametrize(
    ("key", "said"),
    [
        (CUSTOMER, {"id": "customer-0007"}),
        (CUSTOMER, {"id": "erase-customer-0007"}),
        (CUSTOMER, {"id": "customer-0007.again"}),
        (b"7", {"id": "erase_7"}),
        (b"user 7", {"reason": "user 7 wants to be forgotten"}),
        (KEY, {"reason": f"because of <{KEY.decode()}>, see the ticket"}),
        ("Łukasz".encode(), {"reason": "on behalf of Łukasz"}),
        (b"550e8400-e29b-41d4-a716-446655440000", {"id": "550e8400-e29b-41d4-a716-446655440000"}),
        (bytes.fromhex("550e8400e29b41d4a716446655440000"), {"id": "550e8400-e29b-41d4-a716-446655440000"}),
        (b"\xff\x00\x07", {"id": "erase-ff0007"}),
        (b"\xff\x00\x07", {"id": "erase-FF0007"}),
    ],
)
def test_a_request_that_names_a_key_is_refused_and_nothing_is_stored(
    world: World, key: bytes, said: dict[str, str], *, by_hash: bool
) -> None:
    world.create()
    with pytest.raises(InvalidConfig, match=r"has a key in it, and would be stored") as refused:
        asked(world, key, by_hash=by_hash, **said)
    assert world.register_files == []
    assert all(text not in str(refused.value) for text in said.values())


@pytest.mark.parametrize("said", [{"id": "erasecustomer-0007x"}, {"reason": "theirs:customer-00071"}])
def test_a_key_that_is_given_as_it_is_is_found_within_a_word_too(world: World, said: dict[str, str]) -> None:
    world.create()
    with pytest.raises(InvalidConfig, match="has a key in it"):
        world.ask(CUSTOMER, **said)


@pytest.mark.parametrize("by_hash", [False, True])
@pytest.mark.parametrize(
    ("key", "said"),
    [
        (b"7", {"id": "request-4711", "reason": "ticket 4711"}),
        (b"a", {"id": "request-4711", "reason": "he has asked"}),
        (b"", {"id": "r1", "reason": "an empty key"}),
        (b"\xff\xfe", {"id": "r1", "reason": "a key that is no text"}),
    ],
)
def test_letters_that_a_short_key_has_too_are_no_key(
    world: World, key: bytes, said: dict[str, str], *, by_hash: bool
) -> None:
    world.create()
    assert asked(world, key, by_hash=by_hash, **said).failed == {}


@pytest.mark.parametrize("by_hash", [False, True])
def test_an_id_that_chance_has_made_names_nobody(world: World, *, by_hash: bool) -> None:
    world.create()
    for made in (new_id(), str(uuid.uuid4())):
        assert asked(world, made[9:13].encode(), by_hash=by_hash, id=made).failed == {}
